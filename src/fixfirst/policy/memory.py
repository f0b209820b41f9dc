"""What a defender remembers: one small record per environment, forgotten when an episode ends.

All of it follows from what blue saw and did; the truth is not needed. A record holds what was known *before* the current
observation, so that a repeated scan differs from a first one. Each field is one *group* of bits, a set of hosts, of turns
or of slots (`decoy_lists.py`); a policy reads the groups its scheme names (`memory_schemes.py`). Spare slots of `decoy` are
kept for macros and not read. How a record changes is in `remembering.py`, and in words in `docs/model.md`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fixfirst.base.checks import check_strings
from fixfirst.base.errors import WorldError, did_you_mean, quoted
from fixfirst.game.actions import ACTIONS
from fixfirst.game.scenario import HOST_NAMES, HOSTS
from fixfirst.game.state import BITS_PER_HOST, OBSERVATION_BITS
from fixfirst.game.tables import HALF, HALF_BITS, constant, hosts_mask
from fixfirst.policy.action_sets import LISTED, SLOTS, host_slots

QUIET_TURNS = 5  # longer than that is remembered as that
SCAN_HOSTS = tuple(host.name for host in HOSTS if host.unit != "op_host")  # those of the published defenders


class Group(NamedTuple):
    """Bits that are remembered together. `parts` says of each bit what it stands for, lowest first."""

    name: str
    meaning: str
    short: str  # in an episode's account
    parts: tuple[str, ...]


_SLOT_NAMES = tuple(f"{host} {decoy}" for host, decoy in SLOTS)
GROUPS = (
    Group("act1", "the host had activity in some earlier turn", "active", HOST_NAMES),
    Group("last", "the host had the most recent earlier activity; of several, it is the first", "latest", HOST_NAMES),
    Group("expl", "the host was seen exploited in some earlier turn", "exploited", HOST_NAMES),
    Group("rest", "the host was restored in this episode", "restored", HOST_NAMES),
    Group(
        "quiet",
        "at least so many views in a row before this one showed no activity",
        "quiet turns",
        tuple(str(turns + 1) for turns in range(QUIET_TURNS)),
    ),
    Group("decoy", "the decoy stands", "decoys", _SLOT_NAMES),
    Group("seen", "the decoy stood when the host was seen scanned in some earlier turn", "red saw", _SLOT_NAMES),
    Group("scans", "the host was seen scanned in some earlier turn", "scanned", SCAN_HOSTS),
)


def _holding(group: Group) -> type[np.signedinteger]:
    """The smallest type for the bits of a group. Signed, because Numba turns uint64 - int into a float."""
    return next(kind for kind in (np.int8, np.int16, np.int64) if len(group.parts) < np.iinfo(kind).bits)


# Beside the groups, what suspicion (`remembering.py`) needs: the suspect hosts, and the host analysed last, both as sets.
NOTES = ("suspect", "analysed")
MEMORY_DTYPE = np.dtype(  # packed, 31 bytes
    [(group.name, _holding(group)) for group in GROUPS] + [(name, np.int16) for name in NOTES]
)

# ---- for the compiled functions: what an action, and what a set of hosts means for the groups
RESTORES = constant([hosts_mask(a.host) if a.verb == "Restore" and a.host else 0 for a in ACTIONS])  # [145] set of hosts
ANALYSES = constant([hosts_mask(a.host) if a.verb == "Analyse" and a.host else 0 for a in ACTIONS])  # [145] likewise
ACTIVITY = sum(1 << BITS_PER_HOST * host for host in range(len(HOSTS)))  # of an observation: the first bit of every host


def _for_sets(bits_of_host: list[int]) -> np.ndarray:
    """[2, 128]: for every lower, and every upper half of a set of hosts (`tables.py`), the bits of all its members."""

    def bits_of(hosts: int) -> int:
        return sum(bits for host, bits in enumerate(bits_of_host) if hosts >> host & 1)

    return constant([[bits_of(half << shift) for half in range(HALF + 1)] for shift in (0, HALF_BITS)])


HALF_SLOTS = _for_sets([host_slots(host) & LISTED for host in HOST_NAMES])
HALF_SCANS = _for_sets([1 << SCAN_HOSTS.index(host) if host in SCAN_HOSTS else 0 for host in HOST_NAMES])


# ---------------------------------------------------------------- memory schemes
# Which groups of its memory a policy reads: none of them, those of a known scheme, or any others.
#
# A policy's row is a number of 64-bit words: the observation in bits 0..51, then the bits of the scheme's groups, one group
# after the other in the order of `memory.GROUPS`.


GROUP_NAMES = tuple(group.name for group in GROUPS)
NETWORK = "network"  # of this, not of a host, it is remembered for how long all was quiet
_SHORT = {group.name: group.short for group in GROUPS}
SCHEMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "none": (),
        "scans": ("scans",),
        "full": tuple(name for name in GROUP_NAMES if name != "scans"),  # which says hardly more than act1
    }
)


@dataclass(frozen=True)
class MemoryScheme:
    """Groups of memory, in the order of `memory.GROUPS`.

    For example:

        scheme = ff.MemoryScheme.parse("act1+last+decoy")
        scheme.bits, scheme.inputs  # how many are read beside the 52, and with them
        scheme.names[0]  # "act1 Defender"
    """

    groups: tuple[str, ...]

    def __post_init__(self) -> None:
        for group in check_strings("groups", self.groups):
            if group not in GROUP_NAMES:
                hint = did_you_mean(group, (*SCHEMES, *GROUP_NAMES))
                raise WorldError(f"memory {quoted(group)} is not known; {_RIGHT}{hint}")
        if len(set(self.groups)) != len(self.groups):
            raise WorldError(f"memory {'+'.join(self.groups)} names a group twice; {_RIGHT}")
        object.__setattr__(self, "groups", tuple(sorted(self.groups, key=GROUP_NAMES.index)))

    @classmethod
    def parse(cls, text: "MemoryScheme | str") -> "MemoryScheme":
        """From the name of a scheme, or from names of groups and schemes: MemoryScheme.parse("act1+last+decoy")."""
        if isinstance(text, MemoryScheme):
            return text
        if not isinstance(text, str):
            raise WorldError(f"memory is given by name, got {quoted(text)}; {_RIGHT}")
        parts = [part.strip() for part in text.split("+")]
        return cls(tuple(group for part in parts for group in SCHEMES.get(part, (part,))))

    @property
    def name(self) -> str:
        known = (name for name, groups in SCHEMES.items() if groups == self.groups)
        return next(known, "+".join(self.groups))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each bit stands for, e.g. "act1 Enterprise0", "quiet 3", "decoy User2 Tomcat"."""
        return tuple(f"{group.name} {part}" for group in GROUPS if group.name in self.groups for part in group.parts)

    def in_words(self, bits: Sequence[float] | np.ndarray) -> dict[str, str]:
        """What is remembered of whom: {"network": "quiet turns 3", "User2": "active, decoys Femitter Tomcat"}."""
        each = bits.tolist() if isinstance(bits, np.ndarray) else bits
        right = isinstance(each, list | tuple) and all(isinstance(bit, int | float) for bit in each)
        if not right or len(each) != self.bits:
            raise WorldError(f"a memory of {self.name} has {self.bits} bits, got {quoted(bits)}")
        told: dict[str, dict[str, list[str]]] = {}
        for name in (name for name, bit in zip(self.names, each, strict=True) if bit):
            group, whom, *what = name.split()
            if group == "quiet":  # the largest number says it all
                told.setdefault(NETWORK, {})[_SHORT[group]] = [whom]
            else:
                told.setdefault(whom, {}).setdefault(_SHORT[group], []).extend(what)
        lines = {whom: ", ".join(" ".join((short, *what)) for short, what in said.items()) for whom, said in told.items()}
        return {whom: lines[whom] for whom in (NETWORK, *HOST_NAMES) if whom in lines}

    @property
    def bits(self) -> int:
        return len(self.names)

    @property
    def inputs(self) -> int:
        """Of a policy that reads the observation and this."""
        return OBSERVATION_BITS + self.bits

    @property
    def starts(self) -> np.ndarray:
        """[8] int64: the bit of a row at which each group of `memory.GROUPS` begins, or -1. For compiled functions."""
        starts, free = [], OBSERVATION_BITS
        for group in GROUPS:
            starts.append(free if group.name in self.groups else -1)
            free += len(group.parts) if group.name in self.groups else 0
        return np.array(starts, np.int64)

    def __str__(self) -> str:
        return self.name


_RIGHT = f"use {', '.join(SCHEMES)}, or groups joined by '+' of {', '.join(GROUP_NAMES)}"
