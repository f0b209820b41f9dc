"""Whatever is changed in a finished run, whoever reads it says so, or says what it said before."""

import random
import re
import shutil

import pytest
from searches import SHARED, TRAINING

import fixfirst as ff
from fixfirst.cli import main

FEW = ["--red-agent", "b_line", "--episodes", "3", "--quiet"]
READING = {
    "report": lambda run, out: ["report", run, "--format", "md", "--out", f"{out}/report.md"],
    "runs": lambda run, out: ["runs", run.parent, "--json"],
    "evaluate": lambda run, out: ["evaluate", run, "--steps", "5", *FEW],
    "compare": lambda run, out: ["compare", run, "sleep", "--steps", "5", *FEW],
    "watch": lambda run, out: ["watch", run, "--steps", "5", "--out", f"{out}/replay.html", *FEW[:-1]],
    "export": lambda run, out: ["export", run, "--to", "numpy", "--out", f"{out}/policy.npz"],
    "resume": lambda run, out: ["resume", run, "--quiet", "--no-report"],
    "attacked": lambda run, out: ["evaluate", "sleep", "--red-agent", attacker_of(run), "--steps", "5", *FEW[2:]],
    "exploit": lambda run, out: ["evaluate", run, "--exploit", *EXPLOIT],
}
EXPLOIT = ["--exploit-starts", "last", "--exploit-episodes", "50", "--steps", "5", "--episodes", "3", "--quiet"]
READERS = [*READING][:7]
PROGRESS = re.compile(r"fixfirst: (drawing figures|compiling).*\n")  # said only where it takes long
NO_RECORDS = (".lock", "report.html", "tb", "replays")  # pages, and what other programs write


def records(run):
    """The files of a run that fixfirst reads; of several trials, those of the first."""
    found = {path.relative_to(run) for path in run.rglob("*") if path.is_file()}
    later = {path for path in found if path.parts[0] in ("trials", "replicates") and int(path.parts[1]) > 0}
    return sorted(path for path in found - later if not {*path.parts} & {*NO_RECORDS})


def readers(path):
    """The commands that open such a file, and some that do not; drawing a page takes long."""
    if path.name.startswith("policy"):
        return [command for command in READERS if command != "runs"]
    return ["runs", "evaluate", "resume", *(["report"] if path.parts[0] not in ("trials", "replicates") else [])]


def attacker_of(run):
    """A folder with an attacker, in a run."""
    return next(place for name in ("", "exploit", "attackers/000") if ((place := run / name) / "red.json").exists())


def change_a_digit(data, rng):
    """The bytes with one digit that is another; of arrays, whatever byte it is."""
    places = [place for place, byte in enumerate(data) if byte in b"0123456789"]
    place = rng.choice(places)
    return data[:place] + b"%d" % ((data[place] - 48 + rng.randint(1, 9)) % 10) + data[place + 1 :]


