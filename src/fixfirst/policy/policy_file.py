"""A trained policy's two files, policy.json and policy.safetensors: found and read."""

from pathlib import Path

from fixfirst.base import arguments, array_files, errors
from fixfirst.game.attacker_files import SHIPPED
from fixfirst.orders.order import Workflow
from fixfirst.policy.network import shapes
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.trained import POLICY, Policy
from fixfirst.runs import setting_names
from fixfirst.runs.layout import RunFiles


def shipped_policies() -> list[str]:
    """Return the names of the policies that come with fixfirst."""
    return sorted(folder.parent.name for folder in SHIPPED.glob(f"*/{RunFiles.policy_json}"))


def load_policy(path: str | Path) -> Policy:
    """From a folder with policy.json (or with best/), from the file itself, or one that comes with fixfirst by its name.

    For example:

        policy = ff.load_policy("champion")
        action = policy.act(np.zeros(52), greedy=True)
    """
    folder = policy_folder(arguments.check_path("a policy", path))
    facts, tensors = array_files.read_pair(RunFiles(folder).policy_json, POLICY)
    if odd := [name for name in ("config", "versions", "notes") if not isinstance(facts.get(name, {}), dict)]:
        raise errors.PolicyError(f"{RunFiles(folder).policy_json}: damaged (its {odd[0]} is not a table)")
    try:
        spec, order = PolicySpec.from_dict(facts), facts["workflow"]
        workflow = None if order is None or spec.units is None else Workflow.parse(order, spec.units)
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        raise errors.PolicyError(f"{RunFiles(folder).policy_json}: damaged ({e})") from e
    array_files.check_tensors(RunFiles(folder).policy_tensors, tensors, shapes(spec.inputs, spec.actions))
    return Policy(tensors, workflow, spec, setting_names.flatten(facts.get("config", {})), facts)


def load_parent(path: Path, spec: PolicySpec) -> Policy:
    """A policy whose weights a training can inherit: of the same memory, action set and unit types, or of none of these."""
    policy, scheme = load_policy(path), spec.units
    for what, have, need in (
        ("memory", policy.spec.memory.name, spec.memory.name),
        ("action set", policy.spec.action_set.name, spec.action_set.name),
    ):
        if have != need:
            raise errors.ConfigError(f"{path}: has the {what} {have}, the training needs a policy with {need}")
    if policy.scheme not in (None, scheme):
        wanted = "no order" if scheme is None else f"the unit types {', '.join(scheme.names)}"
        raise errors.ConfigError(
            f"{path}: knows the unit types {', '.join(policy.scheme.names)}, the training needs a policy that knows {wanted}"
        )
    if policy.scheme is not None and _keeping(policy.spec) != _keeping(spec):
        raise errors.ConfigError(
            f"{path}: keeps its order by {_keeping(policy.spec)}, the training by {_keeping(spec)} (--keep)"
        )
    return policy


def _keeping(spec: PolicySpec) -> str:
    """Name the way in which an order is kept."""
    if not spec.shield:
        return "rewards only"
    return "a shield" if spec.keeping == "shield" else f"a shield by {spec.keeping}"


def policy_folder(path: Path) -> Path:
    """The folder that holds a policy's two files; of a name for which there is no file, the one that comes with fixfirst."""
    if not path.exists() and str(path) in shipped_policies():
        return SHIPPED / str(path)
    folder = path.parent if path.name in (RunFiles.policy_json, RunFiles.policy_tensors) else path
    for place in (folder, RunFiles(folder).best):
        if RunFiles(place).policy_json.exists():
            return place
    if folder.exists():
        missing = f"{RunFiles.policy_json} is missing: name a finished run, of a study one of its searches"
        raise errors.PolicyError(f"{path}: holds no policy ({missing})")
    shipped = shipped_policies()
    near = errors.did_you_mean(str(path), shipped)
    known = f"there is no such file or run; {', '.join(shipped)} come with fixfirst{near}"
    raise errors.PolicyError(f"{path}: holds no policy ({known})")
