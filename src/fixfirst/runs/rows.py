"""The rows of a run's CSV files: frozen dataclasses that write and read their own cells.

A field's type is its cell's: int, float or str; `| None` means that the cell may be empty. A column is named like its field
unless the field says otherwise.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, Self


class Row:
    """What all rows can. Numbers have six decimals, here as in the file: whoever goes on from the file knows the same."""

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            if isinstance(value := getattr(self, f.name), float):
                object.__setattr__(self, f.name, round(value, 6))

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The header of the file."""
        return tuple(column for column, _, _ in _cells(cls))  # type: ignore[arg-type]

    def cells(self) -> list[Any]:
        """The values in the order of the columns; None becomes an empty cell."""
        return [getattr(self, f.name) for f in dataclasses.fields(self)]  # type: ignore[arg-type]

    @classmethod
    def read(cls, texts: Mapping[str, str]) -> Self:
        """From texts by column; ValueError if one is not what the column holds."""
        names = (f.name for f in dataclasses.fields(cls))  # type: ignore[arg-type]
        values = (_value(column, texts[column], kind, optional) for column, kind, optional in _cells(cls))  # type: ignore[arg-type]
        return cls(**dict(zip(names, values, strict=True)))


@cache
def _cells(row: Any) -> tuple[tuple[str, type, bool], ...]:
    """Per field: its column, the kind of its value, and whether it may be missing."""
    hints = typing.get_type_hints(row)
    found = []
    for f in dataclasses.fields(row):
        kinds = typing.get_args(hints[f.name]) if isinstance(hints[f.name], types.UnionType) else (hints[f.name],)
        found.append((f.metadata.get("column", f.name), kinds[0], types.NoneType in kinds))
    return tuple(found)


def _value(column: str, text: str, kind: type, optional: bool) -> Any:
    if text == "" and optional:
        return None
    try:
        value = kind(text)
    except ValueError:
        raise ValueError(f"{column} is {text[:60]!r}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{column} is {text!r}")
    return value


def _as(column: str, plot: str | None = None, default: Any = dataclasses.MISSING) -> Any:
    """A field with another column name; `plot` is its name in TensorBoard, as in Stable-Baselines3 where that has it."""
    return field(default=default, metadata={"column": column} | ({"plot": plot} if plot else {}))


# ---------------------------------------------------------------- trials.csv


class Status(StrEnum):
    """What became of a trial."""

    ACCEPTED = "accepted"  # passed the gate
    NON_COMPLIANT = "non_compliant"
    FAILED = "failed"  # its worker died again and again


@dataclass(frozen=True, kw_only=True)
class Trial(Row):
    """One finished trial of a search. All but `seconds` is the same however often the search was interrupted."""

    id: int
    workflow: str
    status: Status
    return_mean: float | None = None
    return_se: float | None = None
    return_low: float | None = None
    return_high: float | None = None
    compliance: float | None = None
    compliance_low: float | None = None
    compliance_high: float | None = None
    compliance_bound: float | None = None
    judged: int | None = None
    contested_compliance: float | None = None
    contested: int | None = None
    effectiveness: float | None = None
    response: float | None = None
    repairs_per_episode: float | None = None
    episodes: int
    updates: int | None = None
    parent: int | None = None  # the trial whose weights it inherited
    policy: str | None = None  # its folder, below the run's
    policy_sha256: str | None = None
    seconds: float | None = None

    @property
    def accepted(self) -> bool:
        """Did it pass the gate?"""
        return self.status == Status.ACCEPTED

    @property
    def earned(self) -> float:
        """Its mean return, where it has one."""
        assert self.return_mean is not None, f"trial {self.id} has no return"
        return self.return_mean


# ---------------------------------------------------------------- gp_sampling_log.csv


@dataclass(frozen=True, kw_only=True)
class ChoiceRow(Row):
    """One choice of an order, with what the strategy believed of it and of the best three."""

    iteration: int  # the number of its trial
    round: int  # the number of the first trial of its round: what came before is what the strategy knew
    how: str
    beta: float | None = None
    workflow: str
    ucb: float | None = None
    mean: float | None = None
    std: float | None = None
    top1_workflow: str | None = None
    top1_ucb: float | None = None
    top1_mean: float | None = None
    top1_std: float | None = None
    top2_workflow: str | None = None
    top2_ucb: float | None = None
    top2_mean: float | None = None
    top2_std: float | None = None
    top3_workflow: str | None = None
    top3_ucb: float | None = None
    top3_mean: float | None = None
    top3_std: float | None = None


# ---------------------------------------------------------------- training_log.csv


@dataclass(frozen=True, kw_only=True)
class UpdateRow(Row):
    """One update of a training. The first twelve columns are the reference system's, in its spelling and order."""

    trial: int = _as("Workflow_ID")
    workflow: str = _as("Workflow_Order")
    update: int = _as("Update")
    episodes: int = _as("Episodes")  # of this training so far
    sampled: int = _as("Total_Episodes_Sampled")  # of the whole run so far
    env_reward: float = _as("Env_Reward", "rollout/ep_rew_mean")
    alignment: float = _as("Alignment_Bonus", "rollout/alignment")
    total_reward: float = _as("Total_Reward")
    compliance: float | None = _as("Compliance", "rollout/compliance")
    repairs: float | None = _as("Avg_Fixes", "rollout/repairs")
    collection_s: float = _as("Collection_Time", "time/collection_s")
    update_s: float = _as("Update_Time", "time/update_s")
    contested_share: float | None = _as("Contested_Share", "rollout/contested_share")
    multiplier: float = _as("Multiplier", "train/multiplier")
    approx_kl: float = _as("Approx_KL", "train/approx_kl")
    entropy: float = _as("Entropy", "train/entropy")
    policy_loss: float = _as("Policy_Loss", "train/policy_gradient_loss")
    value_loss: float = _as("Value_Loss", "train/value_loss")
    clip_fraction: float = _as("Clip_Fraction", "train/clip_fraction")
    distinct_rows: int = _as("Distinct_Rows", "train/distinct_rows")

    def plotted(self) -> list[tuple[str, float]]:
        """What TensorBoard shows of it: name and value."""
        found = ((f.metadata.get("plot"), getattr(self, f.name)) for f in dataclasses.fields(self))
        return [(name, value) for name, value in found if name is not None and value is not None]


# ---------------------------------------------------------------- episodes.csv, runtime.csv


@dataclass(frozen=True, kw_only=True)
class EpisodeRow(Row):
    """One training episode."""

    trial: int = _as("Workflow_ID")
    workflow: str = _as("Workflow_Order")
    update: int = _as("Update")
    episode: int = _as("Episode")
    env_reward: float = _as("Env_Reward")
    alignment: float = _as("Alignment_Bonus")
    total_reward: float = _as("Total_Reward")
    compliance: float | None = _as("Compliance")
    repairs: int = _as("Repairs")


class Outcome(StrEnum):
    """How a time at work ended."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, kw_only=True)
class SessionRow(Row):
    """One time a run was worked on."""

    started: str
    outcome: Outcome
    seconds: float
    workers: int
    choosing_seconds: float