def reading(command, run, out, capsys):
    """Exit code, what is said, and what is written, by name. Who would work on the run gets a copy."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    if command in ("resume", "exploit"):
        run = shutil.copytree(run, out / "copy")
    code = main([str(word) for word in READING[command](run, out)])
    said = PROGRESS.sub("", "".join(capsys.readouterr()))
    return code, said, {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def is_told(found, path):
    """Is it refused, or does a report say which file it leaves out?"""
    code, said, pages = found
    page = b"".join(pages.values()).decode(errors="replace")
    words = ("damaged", "cannot be read", "was changed", "has other columns")
    return code != 0 or any(path.name in text and any(word in text for word in words) for text in (said, page))


@pytest.mark.parametrize("kind", ["searched", "answered", "trained"])
def test_a_changed_digit_in_any_file_is_told_or_changes_nothing(kind, request, tmp_path, capsys):
    run, rng, seen = tmp_path / "runs" / "run", random.Random(kind), 0
    shutil.copytree(request.getfixturevalue(kind), run)
    usual = {command: reading(command, run, tmp_path / "out", capsys) for command in READERS}
    assert [command for command, (code, _, _) in usual.items() if code != 0] in ([], ["resume"])
    for path in records(run):
        good = (run / path).read_bytes()
        (run / path).write_bytes(change_a_digit(good, rng))
        for command in readers(path):
            found = reading(command, run, tmp_path / "out", capsys)
            assert found == usual[command] or is_told(found, path), f"{command} after a change of {path}: {found}"
            seen += found != usual[command]
        (run / path).write_bytes(good)
    assert seen > len(records(run))  # not only where nobody looks


LEAGUE = {"updates": 2, "life": 2, "live": 1, "frozen": 1, "responses": 1, "response_episodes": 50, "envs": 5}
LEAGUE |= {"script_envs": 5, "matrix_episodes": 5, "quiet": True}
QUIET = {"quiet": True, "report": False, "workers": 1}
SMALL = SHARED | {"total_episodes": 120, "rounds": 1}


def make_exploited(run):
    ff.train(out=run, **TRAINING, quiet=True)
    ff.exploit(run, out=run / "exploit", starts=("scratch",), train_episodes=50, episodes=3, max_steps=5, quiet=True)


def make_survey(folder):
    for seed in (1, 2):
        ff.search(out=folder / f"n{seed}", **SMALL | {"red_agent": "meander", "scenario": f"generate:{seed}"}, **QUIET)


KINDS = {
    "league": (
        lambda run: ff.train_league(out=run, **LEAGUE),
        ("report", "runs", "evaluate", "compare", "export", "resume", "attacked"),
    ),
    "attacker": (
        lambda run: ff.train_red("sleep", total_episodes=50, max_steps=5, out=run, quiet=True),
        ("report", "evaluate", "attacked"),
    ),
    "exploited": (make_exploited, ("report", "attacked", "exploit")),
    "study": (lambda run: ff.search(out=run, seeds=2, **SMALL, **QUIET), ("report", "resume")),
    "survey": (make_survey, ("report",)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_digit_of_attackers_leagues_studies_and_surveys_is_told_or_changes_nothing(kind, tmp_path, capsys):
    make, commands = KINDS[kind]
    run, rng, seen = tmp_path / "runs" / "run", random.Random(kind), 0
    make(run)
    usual = {command: reading(command, run, tmp_path / "out", capsys) for command in commands}
    for path in records(run):
        if "replicates" in path.parts or path.parts[0] in ("b_line-1", "n2"):
            continue
        good = (run / path).read_bytes()
        (run / path).write_bytes(change_a_digit(good, rng))
        for command in commands:
            found = reading(command, run, tmp_path / "out", capsys)
            assert found == usual[command] or is_told(found, path), f"{command} after a change of {path}: {found}"
            seen += found != usual[command]
        (run / path).write_bytes(good)
    assert seen > 1  # not only where nobody looks


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("searched", "trials.csv"),
        ("searched", "gp_sampling_log.csv"),
        ("searched", "training_log.csv"),
        ("searched", "runtime.csv"),
        ("trained", "training_log.csv"),
        ("trained", "runtime.csv"),
    ],
)
def test_rows_cut_off_a_finished_log_are_noticed(kind, name, request, tmp_path, capsys):
    """At the end of a line, where every row that is left fits its checksum."""
    run = shutil.copytree(request.getfixturevalue(kind), tmp_path / "runs" / "run")
    lines = (run / name).read_bytes().splitlines(keepends=True)
    (run / name).write_bytes(b"".join(lines[:-1]))
    _, said, pages = reading("report", run, tmp_path / "out", capsys)
    page = b"".join(pages.values()).decode()
    assert f"{name}: damaged (its last rows are missing)" in (said + page).replace("\\", "")


def test_a_policy_that_the_result_does_not_tell_of_is_noticed_by_a_report(trained, tmp_path, capsys):
    run = shutil.copytree(trained, tmp_path / "runs" / "run")
    ff.train(out=tmp_path / "other", **TRAINING | {"seed": 5}, quiet=True)
    for name in ("policy.json", "policy.safetensors"):
        shutil.copy(tmp_path / "other" / name, run / name)
    _, said, _ = reading("report", run, tmp_path / "out", capsys)
    assert "policy.json is of another policy than the one that result.json tells of" in said
