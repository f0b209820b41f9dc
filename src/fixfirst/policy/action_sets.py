"""Which decoys are worth placing on which host, and in which order: derived from the tables of the world.

A decoy is worth placing if, in every variant, it can be placed on the untouched host and an exploit then finds it on a port
where no real service answers. The one that fools the exploit red prefers comes first. All decoys of a list need different
ports, so each can be placed whichever of the others stand.

A *slot* is a place in these lists, counted host by host; the decoys that can be placed and are in no list, one per host at
most, have spare slots behind them. A set of slots is an integer bit mask, as sets of hosts are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from fixfirst.base.checks import check_bool, check_int, check_ints, check_strings
from fixfirst.base.errors import WorldError, did_you_mean, quoted
from fixfirst.game.actions import ACTIONS, SLEEP, action_id
from fixfirst.game.scenario import DECOYS, EXPLOITS, FOOTHOLD, HOST_NAMES, HOSTS, VARIANTS, Decoy, Host
from fixfirst.game.tables import GUESSED_PASSWORD, ON_REAL_SERVICE, ROOT_SHELL, USER_SHELL, constant, fits


def _real_ports(host: Host) -> set[int]:
    return {port for service in host.services for port in service.ports}


def _can_be_placed(decoy: Decoy, host: Host) -> bool:
    """On the untouched host."""
    return fits(decoy, host) and decoy.needs_free not in _real_ports(host)


def _weight_fooled(decoy: Decoy, host: Host) -> float:
    """The weight of the exploit that the decoy fools on the untouched host; 0 if it fools none or cannot be placed."""
    if not _can_be_placed(decoy, host):
        return 0.0
    met = (decoy.opens, decoy.kind)
    return max((e.weight for e in EXPLOITS if (e.port, e.kind) == met and e.port not in _real_ports(host)), default=0.0)


def _decoy_list(host: int) -> tuple[str, ...]:
    """The decoys worth placing on a host, heaviest exploit first."""
    worth = {d.name: min(_weight_fooled(v.decoys[k], v.hosts[host]) for v in VARIANTS) for k, d in enumerate(DECOYS)}
    return tuple(sorted((name for name in worth if worth[name] > 0), key=lambda name: -worth[name]))


DECOY_LISTS: Mapping[str, tuple[str, ...]] = MappingProxyType({h: _decoy_list(i) for i, h in enumerate(HOST_NAMES)})
SLOTS = tuple((host, decoy) for host, decoys in DECOY_LISTS.items() for decoy in decoys)  # (host, decoy), 33 of them
LONGEST_LIST = max(map(len, DECOY_LISTS.values()))
LIST_MASK = (1 << LONGEST_LIST) - 1
LISTED = (1 << len(SLOTS)) - 1  # the set of all slots of the lists

_SPARE = tuple(  # Vsftpd, wherever it fits: it stands in for Apache, or for nothing
    (host.name, decoy.name)
    for host in HOSTS
    for decoy in DECOYS
    if _can_be_placed(decoy, host) and decoy.name not in DECOY_LISTS[host.name]
)
SLOT_OF = MappingProxyType({place: slot for slot, place in enumerate(SLOTS + _SPARE)})  # (host, decoy) -> slot


def host_slots(host: str) -> int:
    """The set of a host's slots: host_slots("User2") == 0b1111 << 28."""
    return sum(1 << slot for (owner, _), slot in SLOT_OF.items() if owner == host)


_SLOT_OF_ACTION = {action_id(f"Decoy{decoy}", host): slot for (host, decoy), slot in SLOT_OF.items()}

# What an action does to the standing decoys. [145] sets of slots
PLACES = constant([1 << _SLOT_OF_ACTION[a] if a in _SLOT_OF_ACTION else 0 for a in range(len(ACTIONS))])
CLEARS = constant([host_slots(a.host) if a.verb == "Restore" and a.host else 0 for a in ACTIONS])


