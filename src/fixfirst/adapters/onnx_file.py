"""An ONNX file as a defender: one that `fixfirst export` wrote, or any that maps observations to actions or their values."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.base import errors, files
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders.order import UnitScheme, Workflow

_KINDS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}


class OnnxFile:
    """A loaded file, asked by `predict`, and of one that `fixfirst export` wrote what it says of itself.

    scenario: in which it plays; None: nobody knows. scheme: the unit types of the order that it takes at every turn.
    workflow: the order that was fixed when it was exported.
    """

    def __init__(self, path: Path):
        try:
            import onnxruntime  # an extra, slow to import
        except ModuleNotFoundError as e:
            raise errors.ConfigError(
                f"{path} needs onnxruntime, which is not installed: pip install 'fixfirst[onnx]'"
            ) from e
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4  # what is wrong, the exception says
        try:
            self._session = onnxruntime.InferenceSession(files.read_file(path), options, providers=["CPUExecutionProvider"])
        except Exception as e:  # onnxruntime has many kinds
            raise errors.PolicyError(f"{path}: cannot be read as an ONNX file ({e})") from None
        self._inputs = {each.name: each for each in self._session.get_inputs()}
        ours = {"observation", "state", "draw"} <= set(self._inputs)
        self.predict: Callable[..., Any] = self._predict if ours else self._predict_of_others
        if not ours and len(self._inputs) != 1:
            raise errors.PolicyError(f"{path}: must have one input, the observations, got {', '.join(self._inputs)}")
        self.scenario: Scenario | None = None
        self.scheme: UnitScheme | None = None
        self.workflow: Workflow | None = None
        if ours:
            try:
                self._read_facts(self._session.get_modelmeta().custom_metadata_map)
            except (errors.ScenarioError, KeyError, TypeError, AttributeError, ValueError) as e:
                raise errors.PolicyError(f"{path}: damaged (what it says of itself cannot be read: {e})") from None

    def _read_facts(self, facts: dict[str, str]) -> None:
        order, home = facts.get("order", ""), CAGE2
        if "scenario" in facts:
            home = Scenario.from_dict(files.parse_json(facts["scenario"].encode()))
        self.scenario = home
        if order:
            units = UnitScheme.from_dict(files.parse_json(facts["units"].encode()), home)
            self.scheme = units if "order" in self._inputs else None
            self.workflow = None if order == "any" else Workflow.parse(order, units)

    def _predict(
        self,
        observations: np.ndarray,
        state: np.ndarray | None,
        episode_start: np.ndarray,
        deterministic: bool,
        _draws: np.ndarray,
        _ranks: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what a file of ours chooses [N] and remembers."""
        size = int(self._inputs["state"].shape[1])
        state = np.zeros((len(_draws), size), np.float32) if state is None else np.where(episode_start[:, None], 0, state)
        below_1 = np.minimum(_draws, 1 - 2.0**-24)  # also in half the digits
        feed = {
            "observation": observations.astype(np.float32),
            "state": state,
            "draw": np.where(deterministic, -1, below_1).astype(np.float32)[:, None],
        }
        if _ranks is not None:
            feed["order"] = _ranks.astype(np.float32)
        actions, state, _ = self._session.run(None, feed)
        return actions, state

    def _predict_of_others(self, observations: np.ndarray, action_masks: np.ndarray) -> np.ndarray:
        (given,) = self._inputs.values()
        seen = observations.astype(_KINDS.get(given.type, np.int8))
        size = given.shape[0] if isinstance(given.shape[0], int) else len(seen)  # some take one game at a time
        parts = [seen[start : start + size] for start in range(0, len(seen), size)]
        answer = np.concatenate([np.asarray(self._session.run(None, {given.name: part})[0]) for part in parts])
        if answer.dtype.kind == "f" and answer.ndim == 2:  # a value of each choice
            return np.where(action_masks, answer, -np.inf).argmax(axis=1)
        return answer
