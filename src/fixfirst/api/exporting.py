"""`ff.export`: a policy as one file that plays without fixfirst."""

from pathlib import Path
from typing import get_args

from fixfirst.api.evaluating import Named, load_named
from fixfirst.base.checks import check_path
from fixfirst.base.errors import ConfigError, quoted
from fixfirst.policy.export import SUFFIXES, Target, export_policy
from fixfirst.policy.file import Policy


def export(policy: Named, to: Target = "onnx", out: str | Path | None = None, *, workflow: str | None = None) -> Path:
    """Write a policy as one file for ONNX, PyTorch or NumPy; its path.

    policy: a run, a policy's folder or file, or a loaded one. out: beside the policy unless told. workflow: the order it
    will always follow; without it, a policy that follows any is told one at every turn. Memory, masks, opening and shield
    are in the file: see `docs/export.md`.

        ff.export("runs/first", "onnx", "policy.onnx")
    """
    if not isinstance(to, str) or to not in get_args(Target):
        raise ConfigError(f"a policy is exported to {', '.join(get_args(Target))}, not {quoted(to)}")
    loaded = load_named(policy)
    path = _default_path(policy, SUFFIXES[to]) if out is None else check_path("out", out)
    if not path.name:
        raise ConfigError(f"out must be a file, got {str(out)!r}")
    try:
        export_policy(loaded, path, to, workflow)
    except OSError as e:
        raise ConfigError(f"{path}: cannot be written ({e.strerror})") from e
    return path


def _default_path(policy: Named, suffix: str) -> Path:
    """In the run's folder, or here under the policy's name."""
    if isinstance(policy, Policy):
        return Path(f"policy{suffix}")
    path = Path(policy)
    if not path.exists():  # one that comes with fixfirst
        return Path(f"{path.name}{suffix}")
    return (path if path.is_dir() else path.parent) / f"policy{suffix}"
