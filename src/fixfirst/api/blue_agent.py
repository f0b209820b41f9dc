"""A policy as the blue agent that CAGE Challenge 2 scores, and the challenge's own script run with it.

    FIXFIRST_POLICY=RUN python -m fixfirst.api.blue_agent CybORG/Evaluation/evaluation.py

The script needs no change: it imports its example agent and makes one without arguments, and finds ours under that name.
"""

import os
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from fixfirst.api.defenders import load_named, takes_best_actions
from fixfirst.base import arguments, errors, seeds
from fixfirst.cyborg import checkout
from fixfirst.orders.order import Workflow
from fixfirst.policy.trained import Policy

POLICY_VARIABLE = "FIXFIRST_POLICY"
EXAMPLE_AGENT = "CybORG.Agents.SimpleAgents.BlueLoadAgent"  # the module, and in it the class of the same name


class BlueAgent:
    """A policy with the methods that CybORG asks of an agent, for one game at a time behind its `ChallengeWrapper`.

    policy: a run, a policy's folder or file, or a loaded one; else what FIXFIRST_POLICY names. The numbers of the wrapper's
    actions are ours. What the policy remembers, and its opening, begin anew after every `end_episode`. workflow: the order
    to follow instead of its own; set `agent.workflow` to another at any step. greedy: the most probable action, as for all
    but a league's policy unless given; otherwise actions are drawn, by other chances in every episode, which follow from
    the seed.

    For example:

        agent = ff.BlueAgent("champion")
        action = agent.get_action(np.zeros(52))  # of the 145
        agent.end_episode()
    """

    def __init__(
        self,
        policy: Policy | str | Path | None = None,
        *,
        workflow: Workflow | str | None = None,
        greedy: bool | None = None,
        seed: int = 0,
    ):
        named = policy if policy is not None else os.environ.get(POLICY_VARIABLE) or None
        if named is None:
            raise errors.ConfigError(f"no policy was named: BlueAgent(policy), or {POLICY_VARIABLE}=RUN in the environment")
        self.policy = load_named(named)
        self.policy.assign(workflow, 1)  # what is wrong with the order is said at once
        self._greedy = takes_best_actions(self.policy, greedy)
        self.workflow, self._seed = workflow, arguments.check_seed("seed", seed)
        self._episode = 0
        self.policy.reset()

    def get_action(self, observation: np.ndarray, action_space: Any = None) -> int:
        """Return the action for what blue sees [52]; it counts as taken."""
        scenario = self.policy.spec.scenario
        if isinstance(action_space, int) and action_space != scenario.num_actions:
            raise errors.CyborgError(
                f"the policy knows the {scenario.num_actions} actions of ChallengeWrapper, here are {action_space}"
            )
        shape = arguments.as_array("observations", observation, errors.PolicyError).shape
        if len(shape) != 1:
            bits = f"[{scenario.observation_bits}] bits"
            raise errors.PolicyError(f"observations must be {bits}, one at a time, got shape {shape}")
        seed = seeds.stream_seed(self._seed, "agent", self._episode)
        return int(self.policy.act(observation, workflow=self.workflow, greedy=self._greedy, seed=seed))

    def end_episode(self) -> None:
        """End the episode: the next observation begins another one."""
        self._episode += 1
        self.policy.reset()

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """Do nothing: the policy needs neither."""

    def train(self, results: Any) -> None:
        """Do nothing: the policy is frozen."""


def run_script(script: Path) -> None:
    """Run an evaluation script of a CybORG checkout as a program, with `BlueAgent` in place of its example agent."""
    folder = checkout.find_cyborg(script.resolve().parent.parent)
    BlueAgent()  # a policy that cannot be loaded is told before the script asks its questions
    module = ModuleType(EXAMPLE_AGENT)
    setattr(module, EXAMPLE_AGENT.rpartition(".")[2], BlueAgent)
    sys.modules[EXAMPLE_AGENT] = module
    sys.path.insert(0, str(folder))
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: FIXFIRST_POLICY=RUN python -m fixfirst.api.blue_agent CybORG/Evaluation/evaluation.py")
    try:
        run_script(Path(sys.argv[1]))
    except errors.FixfirstError as e:
        sys.exit(f"fixfirst: {e}")
