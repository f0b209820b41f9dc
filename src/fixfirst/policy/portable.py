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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fixfirst.base import errors
from fixfirst.game.parts import BITS_PER_HOST
from fixfirst.game.scenario import Scenario
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy.action_sets import ActionSet, decoy_slots
from fixfirst.policy.memory import BREAK_INS, DIGITS, memory_groups, memory_tables, scan_hosts, seen_hosts
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.trained import Policy

NEVER = 1e9  # more decoys than there are; below 0, the logit of a masked choice


class Operations(Protocol):
    """What differs between array libraries. In all of them arrays have + - * @ < > and slices of columns.

    All are float32, numbers int64. Sums and the like run over columns.
    """

    def constant(self, array: Any) -> Any: ...
    def maximum(self, a: Any, b: Any) -> Any: ...
    def tanh(self, x: Any) -> Any: ...
    def softmax(self, x: Any) -> Any: ...
    def cumsum(self, x: Any) -> Any: ...
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
    order: Workflow | None = None  # that it follows; None: it knows none, or is given one at every turn

    @classmethod
    def of(cls, policy: Policy, workflow: Workflow | str | None = None) -> "Portable":
        """Return those of a policy that follows this order, or its own, or any that it is given at every turn."""
        spec, weights, groups = policy.spec, policy.weights, _state_layout(policy.spec)
        if spec.shield and spec.keeping != "shield":
            raise errors.ConfigError(
                f"a policy that keeps its order by {spec.keeping} cannot be exported, one by shield can"
            )
        read = [group for group in memory_groups(spec.scenario) if group.name in spec.memory.groups]
        reads = tuple((groups[group.name][0], groups[group.name][0] + len(group.parts)) for group in read)
        first, unordered = weights["actor.0.weight"].T, spec.inputs
        arrays = _memory_arrays(spec.scenario) | _choice_arrays(spec.action_set)
        if spec.units is not None:
            unordered -= spec.units.encoding_bits
            arrays |= {"weight_order": first[unordered:], **_order_arrays(spec.units, spec.idle)}
            if spec.shield:
                arrays |= _shield_arrays(spec, spec.units)
        arrays |= {"weight1": first[:unordered], "bias1": weights["actor.0.bias"]}
        arrays |= {"weight2": weights["actor.2.weight"].T, "bias2": weights["actor.2.bias"]}
        arrays |= {"weight3": weights["actor.4.weight"].T, "bias3": weights["actor.4.bias"]}
        settled = None if policy.follows_any and workflow is None else next(iter(policy.assign(workflow, 1)[0]), None)
        if settled is not None:
            arrays["order"] = settled.ranks[None]
        arrays = {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()}
        arrays["meanings"] = _meanings(spec.action_set)
        arrays["opening"] = np.array([[choice] for choice in (*spec.opening, -1)], np.int64)  # -1: it is over
        return cls(groups, reads, arrays, spec.scenario, settled)

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
        seen = [observation[:, bit::BITS_PER_HOST] for bit in range(BITS_PER_HOST)]  # each [N, H]
        suspect = _suspect(do, seen, had)
        odds = self._odds(do, be, observation, state, had["decoy"], suspect, do.maximum(*seen[2:]), order)
        upto, turn, last = do.cumsum(odds), state[:, -1:], len(self.arrays["opening"]) - 1
        drawn = do.argmax(do.as_float(draw * upto[:, -1:] < upto))  # the first that exceeds the draw
        opening = do.rows(be["opening"], do.as_number(do.where(turn < last, turn, turn * 0 + last)))
        choice = do.where(do.as_float(opening) < 0, do.where(draw < 0, do.argmax(odds), drawn), opening)
        standing = do.as_number(do.pick(had["decoy"] @ be["codes"], choice))
        action = do.pick(do.rows(be["meanings"], choice), standing)
        new = self._remember(do, be, seen, had, suspect, action)
        return action, do.concat([*(new[name] for name in self.groups), turn + 1]), odds

    def _odds(
        self, do: Operations, be: Any, observation: Any, state: Any, decoys: Any, suspect: Any, unclean: Any, order: Any
    ) -> Any:
        """Return the odds of all choices [N, A]."""
        read = [observation, *(state[:, start:end] for start, end in self.reads), *([suspect] if "repairs" in be else [])]
        hidden, used = do.concat(read) @ be["weight1"] + be["bias1"], decoys @ be["slots"]
        if "higher" in be:  # it knows orders; types that red never holds come last, as in `Workflow.with_last`
            above = do.as_float(be.get("order", order) @ be["differences"] > 0)  # [N, P] is the other one fixed first?
            rank = above @ be["higher"] + be["at_the_end"]
            apart = rank @ be["each_position"] - be["positions"]
            hidden = hidden + (do.as_float(apart < 0.5) * do.as_float(apart > -0.5)) @ be["weight_order"]
        if "repairs" in be:  # forbidden while a type ranked above is suspected, as in `PolicySpec.shields`
            other = do.as_float(do.maximum(suspect, unclean) @ be["host_units"] > 0) @ be["each_other"]
            above = do.as_float(rank @ be["differences"] > 0)
            used = used + do.as_float((above * other) @ be["pairs"] > 0) @ be["repairs"]
        hidden = do.tanh(do.tanh(hidden) @ be["weight2"] + be["bias2"])
        allowed = used < be["full"]  # a macro whose decoys all stand is masked, and a repair that the order forbids
        return do.softmax(do.where(allowed, hidden @ be["weight3"] + be["bias3"], -NEVER))

    def _remember(
        self, do: Operations, be: Any, seen: list[Any], had: dict[str, Any], suspect: Any, action: Any
    ) -> dict[str, Any]:
        """Remember as `policy/remembering.py: remember_one` does, with bits in place of sets."""
        active, exploited = do.maximum(seen[0], seen[1]), seen[0] * seen[1]
        scanned, so_far, quiet = active - exploited, do.cumsum(active), had["quiet"]
        something = so_far[:, -1:] > 0
        restored, hosts = do.rows(be["restores"], action), self.arrays["restores"].shape[1]
        listed = had["decoy"][:, : self.arrays["host_slots"].shape[1]]
        new = {
            "act1": do.maximum(had["act1"], active),
            "last": do.where(something, do.as_float(so_far < 1.5) * active, had["last"]),  # of several, the first
            "expl": do.maximum(had["expl"], exploited),
            "rest": do.maximum(had["rest"], restored),
            "quiet": do.where(something, quiet * 0, do.concat([quiet[:, :1] * 0 + 1, quiet[:, :-1]])),  # one turn more
            "decoy": do.maximum(had["decoy"] * (1 - do.rows(be["clears"], action)), do.rows(be["places"], action)),
            "seen": do.maximum(had["seen"], listed * (scanned @ be["host_slots"])),
            "scans": do.maximum(had["scans"], scanned @ be["host_scans"]),
            "suspect": suspect * (1 - restored),
            "analysed": do.rows(be["analyses"], action),
        }
        if "breaks" in had:
            counts = [had["breaks"][:, k * hosts : (k + 1) * hosts] for k in range(BREAK_INS)]
            fewer = [exploited, *counts[:-1]]
            more = [do.maximum(count, exploited * less) for count, less in zip(counts, fewer, strict=True)]
            new["breaks"] = do.concat([count * (1 - restored) for count in more])
        if "again" in had:
            digits = _count(restored, [had["digits"][:, k * hosts : (k + 1) * hosts] for k in range(DIGITS)])
            so_many = digits[-1:]  # at least 16, 8, 4, 2
            for digit in digits[-2:0:-1]:
                so_many = [do.maximum(digit, so_many[0]), *so_many]
            new |= {"again": do.concat(so_many), "digits": do.concat(digits)}
        return new


