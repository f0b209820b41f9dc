"""The rows of a run's CSV files: frozen dataclasses that write and read their own cells.

A field's type is its cell's: int, float or str; `| None` means that the cell may be empty. A column is named like its field
unless the field says otherwise. Numbers from a file are checked as strictly as settings: digits only, and within limits.
"""

import dataclasses
import hashlib
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, NamedTuple, Self

from fixfirst.base.files import LARGEST_TABLE, MB

LARGEST = 1e9  # no quantity of a run comes near; what is larger is damage
LARGEST_COUNT = 2**53
LONGEST = 1_000  # characters of a text: an order of 13 hosts has 150
CHECK = "check"  # the column of the checksum
_NUMBER = {int: re.compile(r"-?[0-9]{1,19}"), float: re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")}


class Row:
    """What all rows can. Numbers have six decimals, here as in the file: whoever goes on from the file knows the same."""

    largest_file: ClassVar[int] = 64 * MB  # of such rows
    has_check: ClassVar[bool] = False  # does its last column hold a checksum of the others, but for those of the clock?

    def __post_init__(self) -> None:
        for f in dataclasses.fields(self):  # type: ignore[arg-type]
            if isinstance(value := getattr(self, f.name), float):
                object.__setattr__(self, f.name, round(value, 6))

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The header of the file."""
        return (*(cell.column for cell in _cells(cls)), *((CHECK,) if cls.has_check else ()))  # type: ignore[arg-type]

    def cells(self, run: str = "") -> list[Any]:
        """The values in the order of the columns; None becomes an empty cell. run: as in `checksum`."""
        values = [getattr(self, f.name) for f in dataclasses.fields(self)]  # type: ignore[arg-type]
        return [*values, self.checksum(run)] if self.has_check else values

    def values(self) -> dict[str, Any]:
        """The same by column, for a JSON document."""
        return dict(zip(self.columns(), self.cells(), strict=True))

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """What `values` gave; ValueError as in `read`."""
        return cls.read({column: "" if values[column] is None else str(values[column]) for column in cls.columns()})

    @classmethod
    def read(cls, texts: Mapping[str, str], run: str = "") -> Self:
        """From texts by column; ValueError if one is not what the column holds. One that is not there is not checked.

        run: as in `checksum`; rows that name none, as earlier versions wrote them, are read all the same.
        """
        names = (f.name for f in dataclasses.fields(cls))  # type: ignore[arg-type]
        values = (_value(texts[cell.column], cell) for cell in _cells(cls))  # type: ignore[arg-type]
        row = cls(**dict(zip(names, values, strict=True)))
        if cls.has_check and texts.get(CHECK, row.checksum()) not in (row.checksum(run), row.checksum()):
            raise ValueError(f"it does not fit its checksum{', or is of another run' if run else ''}")
        row.fits_together()
        return row

    def fits_together(self) -> None:
        """ValueError if the cells of a row contradict each other."""

    def checksum(self, run: str = "") -> str:
        """Of all that does not depend on the clock: the same however often a run was interrupted. run: its `run_hash_of`."""
        cells = zip(dataclasses.fields(self), _cells(type(self)), strict=True)  # type: ignore[arg-type]
        values = [(getattr(self, f.name), cell.kind) for f, cell in cells if not f.metadata.get("clock")]
        texts = [*((run,) if run else ()), *("" if value is None else str(kind(value)) for value, kind in values)]
        return hashlib.sha256("\n".join(texts).encode("utf-8", "replace")).hexdigest()[:12]


def number(value: Any) -> float | None:
    """A finite number of a believable size, else None."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if abs(found) <= LARGEST else None


class _Cell(NamedTuple):
    """What a column holds."""

    column: str
    kind: type
    optional: bool
    least: float
    most: float


@cache
def _cells(row: Any) -> tuple[_Cell, ...]:
    """Per field: its column, the kind of its value, whether it may be missing, and its limits."""
    hints = typing.get_type_hints(row)
    found = []
    for f in dataclasses.fields(row):
        kinds = typing.get_args(hints[f.name]) if isinstance(hints[f.name], types.UnionType) else (hints[f.name],)
        largest = LARGEST_COUNT if kinds[0] is int else LARGEST
        limits = (f.metadata.get(name) for name in ("least", "most"))
        least, most = (end if limit is None else limit for limit, end in zip(limits, (-largest, largest), strict=True))
        found.append(_Cell(f.metadata.get("column", f.name), kinds[0], types.NoneType in kinds, least, most))
    return tuple(found)


def _value(text: str, cell: _Cell) -> Any:
    if text == "" and cell.optional:
        return None
    form = _NUMBER.get(cell.kind)
    if len(text) > LONGEST or (form is not None and not form.fullmatch(text)):
        raise ValueError(f"{cell.column} is {text[:60]!r}")
    try:
        value = cell.kind(text)
    except ValueError:
        raise ValueError(f"{cell.column} is {text[:60]!r}") from None
    if form is not None and not cell.least <= value <= cell.most:
        raise ValueError(f"{cell.column} is {text[:60]}, not in {cell.least:g}..{cell.most:g}")
    return value


def _as(
    column: str,
    plot: str | None = None,
    default: Any = dataclasses.MISSING,
    least: float | None = None,
    clock: bool = False,
) -> Any:
    """A field with another column name; `plot` is its name in TensorBoard, as in Stable-Baselines3 where that has it."""
    facts = {"column": column, "least": least, "clock": clock}
    return field(default=default, metadata=facts | ({"plot": plot} if plot else {}))


def _in(least: float, most: float | None = None, default: Any = dataclasses.MISSING, clock: bool = False) -> Any:
    """A number within limits. clock: it says how long something took, which is no part of a result."""
    return field(default=default, metadata={"least": least, "most": most, "clock": clock})


# ---------------------------------------------------------------- trials.csv


class Status(StrEnum):
    """What became of a trial."""

    ACCEPTED = "accepted"  # passed the gate
    NON_COMPLIANT = "non_compliant"
    FAILED = "failed"  # its worker died again and again


@dataclass(frozen=True, kw_only=True)
class Trial(Row):
    """One finished trial of a search. All but `seconds` is the same however often the search was interrupted."""

    has_check = True

    id: int = _in(0)
    workflow: str
    status: Status
    return_mean: float | None = None
    return_se: float | None = _in(0, default=None)
    return_low: float | None = None
    return_high: float | None = None
    compliance: float | None = _in(0, 1, None)
    compliance_low: float | None = _in(0, 1, None)
    compliance_high: float | None = _in(0, 1, None)
    compliance_bound: float | None = _in(0, 1, None)
    judged: int | None = _in(0, default=None)
    contested_compliance: float | None = _in(0, 1, None)
    contested: int | None = _in(0, default=None)
    effectiveness: float | None = _in(0, 1, None)
    response: float | None = _in(0, 1, None)
    repairs_per_episode: float | None = _in(0, default=None)
    episodes: int = _in(0)
    updates: int | None = _in(0, default=None)
    parent: int | None = _in(0, default=None)  # the trial whose weights it inherited
    policy: str | None = None  # its folder, below the run's
    policy_sha256: str | None = None
    seconds: float | None = _in(0, default=None, clock=True)

    def fits_together(self) -> None:
        needed = (self.return_mean, self.return_se, self.return_low, self.return_high)
        if self.status != Status.FAILED and None in needed:
            raise ValueError(f"it is {self.status} and has no return")

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

    iteration: int = _in(0)  # the number of its trial
    round: int = _in(0)  # the number of the first trial of its round: what came before is what the strategy knew
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


# ---------------------------------------------------------------- rounds.csv


@dataclass(frozen=True, kw_only=True)
class ValueRow(Row):
    """What one replicate earned under one order after one round, on episodes common to all."""

    has_check = True

    round: int = _in(1)
    replicate: int = _in(0)
    workflow: str
    mean: float
    standard_error: float = _in(0)
    last: int = _in(0, 1, default=0)  # 1: the round's last row; with it the round is complete


# ---------------------------------------------------------------- training_log.csv


@dataclass(frozen=True, kw_only=True)
class UpdateRow(Row):
    """One update of a training. The first twelve columns are the reference system's, in its spelling and order."""

    largest_file = LARGEST_TABLE

    trial: int = _as("Workflow_ID", least=-1)
    workflow: str = _as("Workflow_Order")
    update: int = _as("Update", least=0)
    episodes: int = _as("Episodes", least=0)  # of this training so far
    sampled: int = _as("Total_Episodes_Sampled", least=0)  # of the whole run so far
    env_reward: float = _as("Env_Reward", "rollout/ep_rew_mean")
    alignment: float = _as("Alignment_Bonus", "rollout/alignment")
    total_reward: float = _as("Total_Reward")
    compliance: float | None = _as("Compliance", "rollout/compliance")
    repairs: float | None = _as("Avg_Fixes", "rollout/repairs")
    collection_s: float = _as("Collection_Time", "time/collection_s", least=0, clock=True)
    update_s: float = _as("Update_Time", "time/update_s", least=0, clock=True)
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

    largest_file = LARGEST_TABLE

    trial: int = _as("Workflow_ID", least=-1)
    workflow: str = _as("Workflow_Order")
    update: int = _as("Update", least=0)
    episode: int = _as("Episode", least=0)
    env_reward: float = _as("Env_Reward")
    alignment: float = _as("Alignment_Bonus")
    total_reward: float = _as("Total_Reward")
    compliance: float | None = _as("Compliance")
    repairs: int = _as("Repairs", least=0)


class Outcome(StrEnum):
    """How a time at work ended."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, kw_only=True)
class SessionRow(Row):
    """One time a run was worked on."""

    started: str
    outcome: Outcome
    seconds: float = _in(0)
    workers: int = _in(1)
    choosing_seconds: float = _in(0)
