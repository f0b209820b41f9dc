"""A policy's turn in formulas that any array library can do, with rows of bits where `remembering.py` has sets in integers.

All of a policy is in them: what it remembers, its masks, its opening and its order. How they are used is in
`docs/export.md`; `tests/policy/test_export.py` holds them to `Policy.act`.

N environments, A choices, H hosts, D slots of decoys, S numbers of state, U unit types, P = U * U pairs of them.

    observation [N, 4 H]     0 and 1
    state       [N, S]       bits of memory, and at the end the number of the turn; all 0 when an episode begins
    draw        [N, 1]       in [0, 1): which action is drawn; below 0: the most probable one
    order       [N, U]       the position of each unit type, 0 = fix first; only where the policy follows any order
    -> action [N, 1] of the world's, state after it [N, S], probabilities [N, A] of the choices
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from fixfirst.base import errors
from fixfirst.game import parts
from fixfirst.game.scenario import Scenario
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy.action_sets import ActionSet
from fixfirst.policy.decoy_slots import decoy_slots
from fixfirst.policy.memory import BREAK_INS, DIGITS, memory_groups, memory_tables, scan_hosts, seen_hosts
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.trained import Policy

NEVER = 1e9  # more decoys than there are; below 0, the logit of a masked choice


class Operations(Protocol):
    """What differs between array libraries. In all of them arrays have + - * @ < and slices of columns.

    All are float32, numbers int64. Sums and the like run over columns.
    """

    def constant(self, array: Any) -> Any: ...
    def maximum(self, a: Any, b: Any) -> Any: ...
    def tanh(self, x: Any) -> Any: ...
    def softmax(self, x: Any) -> Any: ...
    def cumsum(self, x: Any) -> Any: ...
    def total(self, x: Any) -> Any: ...  # [N, 1]
    def argmax(self, x: Any) -> Any: ...  # [N, 1] numbers; of several, the first
    def where(self, condition: Any, a: Any, b: Any) -> Any: ...
    def concat(self, parts: list[Any]) -> Any: ...
    def as_float(self, x: Any) -> Any: ...
    def as_number(self, x: Any) -> Any: ...
    def rows(self, table: Any, numbers: Any) -> Any: ...  # [N, ...] of table [M, ...] and numbers [N, 1]
    def pick(self, x: Any, numbers: Any) -> Any: ...  # [N, 1] of x [N, M] and numbers [N, 1]


@dataclass(frozen=True)
class Portable:
    """The constants of a policy's turn. An order that never changes is one of them."""

    groups: dict[str, tuple[int, int]]  # where the groups of memory begin and end in the state
    reads: tuple[tuple[int, int], ...]  # what the network reads of it, after the observation
    arrays: dict[str, np.ndarray]
    scenario: Scenario
    order: Workflow | None = None  # that it follows; None: it knows none, or is told one at every turn
    shielded: bool = False

    @classmethod
    def of(cls, policy: Policy, workflow: Workflow | str | None = None) -> "Portable":
        """Return those of a policy that follows this order, or its own, or any that it is given at every turn."""
        spec, weights, memory = policy.spec, policy.weights, memory_matrices(policy.spec.scenario)
        if spec.shield and spec.keeping != "shield":
            raise errors.ConfigError(
                f"a policy that keeps its order by {spec.keeping} cannot be exported, one by shield can"
            )
        hosts = len(spec.scenario.listed)
        sizes = memory.groups | {"decoys": memory.places.shape[1], "suspect": hosts, "analysed": hosts}
        if "breaks" not in spec.memory.groups:
            del sizes["break_ins"]  # counted only where it is read, likewise:
        if "again" in spec.memory.groups:
            sizes["digits"] = DIGITS * hosts
        else:
            del sizes["restores"]
        starts = np.cumsum([0, *sizes.values()]).tolist()
        groups = {name: (start, start + size) for start, (name, size) in zip(starts, sizes.items(), strict=False)}
        read = [group.field for group in memory_groups(spec.scenario) if group.name in spec.memory.groups]
        reads = tuple((groups[name][0], groups[name][0] + memory.groups[name]) for name in read)
        first, ordered = weights["actor.0.weight"], 0 if spec.units is None else spec.units.encoding_bits
        arrays = {
            "weight1": first[:, : spec.inputs - ordered].T,
            "bias1": weights["actor.0.bias"],
            "weight2": weights["actor.2.weight"].T,
            "bias2": weights["actor.2.bias"],
            "weight3": weights["actor.4.weight"].T,
            "bias3": weights["actor.4.bias"],
            "restores": memory.restores,
            "analyses": memory.analyses,
            "places": memory.places,
            "clears": memory.clears,
            "host_slots": memory.host_slots,
            "host_scans": memory.host_scans,
            **_choices(spec.action_set, memory.places.shape[1]),
        }
        if spec.units is not None:
            arrays |= {"weight_order": first[:, spec.inputs - ordered :].T, **_ordering(spec.units, spec.idle)}
        if spec.units is not None and spec.shield:
            arrays |= _shielding(spec, spec.units)
        found = {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items() if name != "meanings"}
        found["meanings"] = arrays["meanings"]
        found["opening"] = np.array([[choice] for choice in (*spec.opening, -1)], np.int64)  # -1: it is over
        settled = None if policy.follows_any and workflow is None else next(iter(policy.assign(workflow, 1)[0]), None)
        if settled is not None:
            found["order"] = settled.ranks[None].astype(np.float32)
        return cls(groups, reads, found, spec.scenario, settled, spec.shield)

    @property
    def inputs(self) -> dict[str, int]:
        """The columns of all that goes in, in the order of `turn`."""
        more = {"order": len(self.arrays["each_position"])} if "higher" in self.arrays and self.order is None else {}
        return {"observation": self.scenario.observation_bits, "state": self.state_size, "draw": 1, **more}

    @property
    def state_size(self) -> int:
        """S: the bits of memory, and the number of the turn."""
        return max(end for _, end in self.groups.values()) + 1

    def turn(self, do: Operations, observation: Any, state: Any, draw: Any, order: Any = None) -> tuple[Any, Any, Any]:
        """Play one turn, as the module says."""
        be = {name: do.constant(array) for name, array in self.arrays.items()}
        had = {name: state[:, start:end] for name, (start, end) in self.groups.items()}
        turn = state[:, self.state_size - 1 : self.state_size]

        suspect = self._suspect(do, observation, had)
        choice, odds = self._choose(do, be, observation, state, had["decoys"], suspect, draw, order)
        last = do.constant(np.float32(len(self.arrays["opening"]) - 1))
        opening = do.rows(be["opening"], do.as_number(do.where(turn < last, turn, last)))
        choice = do.where(do.as_float(opening) < do.constant(np.float32(0)), choice, opening)
        standing = do.as_number(do.pick(had["decoys"] @ be["codes"], choice))
        action = do.pick(do.rows(be["meanings"], choice), standing)

        new = self._remember(do, be, observation, had, suspect, action)
        count = turn + do.constant(np.float32(1))
        return action, do.concat([*(new[name] for name in self.groups), count]), odds

    def _choose(
        self, do: Operations, be: Any, observation: Any, state: Any, decoys: Any, suspect: Any, draw: Any, order: Any
    ) -> tuple[Any, Any]:
        """Return a choice [N, 1], drawn or the most probable, and the odds of all."""
        seen = [observation, *(state[:, start:end] for start, end in self.reads), *([suspect] if self.shielded else [])]
        first, used = do.concat(seen) @ be["weight1"] + be["bias1"], decoys @ be["slots"]
        if "higher" in be:
            rank = self._ranks(do, be, be.get("order", order))
            first = first + self._order_bits(do, be, rank) @ be["weight_order"]
            if self.shielded:
                used = used + self._forbidden(do, be, rank, do.maximum(suspect, _unclean(do, observation))) @ be["repairs"]
        hidden = do.tanh(do.tanh(first) @ be["weight2"] + be["bias2"])
        logits = hidden @ be["weight3"] + be["bias3"]
        allowed = used < be["full"]  # a macro whose decoys all stand is masked, and a repair that the order forbids
        odds = do.softmax(do.where(allowed, logits, do.constant(np.float32(-NEVER))))
        upto, choices = do.cumsum(odds), len(self.arrays["full"])
        beyond = do.as_float(draw * upto[:, choices - 1 : choices] < upto)  # the first of these is drawn
        drawn = do.as_number(do.constant(np.float32(choices)) - do.total(beyond))
        return do.where(draw < do.constant(np.float32(0)), do.argmax(odds), drawn), odds

    def _ranks(self, do: Operations, be: Any, order: Any) -> Any:
        """Return positions [N, U], with types that red never holds at the end, as `Workflow.with_last`."""
        above = do.as_float(do.constant(np.float32(0)) < order @ be["differences"])  # [N, P] is the other one fixed first?
        return above @ be["higher"] + be["at_the_end"]

    def _order_bits(self, do: Operations, be: Any, rank: Any) -> Any:
        """Return bits [N, P], bit U * position + unit id, as `Workflow.encode`."""
        half, apart = do.constant(np.float32(0.5)), rank @ be["each_position"] - be["positions"]
        return do.as_float(apart < half) * do.as_float(do.constant(np.float32(-0.5)) < apart)

    def _forbidden(self, do: Operations, be: Any, rank: Any, suspected: Any) -> Any:
        """Return where repairing a type is forbidden [N, U]: one ranked above it is suspected. As `PolicySpec.shields`."""
        nothing = do.constant(np.float32(0))
        above = do.as_float(nothing < rank @ be["differences"])
        other = do.as_float(nothing < suspected @ be["host_units"]) @ be["each_other"]
        return do.as_float(nothing < (above * other) @ be["pairs"])

    def _suspect(self, do: Operations, observation: Any, had: Any) -> Any:
        """Return the suspect hosts [N, H], as `policy/remembering.py: suspects`."""
        one, (first, second, third, fourth) = do.constant(np.float32(1)), _by_bit(observation)
        cleared = had["analysed"] * (one - third * fourth)
        again = do.maximum(first, second) * had["was_active"]
        return do.maximum(had["suspect"] * (one - cleared), do.maximum(first * second, again))

    def _remember(self, do: Operations, be: Any, observation: Any, had: Any, suspect: Any, action: Any) -> dict[str, Any]:
        """Remember as `policy/remembering.py: remember_one` does, with bits in place of sets."""
        nothing, half, one = (do.constant(np.float32(number)) for number in (0, 0.5, 1))
        seen, other, _, _ = _by_bit(observation)
        active, exploited = do.maximum(seen, other), seen * other
        scanned = active - exploited
        something = half < do.total(active)
        first = do.as_float(do.cumsum(active) < one + half) * active  # of several, the first
        start, end = self.groups["quiet_turns"]
        longer = do.concat(
            [one + had["quiet_turns"][:, 0:1] * nothing, had["quiet_turns"][:, 0 : end - start - 1]]
        )  # one more turn
        restored = do.rows(be["restores"], action)
        listed = had["decoys"][:, 0 : self.arrays["host_slots"].shape[1]]
        hosts, counted = self.arrays["restores"].shape[1], {}
        if "break_ins" in had:
            counts = [had["break_ins"][:, k * hosts : (k + 1) * hosts] for k in range(BREAK_INS)]
            fewer = [exploited, *counts[:-1]]
            more = [
                do.maximum(count, exploited * less) * (one - restored) for count, less in zip(counts, fewer, strict=True)
            ]
            counted["break_ins"] = do.concat(more)
        if "restores" in had:
            digits = _add(one, restored, [had["digits"][:, k * hosts : (k + 1) * hosts] for k in range(DIGITS)])
            so_many = digits[-1:]  # at least 16, 8, 4, 2
            for digit in digits[-2:0:-1]:
                so_many = [do.maximum(digit, so_many[0]), *so_many]
            counted |= {"restores": do.concat(so_many), "digits": do.concat(digits)}
        return counted | {
            "was_active": do.maximum(had["was_active"], active),
            "last_active": do.where(something, first, had["last_active"]),
            "was_exploited": do.maximum(had["was_exploited"], exploited),
            "was_restored": do.maximum(had["was_restored"], restored),
            "quiet_turns": do.where(something, nothing, longer),
            "decoys": do.maximum(had["decoys"] * (one - do.rows(be["clears"], action)), do.rows(be["places"], action)),
            "decoys_seen": do.maximum(had["decoys_seen"], listed * (scanned @ be["host_slots"])),
            "was_scanned": do.maximum(had["was_scanned"], scanned @ be["host_scans"]),
            "suspect": suspect * (one - restored),
            "analysed": do.rows(be["analyses"], action),
        }


