"""Baselines: the few simple defenders that need no training and can be evaluated like policies."""

from collections.abc import Sequence

import numpy as np

from fixfirst.base import errors
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders.order import Workflow
from fixfirst.play.turns import Moment, Player
from fixfirst.policy import scripts
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable

BASELINES = ("sleep", "random", "react-restore", "react-remove", "priority-restore")


class PriorityRestore:
    """Sees the truth: restores a host of the highest unit type that needs repair, the lowest-numbered first."""

    def __init__(self, workflows: Sequence[Workflow]):
        self._scenario, host_unit = workflows[0].scheme.scenario, np.array(workflows[0].scheme.host_unit)
        self._host_ranks = np.array([w.ranks[host_unit] for w in workflows])  # [W, H]

    def act(self, moment: Moment) -> np.ndarray:
        """See `TurnPlayer`."""
        restore, needs = scripts.host_actions(self._scenario).restore, moment.access > 0
        needs[:, self._scenario.start_id] = False
        ranks = np.where(needs, self._host_ranks[moment.assigned], needs.shape[1])
        return np.where(needs.any(axis=1), restore[ranks.argmin(axis=1)], self._scenario.sleep_id)


def make_baseline(name: str, workflows: Sequence[Workflow] = (), scenario: Scenario = CAGE2) -> Player:
    """Return a baseline by name; `priority-restore` follows the given workflow, the others read observations only."""
    if name not in BASELINES:
        raise errors.ConfigError(f"unknown baseline {name!r}; use {', '.join(BASELINES)}")
    if name == "priority-restore":
        if not workflows:
            raise errors.ConfigError("priority-restore follows an order: give one with --workflow")
        return PriorityRestore(workflows)
    spec = PolicySpec.for_orders(workflows, scenario)
    count = spec.scenario.num_actions
    if name == "random":
        return PolicyTable(lambda inputs: np.full((len(inputs), count), 1 / count), workflows, spec=spec)
    choose = scripts.DEFENDERS[name.replace("-", "_")](spec.scenario, 1, np.random.default_rng(0))  # none of these draws
    bits = spec.scenario.observation_bits
    return PolicyTable(lambda inputs: np.eye(count)[choose(inputs[:, :bits])], workflows, spec=spec)
