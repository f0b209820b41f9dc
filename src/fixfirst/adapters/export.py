"""Policies that leave the house: one file that plays without fixfirst, for ONNX, PyTorch or NumPy.

What the file does in a turn is in `policy/portable.py`; how to use it, in `docs/export.md`.
"""

import io
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fixfirst.base import errors, files
from fixfirst.game.scenario import CAGE2
from fixfirst.orders.order import Workflow
from fixfirst.policy.portable import Operations, Portable
from fixfirst.policy.trained import Policy

Target = Literal["onnx", "torch", "numpy"]
SUFFIXES: dict[Target, str] = {"onnx": ".onnx", "torch": ".pt2", "numpy": ".npz"}
OPSET, IR_VERSION = 17, 8  # ONNX of 2022: old enough for any runtime in use
OUTPUTS = ("action", "next_state", "probabilities")


def export_policy(policy: Policy, path: Path, to: Target, workflow: Workflow | str | None = None) -> None:
    """Write one file. workflow: the order it will always follow, of a policy that would be told one at every turn."""
    portable = Portable.of(policy, workflow)
    facts = _facts(policy, portable)
    write = {"onnx": _onnx, "torch": _torch, "numpy": _numpy}[to]
    try:
        files.write_atomically(path, write(portable, facts))
    except ModuleNotFoundError as e:
        raise errors.ConfigError(
            f"a file for {to} needs {e.name}, which is not installed: pip install 'fixfirst[{to}]'"
        ) from e


def _facts(policy: Policy, portable: Portable) -> dict[str, str]:
    """Return what somebody wants to know who finds the file."""
    spec, order = policy.spec, portable.order
    return {
        "made_by": f"fixfirst {policy.facts.get('versions', {}).get('fixfirst', '')}".strip(),
        "order": str(order) if order is not None else "any" if "order" in portable.inputs else "",
        "units": "" if spec.units is None else json.dumps(spec.units.as_dict()),
        "shield": "yes" if spec.shield else "",
        "memory": spec.memory.name,
        "action_set": spec.action_set.name,
        "opening": ", ".join(spec.action_set.names[choice] for choice in spec.opening),
        "choices": json.dumps(spec.action_set.names),
        "state_size": str(portable.state_size),
        "sha256": str(policy.facts.get("sha256", "")),
    } | ({} if spec.scenario == CAGE2 else {"scenario": json.dumps(spec.scenario.as_dict())})


def _numpy(portable: Portable, facts: dict[str, str]) -> bytes:
    """Return the arrays of the formulas, and where the groups of memory lie."""
    file = io.BytesIO()
    groups = {f"group_{name}": np.array(columns) for name, columns in portable.groups.items()}
    reads = np.concatenate([np.arange(0), *(np.arange(*columns) for columns in portable.reads)])
    more = {"reads": reads, "state_size": np.array(portable.state_size), "about": np.array(json.dumps(facts))}
    np.savez_compressed(file, allow_pickle=False, **portable.arrays, **groups, **more)
    return file.getvalue()


def _torch(portable: Portable, facts: dict[str, str]) -> bytes:
    """Return a program of `torch.export`, for any number of environments."""
    import torch

    class Turn(torch.nn.Module):
        def forward(self, observation: Any, state: Any, draw: Any, order: Any = None) -> tuple[Any, Any, Any]:
            return portable.turn(_torch_operations(torch), observation, state, draw, order)

    examples = tuple(torch.zeros(2, size) for size in portable.inputs.values())
    any_number = {0: torch.export.Dim("environments")}
    program = torch.export.export(Turn(), examples, dynamic_shapes=(any_number,) * len(examples))
    file = io.BytesIO()
    torch.export.save(program, file, extra_files={"policy.json": json.dumps(facts)})
    return file.getvalue()


def _torch_operations(torch: Any) -> Operations:
    """Return the operations of tensors."""

    class Operations:
        constant = staticmethod(lambda array: torch.as_tensor(np.array(array)))  # a policy's own arrays are read-only
        maximum, tanh, where = map(staticmethod, (torch.maximum, torch.tanh, torch.where))
        softmax = staticmethod(lambda x: torch.softmax(x, 1))
        cumsum = staticmethod(lambda x: torch.cumsum(x, 1))
        argmax = staticmethod(lambda x: x.argmax(1, keepdim=True))
        concat = staticmethod(lambda parts: torch.cat(parts, 1))
        as_float = staticmethod(lambda x: x.to(torch.float32))
        as_number = staticmethod(lambda x: x.to(torch.int64))
        rows = staticmethod(lambda table, numbers: table[numbers[:, 0]])
        pick = staticmethod(lambda x, numbers: x.gather(1, numbers))

    return Operations()


