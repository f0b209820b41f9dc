"""`fixfirst export`: a policy as one file that plays without fixfirst."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from fixfirst.api import policies
from fixfirst.api.defenders import load_named
from fixfirst.base import errors
from fixfirst.cli.app import Json, print_json
from fixfirst.orders import order

_SETTLED = (
    "The order it will always follow; without it, a policy that follows any is told one at every turn. Also by name: "
    f"{', '.join(order.NAMED_ORDERS)}."
)


def export_command(
    policy: str,
    /,
    *,
    to: Literal["onnx", "torch", "numpy"] = "onnx",
    workflow: Annotated[str | None, Parameter(help=_SETTLED)] = None,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Write a policy as one file that plays without fixfirst: in ONNX, in PyTorch, in plain NumPy (docs/export.md).

    Memory, masks, opening and shield are in the file. It takes an observation of 52 bits and a state, which is 0 when an
    episode begins, and gives an action of the challenge's 145 and the next state. If it was trained to follow any order, it
    takes that, too.

    Parameters
    ----------
    policy
        A run, a policy folder, or a policy that comes with fixfirst.
    to
        onnx (.onnx), torch (.pt2, a program of torch.export) or numpy (.npz, its arrays).
    out
        The file; default: policy.onnx, .pt2 or .npz beside the policy.
    """
    path = policies.export(policy, to, out, workflow=workflow)
    variant = load_named(policy).config.get("variant")
    if as_json:
        made_for = {} if variant is None else {"variant": variant}
        print_json({"file": str(path), "to": to, "bytes": path.stat().st_size, "made_for": made_for})
        return
    if variant is not None:
        errors.note(f"{policy} was made for variant {variant}: play it there")
    print(errors.printable(str(path)))
