"""The job of the published search: train one order, pass the gate or not, and evaluate the policy."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path

from fixfirst.base import files
from fixfirst.learner import driver
from fixfirst.learner.tournament import Begin, train_in
from fixfirst.learner.training import Training
from fixfirst.policy.trained import load_policy
from fixfirst.runs import rows, sessions
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.rows import Trial
from fixfirst.searcher.jobs import NamedJob, TellJob
from fixfirst.settings.training import TrainConfig
from fixfirst.stats.evaluation import Evaluation


@dataclass(frozen=True)
class TrialJob(NamedJob):
    """All that a trial depends on."""

    number: int
    config: TrainConfig
    folder: Path
    parent_policy: Path | None
    parent_sha256: str | None
    test_episodes: int
    test_seed: int
    log_episodes: bool


def run_trial(job: TrialJob, tell: TellJob, interrupt: object) -> Trial | None:
    """Train, gate and evaluate one order; return its row of the ledger."""
    with sessions.job_folder(job.folder):
        if (done := job.result()) is not None:
            driver.delete_checkpoints(job.folder)  # a kill may have come between its result and this
            return Trial.from_values(done["trial"])
        started = time.perf_counter()
        start = None if job.parent_policy is None else load_policy(job.parent_policy).weights
        begin = Begin(start, job.number, log_episodes=job.log_episodes)
        with train_in(job.folder, job.config, tell, interrupt, begin) as training:
            if training is None:
                return None
            tested = training.evaluate("test", job.test_episodes, seed=job.test_seed)
            seconds = max(time.perf_counter() - started, training.seconds)  # the latter counts earlier sessions
            trial = _trial_row(job, training, tested, seconds)
            facts = {"job": job.digest, "trial": trial.values(), "evaluation": asdict(tested)}
            driver.conclude(job.folder, facts)
        return trial


def _trial_row(job: TrialJob, training: Training, tested: Evaluation, seconds: float) -> Trial:
    """Return the trial's row of the ledger, but for what only the search knows: its parent, and where its policy lies."""
    repairs = tested.compliance
    assert repairs is not None  # every trial has an order
    return Trial(
        id=job.number,
        workflow=job.config.workflow,
        status=rows.Status.ACCEPTED if training.passes_gate() else rows.Status.NON_COMPLIANT,
        return_mean=tested.mean,
        return_se=tested.standard_error,
        return_low=tested.low,
        return_high=tested.high,
        compliance=repairs.compliance.value,
        compliance_low=repairs.compliance.low,
        compliance_high=repairs.compliance.high,
        compliance_bound=repairs.lower_bound,
        judged=repairs.compliance.count,
        contested_compliance=repairs.contested.value,
        contested=repairs.contested.count,
        effectiveness=repairs.effectiveness.value,
        response=repairs.response.value,
        repairs_per_episode=repairs.repairs_per_episode,
        episodes=training.episodes,
        updates=training.updates,
        policy_sha256=files.sha256(RunFiles(job.folder).policy_tensors.read_bytes()),
        seconds=round(seconds, 3),
    )
