"""One trial of a search, wherever it runs: train, gate, evaluate. Its job holds all it needs, its folder all it leaves.

On a machine that does not see our disk it runs from a parcel, in a scratch folder there; its files come back with its
result, and only the driver writes them into the run directory.
"""

import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from fixfirst.errors import ConfigError, RunDirError
from fixfirst.learner.checkpoint import POLICY_JSON, POLICY_TENSORS, load_policy, policy_folder, versions
from fixfirst.learner.config import TrainConfig
from fixfirst.learner.taught import evaluate_training, run_training
from fixfirst.learner.train_run import training_values
from fixfirst.learner.training import Training, UpdateRow
from fixfirst.orders.compliance import Counts
from fixfirst.play.evaluation import Evaluation
from fixfirst.runs.files import sha256, write_atomically, write_json
from fixfirst.runs.ledger import ACCEPTED, DEAD, NOT_COMPLIANT
from fixfirst.runs.run_dir import (
    EPISODE_COLUMNS,
    EPISODE_LOG,
    RESULT,
    TRAINING_COLUMNS,
    TRAINING_LOG,
    CsvLog,
    keep_rows,
    locked,
)

ORPHAN_WAIT_S = 30.0  # for a worker of a killed search to notice that it is alone


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


def run_trial(job: TrialJob, tell: Callable[[Any], None], interrupt: Any) -> dict[str, Any] | None:
    """Train, gate, evaluate; None if interrupted. A finished trial is read from its folder, an unfinished one goes on."""
    job.folder.mkdir(parents=True, exist_ok=True)
    with locked(job.folder, wait_s=ORPHAN_WAIT_S):
        done = finished_trial(job)
        return done if done is not None else _run_trial(job, tell, interrupt)


def finished_trial(job: TrialJob) -> dict[str, Any] | None:
    """The result in the job's folder, if it is complete and of this very job."""
    try:
        result = json.loads((job.folder / RESULT).read_bytes())
    except (OSError, ValueError):
        return None
    return dict(result["trial"]) if isinstance(result, dict) and result.get("job") == job.digest else None


def _run_trial(job: TrialJob, tell: Callable[[Any], None], interrupt: Any) -> dict[str, Any] | None:
    started = time.perf_counter()
    start = None if job.parent_policy is None else load_policy(job.parent_policy).weights
    log, episodes, report = job.folder / TRAINING_LOG, job.folder / EPISODE_LOG, _Reporter(tell)
    files: list[CsvLog] = []

    def on_restore(training: Training, complaints: list[str]) -> None:
        for complaint in complaints:
            tell(("complaint", complaint))
        for path, columns in ((log, TRAINING_COLUMNS), (episodes, EPISODE_COLUMNS)):
            if path == log or job.log_episodes:
                keep_rows(path, columns, lambda row: int(row["Update"]) <= training.updates)
                files.append(CsvLog(path, columns))

    def on_update(row: UpdateRow) -> None:
        files[0].write(training_values(row, job.number, job.config.workflow, row.episodes))
        if job.log_episodes:
            for values in episode_values(row, job.number, job.config.workflow):
                files[1].write(values)
        report(row)

    def sync() -> None:
        for file in files:
            file.sync()

    try:
        trained = run_training(
            job.config,
            job.folder,
            start=start,
            on_restore=on_restore,
            on_update=on_update,
            before_checkpoint=sync,
            interrupt=interrupt,
        )
    finally:
        for file in files:
            file.close()
    if trained.interrupted:
        return None
    evaluation = evaluate_training(trained.training, "test", job.test_episodes, seed=job.test_seed)
    trained.training.close()
    trial = trial_row(job, trained.accepted, trained.training, evaluation, time.perf_counter() - started)
    write_json(job.folder / RESULT, {"job": job.digest, "trial": trial, "evaluation": asdict(evaluation)})
    return trial


def trial_row(job: TrialJob, accepted: bool, training: Training, shown: Evaluation, seconds: float) -> dict[str, Any]:
    """The values of TRIAL_COLUMNS, but for the parent, which the search knows."""
    kept = shown.compliance
    assert kept is not None  # every trial has a workflow
    values: dict[str, Any] = {
        "id": job.number,
        "workflow": job.config.workflow,
        "status": ACCEPTED if accepted else NOT_COMPLIANT,
        "return_mean": shown.mean,
        "return_se": shown.standard_error,
        "return_low": shown.low,
        "return_high": shown.high,
        "compliance": kept.compliance.value,
        "compliance_low": kept.compliance.low,
        "compliance_high": kept.compliance.high,
        "compliance_bound": kept.lower_bound,
        "judged": kept.compliance.count,
        "contested_compliance": kept.contested.value,
        "contested": kept.contested.count,
        "effectiveness": kept.effectiveness.value,
        "response": kept.response.value,
        "repairs_per_episode": kept.repairs_per_episode,
        "episodes": training.episodes,
        "updates": training.updates,
        "policy_sha256": sha256((job.folder / POLICY_TENSORS).read_bytes()),
        "seconds": round(seconds, 3),
    }
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in values.items()}


def failed_row(job: TrialJob) -> dict[str, Any]:
    """A trial whose worker died again and again. How far it got is unknown, so all of its budget counts as used."""
    return {"id": job.number, "workflow": job.config.workflow, "status": DEAD, "episodes": job.config.total_episodes}


