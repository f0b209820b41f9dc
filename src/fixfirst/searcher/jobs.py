"""Any job of a search, in its own folder on this machine."""

from typing import Any

from fixfirst.searcher.replicate import CrossJob, RoundJob, run_cross, run_round
from fixfirst.searcher.trial import Tell, TrialJob, WarmupJob, run_trial, run_warmup

Job = TrialJob | WarmupJob | RoundJob | CrossJob


def run_job(job: Job, tell: Tell, interrupt: object) -> Any:
    """What it returns is false if it was interrupted."""
    if isinstance(job, TrialJob):
        return run_trial(job, tell, interrupt)
    if isinstance(job, WarmupJob):
        return run_warmup(job, tell, interrupt)
    return run_round(job, tell, interrupt) if isinstance(job, RoundJob) else run_cross(job, tell, interrupt)
