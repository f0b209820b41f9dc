"""Who may play, as users name it: a policy or run, a baseline, an ONNX file, a table, or an agent of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fixfirst.adapters import agents
from fixfirst.adapters.onnx_file import ONNX
from fixfirst.base import arguments, errors
from fixfirst.game import attacker_files
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.policy import scripts, trained
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.trained import Policy

Named = str | Path | Policy  # a run, a policy's folder or file, a baseline's name, or a policy itself
# Also an ONNX file, a table, or an agent of the user's own, as `Agent` takes it.
PolicyLike = Named | PolicyTable | agents.Agent | Callable[..., Any] | agents.Acts | agents.Predicts | agents.PlaysOneGame


def load_named(policy: Named) -> Policy:
    """Return the policy itself, or the one in a run, folder or file."""
    if isinstance(policy, Policy):
        return policy
    path, shipped = arguments.check_path("a policy", policy), trained.shipped_policies()
    name = str(path)
    if not path.exists() and name in scripts.BASELINES:
        raise errors.ConfigError(f"{name} is a baseline: it has no network to export or to go on from")
    if not path.exists() and name in attacker_files.shipped_reds():
        raise errors.ConfigError(f"{name} is an attacker, not a defender: name it with --red-agent")
    if not path.exists() and name not in shipped:
        raise errors.ConfigError(
            f"{name!r} is neither a file or run nor a baseline ({', '.join(scripts.BASELINES)}), nor a policy that comes "
            f"with fixfirst ({', '.join(shipped)}){errors.did_you_mean(name, (*scripts.BASELINES, *shipped))}"
        )
    return trained.load_policy(path)


def resolve(policy: PolicyLike) -> str | Policy | PolicyTable | agents.Agent:
    """Return who is named: a baseline by its name, a policy, a table, or an agent. Imports nothing by name."""
    if isinstance(policy, Policy | PolicyTable | agents.Agent):
        return policy
    if not isinstance(policy, str | Path):
        return agents.Agent(policy)
    if isinstance(policy, str) and policy in scripts.BASELINES:
        return policy
    is_onnx = Path(policy).suffix == ONNX and Path(policy).is_file()
    return agents.Agent(policy) if is_onnx else load_named(policy)


def name_of(policy: PolicyLike) -> str:
    """Return what a player is called in texts."""
    if isinstance(policy, str | Path):
        return str(policy)
    who = resolve(policy)
    return who.name if isinstance(who, agents.Agent) else "a policy"


def scenario_of(policy: PolicyLike) -> Scenario:
    """Return the scenario in which somebody plays unless another is asked for: that of its training, else CAGE2."""
    who = resolve(policy)
    if isinstance(who, Policy | PolicyTable):
        return who.spec.scenario
    return (None if isinstance(who, str) else who.scenario) or CAGE2


def takes_best_actions(policy: PolicyLike, greedy: bool | None) -> bool:
    """Return whether a defender under attack takes its most probable actions.

    Unless asked for, all do but a league's, which has learned to draw them. What is no policy acts as it does.
    """
    who = resolve(policy)
    if isinstance(who, PolicyTable):
        return who.greedy and greedy is not False
    if isinstance(who, agents.Agent):
        return False
    return not (isinstance(who, Policy) and who.draws) if greedy is None else bool(greedy)
