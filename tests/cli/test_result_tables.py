"""Results leave as tables: CSV with all digits, LaTeX that can be pasted, DataFrames where pandas is installed."""

import csv
import sys

import pytest

import fixfirst as ff
from fixfirst.base.tables import INTERVAL, Table

LATEX = r"""\begin{tabular}{lrr}
\toprule
order & mean & 95 \% interval \\
\midrule
a\_b $>$ c & -1.23 & [-2.00, -1.00] \\
\bottomrule
\end{tabular}
"""


def test_a_table_is_escaped_and_rounded_for_latex_and_whole_for_csv():
    table = Table(("order", "mean", "low", "high"), (("a_b > c", -1.23456, -2.0, -1.0),), ("order", "mean", INTERVAL))
    assert table.to_latex() == LATEX
    assert table.to_csv() == "order,mean,low,high\na_b > c,-1.23456,-2.0,-1.0\n"
    assert '<td>a_b &gt; c</td><td class="number" data-value="-1.23456">\u22121.23</td>' in table._repr_html_()


def test_a_data_frame_has_the_rows_and_columns_of_the_csv_if_pandas_is_there(monkeypatch):
    rows = ff.evaluate("sleep", red_agent="b_line,meander", steps=10, episodes=3, quiet=True)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ff.ConfigError, match=r"to_pandas\(\) needs pandas, which is not installed: pip install pandas"):
            rows.to_pandas()
    pytest.importorskip("pandas")
    frame = rows.to_pandas()
    assert frame.shape == (2, len(rows.table().columns)) and frame["mean"].tolist() == [row.mean for row in rows]


def test_a_search_is_a_table_of_its_orders_and_for_people_of_its_swaps_too(answered):
    run = ff.load_run(answered)
    orders = list(csv.DictReader(run.to_csv().splitlines()))
    cells = [(row["order"], float(row["mean"]), float(row["restores"])) for row in orders]
    assert cells == [(order.workflow, order.mean, order.restores) for order in run.answer.orders]
    assert run.to_latex().count(r"\begin{tabular}") == 2
    assert run._repr_html_().count("<tr>") == 2 + len(orders) + len(run.answer.swaps)
    study = ff.StudyRun(answered, (run, run))
    assert len(study.table().rows) == 2 * len(orders) and study.table().columns[:3] == ("run", "seed", "order")


def test_a_published_search_and_a_training_are_tables(searched, trained):
    run = ff.load_run(searched)
    assert [row[0] for row in run.table().rows] == [str(row.workflow) for row in run.ranking.rows]
    training = ff.load_run(trained)
    (row,) = csv.DictReader(training.to_csv().splitlines())
    assert float(row["mean"]) == training.evaluation.mean and repr(training).endswith(f": {training.evaluation.mean:.2f})")
