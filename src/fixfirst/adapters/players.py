"""Who may play, as users name it: a policy or run, a baseline, an ONNX file, a table, or an agent of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard

from fixfirst.adapters import agents
from fixfirst.base import arguments, errors
from fixfirst.game import attacker_files
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.play import baselines
from fixfirst.policy import policy_file
from fixfirst.policy.policy_file import load_policy
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.trained import Policy

Named = str | Path | Policy  # a run, a policy's folder or file, a baseline's name, or a policy itself
# Also an ONNX file, a table, or an agent of the user's own, as `Agent` takes it.
PolicyLike = Named | PolicyTable | agents.Agent | Callable[..., Any] | agents.Acts | agents.Predicts | agents.PlaysOneGame


def load_named(policy: Named) -> Policy:
    """Return the policy itself, or the one in a run, folder or file."""
    if isinstance(policy, Policy):
        return policy
    path, shipped = arguments.check_path("a policy", policy), policy_file.shipped_policies()
    if not path.exists() and str(path) in attacker_files.shipped_reds():
        raise errors.ConfigError(f"{path} is an attacker, not a defender: name it with --red-agent")
    if not path.exists() and str(path) not in shipped:
        known = (
            f"a baseline ({', '.join(baselines.BASELINES)}), nor a policy that comes with fixfirst ({', '.join(shipped)})"
        )
        hint = errors.did_you_mean(str(path), (*baselines.BASELINES, *shipped))
        raise errors.ConfigError(f"{str(path)!r} is neither a file or run nor {known}{hint}")
    return load_policy(path)


def is_named(policy: PolicyLike) -> TypeGuard[Named]:
    """Return whether this is a policy of ours, or names one."""
    if isinstance(policy, str | Path):
        return policy not in baselines.BASELINES and agent_of(policy) is None
    return isinstance(policy, Policy)


def name_of(policy: PolicyLike) -> str:
    """Return what a player is called in texts."""
    if isinstance(policy, str | Path):
        return str(policy)
    agent = agent_of(policy)
    return "a policy" if agent is None else agent.name


def agent_of(policy: PolicyLike) -> agents.Agent | None:
    """Return the agent that a user hands in; None if it is a policy, a baseline or a table. Imports nothing by name."""
    if isinstance(policy, agents.Agent):
        return policy
    if isinstance(policy, str | Path):
        return agents.Agent(policy) if Path(policy).suffix == agents.ONNX and Path(policy).is_file() else None
    return None if isinstance(policy, Policy | PolicyTable) else agents.Agent(policy)


def scenario_of(policy: PolicyLike) -> Scenario:
    """Return the scenario in which somebody plays unless another is asked for: that of its training, else CAGE2."""
    if isinstance(policy, PolicyTable):
        return policy.spec.scenario
    if is_named(policy):
        return load_named(policy).spec.scenario
    agent = None if isinstance(policy, str) and policy in baselines.BASELINES else agent_of(policy)
    return (None if agent is None else agent.scenario) or CAGE2


def takes_best_actions(policy: PolicyLike, greedy: bool | None) -> bool:
    """Return whether a defender under attack takes its most probable actions.

    Unless asked for, all do but a league's, which has learned to draw them. What is no policy acts as it does.
    """
    if isinstance(policy, PolicyTable):
        return policy.greedy and greedy is not False
    if agent_of(policy) is not None:
        return False
    if greedy is None and is_named(policy):
        return not load_named(policy).draws
    return greedy is None or bool(greedy)
