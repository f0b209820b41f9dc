"""The files of a report: names are text, figures are what their tables say, and the same run gives the same bytes."""

import csv
import json
import re
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from run_folder import write_search, write_training

from fixfirst.base.tables import Table
from fixfirst.cli import main
from fixfirst.orders.order import all_workflows
from fixfirst.reporter import figures
from fixfirst.reporter.page import escaped
from fixfirst.reporter.report import read_run, report
from fixfirst.stats.across_seeds import ranking_table


@pytest.fixture
def search(tmp_path):
    return write_search(tmp_path / "run")


ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def test_whatever_a_run_holds_is_shown_as_text(tmp_path):
    name = ATTACK.replace("/", "")
    folder = write_search(tmp_path / name, command=ATTACK, red_agent=ATTACK, note=ATTACK + "]]>&amp;\u202e")
    for folders in ([folder], [folder, write_training(tmp_path / "plain")]):
        text = report(folders, tmp_path / "out.html").path.read_text()
        assert "<img" not in text and text.count("<script>") == 1  # our own
        assert ATTACK in unescape(text)
        text = report(folders, tmp_path / "out.md", form="md").path.read_text()
        assert not re.search(r"(?<!\\)<(img|script)", re.sub(r"\n    .*", "", text))  # indented: code
    assert escaped("<b> | *x* [y](z) &lt;\nnew") == r"\<b\> \| \*x\* \[y\](z) &amp;lt; new"


def test_no_terminal_page_or_picture_obeys_the_name_of_a_folder(tmp_path, capsys):
    name = "a\x1b[31m$b$*c*\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
    folder = write_training(tmp_path / name)
    for runs in ([folder], [folder, write_training(tmp_path / "other", red_agent="meander")]):
        out = tmp_path / "out.md"
        assert main(["report", *map(str, runs), "--format", "md", "--out", str(out), "--figures", str(tmp_path / "f")]) == 0
        assert r"\$b\$\*c\*" in out.read_text() and "\x1b" not in out.read_text()
        ElementTree.parse(tmp_path / "f" / "learning.svg")  # raises where it is not XML
    for command in (["report", folder], ["runs", tmp_path], ["runs", tmp_path / name / "entrants"]):
        (tmp_path / name / "entrants").mkdir(exist_ok=True)
        assert main([*map(str, command)]) == 0
        printed = capsys.readouterr()
        assert "a\ufffd[31m$b$*c*\ufffd" in printed.out and "\x1b" not in printed.out + printed.err


def read_table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_every_figure_comes_as_svg_png_and_csv_which_markdown_links_and_the_same_run_gives_the_same_bytes(search, tmp_path):
    first, again = (report([search], tmp_path / f"{n}/run.md", figures=tmp_path / f"f{n}", form="md") for n in (1, 2))
    names = {figure.name for figure in first.document.figures}
    assert names == {"ranking", "learning"} and len(first.figures) == 3 * len(names)
    for name in names:
        ElementTree.parse(tmp_path / "f1" / f"{name}.svg")
        assert (tmp_path / "f1" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert read_table(tmp_path / "f1" / f"{name}.csv")
    links = re.findall(r"!\[.*?\]\(<(.*?)>\)", first.path.read_text())
    assert len(links) == 2 and all(link.startswith("../f1/") and (tmp_path / "1" / link).is_file() for link in links)
    assert [path.read_bytes() for path in first.figures] == [path.read_bytes() for path in again.figures]
    assert first.path.read_text().replace("../f1/", "../f2/") == again.path.read_text()
    pages = [report([search], tmp_path / f"{n}.html").path.read_bytes() for n in (1, 2)]
    assert pages[0] == pages[1]


def test_what_is_drawn_is_what_the_csv_says(search, tmp_path):
    """In the SVG, the dots of the ranking lie on a line through (return, place): two fix the scale, the others must fit."""
    run = read_run(search)
    figure = figures.ranking(ranking_table(run.ranked_trials, run.trials, all_tried=True))
    figure.write(tmp_path)
    rows = read_table(tmp_path / "ranking.csv")
    assert [float(row["mean"]) for row in rows] == [-14.0, -14.2, -30.0, -22.0]
    assert [row["verdict"] for row in rows] == ["may be best", "may be best", "worse", "not accepted"]
    svg = (tmp_path / "ranking.svg").read_text()
    drawn = re.findall(r"<title>([^\n]*)\n.*?</title>.*?<use [^>]*x=\"([\d.]+)\"", svg, re.S)
    assert [unescape(order) for order, _ in drawn] == [row["order"] for row in rows]
    at, value = np.array([float(x) for _, x in drawn]), np.array([float(row["mean"]) for row in rows])
    scale = (at[0] - at[2]) / (value[0] - value[2])
    assert at - at[0] == pytest.approx(scale * (value - value[0]), abs=1e-3)
    inline = figure.inline()  # follows the page's colours; files are printed in ink
    assert "currentColor" in inline and "#010203" not in inline + svg and "#222222" in svg
    assert "http-equiv" not in inline and "<metadata" not in inline


def test_a_large_run_stays_well_below_3_megabytes(tmp_path):
    """All 120 orders with 100 updates each: 1.2 million episodes."""
    texts = map(str, all_workflows())
    trials = [(i, text, "accepted", -14.0 - i / 10, 0.1, 0.99, 0.98, 10_000, None) for i, text in enumerate(texts)]
    assert report([write_search(tmp_path / "run", trials)]).path.stat().st_size < 1_500_000


def test_a_figure_draws_no_more_than_a_reader_can_look_at(monkeypatch):
    """A file may name as many swaps as it likes; the numbers below the figure are all there."""
    monkeypatch.setattr(figures, "_MOST_ROWS", 3)
    monkeypatch.setattr(figures, "_MOST_MARKS", 2)
    rows = tuple((f"row {n}", 1.0, None, None, (1.0, 1.0, 1.0)) for n in (0, 0, 0, 1, 2, 3, 4, 5))
    drawn = figures.differences("x", Table(("name", "n", "low", "high", "trainings"), rows), "n", "label")
    assert drawn.svg.count("<title>row") == 4 + 2 * 4 and "row 2" in drawn.svg and "row 3" not in drawn.svg
    assert len(drawn.table.rows) == 8


def test_nothing_to_show_and_a_report_that_cannot_be_written_are_one_line_and_exit_code_2(search, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    outs = [[tmp_path / "empty"], [tmp_path / "nowhere"], [search, "--out", search / "trials.csv" / "x.html"]]
    for arguments in outs:
        assert main(["report", *map(str, arguments)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"fixfirst: {arguments[-1].parent if len(arguments) > 1 else arguments[0]}")


def test_the_command_writes_beside_the_run_and_tells_people_and_programs_where(search, tmp_path, capsys):
    assert main(["report", str(search)]) == 0
    assert capsys.readouterr().out.strip() == str(search / "report.html")
    assert (search / "report.html").read_text().startswith("<!doctype html>")
    arguments = ["report", str(search), "--out", str(tmp_path / "x.html"), "--figures", str(tmp_path / "f"), "--json"]
    assert main(arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["headline"].startswith("Fix op_host before user") and printed["report"] == str(tmp_path / "x.html")
    assert printed["runs"] == [str(search)] and len(printed["figures"]) == 6 and printed["missing"] == []