def _by_bit(observation: Any) -> list[Any]:
    """Return the four bits of every host, each [N, H]."""
    return [observation[:, bit : sys.maxsize : parts.BITS_PER_HOST] for bit in range(parts.BITS_PER_HOST)]


def _add(one: Any, hosts: Any, digits: list[Any]) -> list[Any]:
    """Count as `policy/remembering.py: count_one` does."""
    largest, added = hosts, []
    for digit in digits:
        largest = largest * digit
    carry = hosts - largest
    for digit in digits:
        added.append(digit + carry - (carry * digit) * (one + one))
        carry = carry * digit
    return added


def _unclean(do: Operations, observation: Any) -> Any:
    """Return where hosts are believed not clean, [N, H]."""
    return do.maximum(*_by_bit(observation)[2:])


def _choices(action_set: ActionSet, slots: int) -> dict[str, np.ndarray]:
    """Return what choices are, given the standing decoys. A choice's code is a set of them: bit j, the j-th of its list."""
    own = [()] * len(action_set.actions) + [action_set.macro_slots(macro) for macro in range(len(action_set.macros))]
    longest = max(map(len, own))
    members, codes = (np.zeros((slots, len(own))) for _ in range(2))  # [D, A]
    actions = np.zeros((len(own), 1 << longest), np.int64)  # [A, codes]
    for choice, its in enumerate(own):
        for number, slot in enumerate(its):
            members[slot, choice], codes[slot, choice] = 1, 1 << number
        for code in range(1 << longest):
            standing = sum(1 << slot for number, slot in enumerate(its) if code >> number & 1)
            actions[choice, code] = action_set.meaning(choice, standing)
    full = [len(its) if its and action_set.masks else NEVER for its in own]
    return {"slots": members, "codes": codes, "meanings": actions, "full": np.array(full)}