# ---------------------------------------------------------------- action sets
# What a defender may choose from: all 145 actions, the 40 that can help, or the 36 of the challenge's winner.
#
# A choice is an action of the world, or a *macro*: a host's list of decoys (`decoy_lists.py`), of which it places the first
# that does not stand. When all stand, the macro is masked (taken nevertheless, it is Sleep), or places the first again.


MOST_WITH_MACROS = 63  # masked choices are a set in one integer
_LISTED = tuple(host for host in HOST_NAMES if DECOY_LISTS[host])


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
    lists: tuple[tuple[str, ...], ...] = ()  # the decoys of each macro; unless given, those of `decoy_lists.py`
    repeats: bool = False  # a macro whose decoys all stand places the first again, in vain, instead of being masked

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise WorldError(f"an action set is named by a text, got {quoted(self.name)}")
        check_ints(f"actions of action set {self.name!r}", self.actions)
        check_strings(f"macros of action set {self.name!r}", self.macros)
        if not isinstance(self.lists, list | tuple):
            raise WorldError(f"lists of action set {self.name!r} must be a tuple of them, got {quoted(self.lists)}")
        for decoys in self.lists:
            check_strings(f"a list of action set {self.name!r}", decoys)
        check_bool("repeats", self.repeats)
        if not all(0 <= action < len(ACTIONS) for action in self.actions):
            raise WorldError(f"action set {self.name!r} needs actions of 0..{len(ACTIONS) - 1}, got {self.actions}")
        if not self.actions:
            raise WorldError(
                f"action set {self.name!r} needs an action of the world, such as {SLEEP} (Sleep): "
                "without one, nothing is allowed once all decoys stand"
            )
        if not self.lists:
            object.__setattr__(self, "lists", tuple(DECOY_LISTS.get(host, ()) for host in self.macros))
        if len(self.lists) != len(self.macros) or not all(self.lists):
            raise WorldError(f"action set {self.name!r} has macros for {self.macros}; there are lists for {_LISTED}")
        for host, decoys in zip(self.macros, self.lists, strict=True):
            for decoy in decoys:
                if (host, decoy) not in SLOT_OF:
                    raise WorldError(f"action set {self.name!r}: {decoy} cannot be placed on {host}")
        if self.macros and self.size > MOST_WITH_MACROS:
            raise WorldError(f"action set {self.name!r} has {self.size} choices, with macros at most {MOST_WITH_MACROS}")

    @classmethod
    def parse(cls, text: "ActionSet | str") -> "ActionSet":
        """From its name."""
        if isinstance(text, ActionSet):
            return text
        if not isinstance(text, str) or text not in ACTION_SETS:
            raise WorldError(f"unknown action set {quoted(text)}; use {', '.join(ACTION_SETS)}")
        return ACTION_SETS[text]

    @property
    def size(self) -> int:
        return len(self.actions) + len(self.macros)

    @property
    def names(self) -> tuple[str, ...]:
        """What each choice is, e.g. "Restore User1", "Decoy User2"."""
        return tuple(str(ACTIONS[a]) for a in self.actions) + tuple(f"Decoy {host}" for host in self.macros)

    def numbers(self, names: Sequence[str]) -> tuple[int, ...]:
        """The choices of these names."""
        for name in check_strings("choices", names):
            if name not in self.names:
                hint = did_you_mean(str(name), self.names) or f"; it has {', '.join(self.names)}"
                raise WorldError(f"the action set {self.name} has no choice {quoted(name)}{hint}")
        return tuple(self.names.index(name) for name in names)

    def first_masked(self, choices: Sequence[int]) -> int | None:
        """The place of the first of these choices that is masked if an episode begins with them; None if none is."""
        standing = 0
        for place, choice in enumerate(check_ints("choices", choices)):
            check_int("a choice", choice, 0, self.size - 1)
            macro = choice - len(self.actions)
            if self.masks and macro >= 0 and not self.slots[macro] & ~standing:
                return place
            action = self.actions[choice] if macro < 0 else self._meaning(macro, standing)
            standing = standing & ~int(CLEARS[action]) | int(PLACES[action])
        return None

    @property
    def masks(self) -> bool:
        """Can a choice be masked?"""
        return bool(self.macros) and not self.repeats

    # ---- for compiled functions: a host's standing decoys are the lowest bits of (all standing decoys >> its first shift),
    # and the lowest bit of (all standing decoys >> its second)

    @property
    def meanings(self) -> np.ndarray:
        """[A, 32] int64: the action of the world that a choice is, given five bits of standing decoys."""
        nearby = range(1 << LONGEST_LIST + 1)
        rows = [[action] * len(nearby) for action in self.actions]
        for macro, (shift, spare) in enumerate(self.shifts[len(self.actions) :].tolist()):
            standing = ((bits & LIST_MASK) << shift | (bits >> LONGEST_LIST) << spare for bits in nearby)
            rows.append([self._meaning(macro, decoys) for decoys in standing])
        return np.array(rows)

    @property
    def shifts(self) -> np.ndarray:
        """[A, 2] int64: where a macro's host begins in the lists and among the spare slots; 0 for actions of the world."""
        begins = [[_lowest(host_slots(host) & LISTED), _lowest(host_slots(host) & ~LISTED)] for host in self.macros]
        return np.array([[0, 0]] * len(self.actions) + begins)

    @property
    def slots(self) -> np.ndarray:
        """[macros] int64: the set of slots of each macro, which masks it; none where nothing is masked."""
        lists = zip(self.macros, self.lists, strict=True)
        sets = [sum(1 << SLOT_OF[host, decoy] for decoy in decoys) for host, decoys in lists]
        return np.array(sets if self.masks else [], np.int64)

    def _meaning(self, macro: int, standing: int) -> int:
        """The action that places the first decoy of a macro's list that is not in a set of standing ones."""
        host, decoys = self.macros[macro], self.lists[macro]
        missing = [decoy for decoy in decoys if not standing >> SLOT_OF[host, decoy] & 1]
        if not missing and not self.repeats:
            return SLEEP
        return action_id(f"Decoy{[*missing, decoys[0]][0]}", host)

    def __str__(self) -> str:
        return self.name


