"""The rows of a run's CSV files; how a league stood after each round, and what TensorBoard shows of a training."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any

from fixfirst.base import files
from fixfirst.runs.csv_logs import Row


class Status(StrEnum):
    """What became of a trial."""

    ACCEPTED = "accepted"  # passed the gate
    NON_COMPLIANT = "non_compliant"
    FAILED = "failed"  # its worker died again and again


@dataclass(frozen=True, kw_only=True)
class Trial(Row):
    """One finished trial of a search. All but `seconds` is the same however often the search was interrupted."""

    largest_file = 4 * files.MB

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
    def mean(self) -> float:
        """Its mean return, where it has one."""
        assert self.return_mean is not None, f"trial {self.id} has no return"
        return self.return_mean


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


@dataclass(frozen=True, kw_only=True)
class ValueRow(Row):
    """What one replicate earned under one order after one round, on episodes common to all."""

    round: int
    replicate: int
    workflow: str
    mean: float
    standard_error: float
    last: int = 0  # 1: the round's last row; with it the round is complete


class AttackerKind(StrEnum):
    """What an attacker of a league is."""

    SCRIPT = "script"
    LIVE = "live"  # it learned beside the defender
    RESPONSE = "response"  # against the defender as it was at the end of a round


@dataclass(frozen=True, kw_only=True)
class MatrixRow(Row):
    """What the defender of a league earned after one round against one attacker, on episodes common to all rounds."""

    largest_file = 8 * files.MB

    round: int
    updates: int
    attacker: str  # a script, or the folder in attackers/
    kind: AttackerKind
    start: str | None  # where it began; nothing for a script
    born: int  # the round in which it was frozen; 0 for a script
    mean: float
    standard_error: float


@dataclass(frozen=True)
class LeagueRound:
    """How the defender of a league stood after a round. All numbers are its returns; nearer 0 is better."""

    round: int
    updates: int
    scripts: Mapping[str, float]
    attackers: int  # that were frozen by then
    known: MatrixRow | None  # the one of earlier rounds that takes most
    fresh: MatrixRow | None  # of those that learned against the defender as it is: a lower bound of what can be taken

    @property
    def worst(self) -> MatrixRow | None:
        """The attacker that takes most."""
        return _worst(row for row in (self.known, self.fresh) if row is not None)

    def in_words(self) -> str:
        """Return it in one line."""
        parts = [f"{name} {mean:.1f}" for name, mean in self.scripts.items()]
        if self.known is not None:
            parts.append(f"the worst of {self.attackers} attackers {self.known.mean:.1f}")
        if self.fresh is not None:
            parts.append(f"a fresh one {self.fresh.mean:.1f}")
        return f"round {self.round}, {self.updates} updates: {', '.join(parts)}"


def _worst(rows: Iterable[MatrixRow]) -> MatrixRow | None:
    return min(rows, key=lambda row: row.mean, default=None)


def league_rounds(matrix: Sequence[MatrixRow]) -> list[LeagueRound]:
    """Return the rounds that a matrix holds, in their order."""
    rounds = []
    for number, group in groupby(matrix, key=lambda row: row.round):
        rows = list(group)
        learned = [row for row in rows if row.kind != AttackerKind.SCRIPT]
        fresh = [row for row in learned if row.kind == AttackerKind.RESPONSE and row.born == number]
        scripts = {row.attacker: row.mean for row in rows if row.kind == AttackerKind.SCRIPT}
        known = _worst(row for row in learned if row not in fresh)
        rounds.append(LeagueRound(number, rows[0].updates, scripts, len(learned), known, _worst(fresh)))
    return rounds


def _as(column: str, plot: str | None = None) -> Any:
    """A field with another column name; `plot` is its name in TensorBoard, as in Stable-Baselines3 where that has it."""
    return field(metadata={"column": column} | ({"plot": plot} if plot else {}))


@dataclass(frozen=True, kw_only=True)
class UpdateRow(Row):
    """One update of a training. The first twelve columns are the reference system's, in its spelling and order."""

    largest_file = 128 * files.MB

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

    def plotted(self) -> dict[str, float]:
        """Return the numbers that TensorBoard plots and callbacks are given, by name."""
        numbers = {f.metadata.get("plot"): getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in numbers.items() if name is not None and value is not None}


class TensorBoard:
    """TensorBoard's event files of a run, from the episode at which it continues; an extra: pip install
    'fixfirst[tensorboard]'. `None` as folder: nobody wants them.
    """

    def __init__(self, folder: Path | None, first_step: int):
        self._writer: Any = None
        if folder is not None:
            from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # slow to import, and not everybody has it
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.event_file_writer import EventFileWriter

            self._event, self._summary, self._writer = Event, Summary, EventFileWriter(str(folder))
            # Hides what an interrupted run had written from this step on: it is played again.
            self._write(first_step, session_log=SessionLog(status=SessionLog.START))

    def add(self, row: UpdateRow) -> None:
        """Write one update, at the run's episode count."""
        if self._writer is not None:
            value = self._summary.Value
            plotted = [value(tag=tag, simple_value=number) for tag, number in row.plotted().items()]
            self._write(row.sampled, summary=self._summary(value=plotted))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _write(self, step: int, **content: Any) -> None:
        self._writer.add_event(self._event(wall_time=time.time(), step=step, **content))
        self._writer.flush()  # another thread writes: what was added survives a kill


@dataclass(frozen=True, kw_only=True)
class EpisodeRow(Row):
    """One training episode."""

    largest_file = 1024 * files.MB

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
    """How a time at work ended, if it did."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    RUNNING = "running"  # no row says so


@dataclass(frozen=True, kw_only=True)
class SessionRow(Row):
    """One time a run was worked on."""

    started: str
    outcome: Outcome
    seconds: float
    workers: int
    choosing_seconds: float
