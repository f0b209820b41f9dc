"""Remembering as matrices of 0 and 1, for whoever carries a memory out of here: files made by `fixfirst export`.

What `remembering.py` does with sets in integers, these do with rows of bits. D slots of decoys.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from fixfirst.game.scenario import BITS_PER_HOST, Scenario
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy.action_sets import ActionSet, decoy_slots
from fixfirst.policy.file import Policy
from fixfirst.policy.memory import memory_groups, memory_tables, scan_hosts
from fixfirst.policy.spec import PolicySpec


class MemoryMatrices(NamedTuple):
    """All float32."""

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
    decoys, scans, hosts = decoy_slots(scenario), scan_hosts(scenario), scenario.host_names
    restores, analyses, places, clears = memory_tables(scenario).effects.T
    slots = len(decoys.number)
    return MemoryMatrices(
        groups,
        _bits(restores, len(hosts)),
        _bits(analyses, len(hosts)),
        _bits(places, slots),
        _bits(clears, slots),
        _bits([decoys.of_host(host) for host in hosts], len(decoys.listed)),
        _bits([1 << scans.index(host) if host in scans else 0 for host in hosts], len(scans)),
    )


class Meaning(NamedTuple):
    """What a choice does: the first action whose decoy does not stand, else the last one."""

    actions: tuple[int, ...]
    slots: tuple[int, ...]  # of these actions, but for the last
    masked: bool  # once all of its decoys stand


def meanings_of(action_set: ActionSet) -> list[Meaning]:
    """Return what every choice does."""
    scenario, number = action_set.scenario, decoy_slots(action_set.scenario).number
    found = [Meaning((action,), (), False) for action in action_set.actions]
    for host, decoys in zip(action_set.macros, action_set.lists, strict=True):
        places = [scenario.action_id(f"Decoy{decoy}", host) for decoy in decoys]
        last = places[0] if action_set.repeats else scenario.action_id("Sleep")
        found.append(Meaning((*places, last), tuple(number[host, decoy] for decoy in decoys), action_set.masks))
    return found


def _bits(sets: np.ndarray | list[int], size: int) -> np.ndarray:
    """[M, size] float32 of sets [M] in integers."""
    return (np.asarray(sets, np.int64)[:, None] >> np.arange(size) & 1).astype(np.float32)


# ---------------------------------------------------------------- portable
# A policy's whole turn in formulas that any array library can do: what it chooses, and what it remembers afterwards.
#
# N environments, A choices, D = 33 slots of decoys, S numbers of state, U unit types, P = U * U pairs of them.
# `export.py` makes files of these formulas, and `tests/policy/test_export.py` holds them to `Policy.act`.
#
#     observation [N, 52]      0 and 1
#     state       [N, S]       bits of memory, and at the end the number of the turn; all 0 when an episode begins
#     draw        [N, 1]       in [0, 1): which action is drawn; below 0: the most probable one
#     order       [N, U]       the position of each unit type, 0 = fix first; only where the policy follows any order
#     -> action [N, 1] of the 145, state after it [N, S], probabilities [N, A] of the choices


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
        """Of a policy that follows this order, or its own, or any that it is told."""
        spec, weights, memory = policy.spec, policy.weights, memory_matrices(policy.spec.scenario)
        hosts = spec.scenario.num_hosts
        sizes = memory.groups | {"decoys": memory.places.shape[1], "suspect": hosts, "analysed": hosts}
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
        told = {"order": len(self.arrays["each_position"])} if "higher" in self.arrays and self.order is None else {}
        return {"observation": self.scenario.observation_bits, "state": self.state_size, "draw": 1, **told}

    @property
    def state_size(self) -> int:
        """S: the bits of memory, and the number of the turn."""
        return max(end for _, end in self.groups.values()) + 1

    def turn(self, do: Operations, observation: Any, state: Any, draw: Any, order: Any = None) -> tuple[Any, Any, Any]:
        """See the module."""
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
        """A choice [N, 1], drawn or the most probable, and the odds of all."""
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
        """[N, U] positions, with types that red never holds at the end, as `Workflow.with_last`."""
        above = do.as_float(do.constant(np.float32(0)) < order @ be["differences"])  # [N, P] is the other one fixed first?
        return above @ be["higher"] + be["at_the_end"]

    def _order_bits(self, do: Operations, be: Any, rank: Any) -> Any:
        """[N, P] bit U * position + unit id, as `Workflow.encode`."""
        half, apart = do.constant(np.float32(0.5)), rank @ be["each_position"] - be["positions"]
        return do.as_float(apart < half) * do.as_float(do.constant(np.float32(-0.5)) < apart)

    def _forbidden(self, do: Operations, be: Any, rank: Any, suspected: Any) -> Any:
        """[N, U] is repairing this type forbidden: is one ranked above it suspected? As `policy/shield.py` says."""
        nothing = do.constant(np.float32(0))
        above = do.as_float(nothing < rank @ be["differences"])
        other = do.as_float(nothing < suspected @ be["host_units"]) @ be["each_other"]
        return do.as_float(nothing < (above * other) @ be["pairs"])

    def _suspect(self, do: Operations, observation: Any, had: Any) -> Any:
        """[N, 13] as `policy/remembering.py: suspects`."""
        one, (first, second, third, fourth) = do.constant(np.float32(1)), _by_bit(observation)
        cleared = had["analysed"] * (one - third * fourth)
        again = do.maximum(first, second) * had["was_active"]
        return do.maximum(had["suspect"] * (one - cleared), do.maximum(first * second, again))

    def _remember(self, do: Operations, be: Any, observation: Any, had: Any, suspect: Any, action: Any) -> dict[str, Any]:
        """As `policy/remembering.py: remember_one`, with bits in place of sets."""
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
        listed = had["decoys"][:, 0 : self.arrays["host_slots"].shape[1]]
        return {
            "was_active": do.maximum(had["was_active"], active),
            "last_active": do.where(something, first, had["last_active"]),
            "was_exploited": do.maximum(had["was_exploited"], exploited),
            "was_restored": do.maximum(had["was_restored"], do.rows(be["restores"], action)),
            "quiet_turns": do.where(something, nothing, longer),
            "decoys": do.maximum(had["decoys"] * (one - do.rows(be["clears"], action)), do.rows(be["places"], action)),
            "decoys_seen": do.maximum(had["decoys_seen"], listed * (scanned @ be["host_slots"])),
            "was_scanned": do.maximum(had["was_scanned"], scanned @ be["host_scans"]),
            "suspect": suspect * (one - do.rows(be["restores"], action)),
            "analysed": do.rows(be["analyses"], action),
        }


def _by_bit(observation: Any) -> list[Any]:
    """The four bits of every host, each [N, 13]."""
    return [observation[:, bit : sys.maxsize : BITS_PER_HOST] for bit in range(BITS_PER_HOST)]


def _unclean(do: Operations, observation: Any) -> Any:
    """[N, 13] is the host believed not clean?"""
    return do.maximum(*_by_bit(observation)[2:])


def _choices(action_set: ActionSet, slots: int) -> dict[str, np.ndarray]:
    """What choices are, given the decoys that stand. A choice's code is a set of them: bit j, the j-th of its list."""
    meanings = meanings_of(action_set)
    longest = max(len(meaning.slots) for meaning in meanings)
    members, codes = (np.zeros((slots, len(meanings))) for _ in range(2))  # [D, A]
    actions = np.zeros((len(meanings), 1 << longest), np.int64)  # [A, codes]
    for choice, meaning in enumerate(meanings):
        for place, slot in enumerate(meaning.slots):
            members[slot, choice], codes[slot, choice] = 1, 1 << place
        for code in range(1 << longest):
            missing = (place for place in range(len(meaning.slots)) if not code >> place & 1)
            actions[choice, code] = meaning.actions[next(missing, -1)]
    full = [len(meaning.slots) if meaning.masked else NEVER for meaning in meanings]
    return {"slots": members, "codes": codes, "meanings": actions, "full": np.array(full)}


def _ordering(scheme: UnitScheme, idle: Sequence[int]) -> dict[str, np.ndarray]:
    """What ranks are computed with. Idle types: red never holds them, so they come last."""
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
    host_units[spec.scenario.foothold_id] = 0  # it cannot be cleaned
    for choice, action in enumerate(spec.action_set.actions):
        host = spec.scenario.repaired_hosts[action]
        if host >= 0:
            repairs[hosts[host], choice] = 1
    return {"each_other": other, "pairs": mine.T, "host_units": host_units, "repairs": repairs * 2 * NEVER}


def _pairs(units: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of unit types (u, v), numbered U * v + u: u of each, and v, both [U, P]."""
    return np.tile(np.eye(units), units), np.repeat(np.eye(units), units, axis=1)
