"""Where the trials of a search run: flags of `fixfirst search` and `resume` that do not change the result."""

from dataclasses import dataclass
from typing import Literal

from fixfirst.base import arguments
from fixfirst.base.errors import ConfigError


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
        arguments.check_int("--workers", self.workers, 0, wrong=ConfigError)
        if self.cpus_per_trial is not None:
            arguments.check_int("--cpus-per-trial", self.cpus_per_trial, wrong=ConfigError)
        texts = isinstance(self.executor, str | None) and isinstance(self.ray_address, str | None)
        if not texts or self.executor not in (None, "inline", "process", "ray"):
            raise ConfigError(f"unknown executor {self.executor!r} or Ray address {self.ray_address!r}")
        if self.executor == "inline" and self.workers > 1:
            raise ConfigError(f"--executor inline runs one trial at a time, --workers {self.workers} asks for more")
        if self.executor != "ray" and (self.ray_address, self.cpus_per_trial) != (None, None):
            raise ConfigError("--ray-address and --cpus-per-trial need --executor ray")
        if self.workers and self.ray_address not in (None, "local"):
            raise ConfigError("--workers is for this machine; how many trials run on a Ray cluster follows from its CPUs")
