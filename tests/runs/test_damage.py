"""Whatever is changed in a finished run, whoever reads it says so, or says what it said before."""

import random
import re
import shutil

import pytest

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
}
PROGRESS = re.compile(r"fixfirst: (drawing figures|compiling).*\n")  # said only where it takes long
NO_RECORDS = (".lock", "report.html", "tb", "replays")  # pages, and what other programs write


def records(run):
    """The files of a run that fixfirst reads; of several trials, those of the first."""
    found = {path.relative_to(run) for path in run.rglob("*") if path.is_file()}
    later = {path for path in found if path.parts[0] in ("trials", "replicates") and int(path.parts[1]) > 0}
    return sorted(path for path in found - later if not {*path.parts} & {*NO_RECORDS})


def readers(path):
    """The commands that open such a file, and some that do not; drawing a page, and opening a policy, take long."""
    if path.name.startswith("policy"):
        return [command for command in READING if command not in ("report", "runs")]
    return ["runs", "evaluate", "resume", *(["report"] if path.parts[0] not in ("trials", "replicates") else [])]


def change_a_digit(data, rng):
    """The bytes with one digit that is another; of arrays, whatever byte it is."""
    places = [place for place, byte in enumerate(data) if byte in b"0123456789"]
    place = rng.choice(places)
    return data[:place] + b"%d" % ((data[place] - 48 + rng.randint(1, 9)) % 10) + data[place + 1 :]


def reading(command, run, out, capsys):
    """Exit code, what is said, and what is written, by name. Who would work on the run gets a copy."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    if command == "resume":
        run = shutil.copytree(run, out / "copy")
    code = main([str(word) for word in READING[command](run, out)])
    said = PROGRESS.sub("", "".join(capsys.readouterr()))
    return code, said, {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def is_told(found, path):
    """Is it refused, or does a report say which file it leaves out?"""
    code, said, pages = found
    page = b"".join(pages.values()).decode(errors="replace")
    return code != 0 or any(
        path.name in text and ("damaged" in text or "cannot be read" in text or "was changed" in text)
        for text in (said, page)
    )


@pytest.mark.parametrize("kind", ["searched", "answered", "trained"])
def test_a_changed_digit_in_any_file_is_told_or_changes_nothing(kind, request, tmp_path, capsys):
    run, rng, seen = tmp_path / "runs" / "run", random.Random(kind), 0
    shutil.copytree(request.getfixturevalue(kind), run)
    usual = {command: reading(command, run, tmp_path / "out", capsys) for command in READING}
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
