"""Results leave as tables: CSV with all digits, LaTeX that can be pasted, DataFrames where pandas is installed."""

import csv
import io

import pytest
from approved import approve

import fixfirst as ff
from fixfirst.base.tables import INTERVAL, Table
from fixfirst.cli import main

SMALL = ["--episodes", "10", "--red-agent", "b_line", "--steps", "10"]


def test_a_table_is_escaped_and_rounded_for_latex_and_whole_for_csv():
    table = Table(("order", "mean", "low", "high"), (("a_b > c", -1.23456, -2.0, -1.0),), ("order", "mean", INTERVAL))
    assert table.to_latex() == "\n".join(
        [
            r"\begin{tabular}{lrr}",
            r"\toprule",
            r"order & mean & 95 \% interval \\",
            r"\midrule",
            r"a\_b $>$ c & -1.23 & [-2.00, -1.00] \\",
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )
    assert table.to_csv() == "order,mean,low,high\na_b > c,-1.23456,-2.0,-1.0\n"
    assert '<td>a_b &gt; c</td><td class="number" data-value="-1.23456">\u22121.23</td>' in table._repr_html_()


def test_pandas_is_asked_for_only_when_somebody_asks(monkeypatch):
    import sys

    rows = ff.evaluate("sleep", red_agent="b_line", steps=10, episodes=3, quiet=True)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ff.ConfigError, match=r"to_pandas\(\) needs pandas, which is not installed: pip install pandas"):
        rows.to_pandas()


def test_a_data_frame_has_the_rows_and_columns_of_the_csv():
    pandas = pytest.importorskip("pandas")
    rows = ff.evaluate("sleep", red_agent="b_line,meander", steps=10, episodes=3, quiet=True)
    frame = rows.to_pandas()
    assert frame.shape == (2, len(rows.table().columns)) and frame["mean"].tolist() == [row.mean for row in rows]
    assert isinstance(frame, pandas.DataFrame)


ORDER = ["--workflow", "critical_first"]
COMMANDS = {
    "evaluate": (["evaluate", "react-restore", *SMALL], 1),
    "evaluate-order": (["evaluate", "react-restore", *SMALL, *ORDER], 1),
    "leaderboard": (["evaluate", "sleep", "--leaderboard", "--episodes", "10"], 7),
    "compare": (["compare", "react-restore", "random", *SMALL], 1),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_commands_print_and_write_as_latex_is_what_was_approved(name, tmp_path, capsys):
    command, rows = COMMANDS[name]
    assert main([*command, "--csv", str(tmp_path / "t.csv"), "--latex", str(tmp_path / "t.tex")]) == 0
    printed = "".join(line.rstrip() + "\n" for line in capsys.readouterr().out.splitlines())
    approve(f"{name}.txt", f"{printed}\n{(tmp_path / 't.tex').read_text()}")
    assert len(list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text())))) == rows
    assert main([*command, "--csv", str(tmp_path / "nowhere" / "t.csv")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_search_is_a_table_of_its_orders_and_for_people_of_its_swaps_too(answered, tmp_path):
    run = ff.load_run(answered)
    orders = list(csv.DictReader(io.StringIO(run.to_csv(tmp_path / "orders.csv"))))
    assert [row["order"] for row in orders] == [order.workflow for order in run.answer.orders]
    assert [float(row["mean"]) for row in orders] == [order.mean for order in run.answer.orders]
    assert [float(row["restores"]) for row in orders] == [order.restores for order in run.answer.orders]
    assert run.to_latex().count(r"\begin{tabular}") == 2
    assert run._repr_html_().count("<tr>") == 2 + len(orders) + len(run.answer.swaps)
    study = ff.StudyRun(answered, (run, run))
    assert len(study.table().rows) == 2 * len(orders) and study.table().columns[:3] == ("run", "seed", "order")


def test_a_published_search_and_a_training_are_tables(searched, trained):
    run = ff.load_run(searched)
    assert [row[0] for row in run.table().rows] == [str(row.workflow) for row in run.ranking.rows]
    training = ff.load_run(trained)
    (row,) = csv.DictReader(io.StringIO(training.to_csv()))
    assert float(row["mean"]) == training.evaluation.mean and repr(training).endswith(f": {training.evaluation.mean:.2f})")
