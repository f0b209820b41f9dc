"""The jobs of searches, wherever they run. A job holds all it needs, its folder all it leaves.

    run_base     train a defender without an order: what trials inherit, and what replicates begin from
    run_trial    train, gate and evaluate one order (`trial_job.py`)
    run_round    train one network on some orders, then play all tried ones (`network_jobs.py`)
    run_cross    cross-play: find the order that a policy is best told under each order
    run_attack   let attackers learn against a defender under one order (`attack_jobs.py`)
    run_adapt    let a defender learn against attackers

Each returns None if it was interrupted. Begun again, it reads its result from its folder, or goes on from a checkpoint.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base import distributions, files
from fixfirst.learner import driver
from fixfirst.learner.tournament import Begin, train_in
from fixfirst.orders.order import Workflow
from fixfirst.play import evaluation
from fixfirst.policy.network import Network
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable
from fixfirst.runs import rows, sessions
from fixfirst.runs.layout import RunFiles
from fixfirst.settings.training import TrainConfig
from fixfirst.stats import intervals, pricing

TAIL = -60.0  # episodes that earn less are disasters


class Measured(NamedTuple):
    """How far a job is that is no training of the search: orders measured by cross-play, or episodes against attackers."""

    done: int


Message = str | rows.UpdateRow | Measured  # what a job tells; text: something went wrong and was dealt with
TellJob = Callable[[Message], None]


class NamedJob:
    """A job that knows its name: a result in its folder counts only if it is of this very job."""

    folder: Path

    @property
    def digest(self) -> str:
        """A hash of all that the job's result depends on; where its files are is not part of it."""
        names = [field.name for field in fields(self)]  # type: ignore[arg-type]
        facts = {name: _plain(getattr(self, name)) for name in names if name not in ("folder", "parent_policy", "attackers")}
        return files.sha256(json.dumps(facts).encode())

    def result(self) -> dict[str, Any] | None:
        """Return what the job left in its folder, if it is complete and of this very job."""
        try:
            document = files.read_document(RunFiles(self.folder).result, "result")
        except (OSError, ValueError):
            return None
        return document if document.get("job") == self.digest else None


def _plain(value: Any) -> Any:
    """Return a field of a job as JSON can say it."""
    if isinstance(value, TrainConfig):
        return value.model_dump(mode="json")
    if isinstance(value, tuple):
        return [str(part) for part in value]
    return str(value) if isinstance(value, Workflow) else value


@dataclass(frozen=True)
class BaseJob(NamedJob):
    """A training without an order, evaluated on the search's test episodes."""

    config: TrainConfig
    folder: Path
    test_episodes: int
    test_seed: int


def run_base(job: BaseJob, tell: TellJob, interrupt: object) -> bool | None:
    """Train the defender that knows no order yet."""
    with sessions.job_folder(job.folder):
        if job.result() is not None:
            driver.delete_checkpoints(job.folder)  # a kill may have come between its result and this
            return True
        started = time.perf_counter()
        with train_in(job.folder, job.config, tell, interrupt, Begin(log=False)) as training:
            if training is None:
                return None
            tested = training.evaluate("test", job.test_episodes, seed=job.test_seed)
            seconds = max(time.perf_counter() - started, training.seconds)  # the latter counts earlier sessions
            facts = {"episodes": training.episodes, "seconds": round(seconds, 3)}
            driver.conclude(job.folder, {"job": job.digest, "evaluation": asdict(tested), **facts})
        return True


class OrdersJob(NamedJob):
    """A job that plays one network under several orders."""

    config: TrainConfig
    seed: int  # of the episodes


def play_under(
    job: OrdersJob, network: Network, spec: PolicySpec, order: Workflow, prompt: Workflow, purpose: str, episodes: int
) -> evaluation.EpisodeBatch:
    """Play a policy that is told one order, the prompt, and has to keep another."""
    player = PolicyTable(network, (order,), spec=spec, prompts=(prompt,))
    return evaluation.play(player, job.config.game, episodes=episodes, seed=job.seed, purpose=purpose, workflows=(order,))


def judge_order(played: evaluation.EpisodeBatch, prompt: Workflow, config: TrainConfig) -> pricing.OrderResult:
    """Measure what was earned under an order, and how it was kept. prompt: what the policy was told."""
    (order,), returns, counts = played.rollout.workflows, played.returns, played.counts(config)
    assert counts is not None
    episodes, broken = len(returns), counts.judged - counts.compliant
    rate, error = float(broken.mean()), intervals.standard_error(broken)
    return pricing.OrderResult(
        workflow=str(order),
        prompts=(str(prompt),),
        mean=float(returns.mean()),
        standard_error=intervals.standard_error(returns),
        tail=float((returns < TAIL).mean()),
        violations=rate,
        violations_high=rate
        + distributions.normal_quantile(distributions.CONFIDENCE) * error
        + 3.0 / episodes,  # the last term: none seen in n is at most 3 / n
        compliance=_share(counts.compliant, counts.judged),
        contested=_share(counts.contested_compliant, counts.contested),
        restores=played.count("Restore"),
        removes=played.count("Remove"),
        costs=tuple(played.costs(order.scheme).mean(axis=1).tolist()),
    )


def _share(hits: np.ndarray, of: np.ndarray) -> float | None:
    total = int(of.sum())
    return int(hits.sum()) / total if total else None


def read_results(job: OrdersJob) -> list[pricing.OrderResult] | None:
    """Return what was earned under orders, if the job's folder has it."""
    if (document := job.result()) is None:
        return None
    lists = ("prompts", "costs")
    return [pricing.OrderResult(**row | {name: tuple(row[name]) for name in lists}) for row in document["results"]]


def write_results(job: OrdersJob, results: Sequence[pricing.OrderResult]) -> None:
    """Leave what was earned under orders in the job's folder."""
    document = {"job": job.digest, "results": [asdict(result) for result in results]}
    files.write_document(RunFiles(job.folder).result, "result", document)
