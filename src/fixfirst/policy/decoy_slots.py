"""The decoys worth placing on each host, and the slots they have.

A *slot* is a position in the lists of decoys, counted host by host; the decoys that can be placed and are in no list, one
per host at most, have spare slots behind them. A set of slots is an integer bit mask, as sets of hosts are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType

import numpy as np

from fixfirst.game import parts, tables
from fixfirst.game.scenario import Scenario


def _can_be_placed(decoy: parts.Decoy, host: parts.Host) -> bool:
    """Can the decoy be placed on the untouched host?"""
    return host.listed and host.reached and decoy.fits(host) and decoy.needs_free not in host.ports


def _weight_fooled(decoy: parts.Decoy, host: parts.Host, scenario: Scenario) -> float:
    """Return the weight of the exploit that the decoy fools on the untouched host; 0 if it fools none."""
    if not _can_be_placed(decoy, host) or decoy.opens in host.ports:
        return 0.0
    return max((e.weight for e in scenario.exploits if (e.port, e.kind) == (decoy.opens, decoy.kind)), default=0.0)


@dataclass(frozen=True)
class DecoySlots:
    """The decoys of a scenario that are worth placing, host by host, and the slots they have.

    A decoy is worth placing if, in every variant, it can be placed on the untouched host and an exploit then finds it on a
    port where no real service answers. The one that fools the exploit red prefers comes first. All decoys of a list need
    different ports, so each can be placed whichever of the others stand.
    """

    scenario: Scenario

    @cached_property
    def lists(self) -> Mapping[str, tuple[str, ...]]:
        """Host -> the decoys worth placing there, those for the heaviest exploit first."""
        return MappingProxyType({name: self._list(host) for host, name in enumerate(self.scenario.host_names)})

    def _list(self, host: int) -> tuple[str, ...]:
        worth = {
            decoy.name: min(_weight_fooled(world.decoys[k], world.hosts[host], world) for world in self.scenario.by_variant)
            for k, decoy in enumerate(self.scenario.decoys)
        }
        return tuple(sorted((name for name in worth if worth[name] > 0), key=lambda name: -worth[name]))

    @cached_property
    def listed(self) -> tuple[tuple[str, str], ...]:
        """(host, decoy) of the slots of the lists; 33 in CAGE2."""
        return tuple((host, decoy) for host, decoys in self.lists.items() for decoy in decoys)

    @cached_property
    def number(self) -> Mapping[tuple[str, str], int]:
        """(host, decoy) -> slot. The spare ones are Vsftpd's, wherever it fits: it stands in for Apache, or for nothing."""
        spare = tuple(
            (host.name, decoy.name)
            for host in self.scenario.hosts
            for decoy in self.scenario.decoys
            if _can_be_placed(decoy, host) and decoy.name not in self.lists[host.name]
        )
        return MappingProxyType({host_and_decoy: slot for slot, host_and_decoy in enumerate(self.listed + spare)})

    @cached_property
    def longest(self) -> int:
        """The length of the longest list."""
        return max(map(len, self.lists.values()))

    @property
    def listed_mask(self) -> int:
        """The set of all slots of the lists."""
        return (1 << len(self.listed)) - 1

    def of_host(self, host: str) -> int:
        """Return the set of a host's slots."""
        return sum(1 << slot for (owner, _), slot in self.number.items() if owner == host)

    def placed(self, action: parts.BlueAction) -> int:
        """Return the slot that an action of the world fills, or -1."""
        return self.number.get((action.host or "", action.verb.removeprefix("Decoy")), -1)

    def after(self, standing: int, action: parts.BlueAction) -> int:
        """Return which slots are filled after an action of the world, of those that were."""
        if action.verb == "Restore" and action.host:
            return standing & ~self.of_host(action.host)
        return standing if self.placed(action) < 0 else standing | 1 << self.placed(action)


@cache
def decoy_slots(scenario: Scenario) -> DecoySlots:
    """Return the slots of a scenario; computed once."""
    return DecoySlots(scenario)


def slot_words(scenario: Scenario, sets: Sequence[int]) -> np.ndarray:
    """Return sets of slots as words, [sets, D] uint64."""
    count = tables.size_of(scenario).slots
    return np.array([[slots >> 64 * k & 2**64 - 1 for k in range(count)] for slots in sets], np.uint64).reshape(-1, count)
