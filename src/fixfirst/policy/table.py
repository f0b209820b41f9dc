"""A frozen policy as a table: asked once per distinct row, its answer remembered.

What a row is, `spec.py` says. N environments, M rows, I inputs, A choices, W workflows.
"""

from collections.abc import Sequence

import numpy as np

from fixfirst.base import errors
from fixfirst.orders.order import Workflow
from fixfirst.policy.answers import ForwardScratch, Probabilities, probabilities
from fixfirst.policy.draws import draw_choices
from fixfirst.policy.memories import Memories, word_rows
from fixfirst.policy.network import Network
from fixfirst.policy.reading import read_rows
from fixfirst.policy.row_table import Answers, RowTable, find_rows
from fixfirst.policy.spec import PolicySpec, Shields, bits_of


class PolicyTable(Answers):
    """A frozen policy that is asked once per distinct row and then remembered.

    policy: a network, or a function. spec: what it reads and chooses; unless given, no memory, all actions, and the
    order if there are workflows. prompts: the orders that it reads in place of the workflows that it must keep, one each.
    greedy: the most probable action instead of a drawn one. openings: see `begin_with`; unless given, the spec's.
    """

    def __init__(
        self,
        policy: Network | Probabilities,
        workflows: Sequence[Workflow] = (),
        *,
        spec: PolicySpec | None = None,
        prompts: Sequence[Workflow] = (),
        greedy: bool = False,
        openings: Sequence[tuple[int, ...]] = (),
    ):
        self.spec = spec if spec is not None else PolicySpec.for_orders(workflows)
        self.arrays = self.spec.arrays
        self.begin_with(openings or [self.spec.opening])
        self.network = policy if isinstance(policy, Network) else None
        self.scratch = ForwardScratch.make(policy) if isinstance(policy, Network) else None
        self._probabilities = probabilities(policy) if isinstance(policy, Network) else self._checked(policy)
        self.orders = self.spec.orders(prompts or workflows)  # [W, row words]
        self.shields = self.spec.shields(workflows)
        self._numbers = {workflow: number for number, workflow in enumerate(workflows)}
        self.greedy = greedy
        self.table = RowTable.empty(256, self.spec.row_words, self.spec.actions)

    def begin_with(self, openings: Sequence[tuple[int, ...]]) -> None:
        """Begin every episode with one of these from now on, all of the same length. FREE: the policy chooses."""
        self.openings = np.array(openings, np.int64)

    @property
    def workflows(self) -> tuple[Workflow, ...]:
        """The orders that it knows, each once; `number_of` has their numbers."""
        return tuple(self._numbers)

    def number_of(self, workflow: Workflow) -> int:
        """The number by which environments are assigned this order; known from now on."""
        if workflow not in self._numbers:
            self._numbers[workflow] = len(self.orders)
            self.orders = np.concatenate([self.orders, self.spec.orders([workflow])])
            one = self.spec.shields([workflow])
            self.shields = Shields(*(np.concatenate(pair) for pair in zip(self.shields, one, strict=True)))
        return self._numbers[workflow]

    def choose(
        self, memories: Memories, words: np.ndarray, assigned: np.ndarray, keys: np.ndarray, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the row, the choice and the world's action of every environment, all [N]; the action counts as taken.

        words: what is seen; assigned [N]: workflows; steps [N]: of each environment's episode.
        """
        row_ids, choices = self.look(memories, words, assigned), np.empty(len(words), np.int64)
        draw_choices(self.table, row_ids, keys, steps, self.openings, choices)
        actions = np.array(memories.actions_of(choices))
        memories.remember(words, actions)
        return row_ids, choices, actions

    def look(self, memories: Memories, words: np.ndarray, assigned: np.ndarray) -> np.ndarray:
        """The rows [N] that environments read now, answered if they are new."""
        self.make_room(len(words))
        rows, row_ids, count = self.orders[assigned], np.empty(len(words), np.int64), int(self.table.filled[0])
        read_rows(memories.records, self.arrays, self.shields, assigned, word_rows(words), rows)
        find_rows(self.table, rows, row_ids)
        self._answer(count)
        return row_ids

    def _checked(self, policy: Probabilities) -> Probabilities:
        """Return a function of somebody's own, which may return anything."""

        def ask(inputs: np.ndarray) -> np.ndarray:
            odds, shape = np.asarray(policy(inputs)), (len(inputs), self.spec.actions)
            if odds.shape != shape or odds.dtype.kind not in "fiub" or not (np.isfinite(odds).all() and (odds >= 0).all()):
                got = f"{odds.dtype} {list(odds.shape)}"
                raise errors.ActionError(
                    f"the function of a PolicyTable must return odds {list(shape)} from 0 on, got {got}"
                )
            return odds

        return ask

    def _answer(self, first: int) -> None:
        """Ask the policy about the rows from `first` on."""
        count = int(self.table.filled[0])
        if count == first:
            return
        rows = self.table.rows[first:count]
        odds = self._probabilities(bits_of(rows, self.spec.inputs).astype(np.float32))
        allowed = self.spec.allowed(rows)
        if len(allowed):
            odds = odds * allowed
        if self.greedy:
            odds = np.eye(self.spec.actions, dtype=np.float32)[odds.argmax(axis=1)]
        self.table.cumulative[first:count] = np.cumsum(odds, axis=1)
        self.table.likely[first:count] = odds.argmax(axis=1)