def _ordering(scheme: UnitScheme, idle: Sequence[int]) -> dict[str, np.ndarray]:
    """Return what ranks are computed with. Idle types: red never holds them, so they come last."""
    (mine, other), units = _pairs(scheme.size), scheme.size
    kept = np.array([unit not in idle for unit in range(units)])
    place = np.where(kept, 0, kept.sum() + (~kept).cumsum() - 1)
    return {
        "differences": mine - other,
        "higher": (mine * (kept @ other) * (kept @ mine)).T,  # [P, U]: of types that are not idle, how many come before
        "at_the_end": place[None],
        "each_position": mine,  # a rank, for each position that it may be
        "positions": np.repeat(np.arange(units), units)[None],
    }


def _shielding(spec: PolicySpec, scheme: UnitScheme) -> dict[str, np.ndarray]:
    """Return what the shield is computed with."""
    (mine, other), hosts = _pairs(scheme.size), np.array(scheme.host_unit)
    host_units, repairs = np.eye(scheme.size)[hosts], np.zeros((scheme.size, spec.actions))
    host_units[spec.scenario.start_id] = 0  # it cannot be cleaned
    for choice, action in enumerate(spec.action_set.actions):
        host = spec.scenario.repaired_hosts[action]
        if host >= 0:
            repairs[hosts[host], choice] = 1
    seen = host_units[list(spec.scenario.listed)]
    return {"each_other": other, "pairs": mine.T, "host_units": seen, "repairs": repairs * 2 * NEVER}


