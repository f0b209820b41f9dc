"""Beginning a run: under its lock, in a folder of its own, and never twice; readers keep nobody from it."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from fixfirst.base.errors import RunDirError
from fixfirst.base.files import write_atomically
from fixfirst.reporter.run import Run
from fixfirst.runs.layout import Kind
from fixfirst.runs.manifest import changed_since, create_run, create_study, machine, read_manifest, read_settings
from fixfirst.runs.sessions import locked

NO_SUCH_PROCESS = 2**22 + 1  # Linux has no larger number than 2**22


def begin(folder, seed=0):
    create_run(folder, Kind.SEARCH, {"seed": seed})


def test_of_many_that_begin_at_once_one_is_let_in_and_keeps_its_seed(tmp_path):
    for number in range(20):
        folder, together = tmp_path / str(number), threading.Barrier(8)

        def start(seed, folder=folder, together=together):
            together.wait()
            with suppress(RunDirError):
                begin(folder, seed)
                return seed

        with ThreadPoolExecutor(8) as pool:
            let_in = [seed for seed in pool.map(start, range(8)) if seed is not None]
        assert let_in == [read_settings(folder / "config.toml")["seed"]] == [read_manifest(folder)["seed"]]


def test_nobody_begins_in_a_folder_that_somebody_holds(tmp_path):
    with locked(tmp_path), pytest.raises(RunDirError, match="is in use by another process"):
        begin(tmp_path)
    begin(tmp_path)


@pytest.mark.parametrize(
    ("names", "is_free"),
    [
        ([".lock"], True),
        ([".lock", "config.toml"], True),
        ([".lock", f".config.toml.{NO_SUCH_PROCESS}.tmp"], True),
        (["config.toml"], False),
        (["thesis.txt"], False),
        ([".lock", "thesis.txt"], False),
        ([".lock", "manifest.json"], False),
    ],
)
def test_a_beginning_that_was_cut_short_is_begun_again_and_what_is_somebodys_is_not_written_over(tmp_path, names, is_free):
    for name in names:
        (tmp_path / name).touch()
    if is_free:
        begin(tmp_path)
    else:
        with pytest.raises(RunDirError, match="exists already"):
            begin(tmp_path)
    after = [".lock", "config.toml", "manifest.json"] if is_free else names
    assert sorted(path.name for path in tmp_path.iterdir()) == after


def test_a_study_that_was_cut_short_can_be_begun_again(tmp_path):
    for seed in (0, 1):
        with pytest.raises(KeyboardInterrupt), create_study(tmp_path, 0, ["a-0", "b-0"]):
            begin(tmp_path / "a-0", seed)
            raise KeyboardInterrupt
    (tmp_path / "a-0" / "trials.csv").touch()
    with pytest.raises(RunDirError, match="exists already"), create_study(tmp_path, 0, ["a-0", "b-0"]):
        pass


def test_a_lock_that_leads_elsewhere_is_refused_and_nothing_happens_there(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "mine").write_text("all of it")
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError), locked(tmp_path / "run"):
        pass
    assert (tmp_path / "mine").read_text() == "all of it"


def test_whoever_has_the_lock_clears_what_a_kill_left_half_written(tmp_path):
    mine = [".hidden", ".notes.tmp", f".report.html.{os.getppid()}.tmp", "config.toml.7.tmp"]
    for name in (".trials.csv.7.tmp", f".policy.json.{os.getpid()}.tmp", f".report.html.{NO_SUCH_PROCESS}.tmp", *mine):
        (tmp_path / name).touch()
    with locked(tmp_path):
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([".lock", *mine])


def test_a_page_that_is_written_again_clears_what_a_kill_left_of_it_and_nothing_is_written_through_a_link(tmp_path):
    (tmp_path / "mine").write_text("all of it")
    (tmp_path / f".report.html.{NO_SUCH_PROCESS}.tmp").touch()
    (tmp_path / f".report.html.{os.getpid()}.tmp").symlink_to(tmp_path / "mine")
    write_atomically(tmp_path / "report.html", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"mine": b"all of it", "report.html": b"new"}


def test_what_is_not_as_when_a_run_was_begun_is_named(tmp_path):
    begin(tmp_path)
    manifest = read_manifest(tmp_path)
    assert changed_since(manifest) == [] == changed_since({})
    manifest["versions"]["numpy"], manifest["machine"]["cpu"], manifest["source_sha256"] = "1.0", "vax", "of yesterday"
    numpy, cpu, source = changed_since(manifest)
    assert numpy.startswith("numpy ") and numpy.endswith(", was 1.0")
    assert cpu == f"cpu {machine()['cpu']}, was vax" and source == "another source code"


def test_reading_a_finished_run_asks_for_no_lock(trained, monkeypatch):
    monkeypatch.setattr("fixfirst.base.files.is_taken", lambda descriptor: 1 / 0)
    assert Run(trained).status == "finished"