def _suspect(do: Operations, seen: list[Any], had: dict[str, Any]) -> Any:
    """Return the suspect hosts [N, H], as `policy/remembering.py: suspects`."""
    first, second, third, fourth = seen
    cleared = had["analysed"] * (1 - third * fourth)
    again = do.maximum(first, second) * had["act1"]
    return do.maximum(had["suspect"] * (1 - cleared), do.maximum(first * second, again))


def _count(hosts: Any, digits: list[Any]) -> list[Any]:
    """Count as `policy/remembering.py: count_one` does."""
    largest, more = hosts, []
    for digit in digits:
        largest = largest * digit
    carry = hosts - largest
    for digit in digits:
        more.append(digit + carry - carry * digit * 2)
        carry = carry * digit
    return more


def _state_layout(spec: PolicySpec) -> dict[str, tuple[int, int]]:
    """Return where each group of memory begins and ends in the state. Counts are there where they are read."""
    hosts = len(spec.scenario.listed)
    sizes = {group.name: len(group.parts) for group in memory_groups(spec.scenario)}
    sizes |= {"decoy": len(decoy_slots(spec.scenario).number), "suspect": hosts, "analysed": hosts}
    if "breaks" not in spec.memory.groups:
        del sizes["breaks"]
    if "again" in spec.memory.groups:
        sizes["digits"] = DIGITS * hosts
    else:
        del sizes["again"]
    ends = np.cumsum([*sizes.values()]).tolist()
    return {name: (end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}


def _memory_arrays(scenario: Scenario) -> dict[str, np.ndarray]:
    """Return what actions and scans mean for a memory: the tables of the compiled functions as rows of bits."""
    slots, hosts, tables = decoy_slots(scenario), seen_hosts(scenario), memory_tables(scenario)
    decoys, (restores, analyses, fills, clears) = [slots.of_host(host) for host in hosts], tables.effects.T.tolist()
    return {
        "restores": _bits(restores, len(hosts)),  # [actions, H]
        "analyses": _bits(analyses, len(hosts)),
        "places": _bits([0 if slot < 0 else 1 << slot for slot in fills], len(slots.number)),  # [actions, D]
        "clears": _bits([0 if host < 0 else decoys[host] for host in clears], len(slots.number)),
        "host_slots": _bits(decoys, len(slots.listed)),  # [H, bits of `decoys_seen`]
        "host_scans": _bits(tables.host_scans.tolist(), len(scan_hosts(scenario))),  # [H, bits of `was_scanned`]
    }


def _bits(sets: Sequence[int], size: int) -> np.ndarray:
    """Return sets [M] in integers of any length as rows of bits, [M, size]."""
    return np.array([[members >> bit & 1 for bit in range(size)] for members in sets]).reshape(-1, size)


def _lists(action_set: ActionSet) -> list[tuple[int, ...]]:
    """Return the slots of every choice, in the order in which it fills them; none of an action of the world."""
    return [()] * len(action_set.actions) + [action_set.macro_slots(macro) for macro in range(len(action_set.macros))]


def _choice_arrays(action_set: ActionSet) -> dict[str, np.ndarray]:
    """Return which decoys count for a choice, [D, A]. A choice's code is a set of them: bit j, the j-th of its list."""
    lists = _lists(action_set)
    members, codes = np.zeros((2, len(decoy_slots(action_set.scenario).number), len(lists)))
    for choice, slots in enumerate(lists):
        members[list(slots), choice], codes[list(slots), choice] = 1, 1 << np.arange(len(slots))
    full = [len(slots) if slots and action_set.masks else NEVER for slots in lists]
    return {"slots": members, "codes": codes, "full": np.array(full)}


def _meanings(action_set: ActionSet) -> np.ndarray:
    """Return the action that a choice of a code is, [A, codes] int64."""
    lists = _lists(action_set)
    actions = np.zeros((len(lists), 1 << max(map(len, lists))), np.int64)
    for choice, slots in enumerate(lists):
        for code in range(actions.shape[1]):
            standing = sum(1 << slot for number, slot in enumerate(slots) if code >> number & 1)
            actions[choice, code] = action_set.meaning(choice, standing)
    return actions


def _order_arrays(scheme: UnitScheme, idle: Sequence[int]) -> dict[str, np.ndarray]:
    """Return what ranks are computed with. Idle types: red never holds them, so they come last."""
    (mine, other), units = _pairs(scheme.size), scheme.size
    held = np.array([unit not in idle for unit in range(units)])
    at_the_end = np.where(held, 0, held.sum() + (~held).cumsum() - 1)
    return {
        "differences": mine - other,
        "higher": (mine * (held @ other) * (held @ mine)).T,  # [P, U]: of types that are not idle, how many come before
        "at_the_end": at_the_end[None],
        "each_position": mine,  # a rank, for each position that it may be
        "positions": np.repeat(np.arange(units), units)[None],
    }


def _shield_arrays(spec: PolicySpec, scheme: UnitScheme) -> dict[str, np.ndarray]:
    """Return what the shield is computed with."""
    (mine, other), hosts = _pairs(scheme.size), np.array(scheme.host_unit)
    host_units, repairs = np.eye(scheme.size)[hosts], np.zeros((scheme.size, spec.actions))
    host_units[spec.scenario.start_id] = 0  # it cannot be cleaned
    for choice, action in enumerate(spec.action_set.actions):
        host = spec.scenario.repaired_hosts[action]
        if host >= 0:
            repairs[hosts[host], choice] = 2 * NEVER
    return {"each_other": other, "pairs": mine.T, "host_units": host_units[list(spec.scenario.listed)], "repairs": repairs}


def _pairs(units: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of unit types (u, v), numbered U * v + u: u of each, and v, both [U, P]."""
    return np.tile(np.eye(units), units), np.repeat(np.eye(units), units, axis=1)
