"""Files of another run, whole, in the place of this one's: refused in one line, or made anew with the same bytes."""

import shutil
import tarfile
from pathlib import Path

import pytest
from searches import RANDOM

import fixfirst as ff
from fixfirst.cli import main
from fixfirst.reporter.report import report_document
from fixfirst.reporter.run_list import summarise_run
from fixfirst.runs.layout import find_runs

QUIET = {"quiet": True, "workers": 1, "report": False}
SHARED = {
    "max_steps": 20,
    "n_envs": 4,
    "total_episodes": 120,
    "replicates": 2,
    "rounds": 3,
    "round_orders": 2,
    "initial_orders": 2,
    "base_episodes": 12,
    "selection_episodes": 4,
    "measure_episodes": 8,
    "tensorboard": False,
}
TINY = {"n_envs": 4, "max_steps": 10, "total_episodes": 12, "quiet": True, "tensorboard": False}
CHANGING = ("manifest.json", "runtime.csv", ".lock", "result.json", "end.json")  # they say when


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """By kind: a run, and one that differs in its seed only."""
    folder = tmp_path_factory.mktemp("made")
    kinds = {
        "separate": lambda **k: ff.search(**RANDOM, **QUIET, **k),
        "shared": lambda **k: ff.search(**SHARED, **QUIET, **k),
    }
    kinds["train"] = lambda **k: ff.train(**TINY, **k)
    return {kind: [make(out=folder / f"{kind}{seed}", seed=seed).folder for seed in (0, 1)] for kind, make in kinds.items()}


def contents(folder):
    ours = (path for path in folder.rglob("*") if path.is_file() and path.name not in CHANGING)
    return {str(path.relative_to(folder)): path.read_bytes() for path in ours if path.suffix != ".csv"}


@pytest.fixture
def taken(made, tmp_path):
    """A copy of a run with some files of the other; without: those of its end, so that there is something to go on with."""

    def take(kind, *names, without=()):
        run, other = shutil.copytree(made[kind][0], tmp_path / "run"), made[kind][1]
        for name in names:
            if (other / name).is_dir():
                shutil.rmtree(run / name)
                shutil.copytree(other / name, run / name)
            else:
                shutil.copy(other / name, run / name)
        for name in without:
            (run / name).unlink()
        return run

    return take


UNFINISHED = {"separate": (), "shared": ("answer.json", "runtime.csv"), "train": ("runtime.csv",)}


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("separate", "trials.csv", "trials.csv: damaged .line 2 does not fit its checksum, or is of another run"),
        ("shared", "rounds.csv", "rounds.csv: damaged .line 2 does not fit its checksum, or is of another run"),
        ("separate", "gp_sampling_log.csv", "gp_sampling_log.csv: damaged .line 2 does not"),
        ("separate", "training_log.csv", "training_log.csv: damaged .line 2 does not"),
        ("separate", "runtime.csv", "runtime.csv: damaged .line 2 does not"),
        ("separate", "config.toml", "config.toml: was changed since the run began"),
        ("train", "result.json", "result.json: cannot be read .it is of another run"),
        ("train", "manifest.json", "config.toml: was changed since the run began"),
        ("train", "policy.safetensors", "result.json: cannot be read .policy.safetensors is not the policy it tells of"),
    ],
)
def test_what_a_run_goes_on_from_is_refused(taken, kind, name, says):
    run = taken(kind, name, without=UNFINISHED[kind])
    with pytest.raises(ff.RunDirError, match=says):
        ff.resume(run, **QUIET if kind != "train" else {"quiet": True})


def test_an_answer_is_refused_by_all_who_read_it(taken, capsys):
    run = taken("shared", "answer.json")
    for verb in (ff.resume, ff.load_run):
        with pytest.raises(ff.RunDirError, match=r"answer.json: cannot be read .it is of another run"):
            verb(run)
    assert main(["runs", str(run.parent)]) == 0 and "of another run" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", ["trials.csv", "gp_sampling_log.csv", "training_log.csv"])
