"""Rows of CSV files: what is written is what is read, and what is damaged is told."""

import re

import pytest
from run_folder import trial_rows, update_row

from fixfirst.base.errors import RunDirError
from fixfirst.runs.logs import CsvLog, keep_rows, read_rows
from fixfirst.runs.rows import ChoiceRow, EpisodeRow, Outcome, SessionRow, Status, Trial, UpdateRow

ORDER = "user > op_host > op_server > enterprise > defender"
UPDATE = update_row(
    trial=3,
    workflow=ORDER,
    update=1,
    episodes=100,
    sampled=700,
    env_reward=-14.123456789012345,
    compliance=None,
    collection_s=0.5,
    update_s=0.25,
)
INTERVAL = {"return_low": -14, "return_high": -14.2}
ROWS = (
    Trial(id=0, workflow=ORDER, status=Status.ACCEPTED, episodes=200, return_mean=-14.1, return_se=1e-17, **INTERVAL),
    Trial(id=1, workflow=ORDER, status=Status.FAILED, episodes=0),
    ChoiceRow(iteration=4, round=4, how="ucb", beta=2.0, workflow=ORDER, ucb=-10.0, top1_workflow=ORDER, top1_mean=-12.5),
    UPDATE,
    EpisodeRow(
        trial=0,
        workflow="a, b",
        update=1,
        episode=7,
        env_reward=-3.0,
        alignment=0.5,
        total_reward=-2.5,
        compliance=None,
        repairs=2,
    ),
    SessionRow(
        started="2026-01-02T03:04:05+00:00", outcome=Outcome.INTERRUPTED, seconds=1.5, workers=2, choosing_seconds=0.1
    ),
)


def write(path, *rows):
    log = CsvLog(path, type(rows[0]))
    for row in rows:
        log.write(row)
    log.close()
    return path


@pytest.fixture
def ledger(tmp_path):
    return write(
        tmp_path / "trials.csv", *trial_rows([(i, ORDER, "accepted", -14.0, 0.1, 0.9, 0.9, 200, None) for i in (0, 1)])
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row).__name__)
def test_a_row_comes_back_as_it_was_written(tmp_path, row):
    assert read_rows(write(tmp_path / "log.csv", row, row), type(row)) == [row, row]


def test_columns_are_the_reference_systems_where_it_has_them():
    assert UpdateRow.columns()[:12] == (
        "Workflow_ID",
        "Workflow_Order",
        "Update",
        "Episodes",
        "Total_Episodes_Sampled",
        "Env_Reward",
        "Alignment_Bonus",
        "Total_Reward",
        "Compliance",
        "Avg_Fixes",
        "Collection_Time",
        "Update_Time",
    )
    assert Trial.columns()[:4] == ("id", "workflow", "status", "return_mean")


def test_plots_have_the_names_of_stable_baselines_and_leave_out_what_is_not_known():
    plotted = dict(UPDATE.plotted())
    assert plotted["rollout/ep_rew_mean"] == UPDATE.env_reward and "rollout/compliance" not in plotted


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("accepted,-14.0", "accepted,much", "return_mean is 'much'"),
        ("accepted,-14.0", "accepted,nan", "return_mean is 'nan'"),
        ("accepted,-14.0", "splendid,-14.0", "status is 'splendid'"),
        ("1,user", "1.5,user", "id is '1.5'"),
        (",200,", ",,", "episodes is ''"),
        (",200,", ",-200,", "episodes is -200, not in 0..9.0072e+15"),
        (",200,", ",2_0,", "episodes is '2_0'"),
        ("accepted,-14.0", "accepted,1e308", "return_mean is 1e308, not in -1e+09..1e+09"),
        ("accepted,-14.0,0.1", "accepted,-14.0,-0.1", "return_se is -0.1, not in 0..1e+09"),
        ("accepted,-14.0", "accepted,-13.0", "it does not fit its checksum"),
        ("accepted,", "non_compliant,", "it does not fit its checksum"),
        (",2.25,", ",-inf,", "seconds is '-inf'"),
        ("user > op_host", "user" * 1000, f"workflow is {'user' * 15!r}"),
    ],
)
def test_a_damaged_cell_is_named_and_with_a_listener_only_its_row_is_lost(ledger, old, new, said):
    first, second = ledger.read_text().splitlines()[1:]
    ledger.write_text("\n".join([",".join(Trial.columns()), first, second.replace(old, new), first, ""]))
    with pytest.raises(RunDirError) as raised:
        read_rows(ledger, Trial)
    assert str(raised.value) == f"{ledger}: line 3 is damaged ({said})"
    told = []
    assert [row.id for row in read_rows(ledger, Trial, told.append)] == [0, 0]
    assert told == [str(raised.value)]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda line: line.partition(",")[2], f"it has {len(Trial.columns()) - 1} cells, not {len(Trial.columns())}"),
        (lambda line: line.replace("user", "user" * 100_000), "field larger than field limit"),
        (lambda line: line.replace("user", '"user'), "unexpected end of data"),
    ],
)
def test_a_damaged_line_is_told(ledger, damage, said):
    header, first, second = ledger.read_text().splitlines()
    ledger.write_text("\n".join([header, first, damage(second), ""]))
    with pytest.raises(RunDirError, match=re.escape(f"line 3 is damaged ({said}")):
        read_rows(ledger, Trial)
    told = []
    assert len(read_rows(ledger, Trial, told.append)) == len(told) == 1