def _lowest(slots: int) -> int:
    """The lowest slot of a set; 0 if there is none."""
    return max((slots & -slots).bit_length() - 1, 0)


def _hosts_where(*outcomes: int) -> tuple[str, ...]:
    """The hosts on which, in some variant, some exploit ends in one of these outcomes; red's foothold apart."""
    met = np.isin(ON_REAL_SERVICE, outcomes)  # [V, H, E]
    return tuple(host for h, host in enumerate(HOST_NAMES) if met[:, h].any() and h != FOOTHOLD)


# Red can be driven off these, and off the second of them without rebuilding: ssh sessions and root outlast a Remove.
TAKEABLE = _hosts_where(USER_SHELL, ROOT_SHELL, GUESSED_PASSWORD)
REMOVABLE = _hosts_where(USER_SHELL)

ALL = ActionSet("all", tuple(range(len(ACTIONS))))
MACROS = ActionSet(
    "macros",
    (
        SLEEP,
        *(action_id("Analyse", host) for host in TAKEABLE),
        *(action_id("Remove", host) for host in REMOVABLE),
        *(action_id("Restore", host) for host in TAKEABLE),
    ),
    _LISTED,
)

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
ORIGINAL = ActionSet(
    "original",
    tuple(action_id(verb, host) for verb in ("Analyse", "Remove", "Restore") for host in _WINNERS_LISTS),
    tuple(_WINNERS_LISTS),
    tuple(_WINNERS_LISTS.values()),
    repeats=True,
)

ACTION_SETS: Mapping[str, ActionSet] = MappingProxyType({chosen.name: chosen for chosen in (ALL, MACROS, ORIGINAL)})
