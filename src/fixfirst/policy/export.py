"""Policies that leave the house: one file that plays without fixfirst, for ONNX, PyTorch or NumPy.

All of a policy is in the file: what it remembers, its masks, its opening and its order. What goes in and comes out is in
`portable.py`, how to use it in `docs/export.md`.
"""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fixfirst.base.errors import ConfigError
from fixfirst.orders.order import Workflow
from fixfirst.policy.file import Policy
from fixfirst.policy.memory import memory_groups
from fixfirst.policy.portable import Portable
from fixfirst.runs.files import write_atomically

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
        write_atomically(path, write(portable, facts))
    except ModuleNotFoundError as e:
        raise ConfigError(f"a file for {to} needs {e.name}, which is not installed: pip install 'fixfirst[{to}]'") from e


def _facts(policy: Policy, portable: Portable) -> dict[str, str]:
    """What somebody wants to know who finds the file."""
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
    }


# ---------------------------------------------------------------- NumPy


def _numpy(portable: Portable, facts: dict[str, str]) -> bytes:
    """The arrays of the formulas, and where the groups of memory lie."""
    file = io.BytesIO()
    names = {group.field: group.name for group in memory_groups(portable.scenario)}
    groups = {f"group_{names.get(field, field)}": np.array(place) for field, place in portable.groups.items()}
    reads = np.concatenate([np.arange(0), *(np.arange(*place) for place in portable.reads)])
    more = {"reads": reads, "state_size": np.array(portable.state_size), "about": np.array(json.dumps(facts))}
    np.savez_compressed(file, allow_pickle=False, **portable.arrays, **groups, **more)
    return file.getvalue()


# ---------------------------------------------------------------- PyTorch


def _torch(portable: Portable, facts: dict[str, str]) -> bytes:
    """A program of `torch.export`, for any number of environments."""
    import torch

    class Turn(torch.nn.Module):
        def forward(self, observation: Any, state: Any, draw: Any, order: Any = None) -> tuple[Any, Any, Any]:
            return portable.turn(TorchOperations(torch), observation, state, draw, order)

    examples = tuple(torch.zeros(2, size) for size in portable.inputs.values())
    any_number = {0: torch.export.Dim("environments")}
    program = torch.export.export(Turn(), examples, dynamic_shapes=(any_number,) * len(examples))
    file = io.BytesIO()
    torch.export.save(program, file, extra_files={"policy.json": json.dumps(facts)})
    return file.getvalue()


class TorchOperations:
    """Of tensors; see `portable.py: Operations`."""

    def __init__(self, torch: Any):
        self._torch = torch
        self.maximum, self.tanh, self.where, self.constant = torch.maximum, torch.tanh, torch.where, torch.as_tensor

    def softmax(self, x: Any) -> Any:
        return self._torch.softmax(x, 1)

    def cumsum(self, x: Any) -> Any:
        return self._torch.cumsum(x, 1)

    def total(self, x: Any) -> Any:
        return x.sum(1, keepdim=True)

    def argmax(self, x: Any) -> Any:
        return x.argmax(1, keepdim=True)

    def concat(self, parts: list[Any]) -> Any:
        return self._torch.cat(parts, 1)

    def as_float(self, x: Any) -> Any:
        return x.to(self._torch.float32)

    def as_number(self, x: Any) -> Any:
        return x.to(self._torch.int64)

    def rows(self, table: Any, numbers: Any) -> Any:
        return table[numbers[:, 0]]

    def pick(self, x: Any, numbers: Any) -> Any:
        return x.gather(1, numbers)


# ---------------------------------------------------------------- ONNX


def _onnx(portable: Portable, facts: dict[str, str]) -> bytes:
    """A graph with named inputs and outputs, for any number of environments."""
    import onnx

    graph = OnnxGraph(onnx)
    inputs = portable.inputs
    found = portable.turn(graph, *(OnnxValue(graph, name) for name in inputs))
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


class OnnxGraph:
    """Operations that are written down instead of done; see `portable.py: Operations`."""

    def __init__(self, onnx: Any):
        self._onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, inputs: list["OnnxValue"], output: str | None = None, **attributes: Any) -> "OnnxValue":
        """One operation, and its result."""
        name = output or f"value{len(self.nodes)}"
        made = self._onnx.helper.make_node(kind, [value.name for value in inputs], [name], **attributes)
        self.nodes.append(made)
        return OnnxValue(self, name)

    def constant(self, array: Any) -> "OnnxValue":
        name = f"constant{len(self.constants)}"
        self.constants.append(self._onnx.numpy_helper.from_array(np.asarray(array), name))
        return OnnxValue(self, name)

    def numbers(self, *numbers: int) -> "OnnxValue":
        return self.constant(np.array(numbers, np.int64))

    def maximum(self, a: Any, b: Any) -> "OnnxValue":
        return self.node("Max", [a, b])

    def tanh(self, x: Any) -> "OnnxValue":
        return self.node("Tanh", [x])

    def softmax(self, x: Any) -> "OnnxValue":
        return self.node("Softmax", [x], axis=1)

    def cumsum(self, x: Any) -> "OnnxValue":
        return self.node("CumSum", [x, self.constant(np.int64(1))])

    def total(self, x: Any) -> "OnnxValue":
        return self.node("ReduceSum", [x, self.numbers(1)], keepdims=1)

    def argmax(self, x: Any) -> "OnnxValue":
        return self.node("ArgMax", [x], axis=1, keepdims=1)

    def where(self, condition: Any, a: Any, b: Any) -> "OnnxValue":
        return self.node("Where", [condition, a, b])

    def concat(self, parts: list[Any]) -> "OnnxValue":
        return self.node("Concat", parts, axis=1)

    def as_float(self, x: Any) -> "OnnxValue":
        return self.node("Cast", [x], to=self._onnx.TensorProto.FLOAT)

    def as_number(self, x: Any) -> "OnnxValue":
        return self.node("Cast", [x], to=self._onnx.TensorProto.INT64)

    def rows(self, table: Any, numbers: Any) -> "OnnxValue":
        return self.node("Gather", [table, self.node("Squeeze", [numbers, self.numbers(1)])], axis=0)

    def pick(self, x: Any, numbers: Any) -> "OnnxValue":
        return self.node("GatherElements", [x, numbers], axis=1)


@dataclass(frozen=True)
class OnnxValue:
    """A named array of a graph."""

    graph: OnnxGraph
    name: str

    def __add__(self, other: "OnnxValue") -> "OnnxValue":
        return self.graph.node("Add", [self, other])

    def __sub__(self, other: "OnnxValue") -> "OnnxValue":
        return self.graph.node("Sub", [self, other])

    def __mul__(self, other: "OnnxValue") -> "OnnxValue":
        return self.graph.node("Mul", [self, other])

    def __matmul__(self, other: "OnnxValue") -> "OnnxValue":
        return self.graph.node("MatMul", [self, other])

    def __lt__(self, other: "OnnxValue") -> "OnnxValue":
        return self.graph.node("Less", [self, other])

    def __getitem__(self, columns: tuple[slice, slice]) -> "OnnxValue":
        part, numbers = columns[1], self.graph.numbers
        return self.graph.node("Slice", [self, numbers(part.start), numbers(part.stop), numbers(1), numbers(part.step or 1)])