def _pairs(units: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of unit types (u, v), numbered U * v + u: u of each, and v, both [U, P]."""
    return np.tile(np.eye(units), units), np.repeat(np.eye(units), units, axis=1)


class MemoryMatrices(NamedTuple):
    """What actions and scans mean for a memory, all float32."""

    groups: dict[str, int]  # the bits of each group of memory, in their order
    restores: np.ndarray  # [actions, H]: the host an action restores
    analyses: np.ndarray  # [actions, H]: the host an action analyses
    places: np.ndarray  # [actions, D]: the decoy an action places
    clears: np.ndarray  # [actions, D]: the decoys an action takes away
    host_slots: np.ndarray  # [H, bits of `decoys_seen`]: the decoys of a host
    host_scans: np.ndarray  # [H, bits of `was_scanned`]: the bit of a host


def memory_matrices(scenario: Scenario) -> MemoryMatrices:
    """Return the tables of the compiled functions as matrices."""
    groups = {group.field: len(group.parts) for group in memory_groups(scenario)}
    decoys, scans, hosts = decoy_slots(scenario), scan_hosts(scenario), seen_hosts(scenario)
    restores, analyses, fills, clears = memory_tables(scenario).effects.T.tolist()
    slots = len(decoys.number)
    return MemoryMatrices(
        groups,
        _bits(restores, len(hosts)),
        _bits(analyses, len(hosts)),
        _bits([0 if slot < 0 else 1 << slot for slot in fills], slots),
        _bits([0 if host < 0 else decoys.of_host(hosts[host]) for host in clears], slots),
        _bits([decoys.of_host(host) for host in hosts], len(decoys.listed)),
        _bits([1 << scans.index(host) if host in scans else 0 for host in hosts], len(scans)),
    )


def _bits(sets: Sequence[int], size: int) -> np.ndarray:
    """Return sets [M] in integers of any length as rows of bits, [M, size] float32."""
    return np.array([[one >> bit & 1 for bit in range(size)] for one in sets], np.float32).reshape(-1, size)
