"""A trial of the published search: one order is trained, judged by the gate and evaluated."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fixfirst.base import files
from fixfirst.learner.tournament import train_in
from fixfirst.learner.training import Training
from fixfirst.learner.training_run import Begin
from fixfirst.policy.policy_file import load_policy
from fixfirst.runs import layout, rows
from fixfirst.runs.rows import Trial
from fixfirst.searcher.jobs import SearchJob, TellJob, progress_of
from fixfirst.settings.training import TrainConfig
from fixfirst.stats.evaluation import Evaluation


@dataclass(frozen=True)
class TrialJob(SearchJob[Trial]):
    """All that a trial depends on."""

    number: int
    config: TrainConfig
    parent_policy: Path | None
    parent_sha256: str | None
    test_episodes: int
    test_seed: int
    log_episodes: bool

    def work(self, tell: TellJob, interrupt: object) -> tuple[Trial, dict[str, Any]] | None:
        """Train, gate and evaluate the order; return its row of the ledger."""
        started = time.perf_counter()
        start = None if self.parent_policy is None else load_policy(self.parent_policy).weights
        logs = (rows.UpdateRow, rows.EpisodeRow) if self.log_episodes else (rows.UpdateRow,)
        begin = Begin(start, self.number, logs)
        with train_in(self.folder, self.config, lambda m: tell(progress_of(m)), interrupt, begin) as training:
            if training is None:
                return None
            tested = training.evaluate("test", self.test_episodes, seed=self.test_seed)
            seconds = max(time.perf_counter() - started, training.seconds)  # the latter counts earlier sessions
            trial = self._row(training, tested, seconds)
            return trial, {"trial": trial.values(), "evaluation": asdict(tested)}

    def read(self, document: dict[str, Any]) -> Trial:
        """Return the row of the ledger."""
        return Trial.from_values(document["trial"])

    def _row(self, training: Training, tested: Evaluation, seconds: float) -> Trial:
        """Return the row of the ledger, but for what only the search knows: its parent, and where its policy lies."""
        repairs = tested.compliance
        assert repairs is not None  # every trial has an order
        return Trial(
            id=self.number,
            workflow=self.config.workflow,
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
            policy_sha256=files.sha256((self.folder / layout.POLICY_TENSORS).read_bytes()),
            seconds=round(seconds, 3),
        )
