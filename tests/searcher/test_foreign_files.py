"""Files of another run, whole, in the place of this one's: refused in one line, or made anew with the same bytes."""

import shutil

import pytest
from searches import RANDOM

import fixfirst as ff
from fixfirst.cli import main

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
CHANGING = ("manifest.json", "runtime.csv", ".lock", "result.json")  # they say when


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
        ("separate", "trials.csv", "trials.csv: line 2 is damaged .it does not fit its checksum, or is of another run"),
        ("shared", "rounds.csv", "rounds.csv: line 2 is damaged .it does not fit its checksum, or is of another run"),
        ("separate", "config.toml", "config.toml: was changed since the run began"),
        ("train", "result.json", "result.json: cannot be read .it is of another run"),
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


def test_one_row_of_another_ledger_is_noticed(taken, made):
    run = taken("separate")
    lines = (run / "trials.csv").read_text().splitlines(keepends=True)
    lines[2] = (made["separate"][1] / "trials.csv").read_text().splitlines(keepends=True)[2]
    (run / "trials.csv").write_text("".join(lines))
    with pytest.raises(ff.RunDirError, match="line 3 is damaged"):
        ff.load_run(run)


def test_rows_of_the_version_before_which_named_no_run_are_read(taken):
    run = taken("separate")
    path = run / "manifest.json"
    path.write_text(path.read_text().replace("run_sha256", "something"))
    with pytest.raises(ff.RunDirError, match="line 2 is damaged"):  # the rows were written with it
        ff.load_run(run)
    plain = [
        ",".join(map(str, ("" if c is None else c for c in trial.cells()))) for trial in ff.load_run(taken_again(run)).trials
    ]
    (run / "trials.csv").write_text("\n".join([(run / "trials.csv").read_text().splitlines()[0], *plain, ""]))
    assert len(ff.load_run(run).trials) == len(plain) > 0


def taken_again(run):
    """Beside it, with its manifest as it was."""
    again = shutil.copytree(run, run.parent / "again")
    path = again / "manifest.json"
    path.write_text(path.read_text().replace("something", "run_sha256"))
    return again


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


@pytest.mark.parametrize("name", ["config_sha256", "run_sha256"])
def test_a_manifest_that_lost_what_its_run_is_known_by_is_refused(taken, name):
    """Else what is written from then on would be that of no run."""
    run = taken("train", without=UNFINISHED["train"])
    text = (run / "manifest.json").read_text()
    place = text.index(f'"{name}": "') + len(name) + 5
    digit = "0" if text[place] != "0" else "1"
    for changed in (text.replace(name, "something"), text[:place] + digit + text[place + 1 :]):
        (run / "manifest.json").write_text(changed)
        with pytest.raises(ff.RunDirError, match=r"manifest.json: damaged, its hashes|config.toml: was changed"):
            ff.resume(run, quiet=True)


def test_swapped_replicates_do_not_give_another_answer(taken, made):
    """Their checkpoints and results name what they are of."""
    run = taken("shared", without=UNFINISHED["shared"])
    (run / "replicates" / "0").rename(run / "0")
    (run / "replicates" / "1").rename(run / "replicates" / "0")
    (run / "0").rename(run / "replicates" / "1")
    with pytest.raises(ff.RunDirError, match="its policy is damaged or of another run, and so is its checkpoint"):
        ff.resume(run, **QUIET)