def _onnx(portable: Portable, facts: dict[str, str]) -> bytes:
    """Return a graph with named inputs and outputs, for any number of environments."""
    import onnx

    graph = _OnnxGraph(onnx)
    inputs = portable.inputs
    found = portable.turn(graph, *(_OnnxValue(graph, name) for name in inputs))
    for value, name in zip(found, OUTPUTS, strict=True):
        graph.node("Identity", [value], output=name)
    kinds = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    outputs = dict(zip(OUTPUTS, (1, portable.state_size, len(portable.arrays["full"])), strict=True))
    places = [
        onnx.helper.make_tensor_value_info(name, kinds[name == "action"], ["environments", size])
        for name, size in (inputs | outputs).items()
    ]
    ins, outs = places[: len(inputs)], places[len(inputs) :]
    whole = onnx.helper.make_graph(graph.nodes, "policy", ins, outs, initializer=graph.constants)
    model = onnx.helper.make_model(whole, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.helper.set_model_props(model, facts)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def _writes(kind: str, **attributes: Any) -> Callable[..., "_OnnxValue"]:
    """Return the method that writes this operation of its arguments into a graph."""
    return lambda graph, *inputs: graph.node(kind, inputs, **attributes)


class _OnnxGraph:
    """Operations that are written down instead of done."""

    maximum, tanh, where = _writes("Max"), _writes("Tanh"), _writes("Where")
    softmax, argmax = _writes("Softmax", axis=1), _writes("ArgMax", axis=1, keepdims=1)
    pick = _writes("GatherElements", axis=1)

    def __init__(self, onnx: Any):
        self._onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, inputs: Sequence[Any], output: str | None = None, **attributes: Any) -> "_OnnxValue":
        """Write one operation of values and plain numbers, and return its result."""
        values = [value if isinstance(value, _OnnxValue) else self.constant(np.float32(value)) for value in inputs]
        name = output or f"value{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(kind, [value.name for value in values], [name], **attributes))
        return _OnnxValue(self, name)

    def constant(self, array: Any) -> "_OnnxValue":
        name = f"constant{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(np.asarray(array), name))
        return _OnnxValue(self, name)

    def numbers(self, *numbers: int) -> "_OnnxValue":
        return self.constant(np.array(numbers, np.int64))

    def cumsum(self, x: Any) -> "_OnnxValue":
        return self.node("CumSum", [x, self.constant(np.int64(1))])

    def concat(self, parts: list[Any]) -> "_OnnxValue":
        return self.node("Concat", parts, axis=1)

    def as_float(self, x: Any) -> "_OnnxValue":
        return self.node("Cast", [x], to=self._onnx.TensorProto.FLOAT)

    def as_number(self, x: Any) -> "_OnnxValue":
        return self.node("Cast", [x], to=self._onnx.TensorProto.INT64)

    def rows(self, table: Any, numbers: Any) -> "_OnnxValue":
        return self.node("Gather", [table, self.node("Squeeze", [numbers, self.numbers(1)])], axis=0)


def _between(kind: str) -> Callable[["_OnnxValue", Any], "_OnnxValue"]:
    """Return the operator that writes this operation of an array and another, or a number."""
    return lambda first, second: first.graph.node(kind, [first, second])


@dataclass(frozen=True)
class _OnnxValue:
    """A named array of a graph."""

    graph: _OnnxGraph
    name: str

    __add__, __sub__, __mul__ = _between("Add"), _between("Sub"), _between("Mul")
    __matmul__, __lt__, __gt__ = _between("MatMul"), _between("Less"), _between("Greater")

    def __rsub__(self, number: float) -> "_OnnxValue":
        return self.graph.node("Sub", [number, self])

    def __getitem__(self, columns: tuple[slice, slice]) -> "_OnnxValue":
        part, numbers = columns[1], self.graph.numbers
        stop = sys.maxsize if part.stop is None else part.stop
        return self.graph.node("Slice", [self, numbers(part.start or 0), numbers(stop), numbers(1), numbers(part.step or 1)])
