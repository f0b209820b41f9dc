"""Rows of CSV files: what is written is what is read; what a crash cut short, and what is no row, is dealt with."""

import re
import tracemalloc
from contextlib import closing

import pytest
from run_folder import trial_rows, update_row, write_log

from fixfirst.base.errors import RunDirError
from fixfirst.runs.csv_logs import CsvLog, read_rows
from fixfirst.runs.rows import ChoiceRow, EpisodeRow, MatrixRow, Outcome, SessionRow, Status, Trial, UpdateRow, ValueRow

ORDER = "user > op_host > op_server > enterprise > defender"
EPISODE = {"update": 1, "episode": 7, "env_reward": -3.0, "alignment": 0.5, "total_reward": -2.5, "repairs": 2}
SESSION = {"started": "2026-01-02T03:04:05+00:00", "seconds": 1.5, "workers": 2, "choosing_seconds": 0.1}
ROWS = (
    Trial(id=0, workflow=ORDER, status=Status.ACCEPTED, episodes=200, return_mean=-14.1, return_se=1e-17),
    Trial(id=1, workflow=ORDER, status=Status.FAILED, episodes=0),
    ChoiceRow(iteration=4, round=4, how="ucb", beta=2.0, workflow=ORDER, ucb=-10.0, top1_workflow=ORDER, top1_mean=-12.5),
    update_row(trial=3, workflow=ORDER, env_reward=-14.123456789012345, compliance=None),
    EpisodeRow(trial=0, workflow='a, "b"', compliance=None, **EPISODE),
    SessionRow(outcome=Outcome.INTERRUPTED, **SESSION),
)


def read(path, kind):
    return list(read_rows(path, kind))


def write(path, *rows):
    write_log(path, type(rows[0]), rows)
    return path


@pytest.fixture
def ledger(tmp_path):
    trials = [(i, ORDER, "accepted", -14.0 - i, 0.1, 0.9, 0.9, 200, None) for i in range(4)]
    return write(tmp_path / "trials.csv", *trial_rows(trials))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row).__name__)
def test_a_row_comes_back_as_it_was_written(tmp_path, row):
    assert read(write(tmp_path / "log.csv", row, row), type(row)) == [row, row]
    assert type(row).from_values(row.values()) == row


def test_columns_are_the_reference_systems_where_it_has_them():
    expected = "Workflow_ID Workflow_Order Update Episodes Total_Episodes_Sampled Env_Reward Alignment_Bonus Total_Reward"
    expected += " Compliance Avg_Fixes Collection_Time Update_Time"
    assert UpdateRow.columns()[:12] == tuple(expected.split())
    assert Trial.columns()[:4] == ("id", "workflow", "status", "return_mean")


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("return_mean", "much", "return_mean is 'much'"),
        ("return_mean", "nan", "return_mean is 'nan'"),
        ("return_mean", "-inf", "return_mean is '-inf'"),
        ("return_mean", 1e300, "return_mean is '1e+300'"),
        ("status", "splendid", "status is 'splendid'"),
        ("id", "1.5", "id is '1.5'"),
        ("episodes", "", "episodes is ''"),
        ("episodes", "9" * 5000, f"episodes is '{'9' * 60}'"),
    ],
)
def test_a_cell_that_makes_no_sense_is_named(column, value, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        Trial.from_values(ROWS[0].values() | {column: value})


def test_texts_of_a_row_do_nothing_to_a_terminal():
    assert Trial.from_values(ROWS[0].values() | {"workflow": "\x1b[2Juser"}).workflow == "\ufffd[2Juser"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda lines: [*lines[:2], "\n", *lines[2:]], "damaged (line 3: "),
        (lambda lines: [*lines[:2], lines[2].replace(",", ',"', 1)], "damaged (line 3: "),
        (lambda lines: [lines[0].replace("id", "number"), *lines[1:]], "has other columns than this version writes"),
        (lambda lines: ["\0" * 200_000 + "\n"], "has other columns than this version writes"),
    ],
)
def test_what_is_no_row_of_this_log_is_refused(ledger, damage, says):
    ledger.write_text("".join(damage(ledger.read_text().splitlines(keepends=True))))
    before = ledger.read_bytes()
    for use in (read, CsvLog):
        with pytest.raises(RunDirError, match=rf"trials\.csv: {re.escape(says)}"):
            use(ledger, Trial)
    assert ledger.read_bytes() == before


def test_half_a_line_is_left_out_and_cut_off_before_more_is_written(ledger):
    """As a crash leaves it, in the middle of a row or of the header."""
    whole, rows = ledger.read_bytes(), read(ledger, Trial)
    for length, left in ((-20, 3), (30, 0)):
        ledger.write_bytes(whole[:length])
        assert read(ledger, Trial) == rows[:left]
        write(ledger, *rows[left:])
        assert ledger.read_bytes() == whole


def test_rows_that_are_played_again_are_cut_off_and_the_same_bytes_come_again(ledger):
    whole, rows = ledger.read_bytes(), read(ledger, Trial)
    with closing(CsvLog(ledger, Trial, lambda row: row.id < 2)) as log:
        assert log.last == rows[1]
        for row in rows[2:]:
            log.write(row)
    assert ledger.read_bytes() == whole


def test_a_file_that_is_not_there_or_empty_has_no_rows(tmp_path):
    (tmp_path / "empty.csv").touch()
    for name in ("nowhere.csv", "empty.csv"):
        assert read(tmp_path / name, Trial) == []


@pytest.mark.parametrize(
    ("name", "kind", "bound"),
    [("trials.csv", Trial, 4), ("rounds.csv", ValueRow, 16), ("league.csv", MatrixRow, 8), ("runtime.csv", SessionRow, 16)],
)
def test_a_log_that_is_too_large_is_refused_in_bounded_memory(name, kind, bound, tmp_path):
    """Half a terabyte of nothing; and a ledger is never as large as a log of all episodes may be."""
    with open(tmp_path / name, "wb") as file:
        file.truncate(2**39)
    tracemalloc.start()
    for use in (read, CsvLog):
        with pytest.raises(RunDirError, match=rf"damaged .more than {bound} MB"):
            use(tmp_path / name, kind)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**20
