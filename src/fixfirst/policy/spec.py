"""What a policy reads and may choose: its memory, its set of actions, the order it follows, its opening.

A *row* is all that it reads, packed into words of 64 bits: the observation's 52, those of its memory, those of the order;
where choices may be masked, one more word holds the set of those that are. N environments, K words of bits, A choices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fixfirst.base.errors import ConfigError
from fixfirst.game.scenario import NUM_HOSTS
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy.action_sets import ActionSet
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.shield import Shields, mask_words, no_shield, shields_of

_NO_MEMORY, _ALL_ACTIONS = MemoryScheme.parse("none"), ActionSet.parse("all")


class SpecArrays(NamedTuple):
    """A spec for compiled functions; see `remembering.py` in the room of the game."""

    starts: np.ndarray  # [8] int64: where the groups of memory lie in a row
    meanings: np.ndarray  # [A, 32] int64
    shifts: np.ndarray  # [A, 2] int64
    slots: np.ndarray  # [macros that can be masked] int64
    suspicion: int  # the bit of a row from which on the suspect hosts stand, or -1
    first_macro: int  # the number of the first macro among the choices
    openings: np.ndarray  # [openings, O] int64: the choices of the first steps; one of them is drawn for every episode
    words: int  # K
    remembers: bool  # is there anything to remember beside whom it suspects?


@dataclass(frozen=True)
class PolicySpec:
    """units: whose order it reads; None: it knows no order. opening: choices that begin every episode, by number."""

    memory: MemoryScheme = _NO_MEMORY
    action_set: ActionSet = _ALL_ACTIONS
    units: UnitScheme | None = None
    opening: tuple[int, ...] = ()
    shield: bool = False  # the order is a mask (`shield.py` in the room of orders), and it reads whom it suspects
    idle: tuple[int, ...] = ()  # unit types that red never holds: whatever the order, they come last

    def __post_init__(self) -> None:
        wrong = [choice for choice in self.opening if not 0 <= choice < self.action_set.size]
        if wrong:
            raise ConfigError(f"an opening names choices of 0..{self.action_set.size - 1}, got {wrong[0]}")
        masked = self.action_set.first_masked(self.opening)
        if masked is not None:
            name = self.action_set.names[self.opening[masked]]
            raise ConfigError(
                f"the opening cannot be played: its choice {masked + 1}, {name}, is masked, as all its decoys stand by then"
            )

    @property
    def inputs(self) -> int:
        """How many bits it reads."""
        return self._order_start + (0 if self.units is None else self.units.encoding_bits)

    @property
    def _order_start(self) -> int:
        """The bit of a row from which on the order stands, behind the suspect hosts."""
        return self.memory.inputs + (NUM_HOSTS if self.shield else 0)

    @property
    def actions(self) -> int:
        """How many choices it has."""
        return self.action_set.size

    @property
    def words(self) -> int:
        """Words of bits in a row; behind them stands the set of masked choices, if there can be any."""
        return -(-self.inputs // 64)

    @property
    def masks(self) -> bool:
        """Can choices be masked?"""
        return self.shield or self.action_set.masks

    @property
    def row_words(self) -> int:
        """Words of a row."""
        return self.words + (mask_words(self.action_set) if self.masks else 0)

    def orders(self, workflows: Sequence[Workflow]) -> np.ndarray:
        """[W, row words] uint64: rows of these workflows without anything else; one of zeros without workflows."""
        bits = np.zeros((max(len(workflows), 1), self.row_words * 64), np.int8)
        if self.units is not None:
            for number, workflow in enumerate(workflows):
                bits[number, self._order_start : self.inputs] = workflow.with_last(self.idle).encode()
        return words_of(bits)

    def shields(self, workflows: Sequence[Workflow]) -> Shields:
        """What keeping these workflows forbids."""
        if self.shield:
            return shields_of(workflows, self.action_set, self.idle)
        return no_shield(max(len(workflows), 1), self.row_words - self.words)

    def allowed(self, rows: np.ndarray) -> np.ndarray:
        """[M, A] bool: the choices that rows [M, row words] leave; [0, A] if nothing is ever masked."""
        if not self.masks:
            return np.empty((0, self.actions), np.bool_)
        return bits_of(rows[:, self.words :], self.actions) == 0

    def arrays(self) -> SpecArrays:
        """Made anew: keep them."""
        chosen, memory = self.action_set, self.memory
        openings = np.array([self.opening], np.int64)
        remembers = bool(memory.groups or chosen.macros)
        tables = memory.starts, chosen.meanings, chosen.shifts, chosen.slots
        suspicion = memory.inputs if self.shield else -1
        return SpecArrays(*tables, suspicion, len(chosen.actions), openings, self.words, remembers)


PLAIN_SPEC = PolicySpec()


def spec_for(workflows: Sequence[Workflow]) -> PolicySpec:
    """Without memory, all actions, reading the order of these workflows if there are any."""
    return PolicySpec(units=workflows[0].scheme) if workflows else PLAIN_SPEC


# ---------------------------------------------------------------- packing


def words_of(bits: np.ndarray) -> np.ndarray:
    """Bits [M, I] packed into words [M, K] uint64, bit i of the row as bit i % 64 of word i // 64."""
    padded = np.zeros((len(bits), -(-bits.shape[1] // 64) * 64), np.uint8)
    padded[:, : bits.shape[1]] = bits
    packed = np.packbits(padded, axis=1, bitorder="little")
    return packed.view(np.dtype(np.uint64).newbyteorder("<")).astype(np.uint64)


def bits_of(words: np.ndarray, inputs: int) -> np.ndarray:
    """The first I bits of words [M, K], unpacked into [M, I] float32."""
    packed = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return np.unpackbits(packed, axis=1, bitorder="little", count=inputs).astype(np.float32)
