"""What all jobs of searches have in common: a job holds all it needs, its folder all it leaves, and one function runs it."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from fixfirst.base import errors, files
from fixfirst.learner import checkpoint
from fixfirst.learner.tournament import train_in
from fixfirst.learner.training_run import Begin
from fixfirst.orders.order import Workflow
from fixfirst.policy.policy_file import load_policy
from fixfirst.policy.trained import Policy
from fixfirst.runs import layout, manifest, rows
from fixfirst.settings.training import TrainConfig


class JobProgress(NamedTuple):
    """How far a job is."""

    episodes: int
    env_reward: float
    compliance: float | None
    done: int = 0  # orders measured by cross-play, or episodes of attackers; 0: the search's own training


Message = str | JobProgress  # what a job tells: that something went wrong and was dealt with, or how far it is
TellJob = Callable[[Message], None]
R = TypeVar("R")


@dataclass(frozen=True)
class SearchJob(Generic[R]):
    """A job with its folder. A result in there counts only if it is of this very job, and of the policy beside it."""

    NOT_FACTS: ClassVar = ("folder", "parent_policy", "attackers", "start", "state")  # other fields have their hashes
    ENDS_TRAINING: ClassVar = True  # are checkpoints in its folder of no use when it is done?

    folder: Path

    def work(self, tell: TellJob, interrupt: object) -> tuple[R, dict[str, Any]] | None:
        """Return the result, and as a JSON document; None if interrupted, from where it goes on by a checkpoint."""
        raise NotImplementedError

    def read(self, document: dict[str, Any]) -> R:
        """Return the result that a document holds. Raises ValueError, KeyError, TypeError or ours if it is none."""
        raise NotImplementedError

    @cached_property
    def digest(self) -> str:
        """A hash of all that the result depends on."""
        facts = {field.name: _plain(getattr(self, field.name)) for field in fields(self) if field.name not in self.NOT_FACTS}
        return files.sha256(json.dumps(facts).encode())

    def finished(self) -> R | None:
        """Return the result in the folder, if there is one that counts."""
        try:
            document = files.read_document(self.folder / layout.RESULT, "result")
            policy = document.get(_POLICY_HASH)
            is_own = document["job"] == self.digest and policy in (None, _policy_hash(self.folder))
            return self.read(document) if is_own else None
        except (OSError, ValueError, KeyError, TypeError, errors.FixfirstError):
            return None


_POLICY_HASH = "policy_sha256"


def run_job(job: SearchJob[R], tell: TellJob, interrupt: object) -> R | None:
    """Return the result of a job, from its folder if it is there; None if interrupted."""
    with manifest.job_folder(job.folder):
        result = job.finished()
        if result is None:
            worked = job.work(tell, interrupt)
            if worked is None:
                return None
            result, document = worked
            policy = {_POLICY_HASH: hashed} if (hashed := _policy_hash(job.folder)) else {}
            files.write_document(job.folder / layout.RESULT, "result", {"job": job.digest, **document, **policy})
        if job.ENDS_TRAINING:
            checkpoint.delete(job.folder)  # only now; or a kill came between
        return result


def _policy_hash(folder: Path) -> str | None:
    """Return the hash of the policy in a folder; None if it has none."""
    path = folder / layout.POLICY_TENSORS
    return files.sha256(files.read_file(path)) if path.exists() else None


def _plain(value: Any) -> Any:
    """Return a field of a job as JSON can say it."""
    if isinstance(value, TrainConfig):
        return value.model_dump(mode="json")
    if isinstance(value, Workflow):
        return str(value)
    return list(map(str, value)) if isinstance(value, tuple) else value


def progress_of(message: str | rows.UpdateRow) -> Message:
    """Return what a job tells of an update; a complaint stays as it is."""
    if isinstance(message, str):
        return message
    return JobProgress(message.episodes, message.env_reward, message.compliance)


@dataclass(frozen=True)
class BaseJob(SearchJob[Policy]):
    """A training without an order, evaluated on test episodes: what trials inherit, and replicates begin from."""

    config: TrainConfig
    test_episodes: int
    test_seed: int

    def work(self, tell: TellJob, interrupt: object) -> tuple[Policy, dict[str, Any]] | None:
        """Train to the end; return the policy."""
        started = time.perf_counter()
        with train_in(self.folder, self.config, lambda m: tell(progress_of(m)), interrupt, Begin(logs=())) as training:
            if training is None:
                return None
            tested = training.evaluate("test", self.test_episodes, seed=self.test_seed)
            seconds = max(time.perf_counter() - started, training.seconds)  # the latter counts earlier sessions
            facts = {"evaluation": asdict(tested), "episodes": training.episodes, "seconds": round(seconds, 3)}
            return load_policy(self.folder), facts

    def read(self, document: dict[str, Any]) -> Policy:
        """Return the policy in the folder."""
        return load_policy(self.folder)