def episode_values(row: UpdateRow, number: int, workflow: str) -> list[list[Any]]:
    """The values of EPISODE_COLUMNS for every episode of an update."""
    rows, counts = row.episode_rows, row.episode_rows.counts
    n = len(rows.env_reward)
    first = row.episodes - n + 1
    counts = counts if counts is not None else Counts(*(np.zeros(n, int) for _ in Counts._fields))
    shares = [round(c / j, 6) if j else None for c, j in zip(counts.compliant, counts.judged, strict=True)]
    rewards = zip(rows.env_reward.tolist(), rows.alignment.tolist(), strict=True)
    return [
        [
            number,
            workflow,
            row.update,
            first + i,
            round(env, 1),
            round(bonus, 6),
            round(env + bonus, 6),
            shares[i],
            int(counts.repairs[i]),
        ]
        for i, (env, bonus) in enumerate(rewards)
    ]


@dataclass(frozen=True)
class WarmupJob:
    """All that the warm-up depends on."""

    config: TrainConfig
    folder: Path
    test_episodes: int
    test_seed: int


def run_warmup(job: WarmupJob, tell: Callable[[Any], None], interrupt: Any) -> bool:
    """The defender before any order: trained without one, evaluated on the trials' test episodes. False if interrupted."""
    job.folder.mkdir(parents=True, exist_ok=True)
    with locked(job.folder, wait_s=ORPHAN_WAIT_S):
        started = time.perf_counter()
        trained = run_training(job.config, job.folder, on_update=_Reporter(tell), interrupt=interrupt)
        if not trained.interrupted:
            shown = evaluate_training(trained.training, "test", job.test_episodes, seed=job.test_seed)
            facts = {"episodes": trained.training.episodes, "seconds": round(time.perf_counter() - started, 3)}
            write_json(job.folder / RESULT, {"evaluation": asdict(shown), **facts})
        trained.training.close()
        return not trained.interrupted


def run_job(job: "TrialJob | WarmupJob", tell: Callable[[Any], None], interrupt: Any) -> Any:
    """Either kind, in its own folder on this machine. What it returns is false if it was interrupted."""
    return run_trial(job, tell, interrupt) if isinstance(job, TrialJob) else run_warmup(job, tell, interrupt)


# ---------------------------------------------------------------- on a machine that does not see our disk

Files = dict[str, bytes]
# All that a trial may leave in its folder. The names come from another machine: nothing else is written.
TRIAL_FILES = re.compile(
    "|".join(map(re.escape, (POLICY_TENSORS, POLICY_JSON, TRAINING_LOG, EPISODE_LOG, RESULT)))
    + r"|checkpoint-\d{8}\.(json|safetensors)"
)


@dataclass(frozen=True)
class Parcel:
    """A job with all that it reads: its parent's policy, and what its folder holds of an interrupted attempt."""

    job: TrialJob | WarmupJob
    parent: Files
    begun: Files
    versions: dict[str, str]  # of what packed it; other ones would give other bytes


def pack(job: TrialJob | WarmupJob) -> Parcel:
    parent: Files = {}
    if isinstance(job, TrialJob) and job.parent_policy is not None:
        folder = policy_folder(job.parent_policy)
        parent = {name: (folder / name).read_bytes() for name in (POLICY_TENSORS, POLICY_JSON)}
    job.folder.mkdir(parents=True, exist_ok=True)
    with locked(job.folder, wait_s=ORPHAN_WAIT_S):
        return Parcel(job, parent, _read_files(job.folder), versions())


def run_parcel(parcel: Parcel, tell: Callable[[Any], None], interrupt: Any) -> tuple[Any, Files]:
    """run_job() in a scratch folder of this machine: its result, and the files it left."""
    for name, version in versions().items():
        if version != parcel.versions.get(name):
            raise ConfigError(
                f"the cluster has {name} {version}, the driver {parcel.versions.get(name)}: results would differ; "
                "install the same versions everywhere"
            )
    with TemporaryDirectory(prefix="fixfirst-") as scratch:
        folder, parent = Path(scratch) / "trial", Path(scratch) / "parent"
        _write_files(folder, parcel.begun)
        _write_files(parent, parcel.parent)
        job = replace(parcel.job, folder=folder)
        if isinstance(job, TrialJob):
            job = replace(job, parent_policy=parent if parcel.parent else None)
        return run_job(job, tell, interrupt), _read_files(folder)


def unpack(job: TrialJob | WarmupJob, files: Files) -> None:
    """The files of a parcel's job into its own folder, as if it had run there."""
    odd = [name for name in files if not TRIAL_FILES.fullmatch(name)]
    if odd:
        raise RunDirError(f"{job.folder}: the cluster sent a file that no trial writes ({odd[0]!r})")
    with locked(job.folder, wait_s=ORPHAN_WAIT_S):
        for old in _read_files(job.folder).keys() - files.keys():
            (job.folder / old).unlink()
        _write_files(job.folder, files)


def _read_files(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir() if TRIAL_FILES.fullmatch(path.name)}


def _write_files(folder: Path, files: Files) -> None:
    """The result last: with it the folder is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(files, key=lambda name: name == RESULT):
        write_atomically(folder / name, files[name])


class _Reporter:
    """Passes on some of the updates: enough to watch."""

    def __init__(self, tell: Callable[[Any], None]):
        self._tell, self._told = tell, 0.0

    def __call__(self, row: UpdateRow) -> None:
        if (now := time.perf_counter()) - self._told > 0.1:
            self._tell(("update", (row.episodes, row.env_reward, row.compliance)))
            self._told = now
