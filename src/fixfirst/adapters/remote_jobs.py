"""Jobs that do not see our disk: they travel with the files they read, and their files come back with the result.

A job runs in a scratch folder over there; only the driver writes into the run directory.
"""

import re
import shutil
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fixfirst.base import errors, files, jobs
from fixfirst.game import attacker_files
from fixfirst.policy import trained
from fixfirst.runs import manifest, sessions
from fixfirst.runs.layout import RunFiles

Files = dict[str, bytes]
# All that a job may leave in its folder. The names come from another machine: nothing else is written.
_PLAIN = (RunFiles.policy_tensors, RunFiles.policy_json, RunFiles.training_log, RunFiles.episode_log, RunFiles.result)
_RED = (attacker_files.RED_TENSORS, attacker_files.RED_JSON)
_CHECKPOINT = rf"{RunFiles.checkpoints}(\d{{8}}|last)\.(json|safetensors)"
_BELOW = rf"({RunFiles.entrants}|{RunFiles.attackers})/\d{{1,4}}/"
JOB_FILES = re.compile(rf"({_BELOW})?({'|'.join(map(re.escape, (*_PLAIN, *_RED)))}|{_CHECKPOINT})")


@dataclass(frozen=True)
class RemoteJob:
    """A job with all that it reads: its parent's policy, attackers, and what its folder holds of an interrupted attempt."""

    run: jobs.Job
    argument: Any  # what `run` is given; it has a `folder`
    parent: Files
    attackers: tuple[Files, ...]
    begun: Files
    versions: dict[str, str]  # of what sent it; other ones would give other bytes


def pack_job(run: jobs.Job, argument: Any) -> RemoteJob:
    """Add the files to a job."""
    parent: Files = {}
    if (policy := getattr(argument, "parent_policy", None)) is not None:
        folder = trained.policy_folder(policy)
        parent = {name: (folder / name).read_bytes() for name in (RunFiles.policy_tensors, RunFiles.policy_json)}
    attackers = [{name: (red / name).read_bytes() for name in _RED} for red in getattr(argument, "attackers", ())]
    with sessions.job_folder(argument.folder):
        return RemoteJob(run, argument, parent, tuple(attackers), _read_files(argument.folder), manifest.versions())


def run_remote(job: RemoteJob, tell: jobs.Tell, interrupt: object) -> tuple[Any, Files]:
    """Run a job in a scratch folder of this machine; return its result and the files it left."""
    for name, version in manifest.versions().items():
        if version != job.versions.get(name):
            raise errors.ConfigError(
                f"the cluster has {name} {version}, the driver {job.versions.get(name)}: results would differ; "
                "install the same versions everywhere"
            )
    with TemporaryDirectory(prefix="fixfirst-") as scratch:
        folder, parent = Path(scratch) / "trial", Path(scratch) / "parent"
        _write_files(folder, job.begun)
        _write_files(parent, job.parent)
        reds = [Path(scratch) / f"red-{number}" for number in range(len(job.attackers))]
        for place, red in zip(reds, job.attackers, strict=True):
            _write_files(place, red)
        places: dict[str, Any] = {"folder": folder} | ({"parent_policy": parent} if job.parent else {})
        places |= {"attackers": tuple(reds)} if reds else {}
        return job.run(replace(job.argument, **places), tell, interrupt), _read_files(folder)


def collect_files(folder: Path, sent: Files) -> None:
    """Write the files of a job that ran elsewhere into its own folder, as if it had run there."""
    odd = [name for name in sent if not JOB_FILES.fullmatch(name)]
    if odd:
        raise errors.RunDirError(f"{folder}: the cluster sent a file that no trial writes ({odd[0]!r})")
    with sessions.job_folder(folder):
        for old in _read_files(folder).keys() - sent.keys():
            (folder / old).unlink()
        if not any(name.startswith(RunFiles.entrants) for name in sent):
            shutil.rmtree(RunFiles(folder).entrants, ignore_errors=True)
        _write_files(folder, sent)


def _read_files(folder: Path) -> Files:
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if JOB_FILES.fullmatch(name)}


def _write_files(folder: Path, sent: Files) -> None:
    """The result last: with it the folder is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(sent, key=lambda name: name == RunFiles.result):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(folder / name, sent[name])


class RemoteScheduler:
    """A scheduler whose jobs do not see our disk, as one whose jobs do."""

    def __init__(self, scheduler: jobs.Scheduler):
        self._scheduler, self.workers = scheduler, scheduler.workers
        self._folders: dict[Hashable, Path] = {}
        self.cancel, self.close = scheduler.cancel, scheduler.close

    def submit(self, key: Hashable, job: jobs.Job, argument: Any) -> None:
        """Take on a job, with its files."""
        self._folders[key] = argument.folder
        self._scheduler.submit(key, run_remote, pack_job(job, argument))

    def wait(self, on_progress: jobs.OnProgress) -> jobs.Finished | None:
        """Block until a job has ended, and its files are here."""
        ended = self._scheduler.wait(on_progress)
        if ended is None or ended.died is not None or ended.result is None:
            return ended
        result, sent = ended.result
        collect_files(self._folders[ended.key], sent)
        return replace(ended, result=result)
