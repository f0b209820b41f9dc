"""What a defender remembers: one small record per environment, forgotten when an episode ends.

All of it follows from what blue saw and did; the truth is not needed. A record holds what was known *before* the current
observation, so that a repeated scan differs from a first one. Each field is one *group* of bits, a set of hosts, of turns
or of slots (`action_sets.py`); a policy reads the groups its `MemoryScheme` names. Spare slots of `decoy` are
kept for macros and not read. How a record changes is in `remembering.py`, and in words in `docs/memory.md`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fixfirst.base import checks, errors
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.tables import HALF, HALF_BITS
from fixfirst.policy.action_sets import decoy_slots

QUIET_TURNS = 5  # longer than that is remembered as that
NETWORK = "network"  # of this, not of a host, it is remembered for how long all was quiet


class Group(NamedTuple):
    """Bits that are remembered together. `parts` says of each bit what it stands for, lowest first."""

    name: str  # in schemes and files
    field: str  # of a record
    meaning: str
    short: str  # in an episode's account
    parts: tuple[str, ...]


@cache
def memory_groups(scenario: Scenario) -> tuple[Group, ...]:
    """Return the groups of a scenario, in the order in which rows hold them."""
    hosts, slots = scenario.host_names, tuple(f"{host} {decoy}" for host, decoy in decoy_slots(scenario).listed)
    turns = tuple(str(number + 1) for number in range(QUIET_TURNS))
    latest = "the host had the most recent earlier activity; of several, it is the first"
    quiet = "at least so many views in a row before this one showed no activity"
    seen = "the decoy stood when the host was seen scanned in some earlier turn"
    return (
        Group("act1", "was_active", "the host had activity in some earlier turn", "active", hosts),
        Group("last", "last_active", latest, "latest", hosts),
        Group("expl", "was_exploited", "the host was seen exploited in some earlier turn", "exploited", hosts),
        Group("rest", "was_restored", "the host was restored in this episode", "restored", hosts),
        Group("quiet", "quiet_turns", quiet, "quiet turns", turns),
        Group("decoy", "decoys", "the decoy stands", "decoys", slots),
        Group("seen", "decoys_seen", seen, "red saw", slots),
        Group("scans", "was_scanned", "the host was seen scanned in some earlier turn", "scanned", scan_hosts(scenario)),
    )


def scan_hosts(scenario: Scenario) -> tuple[str, ...]:
    """Return the hosts of the group `scans`: those that the published defenders kept an eye on."""
    return tuple(host.name for host in scenario.hosts if host.unit != "op_host")


@cache
def memory_dtype(scenario: Scenario) -> np.dtype:
    """Return the type of a record: a field per group, then what suspicion needs. Packed; 31 bytes for CAGE2.

    Beside the groups stand the suspect hosts, and the host analysed last, both as sets (`remembering.py: suspects`).
    """

    def smallest(group: Group) -> type[np.signedinteger]:
        """Return the smallest type for the bits of a group. Signed, because Numba turns uint64 - int into a float."""
        return next(kind for kind in (np.int8, np.int16, np.int64) if len(group.parts) < np.iinfo(kind).bits)

    groups = [(group.field, smallest(group)) for group in memory_groups(scenario)]
    return np.dtype([*groups, ("suspect", np.int16), ("analysed", np.int16)])


# ---------------------------------------------------------------- for compiled functions


class MemoryTables(NamedTuple):
    """What actions and scans mean for a memory. A actions of the world; halves of a set of hosts as in `tables.py`."""

    effects: np.ndarray  # [A, 4] int64: sets of hosts that an action restores and analyses, of slots it fills and clears
    scanned: (
        np.ndarray
    )  # [2, 128, 2] int64: of a lower, and an upper half of a set of hosts, the listed slots, the scan bits
    listed: int  # the set of all listed slots


@cache
def memory_tables(scenario: Scenario) -> MemoryTables:
    """Return the tables of a scenario; computed once."""
    slots, scans = decoy_slots(scenario), scan_hosts(scenario)

    def hosts_of(verb: str) -> list[int]:
        return [scenario.hosts_mask(a.host) if a.verb == verb and a.host else 0 for a in scenario.actions]

    def of_halves(bits_of_host: Sequence[int]) -> list[list[int]]:
        def bits_of(hosts: int) -> int:
            return sum(bits for host, bits in enumerate(bits_of_host) if hosts >> host & 1)

        return [[bits_of(half << shift) for half in range(HALF + 1)] for shift in (0, HALF_BITS)]

    effects = np.array([hosts_of("Restore"), hosts_of("Analyse"), slots.places, slots.clears]).T
    host_slots = [slots.of_host(host) & slots.listed_mask for host in scenario.host_names]
    host_scans = [1 << scans.index(host) if host in scans else 0 for host in scenario.host_names]
    scanned = np.moveaxis(np.array([of_halves(host_slots), of_halves(host_scans)]), 0, 2)
    return MemoryTables(np.ascontiguousarray(effects), np.ascontiguousarray(scanned), slots.listed_mask)


# ---------------------------------------------------------------- memory schemes

GROUP_NAMES = tuple(group.name for group in memory_groups(CAGE2))
SCHEMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "none": (),
        "scans": ("scans",),
        "full": tuple(name for name in GROUP_NAMES if name != "scans"),  # which says hardly more than act1
    }
)
_RIGHT = f"use {', '.join(SCHEMES)}, or groups joined by '+' of {', '.join(GROUP_NAMES)}"


@dataclass(frozen=True)
class MemoryScheme:
    """The groups of memory that a policy reads after the observation, in the order of `memory_groups`.

    For example:

        scheme = ff.MemoryScheme.parse("act1+last+decoy")
        scheme.bits, scheme.inputs  # how many are read beside the 52, and with them
        scheme.names[0]  # "act1 Defender"
    """

    groups: tuple[str, ...]
    scenario: Scenario = field(default=CAGE2, repr=False)

    def __post_init__(self) -> None:
        for group in checks.check_strings("groups", self.groups):
            if group not in GROUP_NAMES:
                hint = errors.did_you_mean(group, (*SCHEMES, *GROUP_NAMES))
                raise errors.WorldError(f"memory {errors.quoted(group)} is not known; {_RIGHT}{hint}")
        if len(set(self.groups)) != len(self.groups):
            raise errors.WorldError(f"memory {'+'.join(self.groups)} names a group twice; {_RIGHT}")
        object.__setattr__(self, "groups", tuple(sorted(self.groups, key=GROUP_NAMES.index)))

    @classmethod
    def parse(cls, text: "MemoryScheme | str", scenario: Scenario = CAGE2) -> "MemoryScheme":
        """Read a name of a scheme, or names of groups and schemes: MemoryScheme.parse("act1+last+decoy")."""
        if isinstance(text, MemoryScheme):
            return text
        if not isinstance(text, str):
            raise errors.WorldError(f"memory is given by name, got {errors.quoted(text)}; {_RIGHT}")
        parts = [part.strip() for part in text.split("+")]
        return cls(tuple(group for part in parts for group in SCHEMES.get(part, (part,))), scenario)

    @property
    def name(self) -> str:
        known = (name for name, groups in SCHEMES.items() if groups == self.groups)
        return next(known, "+".join(self.groups))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each bit stands for, e.g. "act1 Enterprise0", "quiet 3", "decoy User2 Tomcat"."""
        groups = (group for group in memory_groups(self.scenario) if group.name in self.groups)
        return tuple(f"{group.name} {part}" for group in groups for part in group.parts)

    def in_words(self, bits: Sequence[float] | np.ndarray) -> dict[str, str]:
        """Return what is remembered of whom: {"network": "quiet turns 3", "User2": "active, decoys Femitter Tomcat"}."""
        each = bits.tolist() if isinstance(bits, np.ndarray) else bits
        right = isinstance(each, list | tuple) and all(isinstance(bit, int | float) for bit in each)
        if not right or len(each) != self.bits:
            raise errors.WorldError(f"a memory of {self.name} has {self.bits} bits, got {errors.quoted(bits)}")
        short = {group.name: group.short for group in memory_groups(self.scenario)}
        found: dict[str, dict[str, list[str]]] = {}
        for name in (name for name, bit in zip(self.names, each, strict=True) if bit):
            group, whom, *what = name.split()
            if group == "quiet":  # the largest number says it all
                found.setdefault(NETWORK, {})[short[group]] = [whom]
            else:
                found.setdefault(whom, {}).setdefault(short[group], []).extend(what)
        return {
            whom: ", ".join(" ".join((kind, *what)) for kind, what in found[whom].items())
            for whom in (NETWORK, *self.scenario.host_names)
            if whom in found
        }

    @property
    def bits(self) -> int:
        return len(self.names)

    @property
    def inputs(self) -> int:
        """The bits of a policy that reads the observation and this."""
        return self.scenario.observation_bits + self.bits

    @property
    def starts(self) -> np.ndarray:
        """[8] int64: the bit of a row at which each of `memory_groups` begins, or -1. For compiled functions."""
        starts, free = [], self.scenario.observation_bits
        for group in memory_groups(self.scenario):
            starts.append(free if group.name in self.groups else -1)
            free += len(group.parts) if group.name in self.groups else 0
        return np.array(starts, np.int64)

    def __str__(self) -> str:
        return self.name
