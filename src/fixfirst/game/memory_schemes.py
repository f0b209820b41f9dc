"""Which groups of its memory a policy reads: none of them, those of a known scheme, or any others.

A policy's row is a number of 64-bit words: the observation in bits 0..51, then the bits of the scheme's groups, one group
after the other in the order of `memory.GROUPS`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from fixfirst.errors import WorldError, did_you_mean, shown
from fixfirst.game.arguments import texts
from fixfirst.game.memory import GROUPS
from fixfirst.game.network import HOST_NAMES
from fixfirst.game.state import OBSERVATION_BITS

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
        for group in texts("groups", self.groups):
            if group not in GROUP_NAMES:
                hint = did_you_mean(group, (*SCHEMES, *GROUP_NAMES))
                raise WorldError(f"memory {shown(group)} is not known; {_RIGHT}{hint}")
        if len(set(self.groups)) != len(self.groups):
            raise WorldError(f"memory {'+'.join(self.groups)} names a group twice; {_RIGHT}")
        object.__setattr__(self, "groups", tuple(sorted(self.groups, key=GROUP_NAMES.index)))

    @classmethod
    def parse(cls, text: "MemoryScheme | str") -> "MemoryScheme":
        """From the name of a scheme, or from names of groups and schemes: MemoryScheme.parse("act1+last+decoy")."""
        if isinstance(text, MemoryScheme):
            return text
        if not isinstance(text, str):
            raise WorldError(f"memory is given by name, got {shown(text)}; {_RIGHT}")
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
            raise WorldError(f"a memory of {self.name} has {self.bits} bits, got {shown(bits)}")
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
