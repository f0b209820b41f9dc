"""A file of a run that cannot be read, or does not fit its checksum, is one line that names it, whoever reads the run."""

import shutil

import pytest

from fixfirst.cli import main

READING = {
    "report": lambda run, out: ["report", run, "--format", "md", "--out", out / "report.md"],
    "runs": lambda run, out: ["runs", run.parent, "--json"],
    "evaluate": lambda run, out: ["evaluate", run, "--red-agent", "b_line", "--steps", "5", "--episodes", "3", "--quiet"],
    "resume": lambda run, out: ["resume", run, "--quiet", "--no-report"],
}
CHECKSUM = "cannot be read (its document_sha256 is not"
CHANGED = "was changed since the run began"


def another_digit(data):
    at = max(data.rfind(digit) for digit in b"0123456789" if digit in data)
    return data[:at] + (b"7" if data[at : at + 1] != b"7" else b"8") + data[at + 1 :]


def half(data):
    return data[: len(data) // 2]


def missing(data):
    return None


def no_number(data):
    header, first, rest = data.split(b"\n", 2)
    return b"\n".join((header, first[: first.rfind(b",")] + b",much", rest))


def other_columns(data):
    return b"when,what\n" + data


@pytest.mark.parametrize(
    ("kind", "file", "damage", "reading", "says"),
    [
        ("trained", "manifest.json", another_digit, "report runs resume", CHECKSUM),
        ("trained", "config.toml", another_digit, "report resume", CHANGED),
        ("trained", "config.toml", half, "report runs resume", "cannot be read as TOML"),
        ("trained", "result.json", another_digit, "report runs", CHECKSUM),
        ("trained", "policy.json", another_digit, "report evaluate", CHECKSUM),
        ("trained", "policy.safetensors", another_digit, "evaluate", "is not the one"),
        ("trained", "training_log.csv", no_number, "report", "damaged (line 2: Distinct_Rows is 'much')"),
        ("trained", "runtime.csv", other_columns, "report runs resume", "has other columns than this version writes"),
        ("answered", "answer.json", another_digit, "report runs resume", CHECKSUM),
        ("answered", "rounds.csv", no_number, "report resume", "damaged (line 2: last is 'much')"),
        ("answered", "best/policy.json", half, "evaluate", "cannot be read"),
        ("searched", "trials.csv", no_number, "report runs resume", "damaged (line 2: seconds is 'much')"),
        ("searched", "trials/0000/policy.safetensors", half, "report", ""),
        ("searched", "manifest.json", missing, "report", "is not a run directory (manifest.json is missing)"),
        ("searched", "config.toml", missing, "report", "config.toml: no such file"),
        ("searched", "trials.csv", missing, "report", "trials.csv has no finished trial"),
        ("searched", "training_log.csv", missing, "report", "training_log.csv has no rows: no learning curves"),
        ("searched", "gp_sampling_log.csv", missing, "report", "gp_sampling_log.csv has no rows"),
        ("searched", "runtime.csv", missing, "report", "runtime.csv is not there"),
        ("searched", "best/policy.json", missing, "report", "best/ holds no policy"),
        ("searched", "warmup/result.json", missing, "report", "warmup/result.json is not there"),
        ("trained", "result.json", missing, "report", "result.json is not there: the final evaluation is not done"),
    ],
)
def test_a_damaged_or_missing_file_is_one_line_that_names_it(kind, file, damage, reading, says, request, tmp_path, capsys):
    run = shutil.copytree(request.getfixturevalue(kind), tmp_path / "runs" / "run")
    data = damage((run / file).read_bytes())
    (run / file).unlink()
    if data is not None:
        (run / file).write_bytes(data)
    for command in reading.split():
        code = main([str(word) for word in READING[command](run, tmp_path)])
        printed = capsys.readouterr()
        page = (tmp_path / "report.md").read_text().replace("\\", "") if code == 0 and command == "report" else ""
        text = printed.out + printed.err + page
        assert says in text and (not says or file in text or code == 0), f"{command}: {text}"
        assert code in (0, 2) and "Traceback" not in text