def test_every_changed_digit_of_the_ledger_is_noticed_but_those_of_the_clock(ledger):
    whole = ledger.read_text()
    for place in (place for place, letter in enumerate(whole) if letter.isdigit() and place > whole.index("\n")):
        ledger.write_text(whole[:place] + str((int(whole[place]) + 1) % 10) + whole[place + 1 :])
        told = []
        kept = read_rows(ledger, Trial, told.append)
        assert len(told) == 1 or [row.seconds for row in kept] != [2.25, 2.25]


def test_a_ledger_without_checksums_is_read_and_not_written_on(ledger):
    """As earlier versions wrote it."""
    rows = read_rows(ledger, Trial)
    ledger.write_text("\n".join(line.rpartition(",")[0] for line in ledger.read_text().splitlines()) + "\n")
    assert read_rows(ledger, Trial) == rows
    with pytest.raises(RunDirError, match="was begun by an earlier version"):
        CsvLog(ledger, Trial)


def test_an_accepted_trial_without_a_return_is_damage():
    cells = ROWS[0].values() | {"return_mean": None}
    with pytest.raises(ValueError, match="checksum"):
        Trial.from_values(cells)
    del cells["check"]
    with pytest.raises(ValueError, match="it is accepted and has no return"):
        Trial.read({column: "" if value is None else str(value) for column, value in cells.items()})


def test_half_a_line_is_left_out_and_cut_off_before_more_is_written(ledger):
    """As a crash leaves it."""
    whole, (first, second) = ledger.read_bytes(), read_rows(ledger, Trial)
    ledger.write_bytes(whole[:-20])
    assert read_rows(ledger, Trial) == [first]
    write(ledger, second)
    assert ledger.read_bytes() == whole


@pytest.mark.parametrize("kind", [ChoiceRow, SessionRow])
def test_the_header_of_another_version_is_told_before_anything_is_written(ledger, kind):
    before = ledger.read_bytes()
    for use in (lambda: read_rows(ledger, kind), lambda: CsvLog(ledger, kind)):
        with pytest.raises(RunDirError, match=r"trials\.csv: has other columns than this version writes"):
            use()
    assert ledger.read_bytes() == before


def test_a_file_that_is_not_there_or_empty_has_no_rows(tmp_path):
    assert read_rows(tmp_path / "nowhere.csv", Trial) == []
    (tmp_path / "empty.csv").touch()
    assert read_rows(tmp_path / "empty.csv", Trial) == []


def test_rows_are_kept_letter_by_letter(ledger):
    """A number that another version wrote otherwise stays as it stands."""
    ledger.write_text(ledger.read_text().replace("accepted,-14.0,", "accepted,-14.000,"))
    before = ledger.read_text().splitlines()
    keep_rows(ledger, Trial, lambda trial: trial.id == 1)
    assert ledger.read_text().splitlines() == [before[0], before[2]]
