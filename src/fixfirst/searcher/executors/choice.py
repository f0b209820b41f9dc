"""Which executor: as asked, or as fits the machine and the searches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fixfirst.base.errors import ConfigError, quoted
from fixfirst.base.jobs import available_cores
from fixfirst.searcher.config import SearchConfig
from fixfirst.searcher.executors.contract import Executor
from fixfirst.searcher.executors.inline import InlineExecutor
from fixfirst.searcher.executors.process import ProcessExecutor
from fixfirst.searcher.executors.ray import RayExecutor


@dataclass(frozen=True)
class Execution:
    """Where trials run; the result does not depend on it."""

    workers: int = 0
    """Trials side by side; 0 = as many as there are cores and trials; 1 = in this process."""

    executor: Literal["inline", "process", "ray"] | None = None
    """inline (this process), process (worker processes; default with several workers) or ray (a cluster, docs/scale.md)."""

    ray_address: str | None = None
    """With --executor ray: local (default: a cluster of this machine alone), auto, or the address of a running cluster."""

    cpus_per_trial: int | None = None
    """With --executor ray: CPUs a trial asks for. Default 1; with --backend cyborg or workers, all of the smallest node."""

    def __post_init__(self) -> None:
        cpus = 1 if self.cpus_per_trial is None else self.cpus_per_trial
        for name, value in (("--workers", self.workers), ("--cpus-per-trial", cpus)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise ConfigError(f"{name} must be a whole number, got {quoted(value)}")
        texts = isinstance(self.executor, str | None) and isinstance(self.ray_address, str | None)
        if not texts or self.executor not in (None, "inline", "process", "ray"):
            raise ConfigError(f"unknown executor {quoted(self.executor)} or Ray address {quoted(self.ray_address)}")
        if self.workers < 0:
            raise ConfigError(f"--workers must be at least 0, got {self.workers}")
        if self.executor == "inline" and self.workers > 1:
            raise ConfigError(f"--executor inline runs one trial at a time, --workers {self.workers} asks for more")
        if self.executor != "ray" and (self.ray_address, self.cpus_per_trial) != (None, None):
            raise ConfigError("--ray-address and --cpus-per-trial need --executor ray")
        if self.cpus_per_trial is not None and self.cpus_per_trial < 1:
            raise ConfigError(f"--cpus-per-trial must be at least 1, got {self.cpus_per_trial}")
        if self.workers and self.ray_address not in (None, "local"):
            raise ConfigError("--workers is for this machine; how many trials run on a Ray cluster follows from its CPUs")


def make_executor(execution: Execution, configs: Sequence[SearchConfig], interrupt: object) -> Executor:
    """For as many trials as the searches can have side by side, unless told otherwise."""
    plain = all(config.training.game.backend == "simulator" for config in configs)  # else worlds have processes of their own
    if execution.executor == "ray":
        cpus = execution.cpus_per_trial or (1 if plain else 0)
        address = execution.ray_address or "local"
        return RayExecutor(address, workers=execution.workers, cpus_per_job=cpus, interrupt=interrupt)
    side_by_side = sum(config.side_by_side for config in configs)
    workers = execution.workers or (min(available_cores(), side_by_side) if plain else 1)
    if execution.executor == "inline" or (execution.executor is None and workers == 1):
        return InlineExecutor(interrupt)
    return ProcessExecutor(workers, interrupt)
