"""The jobs of a search, wherever they run: a trial (train, gate, evaluate one order) and the warm-up before the first.

A job holds all it needs, its folder all it leaves. `parcels.py` carries jobs to machines that do not see our disk.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from fixfirst.base.errors import PolicyError
from fixfirst.base.files import read_file
from fixfirst.learner.checkpoint import delete_checkpoints
from fixfirst.learner.config import TrainConfig
from fixfirst.learner.training import Training
from fixfirst.learner.training_run import TrainingRun
from fixfirst.play.evaluation import Evaluation
from fixfirst.policy.file import load_policy
from fixfirst.runs.files import read_own_json, sha256
from fixfirst.runs.layout import EPISODE_LOG, POLICY_TENSORS, RESULT, TRAINING_LOG
from fixfirst.runs.lock import locked
from fixfirst.runs.logs import read_rows
from fixfirst.runs.rows import EpisodeRow, Status, Trial, UpdateRow

ORPHAN_WAIT_S = 30.0  # for a worker of a killed search to notice that it is alone
TELL_EVERY_S = 0.1


class JobProgress(NamedTuple):
    """How far a job is."""

    episodes: int
    env_reward: float
    compliance: float | None
    orders: int = 0  # measured by cross-play; 0: it still trains


Message = str | JobProgress  # what a job tells: that something went wrong and was dealt with, or how far it is
Tell = Callable[[Message], None]


@dataclass(frozen=True)
class TrialJob:
    """All that a trial depends on."""

    number: int
    config: TrainConfig
    folder: Path
    parent_policy: Path | None
    parent_sha256: str | None
    test_episodes: int
    test_seed: int
    log_episodes: bool

    @property
    def digest(self) -> str:
        """Names the job: a result in its folder counts only if it is of this job."""
        parts = (self.number, self.config.model_dump(mode="json"), self.parent_sha256, self.test_episodes, self.test_seed)
        return sha256(json.dumps(parts).encode())


def run_trial(job: TrialJob, tell: Tell, interrupt: object) -> Trial | None:
    """Train, gate, evaluate; None if interrupted. A finished trial is read from its folder, an unfinished one goes on."""
    job.folder.mkdir(parents=True, exist_ok=True)
    with locked(job.folder, wait_s=ORPHAN_WAIT_S):
        done = finished_trial(job)
        if done is not None:
            delete_checkpoints(job.folder)  # a kill may have come between
            return done
        return _run_trial(job, tell, interrupt)


def finished_trial(job: TrialJob) -> Trial | None:
    """The result in the job's folder, if it is complete, of this very job, and of the policy that lies there."""
    try:
        result = read_own_json(job.folder / RESULT)
        if result.get("job") != job.digest:
            return None
        if result.get("logs", digest := logs_digest(job)) != digest:  # they become those of the search
            return None
        trial = Trial.from_values(result["trial"])
        return trial if trial.policy_sha256 == sha256(read_file(job.folder / POLICY_TENSORS)) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def logs_digest(job: TrialJob) -> str:
    """Of all that a trial's logs say but for times."""
    said = [row.checksum() for row in read_rows(job.folder / TRAINING_LOG, UpdateRow)]
    episodes = sha256(read_file(job.folder / EPISODE_LOG)) if job.log_episodes else None
    return sha256(json.dumps([said, episodes]).encode())


def _run_trial(job: TrialJob, tell: Tell, interrupt: object) -> Trial | None:
    started = time.perf_counter()
    start = None if job.parent_policy is None else load_policy(job.parent_policy).weights
    logs = (UpdateRow, EpisodeRow) if job.log_episodes else (UpdateRow,)
    with TrainingRun(job.config, job.folder, start=start, number=job.number, logs=logs) as run:
        if not _follow(run, tell, interrupt):
            return None
        shown = run.training.evaluate("test", job.test_episodes, seed=job.test_seed)
        trial = trial_row(job, run.accepted, run.training, shown, time.perf_counter() - started)
        run.conclude({"job": job.digest, "trial": trial.values(), "evaluation": asdict(shown), "logs": logs_digest(job)})
    return trial


def _follow(run: TrainingRun, tell: Tell, interrupt: object) -> bool:
    """Train, passing on some of the updates: enough to watch. False if interrupted."""
    for complaint in run.complaints:
        tell(complaint)
    told = 0.0
    for update in run.updates(interrupt):
        if (now := time.perf_counter()) - told > TELL_EVERY_S:
            tell(JobProgress(update.row.episodes, update.row.env_reward, update.row.compliance))
            told = now
    return not run.interrupted


def trial_row(job: TrialJob, accepted: bool, training: Training, shown: Evaluation, seconds: float) -> Trial:
    """The trial's row of the ledger, but for what only the search knows: its parent, and where its policy lies."""
    kept = shown.compliance
    assert kept is not None  # every trial has a workflow
    return Trial(
        id=job.number,
        workflow=job.config.workflow,
        status=Status.ACCEPTED if accepted else Status.NON_COMPLIANT,
        return_mean=shown.mean,
        return_se=shown.standard_error,
        return_low=shown.low,
        return_high=shown.high,
        compliance=kept.compliance.value,
        compliance_low=kept.compliance.low,
        compliance_high=kept.compliance.high,
        compliance_bound=kept.lower_bound,
        judged=kept.compliance.count,
        contested_compliance=kept.contested.value,
        contested=kept.contested.count,
        effectiveness=kept.effectiveness.value,
        response=kept.response.value,
        repairs_per_episode=kept.repairs_per_episode,
        episodes=training.episodes,
        updates=training.updates,
        policy_sha256=sha256((job.folder / POLICY_TENSORS).read_bytes()),
        seconds=round(seconds, 3),
    )


def failed_row(job: TrialJob) -> Trial:
    """A trial whose worker died again and again. How far it got is unknown, so all of its budget counts as used."""
    return Trial(id=job.number, workflow=job.config.workflow, status=Status.FAILED, episodes=job.config.total_episodes)


@dataclass(frozen=True)
class WarmupJob:
    """All that the warm-up depends on."""

    config: TrainConfig
    folder: Path
    test_episodes: int
    test_seed: int


def is_warmed_up(job: WarmupJob) -> bool:
    """Is it done, and is what lies there of this very job? Else it is done (again): the same bytes come of it."""
    try:
        result, policy = read_own_json(job.folder / RESULT), load_policy(job.folder).facts
        of_this = policy["config"] == job.config.model_dump(mode="json") and policy["episodes"] == result["episodes"]
        return of_this and result.get("policy_sha256", policy["sha256"]) == policy["sha256"]
    except (OSError, ValueError, KeyError, TypeError, PolicyError):
        return False


def run_warmup(job: WarmupJob, tell: Tell, interrupt: object) -> bool:
    """The defender before any order: trained without one, evaluated on the trials' test episodes. False if interrupted."""
    job.folder.mkdir(parents=True, exist_ok=True)
    with locked(job.folder, wait_s=ORPHAN_WAIT_S), TrainingRun(job.config, job.folder, logs=()) as run:
        started = time.perf_counter()
        if not _follow(run, tell, interrupt):
            return False
        shown = run.training.evaluate("test", job.test_episodes, seed=job.test_seed)
        facts = {"episodes": run.training.episodes, "seconds": round(time.perf_counter() - started, 3)}
        run.conclude({"evaluation": asdict(shown), **facts})
        return True
