"""Jobs for machines that do not see our disk: a job travels with all that it reads, and its files come back with its result.

There it runs in a scratch folder; only the driver writes into the run directory.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fixfirst.base.errors import ConfigError, RunDirError
from fixfirst.policy.file import policy_folder
from fixfirst.runs.files import versions, write_atomically
from fixfirst.runs.layout import CHECKPOINT_PREFIX, EPISODE_LOG, POLICY_JSON, POLICY_TENSORS, RESULT, TRAINING_LOG
from fixfirst.runs.lock import locked
from fixfirst.searcher.jobs import Job, run_job
from fixfirst.searcher.replicate import RoundJob
from fixfirst.searcher.trial import ORPHAN_WAIT_S, Tell, TrialJob

Files = dict[str, bytes]
# All that a trial may leave in its folder. The names come from another machine: nothing else is written.
TRIAL_FILES = re.compile(
    "|".join(map(re.escape, (POLICY_TENSORS, POLICY_JSON, TRAINING_LOG, EPISODE_LOG, RESULT)))
    + rf"|{CHECKPOINT_PREFIX}\d{{8}}\.(json|safetensors)"
)


@dataclass(frozen=True)
class Parcel:
    """A job with all that it reads: its parent's policy, and what its folder holds of an interrupted attempt."""

    job: Job
    parent: Files
    begun: Files
    versions: dict[str, str]  # of what packed it; other ones would give other bytes


def pack(job: Job) -> Parcel:
    parent: Files = {}
    if isinstance(job, TrialJob | RoundJob) and job.parent_policy is not None:
        folder = policy_folder(job.parent_policy)
        parent = {name: (folder / name).read_bytes() for name in (POLICY_TENSORS, POLICY_JSON)}
    job.folder.mkdir(parents=True, exist_ok=True)
    with locked(job.folder, wait_s=ORPHAN_WAIT_S):
        return Parcel(job, parent, _read_files(job.folder), versions())


def run_parcel(parcel: Parcel, tell: Tell, interrupt: object) -> tuple[Any, Files]:
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
        elif isinstance(job, RoundJob):
            job = replace(job, parent_policy=parent)
        return run_job(job, tell, interrupt), _read_files(folder)


def unpack(job: Job, files: Files) -> None:
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
