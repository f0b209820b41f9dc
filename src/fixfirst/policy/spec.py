"""What a policy reads, remembers, may choose and must keep, and in which scenario: a `PolicySpec`.

A *row* is all that it reads, packed into words of 64 bits: the observation's, those of its memory, those of the order;
where choices may be masked, further words hold the set of those that are. N environments, K words of bits, A choices.

The *shield* is an order as a mask on what blue may repair, computed from what blue knows: repairing a unit type is
forbidden while one ranked above it is *suspected*, that is, a host of it is suspect or believed not clean
(`remembering.py`). How suspicion comes and goes is one of SHIELDS. Red's foothold cannot be cleaned and counts for nothing.
Unit types that red never holds are moved to the end of every order first: a false alarm there must not keep anybody from
repairing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base import errors
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy.action_sets import ActionSet
from fixfirst.policy.memory import EVIDENCE, EXPIRY, LIMIT, RECHECK, MemoryScheme, MemoryTables, memory_tables

_NO_MEMORY, _ALL_ACTIONS = MemoryScheme.parse("none"), ActionSet.parse("all")


# The ways to keep an order, each as a number for `remembering.py`.
SHIELDS: Mapping[str, int] = MappingProxyType(
    {
        "shield": 0,
        "evidence": EVIDENCE,  # only an exploit that was seen, or a belief, raises suspicion; not activity that comes again
        "recheck": RECHECK,  # Restore or a clean Analyse makes the next activity the first one
        "expiry": 5 << EXPIRY,  # suspicion ends after five to ten turns without anything new
        "limit": 2 << LIMIT,  # after two turns in a row with a suspect host, one turn is free of the mask
    }
)


class SpecArrays(NamedTuple):
    """A spec for compiled functions; see `remembering.py`."""

    starts: np.ndarray  # [sets of memory + 1] int64: where its groups lie in a row; and the suspect hosts
    meanings: np.ndarray  # [A, 32] int64
    shifts: np.ndarray  # [A, 2] int64
    slots: np.ndarray  # [macros that can be masked, D] uint64
    tables: MemoryTables
    keeping: int  # how suspicion comes and goes: one of SHIELDS
    first_macro: int  # the number of the first macro among the choices
    words: int  # K
    remembers: bool  # is there anything to remember beside whom it suspects?


class Shields(NamedTuple):
    """S orders for compiled functions. U unit types, M = A / 64 words of masked choices, rounded up."""

    ranked: np.ndarray  # [S, U] int64: the hosts of the unit type at each position, as sets
    forbidden: np.ndarray  # [S, U + 1, M] uint64: choices that are masked while the first suspected type has this position


@dataclass(frozen=True)
class PolicySpec:
    """A player's side of the game. Memory, action set and unit types belong to one scenario.

    units: whose order it reads; None: it knows no order. opening: choices that begin every episode, by number.
    """

    memory: MemoryScheme = _NO_MEMORY
    action_set: ActionSet = _ALL_ACTIONS
    units: UnitScheme | None = None
    opening: tuple[int, ...] = ()
    shield: bool = False  # the order is a mask, and it reads whom it suspects
    idle: tuple[int, ...] = ()  # unit types that red never holds: whatever the order, they come last
    keeping: str = "shield"  # which of SHIELDS

    def __post_init__(self) -> None:
        if self.keeping not in SHIELDS:
            raise errors.ConfigError(f"unknown shield {self.keeping!r}; use {', '.join(SHIELDS)}")
        for part in (self.action_set, self.units):
            if part is not None and part.scenario != self.scenario:
                raise errors.ConfigError(f"a policy of {self.scenario.name} cannot have parts of {part.scenario.name}")
        wrong = [choice for choice in self.opening if not 0 <= choice < self.action_set.size]
        if wrong:
            raise errors.ConfigError(f"an opening names choices of 0..{self.action_set.size - 1}, got {wrong[0]}")
        masked = self.action_set.first_masked(self.opening)
        if masked is not None:
            name = self.action_set.names[self.opening[masked]]
            raise errors.ConfigError(
                f"the opening cannot be played: its choice {masked + 1}, {name}, is masked, as all its decoys stand by then"
            )

    @property
    def scenario(self) -> Scenario:
        return self.memory.scenario

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values, as policy.json has it."""
        units, choices = self.units, self.action_set.names
        return {
            "units": None if units is None else units.as_dict(),
            "memory": self.memory.name,
            "action_set": self.action_set.name,
            "shield": self.shield,
            "idle": [] if units is None else [units.names[unit] for unit in self.idle],
            "opening": [choices[choice] for choice in self.opening],
            **({} if self.keeping == "shield" else {"keeping": self.keeping}),
        } | ({} if self.scenario == CAGE2 else {"scenario": self.scenario.as_dict()})

    @classmethod
    def for_orders(cls, workflows: Sequence[Workflow], scenario: Scenario = CAGE2) -> "PolicySpec":
        """Return the spec without memory, with all actions, that reads the order of these workflows if there are any."""
        units = workflows[0].scheme if workflows else None
        played = scenario if units is None else units.scenario
        return cls(MemoryScheme.parse("none", played), ActionSet.parse("all", played), units)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PolicySpec":
        """Read what `as_dict` returned; older files have less."""
        scenario = Scenario.from_dict(values["scenario"]) if "scenario" in values else CAGE2
        units = None if values["units"] is None else UnitScheme.from_dict(values["units"], scenario)
        choices = ActionSet.parse(values.get("action_set", "all"), scenario)
        return cls(
            memory=MemoryScheme.parse(values.get("memory", "none"), scenario),
            action_set=choices,
            units=units,
            opening=choices.numbers(values.get("opening", [])),
            shield=values.get("shield", False) is True,
            idle=() if units is None else units.numbers(values.get("idle", []), "idle"),
            keeping=str(values.get("keeping", "shield")),
        )

    @property
    def inputs(self) -> int:
        """How many bits it reads."""
        suspects, order = len(self.scenario.listed) * self.shield, 0 if self.units is None else self.units.encoding_bits
        return self.memory.inputs + suspects + order

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
        return self.words + (-(-self.actions // 64) if self.masks else 0)

    @property
    def arrays(self) -> SpecArrays:
        """The spec for compiled functions; specs that are equal share it."""
        return _arrays(self)

    def orders(self, workflows: Sequence[Workflow]) -> np.ndarray:
        """Return rows of these workflows without anything else, [W, row words] uint64; one of zeros without workflows."""
        bits = np.zeros((max(len(workflows), 1), self.row_words * 64), np.int8)
        if self.units is not None:
            for number, workflow in enumerate(workflows):
                bits[number, self.inputs - self.units.encoding_bits : self.inputs] = workflow.with_last(self.idle).encode()
        return words_of(bits)

    def shields(self, workflows: Sequence[Workflow]) -> Shields:
        """Return what keeping these workflows forbids; without any, or without a shield, nothing."""
        if not (self.shield and workflows):
            count = max(len(workflows), 1)
            return Shields(np.zeros((count, 0), np.int64), np.zeros((count, 1, self.row_words - self.words), np.uint64))
        repaired, ranked, forbidden = np.full(self.actions, -1), [], []
        repaired[: len(self.action_set.actions)] = [self.scenario.repaired_hosts[a] for a in self.action_set.actions]
        for order in (workflow.with_last(self.idle) for workflow in workflows):
            units = [order.scheme.host_unit[host] if host != self.scenario.start_id else -1 for host in self.scenario.listed]
            ranked.append([sum(1 << bit for bit, mine in enumerate(units) if mine == unit) for unit in order.order])
            ranks = np.where(repaired < 0, -1, order.ranks[np.array(order.scheme.host_unit)[repaired]])
            forbidden.append(words_of(ranks > np.arange(len(order.order) + 1)[:, None]))
        return Shields(np.array(ranked, np.int64), np.array(forbidden))

    def allowed(self, rows: np.ndarray) -> np.ndarray:
        """Return the choices that rows [M, row words] leave, [M, A] bool; [0, A] if nothing is ever masked."""
        if not self.masks:
            return np.empty((0, self.actions), np.bool_)
        return bits_of(rows[:, self.words :], self.actions) == 0


@lru_cache(maxsize=64)
def _arrays(spec: PolicySpec) -> SpecArrays:
    chosen, memory = spec.action_set, spec.memory
    return SpecArrays(
        starts=np.append(memory.starts, memory.inputs if spec.shield else -1),
        meanings=chosen.meanings,
        shifts=chosen.shifts,
        slots=chosen.slots,
        tables=memory_tables(spec.scenario),
        keeping=SHIELDS[spec.keeping],
        first_macro=len(chosen.actions),
        words=spec.words,
        remembers=bool(memory.groups or chosen.macros),
    )


def words_of(bits: np.ndarray) -> np.ndarray:
    """Pack bits [M, I] into words [M, K] uint64, bit i of the row as bit i % 64 of word i // 64."""
    padded = np.zeros((len(bits), -(-bits.shape[1] // 64) * 64), np.uint8)
    padded[:, : bits.shape[1]] = bits
    packed = np.packbits(padded, axis=1, bitorder="little")
    return packed.view(np.dtype(np.uint64).newbyteorder("<")).astype(np.uint64)


def bits_of(words: np.ndarray, inputs: int) -> np.ndarray:
    """Unpack the first I bits of words [M, K] into [M, I] int8."""
    packed = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return np.unpackbits(packed, axis=1, bitorder="little", count=inputs).view(np.int8)
