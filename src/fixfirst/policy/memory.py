"""What a defender remembers: one small record per environment, forgotten when an episode ends.

All of it follows from what blue saw and did; the truth is not needed. A record holds what was known *before* the current
observation, so that a repeated scan differs from a first one. Each field is one *group* of bits, a set of hosts that blue
sees (bit l: the l-th of them), of turns or of slots (`action_sets.py`), or such a set for each count; a policy reads the
groups its `MemoryScheme` names.
Spare slots of `decoy` are kept for macros and not read. How a record changes is in `remembering.py`, and in words in
`docs/memory.md`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fixfirst.base import arguments, errors
from fixfirst.game import parts, tables
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.policy.action_sets import decoy_slots, slot_words

QUIET_TURNS = 5  # longer than that is remembered as that
BREAK_INS = 4  # of one host; more are remembered as so many
DIGITS = 5  # of the binary number of a host's Restores, up to 31; that there were 2, 4, 8, 16 is a bit of its own
EVIDENCE, RECHECK, EXPIRY, LIMIT = 1, 2, 8, 16  # of a way to keep an order (`SHIELDS`): two bits, two numbers of 8 bits
NETWORK = "network"  # of this, not of a host, it is remembered for how long all was quiet


class Group(NamedTuple):
    """Bits that are remembered together. `parts` says of each bit what it stands for, lowest first."""

    name: str  # in schemes and files
    field: str  # of a record
    meaning: str
    short: str  # in an episode's account
    parts: tuple[str, ...]
    sets: int = 1  # into which the bits fall, one for each count


@cache
def memory_groups(scenario: Scenario) -> tuple[Group, ...]:
    """Return the groups of a scenario, in the order in which rows hold them."""
    hosts = seen_hosts(scenario)
    slots = tuple(f"{host} {decoy}" for host, decoy in decoy_slots(scenario).listed)
    turns = tuple(str(number + 1) for number in range(QUIET_TURNS))
    latest = "the host had the most recent earlier activity; of several, it is the first"
    breaks = "the host was seen exploited at least so many times since it was last restored"
    again = "the host was restored at least so many times"
    counted = tuple(f"{host} {count + 1}" for count in range(BREAK_INS) for host in hosts)
    repeated = tuple(f"{host} {1 << digit}" for digit in range(1, DIGITS) for host in hosts)
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
        Group("breaks", "break_ins", breaks, "break-ins", counted, BREAK_INS),
        Group("again", "restores", again, "restores", repeated, DIGITS - 1),
    )


def seen_hosts(scenario: Scenario) -> tuple[str, ...]:
    """Return the hosts that blue sees, in the order of their bits."""
    return tuple(scenario.host_names[host] for host in scenario.listed)


def scan_hosts(scenario: Scenario) -> tuple[str, ...]:
    """Return the hosts of the group `scans`: those that the published defenders kept an eye on."""
    return tuple(host.name for host in scenario.hosts if host.listed and host.unit != "op_host")


@cache
def memory_dtype(scenario: Scenario) -> np.dtype:
    """Return the type of a record: a field per group, then what suspicion needs. Packed.

    Beside the groups stand the suspect hosts and the host analysed last, as sets, and what some ways to keep an order need
    (`remembering.py: suspects, keep_account`).
    """
    size = tables.size_of(scenario)
    kinds: dict[str, tuple[type, *tuple[int, ...]]] = {"quiet": (np.int8,), "decoy": (np.uint64, size.slots)}
    kinds |= {"seen": kinds["decoy"], "breaks": (size.host_set, BREAK_INS), "again": (size.host_set, DIGITS)}
    groups = [(group.field, *kinds.get(group.name, (size.host_set,))) for group in memory_groups(scenario)]
    sets = [(name, size.host_set) for name in ("suspect", "analysed", "recent", "noticed")]
    return np.dtype([*groups, *sets, ("window", np.int8), ("busy", np.int8)])


class MemoryTables(NamedTuple):
    """What actions and scans mean for a memory. A actions of the world, L hosts that blue sees, D words of slots."""

    effects: np.ndarray  # [A, 4] int64: the sets of hosts that an action restores and analyses; the slot it fills, or -1;
    # the host whose slots it clears, or -1
    host_slots: np.ndarray  # [L, D] uint64: the slots of each host
    host_scans: np.ndarray  # [L] int64: its bit of the group `scans`
    listed: np.ndarray  # [D] uint64: the slots that a policy reads


@cache
def memory_tables(scenario: Scenario) -> MemoryTables:
    """Return the tables of a scenario; computed once."""
    slots, scans, seen = decoy_slots(scenario), scan_hosts(scenario), seen_hosts(scenario)

    def effect(action: parts.BlueAction) -> tuple[int, int, int, int]:
        host = seen.index(action.host) if action.host in seen else -1
        restores = host if action.verb == "Restore" else -1
        analyses = 1 << host if action.verb == "Analyse" and host >= 0 else 0
        return 0 if restores < 0 else 1 << restores, analyses, slots.placed(action), restores

    return MemoryTables(
        np.array([effect(action) for action in scenario.actions], np.int64),
        slot_words(scenario, [slots.of_host(host) for host in seen]),
        np.array([1 << scans.index(host) if host in scans else 0 for host in seen], np.int64),
        slot_words(scenario, [slots.listed_mask])[0],
    )


_COUNTS = ("breaks", "again")
GROUP_NAMES = tuple(group.name for group in memory_groups(CAGE2))
SCHEMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "none": (),
        "scans": ("scans",),
        "full": tuple(name for name in GROUP_NAMES if name not in ("scans", *_COUNTS)),  # scans says hardly more than act1
        "counts": tuple(name for name in GROUP_NAMES if name != "scans"),
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
        for group in arguments.check_strings("groups", self.groups):
            if group not in GROUP_NAMES:
                hint = errors.did_you_mean(group, (*SCHEMES, *GROUP_NAMES))
                raise errors.WorldError(f"memory {group!r} is not known; {_RIGHT}{hint}")
        if len(set(self.groups)) != len(self.groups):
            raise errors.WorldError(f"memory {'+'.join(self.groups)} names a group twice; {_RIGHT}")
        object.__setattr__(self, "groups", tuple(sorted(self.groups, key=GROUP_NAMES.index)))

    @classmethod
    def parse(cls, text: "MemoryScheme | str", scenario: Scenario = CAGE2) -> "MemoryScheme":
        """Read a name of a scheme, or names of groups and schemes: MemoryScheme.parse("act1+last+decoy")."""
        if isinstance(text, MemoryScheme):
            return text
        if not isinstance(text, str):
            raise errors.WorldError(f"memory is given by name, got {text!r}; {_RIGHT}")
        names = [name.strip() for name in text.split("+")]
        return cls(tuple(group for name in names for group in SCHEMES.get(name, (name,))), scenario)

    @property
    def name(self) -> str:
        return next((name for name, groups in SCHEMES.items() if groups == self.groups), "+".join(self.groups))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each bit stands for, e.g. "act1 Enterprise0", "quiet 3", "decoy User2 Tomcat"."""
        groups = (group for group in memory_groups(self.scenario) if group.name in self.groups)
        return tuple(f"{group.name} {part}" for group in groups for part in group.parts)

    def in_words(self, bits: Sequence[float] | np.ndarray) -> dict[str, str]:
        """Return what is remembered of whom: {"network": "quiet turns 3", "User2": "active, decoys Femitter Tomcat"}."""
        if np.shape(bits) != (self.bits,):
            raise errors.WorldError(f"a memory of {self.name} has {self.bits} bits, got {bits!r}")
        short = {group.name: group.short for group in memory_groups(self.scenario)}
        words: dict[str, dict[str, list[str]]] = {}
        for name in (name for name, bit in zip(self.names, bits, strict=True) if bit):
            group, whom, *what = name.split()
            if group == "quiet":  # the largest number says it all
                words.setdefault(NETWORK, {})[short[group]] = [whom]
            elif group in _COUNTS:  # likewise
                words.setdefault(whom, {})[short[group]] = what
            else:
                words.setdefault(whom, {}).setdefault(short[group], []).extend(what)
        return {
            whom: ", ".join(" ".join((kind, *what)) for kind, what in words[whom].items())
            for whom in (NETWORK, *self.scenario.host_names)
            if whom in words
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
        """[8 + BREAK_INS + DIGITS - 1] int64: the bit of a row at which every set of `memory_groups` begins, or -1."""
        starts, free = [], self.scenario.observation_bits
        for group in memory_groups(self.scenario):
            for _ in range(group.sets):
                starts.append(free if group.name in self.groups else -1)
                free += len(group.parts) // group.sets if group.name in self.groups else 0
        return np.array(starts, np.int64)

    def __str__(self) -> str:
        return self.name
