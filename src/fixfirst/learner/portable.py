"""A policy's whole turn in formulas that any array library can do: what it chooses, and what it remembers afterwards.

N environments, A choices, D = 33 slots of decoys, S numbers of state. `exporting.py` makes files of these formulas, and
`tests/learner/test_exporting.py` holds them to `Policy.act`, step by step.

    observation [N, 52]      0 and 1
    state       [N, S]       bits of memory, and at the end the number of the turn; all 0 when an episode begins
    draw        [N, 1]       in [0, 1): which action is drawn; below 0: the most probable one
    -> action [N, 1] of the 145, state after it [N, S], probabilities [N, A] of the choices
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from fixfirst.game import BITS_PER_HOST, OBSERVATION_BITS, ActionSet, meanings_of, memory_matrices
from fixfirst.learner.policy_file import Policy
from fixfirst.orders import Workflow

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
    """The constants of a policy's turn. The order it follows is in them: its bits never change."""

    groups: dict[str, tuple[int, int]]  # where the groups of memory begin and end in the state
    reads: tuple[tuple[int, int], ...]  # what the network reads of it, after the observation
    arrays: dict[str, np.ndarray]

    @classmethod
    def of(cls, policy: Policy, workflow: Workflow | str | None = None) -> "Portable":
        """Of a policy that follows its own order, or this one if it follows any."""
        role, weights, memory = policy.role, policy.weights, memory_matrices()
        sizes = memory.groups | {"decoy": memory.places.shape[1]}
        starts = np.cumsum([0, *sizes.values()]).tolist()
        groups = {name: (start, start + size) for start, (name, size) in zip(starts, sizes.items(), strict=False)}
        reads = tuple((groups[name][0], groups[name][0] + memory.groups[name]) for name in role.memory.groups)
        orders = policy.orders(workflow)
        order = orders[0].encode().astype(np.float32) if orders else np.zeros(0, np.float32)
        first, read = weights["actor.0.weight"], role.memory.inputs
        arrays = {
            "weight1": first[:, :read].T,
            "bias1": weights["actor.0.bias"] + first[:, read:] @ order,
            "weight2": weights["actor.2.weight"].T,
            "bias2": weights["actor.2.bias"],
            "weight3": weights["actor.4.weight"].T,
            "bias3": weights["actor.4.bias"],
            "restores": memory.restores,
            "places": memory.places,
            "clears": memory.clears,
            "host_slots": memory.host_slots,
            "host_scans": memory.host_scans,
            **_choices(role.action_set, memory.places.shape[1]),
        }
        found = {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items() if name != "meanings"}
        found["meanings"] = arrays["meanings"]
        found["opening"] = np.array([[choice] for choice in (*role.opening, -1)], np.int64)  # -1: it is over
        return cls(groups, reads, found)

    @property
    def state_size(self) -> int:
        """S: the bits of memory, and the number of the turn."""
        return max(end for _, end in self.groups.values()) + 1

    def turn(self, do: Operations, observation: Any, state: Any, draw: Any) -> tuple[Any, Any, Any]:
        """See the module."""
        be = {name: do.constant(array) for name, array in self.arrays.items()}
        had = {name: state[:, start:end] for name, (start, end) in self.groups.items()}
        turn = state[:, self.state_size - 1 : self.state_size]

        choice, odds = self._choose(do, be, observation, state, had["decoy"], draw)
        last = do.constant(np.float32(len(self.arrays["opening"]) - 1))
        opening = do.rows(be["opening"], do.as_number(do.where(turn < last, turn, last)))
        choice = do.where(do.as_float(opening) < do.constant(np.float32(0)), choice, opening)
        standing = do.as_number(do.pick(had["decoy"] @ be["codes"], choice))
        action = do.pick(do.rows(be["meanings"], choice), standing)

        new = self._remember(do, be, observation, had, action)
        count = turn + do.constant(np.float32(1))
        return action, do.concat([*(new[name] for name in self.groups), count]), odds

    def _choose(self, do: Operations, be: Any, observation: Any, state: Any, decoys: Any, draw: Any) -> tuple[Any, Any]:
        """A choice [N, 1], drawn or the most probable, and the odds of all."""
        inputs = do.concat([observation, *(state[:, start:end] for start, end in self.reads)])
        hidden = do.tanh(inputs @ be["weight1"] + be["bias1"])
        hidden = do.tanh(hidden @ be["weight2"] + be["bias2"])
        logits = hidden @ be["weight3"] + be["bias3"]
        missing = decoys @ be["slots"] < be["full"]  # a macro whose decoys all stand is masked
        odds = do.softmax(do.where(missing, logits, do.constant(np.float32(-NEVER))))
        upto, choices = do.cumsum(odds), len(self.arrays["full"])
        beyond = do.as_float(draw * upto[:, choices - 1 : choices] < upto)  # the first of these is drawn
        drawn = do.as_number(do.constant(np.float32(choices)) - do.total(beyond))
        return do.where(draw < do.constant(np.float32(0)), do.argmax(odds), drawn), odds

    def _remember(self, do: Operations, be: Any, observation: Any, had: Any, action: Any) -> dict[str, Any]:
        """As `game/remembering.py: remember_one`, with bits in place of sets."""
        nothing, half, one = (do.constant(np.float32(number)) for number in (0, 0.5, 1))
        seen = [observation[:, bit:OBSERVATION_BITS:BITS_PER_HOST] for bit in (0, 1)]
        active, exploited = do.maximum(*seen), seen[0] * seen[1]
        scanned = active - exploited
        something = half < do.total(active)
        first = do.as_float(do.cumsum(active) < one + half) * active  # of several, the first
        start, end = self.groups["quiet"]
        longer = do.concat([one + had["quiet"][:, 0:1] * nothing, had["quiet"][:, 0 : end - start - 1]])  # one more turn
        listed = had["decoy"][:, 0 : self.arrays["host_slots"].shape[1]]
        return {
            "act1": do.maximum(had["act1"], active),
            "last": do.where(something, first, had["last"]),
            "expl": do.maximum(had["expl"], exploited),
            "rest": do.maximum(had["rest"], do.rows(be["restores"], action)),
            "quiet": do.where(something, nothing, longer),
            "decoy": do.maximum(had["decoy"] * (one - do.rows(be["clears"], action)), do.rows(be["places"], action)),
            "seen": do.maximum(had["seen"], listed * (scanned @ be["host_slots"])),
            "scans": do.maximum(had["scans"], scanned @ be["host_scans"]),
        }


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
