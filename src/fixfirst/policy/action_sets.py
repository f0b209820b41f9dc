"""What a defender may choose from: action sets; and the decoys worth placing on each host.

A choice is an action of the world, or a *macro*: a host's list of decoys, of which it places the first that does not stand.
When all stand, the macro is masked (taken nevertheless, it is Sleep), or places the first again. Of CAGE2 there are three
sets: all 145 actions, the 40 that can help, and the 36 of the challenge's winner. A choices.

A *slot* is a position in the lists of decoys, counted host by host; the decoys that can be placed and are in no list, one
per host at most, have spare slots behind them. A set of slots is an integer bit mask, as sets of hosts are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fixfirst.base import arguments, errors
from fixfirst.game import parts, tables
from fixfirst.game.scenario import CAGE2, Scenario


def _can_be_placed(decoy: parts.Decoy, host: parts.Host) -> bool:
    """Can the decoy be placed on the untouched host?"""
    return host.listed and host.reached and decoy.fits(host) and decoy.needs_free not in host.ports


def _weight_fooled(decoy: parts.Decoy, host: parts.Host, scenario: Scenario) -> float:
    """Return the weight of the exploit that the decoy fools on the untouched host; 0 if it fools none."""
    if not _can_be_placed(decoy, host) or decoy.opens in host.ports:
        return 0.0
    return max((e.weight for e in scenario.exploits if (e.port, e.kind) == (decoy.opens, decoy.kind)), default=0.0)


class DecoySlots(NamedTuple):
    """The decoys of a scenario that are worth placing, host by host, and the slots they have.

    A decoy is worth placing if, in every variant, it can be placed on the untouched host and an exploit then finds it on a
    port where no real service answers. The one that fools the exploit red prefers comes first. All decoys of a list need
    different ports, so each can be placed whichever of the others stand.
    """

    lists: Mapping[str, tuple[str, ...]]  # host -> the decoys worth placing there, those for the heaviest exploit first
    listed: tuple[tuple[str, str], ...]  # (host, decoy) of the slots of the lists; 33 in CAGE2
    # (host, decoy) -> slot. The spare ones are Vsftpd's, wherever it fits: it stands in for Apache, or for nothing.
    number: Mapping[tuple[str, str], int]

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
    worlds = scenario.by_variant.values()

    def worth_placing(host: int) -> tuple[str, ...]:
        weights = {
            decoy.name: min(_weight_fooled(world.decoys[k], world.hosts[host], world) for world in worlds)
            for k, decoy in enumerate(scenario.decoys)
        }
        return tuple(sorted((name for name in weights if weights[name] > 0), key=lambda name: -weights[name]))

    lists = {name: worth_placing(host) for host, name in enumerate(scenario.host_names)}
    listed = tuple((host, decoy) for host, decoys in lists.items() for decoy in decoys)
    placeable = ((host, decoy) for host in scenario.hosts for decoy in scenario.decoys if _can_be_placed(decoy, host))
    spare = tuple((host.name, decoy.name) for host, decoy in placeable if decoy.name not in lists[host.name])
    number = {slot: position for position, slot in enumerate(listed + spare)}
    return DecoySlots(MappingProxyType(lists), listed, MappingProxyType(number))


def slot_words(scenario: Scenario, sets: Sequence[int]) -> np.ndarray:
    """Return sets of slots as words, [sets, D] uint64."""
    count = tables.size_of(scenario).slots
    return np.array([[slots >> 64 * k & 2**64 - 1 for k in range(count)] for slots in sets], np.uint64).reshape(-1, count)


@dataclass(frozen=True)
class ActionSet:
    """Actions of the world, and after them macros.

    For example:

        mine = ff.ActionSet("mine", actions=(0, 132, 133), macros=("User2",))  # Sleep, two Restores, a decoy on User2
        envs = ff.make_vec(4, action_set=mine)  # choices 0..3; info["action_mask"] [4, 4] int8
    """

    name: str
    actions: tuple[int, ...]  # ids of the world
    macros: tuple[str, ...] = ()  # the hosts whose decoys they place
    lists: tuple[tuple[str, ...], ...] = ()  # the decoys of each macro; unless given, those worth placing
    repeats: bool = False  # a macro whose decoys all stand places the first again, in vain, instead of being masked
    scenario: Scenario = field(default=CAGE2, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise errors.WorldError(f"an action set is named by a string, got {self.name!r}")
        mine, most, listed = f"action set {self.name!r}", self.scenario.num_actions - 1, self._slots.lists
        actions = arguments.check_ints(f"actions of {mine}", self.actions)
        if not actions or not all(0 <= action <= most for action in actions):  # macros alone leave nothing once they stand
            raise errors.WorldError(
                f"{mine} needs actions of 0..{most}, such as {self.scenario.sleep_id} (Sleep), got {self.actions}"
            )
        hosts = arguments.check_strings(f"macros of {mine}", self.macros)
        if not isinstance(self.lists, list | tuple):
            raise errors.WorldError(f"lists of {mine} must be a tuple of them, got {self.lists!r}")
        lists = [tuple(arguments.check_strings(f"a list of {mine}", decoys)) for decoys in self.lists]
        lists = lists or [listed.get(host, ()) for host in hosts]
        if len(lists) != len(hosts) or not all(lists):
            placeable = tuple(host for host, decoys in listed.items() if decoys)
            raise errors.WorldError(f"{mine} has macros for {self.macros}; there are lists for {placeable}")
        for host, decoys in zip(hosts, lists, strict=True):
            for decoy in decoys:
                if (host, decoy) not in self._slots.number:
                    raise errors.WorldError(f"{mine}: {decoy} cannot be placed on {host}")
        for name, values in (("actions", actions), ("macros", hosts), ("lists", lists)):
            object.__setattr__(self, name, tuple(values))

    @classmethod
    def parse(cls, text: "ActionSet | str", scenario: Scenario = CAGE2) -> "ActionSet":
        """Return the action set of this name."""
        if isinstance(text, ActionSet):
            return text
        if not isinstance(scenario, Scenario):
            raise errors.WorldError(f"the scenario of an action set is a Scenario, got {scenario!r}")
        sets = action_sets(scenario)
        if not isinstance(text, str) or text not in sets:
            raise errors.WorldError(f"unknown action set {text!r}; use {', '.join(sets)}")
        return sets[text]

    @property
    def _slots(self) -> DecoySlots:
        return decoy_slots(self.scenario)

    @property
    def size(self) -> int:
        return len(self.actions) + len(self.macros)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each choice is, e.g. "Restore User1", "Decoy User2"."""
        return tuple(str(self.scenario.actions[a]) for a in self.actions) + tuple(f"Decoy {host}" for host in self.macros)

    def numbers(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the choices of these names."""
        for name in arguments.check_strings("choices", names):
            if name not in self.names:
                hint = errors.did_you_mean(str(name), self.names) or f"; it has {', '.join(self.names)}"
                raise errors.WorldError(f"the action set {self.name} has no choice {name!r}{hint}")
        return tuple(self.names.index(name) for name in names)

    def first_masked(self, choices: Sequence[int]) -> int | None:
        """Return the position of the first of these choices that is masked if an episode begins with them, or None."""
        standing = 0
        for position, choice in enumerate(arguments.check_ints("choices", choices)):
            arguments.check_int("a choice", choice, 0, self.size - 1)
            macro = choice - len(self.actions)
            if self.masks and macro >= 0 and not _set_of(self.macro_slots(macro)) & ~standing:
                return position
            standing = self._slots.after(standing, self.scenario.actions[self.meaning(choice, standing)])
        return None

    @property
    def masks(self) -> bool:
        """Can a choice be masked?"""
        return bool(self.macros) and not self.repeats

    def macro_slots(self, macro: int) -> tuple[int, ...]:
        """Return the slots of a macro, in the order of its list."""
        return tuple(self._slots.number[self.macros[macro], decoy] for decoy in self.lists[macro])

    def meaning(self, choice: int, standing: int) -> int:
        """Return the action that a choice is: of a macro, the one that places the first decoy of its list not standing."""
        macro = choice - len(self.actions)
        if macro < 0:
            return self.actions[choice]
        host, decoys, slots = self.macros[macro], self.lists[macro], self._slots.number
        missing = [decoy for decoy in decoys if not standing >> slots[host, decoy] & 1]
        if not missing and not self.repeats:
            return self.scenario.sleep_id
        return self.scenario.action_id(f"Decoy{[*missing, decoys[0]][0]}", host)

    # For compiled functions: a host's standing decoys are the lowest bits of (all standing decoys >> its first shift), and
    # the lowest bit of (all standing decoys >> its second).

    @cached_property
    def meanings(self) -> np.ndarray:
        """[A, 2 ** (longest list + 1)] int64: the action that a choice is, given its host's standing decoys."""
        longest = max(map(len, self._slots.lists.values()))
        listed, codes = (1 << longest) - 1, range(1 << longest + 1)
        return np.array(
            [
                [self.meaning(choice, (code & listed) << shift | (code >> longest) << spare) for code in codes]
                for choice, (shift, spare) in enumerate(self.shifts.tolist())
            ]
        )

    @property
    def shifts(self) -> np.ndarray:
        """[A, 2] int64: where a macro's host begins in the lists and among the spare slots; 0 for actions of the world."""
        slots, listed = self._slots, self._slots.listed_mask
        begins = [[_lowest(slots.of_host(h) & listed), _lowest(slots.of_host(h) & ~listed)] for h in self.macros]
        return np.array([[0, 0]] * len(self.actions) + begins)

    @property
    def slots(self) -> np.ndarray:
        """[macros, D] uint64: the set of slots of each macro, which masks it; none where nothing is masked."""
        sets = [_set_of(self.macro_slots(macro)) for macro in range(len(self.macros))]
        return slot_words(self.scenario, sets if self.masks else [])

    def __str__(self) -> str:
        return self.name


def _set_of(slots: Sequence[int]) -> int:
    """Return slots as a set."""
    return sum(1 << slot for slot in slots)


def _lowest(slots: int) -> int:
    """Return the lowest slot of a set; 0 if there is none."""
    return max((slots & -slots).bit_length() - 1, 0)


# Of CardiffUni, who won the challenge, in training: no Sleep, nothing on operational hosts, and no mask.
_WINNERS_LISTS = {
    "Defender": ("HarakaSMPT", "Tomcat", "Apache", "Vsftpd"),
    "Enterprise0": ("HarakaSMPT", "Tomcat", "Vsftpd", "Apache"),
    "Enterprise1": ("Femitter",),
    "Enterprise2": ("Femitter",),
    "Op_Server0": ("HarakaSMPT", "Apache", "Tomcat", "Vsftpd"),
    "User1": ("Apache", "Tomcat", "Smss", "Svchost"),
    "User2": ("Femitter", "Tomcat", "Apache", "SSHD"),
    "User3": ("Vsftpd", "SSHD"),
    "User4": ("Vsftpd",),
}


@cache
def action_sets(scenario: Scenario = CAGE2) -> Mapping[str, ActionSet]:
    """Return the action sets of a scenario by name; the winner's is one of CAGE2."""
    sets = {"all": ActionSet("all", tuple(range(scenario.num_actions)), scenario=scenario), "macros": _macros(scenario)}
    if scenario == CAGE2:
        verbs, hosts = ("Analyse", "Remove", "Restore"), tuple(_WINNERS_LISTS)
        actions = tuple(scenario.action_id(verb, host) for verb in verbs for host in hosts)
        sets["original"] = ActionSet("original", actions, hosts, tuple(_WINNERS_LISTS.values()), repeats=True)
    return MappingProxyType(sets)


def _macros(scenario: Scenario) -> ActionSet:
    """Return the actions that can help: on hosts that red can be driven off, and decoys where any is worth placing."""

    def hosts_where(succeeds: Callable[[parts.ExploitKind, parts.Host], bool]) -> tuple[str, ...]:
        """Return the hosts on which, in some variant, some exploit succeeds so; red's foothold apart."""
        worlds = scenario.by_variant.values()
        held = {host.name for world in worlds for host in world.hosts if any(succeeds(e, host) for e in world.exploits)}
        helped = (host.name for host in scenario.hosts if host.listed and host.reached and host.name != scenario.start)
        return tuple(name for name in helped if name in held)

    removable = hosts_where(parts.ExploitKind.gives_user_shell)
    takeable = hosts_where(parts.ExploitKind.takes)
    # Only user shells can be removed: ssh sessions and root outlast a Remove.
    hosts_of = {"Analyse": takeable, "Remove": removable, "Restore": takeable, "Misinform": takeable}
    useful = (scenario.action_id(v, host) for v, hosts in hosts_of.items() if v in scenario.verbs for host in hosts)
    actions = tuple(dict.fromkeys((scenario.sleep_id, *useful)))
    macros = tuple(host for host, decoys in decoy_slots(scenario).lists.items() if decoys)
    return ActionSet("macros", actions, macros, scenario=scenario)
