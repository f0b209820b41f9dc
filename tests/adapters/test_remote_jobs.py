"""Jobs that travel with their files leave what they would have left here, and nothing else."""

import pytest
from searches import LONG, Switch, checkpoints

from fixfirst.adapters import remote_jobs
from fixfirst.adapters.remote_jobs import collect_files, pack_job, run_remote
from fixfirst.base.errors import ConfigError, RunDirError
from fixfirst.searcher.jobs import BaseJob, run_base
from fixfirst.settings.search import search_config


def warmup(folder):
    """Return the first job of a search: six updates."""
    return BaseJob(search_config(**LONG).warmup_config(), folder, 20, 0)


def run_elsewhere(job, tell=lambda message: None, interrupt=False):
    """Run a job as on another machine, and return its result and the names of the files that came back."""
    result, files = run_remote(pack_job(run_base, job), tell, interrupt)
    collect_files(job.folder, files)
    return result, set(files)


def test_a_job_that_ran_elsewhere_leaves_the_files_of_one_that_ran_here(tmp_path):
    home, away = warmup(tmp_path / "home"), warmup(tmp_path / "away")
    assert run_base(home, lambda message: None, interrupt=False)
    result, files = run_elsewhere(away)
    assert result and files == {"policy.json", "policy.safetensors", "result.json"}
    for name in ("policy.json", "policy.safetensors"):
        assert (away.folder / name).read_bytes() == (home.folder / name).read_bytes()


def test_an_interrupted_job_elsewhere_sends_its_checkpoint_and_goes_on_from_it(tmp_path):
    job, interrupt, messages = warmup(tmp_path / "job"), Switch(), []

    def tell(message):
        messages.append(message)
        interrupt.thrown = len(messages) == 3

    result, _ = run_elsewhere(job, tell, interrupt)
    assert result is None and checkpoints(job.folder) == 2
    first = min(int(path.stem[-8:]) for path in job.folder.glob("checkpoint-*.json"))
    messages.clear()
    result, _ = run_elsewhere(job, messages.append)
    assert result and checkpoints(job.folder) == 0
    assert min(message.episodes for message in messages) > 4 * first  # updates of 4; those before were not played again


@pytest.mark.parametrize("name", ["../../ledger.csv", "/etc/passwd", "checkpoint-1.json", "policy.pkl", ".lock"])
def test_only_files_of_a_trial_are_taken_from_the_cluster(tmp_path, name):
    with pytest.raises(RunDirError, match="a file that no trial writes"):
        collect_files(tmp_path, {name: b"", "policy.json": b"{}"})
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_with_other_versions_is_refused(tmp_path, monkeypatch):
    job = pack_job(run_base, warmup(tmp_path / "job"))
    monkeypatch.setattr(remote_jobs.manifest, "versions", lambda: job.versions | {"torch": "1.0"})
    with pytest.raises(ConfigError, match=r"the cluster has torch 1\.0, the driver "):
        run_remote(job, lambda message: None, interrupt=False)