def test_one_row_of_another_run_is_noticed_before_anything_is_written(taken, made, name):
    run = taken("separate")
    lines = (run / name).read_text().splitlines(keepends=True)
    lines[2] = (made["separate"][1] / name).read_text().splitlines(keepends=True)[2]
    (run / name).write_text("".join(lines))
    before = (run / name).read_bytes()
    with pytest.raises(ff.RunDirError, match=f"{name}: damaged .line 3 does not fit its checksum"):
        ff.resume(run, **QUIET)
    assert (run / name).read_bytes() == before


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("separate", ["warmup"]),
        ("shared", ["replicates/0/base"]),
        ("shared", ["replicates/1/policy.json", "replicates/1/policy.safetensors"]),
        ("shared", ["replicates/1/policy.json", "replicates/1/policy.safetensors", "replicates/1/result.json"]),
    ],
)
def test_what_can_be_made_anew_is_made_anew(taken, made, kind, names):
    ends = {"separate": ("trials.csv", "gp_sampling_log.csv", "training_log.csv"), "shared": UNFINISHED["shared"]}[kind]
    run = taken(kind, *names, without=ends)
    if kind == "separate":  # from the warm-up on
        shutil.rmtree(run / "trials")
    ff.resume(run, **QUIET)
    expected, found = contents(made[kind][0]), contents(run)
    assert [name for name in expected if expected[name] != found.get(name)] == [] and expected.keys() == found.keys()


def test_swapped_replicates_do_not_give_another_answer(taken, made):
    """Their checkpoints and results name what they are of."""
    run = taken("shared", without=UNFINISHED["shared"])
    (run / "replicates" / "0").rename(run / "0")
    (run / "replicates" / "1").rename(run / "replicates" / "0")
    (run / "0").rename(run / "replicates" / "1")
    with pytest.raises(ff.RunDirError, match="its policy is damaged or of another run, and so is its checkpoint"):
        ff.resume(run, **QUIET)


# ---------------------------------------------------------------- changed digits, earlier versions

READERS = {
    "runs": lambda run: summarise_run(run),
    "report": lambda run: report_document([run]),
    "load_run": lambda run: (vars(loaded := ff.load_run(run)), loaded.best.facts),
    "resume": lambda run: ff.resume(run, quiet=True),
}


def said(read, run, capsys):
    """What somebody is told who reads a run, whether it is refused or not."""
    try:
        return str(read(run)) + capsys.readouterr().err
    except ff.FixfirstError as e:
        assert "\n" not in str(e)
        return f"refused: {e}"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["separate", "shared", "train"])
def test_a_changed_digit_of_any_file_changes_nothing_or_the_file_is_named(taken, capsys, kind, reader):
    run = taken(kind)
    read = READERS[reader] if reader != "resume" or kind == "train" else lambda folder: ff.resume(folder, **QUIET)
    expected = said(read, run, capsys)
    names = [*run.glob("*.csv"), *run.glob("*.json"), *run.glob("config.toml"), *run.glob("best/policy.json")]
    for path in sorted(names):
        whole = path.read_bytes()
        digits = [place for place, byte in enumerate(whole) if 48 <= byte < 58]
        for place in digits[:: len(digits) // 3 + 1]:
            path.write_bytes(whole[:place] + bytes([48 + (whole[place] - 47) % 10]) + whole[place + 1 :])
            told = said(read, run, capsys)
            seen = told == expected or path.name in told or "another version" in told or "best/" in told
            assert seen, (path.name, place, told)
        path.write_bytes(whole)


@pytest.mark.parametrize("kind", ["separate", "shared", "train", "study"])
def test_a_finished_run_of_the_version_before_can_be_looked_at(tmp_path, kind):
    with tarfile.open(Path(__file__).parent.parent / "support" / "old_runs.tar.gz") as old:
        old.extractall(tmp_path, filter="data")
    run = tmp_path / kind
    assert ff.load_run(run).folder == run
    for folder in find_runs(run, 1) or [run]:
        assert summarise_run(folder).status == "finished" and summarise_run(folder).mean is not None
        assert report_document([folder]).answer
    if kind in ("separate", "shared"):
        with pytest.raises(ff.RunDirError, match="was begun by an earlier version, which can finish it"):
            ff.resume(run, **QUIET)
