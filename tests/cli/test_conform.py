"""`fixfirst conform`: counts, the first mismatch in full, coincidences, and files that are no recordings."""

import gzip
import json
import resource
from pathlib import Path

from searches import one_line

from fixfirst.cli import main

FOLDER = Path(__file__).parent.parent / "conformance"
OBSERVATION = 3  # position in a step


def first_episode():
    with gzip.open(FOLDER / "b_line.jsonl.gz", "rt") as lines:
        return json.loads(next(lines))


def write(path, episode):
    path.write_text(json.dumps(episode) + "\n")
    return path


def test_conform_prints_counts_and_exits_0(capsys):
    assert main(["conform", str(FOLDER / "sleep.jsonl.gz"), str(FOLDER / "sleep_green.jsonl.gz")]) == 0
    total = capsys.readouterr().out.splitlines()[-1].split()
    assert total == ["total", "35", "episodes", "1,470", "steps", "0", "mismatches"]


def test_conform_shows_the_first_mismatch_in_full_and_exits_1(tmp_path, capsys):
    episode = first_episode()
    episode["steps"][1][OBSERVATION] = "0000000000000"
    path = write(tmp_path / "wrong.jsonl", episode)
    assert main(["conform", str(path)]) == 1
    out = capsys.readouterr().out
    assert "first mismatch: wrong.jsonl, episode 0, step 2: observation of User1: expected '0000', got '1000'" in out
    assert main(["conform", str(path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["mismatches"] == 1 and document["first_mismatch"]["host"] == "User1"


def with_pid_reused(tmp_path, step, wrong_step=6):
    """A recording whose reward differs at `wrong_step` and whose process id came back at `step`."""
    episode = first_episode() | {"pid_reused": step}
    episode["steps"][wrong_step - 1][4] -= 1
    return write(tmp_path / "pid.jsonl", episode)


def test_a_coincidence_of_process_ids_is_told_and_no_mismatch(tmp_path, capsys):
    assert main(["conform", str(with_pid_reused(tmp_path, step=6))]) == 0
    assert "coincidence of process ids, which the model leaves out" in capsys.readouterr().out
    assert main(["conform", str(with_pid_reused(tmp_path, step=7)), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["mismatches"] == 1 and document["coincidences"] == 0


def test_a_recording_that_unpacks_to_gigabytes_is_refused_in_bounded_memory(tmp_path, capsys):
    """64 MB of brackets and blanks, in one line, are 64 kB packed."""
    path = tmp_path / "bomb.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b"[" + b" " * (2**20 - 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert main(["conform", str(path)]) == 2
    one_line(capsys, "line 1: not a recorded episode (more than 4 MB)")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024  # kB
