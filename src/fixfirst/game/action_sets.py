"""What a defender may choose from: all 145 actions, or the 40 that can help, with one decoy macro per host.

A choice is an action of the world, or a *macro*: a host's list of decoys (`decoy_lists.py`), of which it places the first
that does not stand. When all stand, the macro is masked; taken nevertheless, it is Sleep.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from fixfirst.errors import WorldError
from fixfirst.game.actions import ACTIONS, SLEEP, action_id
from fixfirst.game.decoy_lists import DECOY_LISTS, LONGEST_LIST, SLOTS, host_slots
from fixfirst.game.network import FOOTHOLD, HOST_NAMES
from fixfirst.game.tables import GUESSED_PASSWORD, ON_REAL_SERVICE, ROOT_SHELL, USER_SHELL

MOST_WITH_MACROS = 63  # masked choices are a set in one integer
_LISTED = tuple(host for host in HOST_NAMES if DECOY_LISTS[host])


@dataclass(frozen=True)
class ActionSet:
    """Actions of the world, and after them macros."""

    name: str
    actions: tuple[int, ...]  # ids of the world
    macros: tuple[str, ...] = ()  # the hosts whose decoys they place

    def __post_init__(self) -> None:
        if not all(0 <= action < len(ACTIONS) for action in self.actions) or not self.actions:
            raise WorldError(f"action set {self.name!r} needs actions of 0..{len(ACTIONS) - 1}, got {self.actions}")
        if not all(DECOY_LISTS.get(host) for host in self.macros):
            raise WorldError(f"action set {self.name!r} has macros for {self.macros}; there are lists for {_LISTED}")
        if self.macros and self.size > MOST_WITH_MACROS:
            raise WorldError(f"action set {self.name!r} has {self.size} choices, with macros at most {MOST_WITH_MACROS}")

    @classmethod
    def parse(cls, text: "ActionSet | str") -> "ActionSet":
        """From its name."""
        if isinstance(text, ActionSet):
            return text
        if text not in ACTION_SETS:
            raise WorldError(f"unknown action set {text!r}; use {' or '.join(ACTION_SETS)}")
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
        for name in names:
            if name not in self.names:
                near = difflib.get_close_matches(str(name), self.names, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(self.names)}"
                raise WorldError(f"the action set {self.name} has no choice {name!r}; {hint}")
        return tuple(self.names.index(name) for name in names)

    # ---- for compiled functions: a host's standing decoys are the lowest bits of (all standing decoys >> its shift)

    @property
    def meanings(self) -> np.ndarray:
        """[A, 16] int64: the action of the world that a choice is, given four bits of standing decoys."""
        standing = range(1 << LONGEST_LIST)
        plain = [[action] * len(standing) for action in self.actions]
        return np.array(plain + [[_first_missing(host, bits) for bits in standing] for host in self.macros])

    @property
    def shifts(self) -> np.ndarray:
        """[A] int64: the slot at which the host of a macro begins; 0 for actions of the world."""
        return np.array([0] * len(self.actions) + [SLOTS.index((host, DECOY_LISTS[host][0])) for host in self.macros])

    @property
    def slots(self) -> np.ndarray:
        """[macros] int64: the set of all slots of each macro's host."""
        return np.array([host_slots(host) for host in self.macros], np.int64)

    def __str__(self) -> str:
        return self.name


def _first_missing(host: str, standing: int) -> int:
    """The action that places the first decoy of the host's list that is not among the standing ones; Sleep if all are."""
    missing = (decoy for place, decoy in enumerate(DECOY_LISTS[host]) if not standing >> place & 1)
    return next((action_id(f"Decoy{decoy}", host) for decoy in missing), SLEEP)


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
ACTION_SETS: Mapping[str, ActionSet] = MappingProxyType({"all": ALL, "macros": MACROS})
