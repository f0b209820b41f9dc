"""The scheduler that a search is given."""

from collections.abc import Sequence

from fixfirst.base import errors, jobs
from fixfirst.settings.execution import Execution
from fixfirst.settings.search import SearchConfig


def make_scheduler(
    execution: Execution, configs: Sequence[SearchConfig], interrupt: object, *, quiet: bool
) -> jobs.Scheduler:
    """Make the scheduler that was asked for, or the one that fits the machine and the jobs that searches have at a time."""
    # Worlds of other backends have processes of their own: unless asked for, there are no workers beside them.
    plain = all(config.training.game.backend == "simulator" for config in configs)
    if execution.executor == "ray":
        from fixfirst.adapters import ray, remote_jobs  # an extra

        cpus, address = execution.cpus_per_trial or (1 if plain else 0), execution.ray_address or "local"
        cluster = ray.RayScheduler(address, workers=execution.workers, cpus_per_job=cpus, interrupt=interrupt)
        if not quiet:
            errors.note(ray.who_reaches(address))
        return remote_jobs.RemoteScheduler(cluster)
    at_a_time = sum(config.side_by_side for config in configs)
    workers = execution.workers or (min(jobs.available_cores(), at_a_time) if plain else 1)
    return jobs.local_scheduler(workers, interrupt, own_processes=execution.executor == "process")
