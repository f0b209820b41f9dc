"""What commands print in the end, on a terminal and as JSON."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from answers import a_swap, an_answer
from approved import approve
from fake_search import FakeSearch, shared_search, trial
from rich.console import Console

from fixfirst.reporter import page
from fixfirst.reporter.results import print_searches, searches_document
from fixfirst.reporter.screen import show
from fixfirst.runs.rows import Status
from fixfirst.stats.answer import Adaptive


def under_attack():
    swaps = (a_swap("enterprise", "user", 80.0, 70.0, 90.0), a_swap("enterprise", "op_server", 5.0))
    return Adaptive(3, 2, swaps, an_answer().orders, (("enterprise", "user"),), (-15.0, -15.5, -16.0, -17.0, -18.0, -19.0))


NOT_PASSED, NO_RETURN = trial(0, -9.0, status=Status.NON_COMPLIANT), trial(1, None, status=Status.FAILED)
PRINTED = {
    "separate": [FakeSearch([trial(0, -14.0), trial(1, -20.0), trial(2, -9.0, status=Status.NON_COMPLIANT)])],
    "nothing passed": [FakeSearch([NOT_PASSED, NO_RETURN])],
    "study": [FakeSearch([trial(0, -14.0 - seed), trial(1, -30.0)], seed, Path(f"runs/b_line-{seed}")) for seed in (3, 4)],
    "answer": [shared_search(answer=an_answer(adaptive=under_attack()))],
    "no answer yet": [shared_search(answer=an_answer(replicates=1, swaps=(a_swap("enterprise", "user", 4.3),)))],
    "answers": [shared_search(answer=an_answer(), folder=Path(f"runs/both/b_line-{seed}")) for seed in range(2)],
}


def test_what_searches_end_with_is_what_was_approved_on_a_terminal_and_as_json(capsys):
    documents = {}
    for name, searches in PRINTED.items():
        print(f"=== {name}")
        folder = Path("runs/study" if len(searches) > 1 else "runs/mine")
        print_searches(searches, folder, Path("runs/mine/report.html"))
        documents[name] = searches_document(searches, folder)
    approve("searches.txt", re.sub(r" +$", "", capsys.readouterr().out, flags=re.M))
    rounded = json.loads(json.dumps(documents), parse_float=lambda text: round(float(text), 9))
    approve("searches.json", json.dumps(rounded, indent=1) + "\n")


def lines_of_ranking(width):
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        show(FakeSearch([trial(number, -14.0 - number) for number in range(3)]).table(), console=console)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_narrow_terminal_breaks_orders_between_words_and_shows_the_last_columns_below():
    heads = ["order", "return", "95 % interval", "verdict", "compliance", "contested", "trial", "episodes"]
    wide, middle, tiny = (lines_of_ranking(width) for width in (140, 80, 40))
    parts = [[re.split(r"  +", line.strip()) for line in lines if "order " in line] for lines in (wide, middle, tiny)]
    assert parts[:2] == [[heads], [heads[:5], ["order", *heads[5:]]]] and parts[2][0] == heads[:2] and len(wide) == 4
    for lines, width in ((middle, 80), (tiny, 40)):
        assert {*" ".join(lines).split()} == {*" ".join(wide).split()} and max(map(len, lines)) <= width
        assert [returns for line in lines if (returns := re.findall(r" (-1[456]\.00)", line))]


@pytest.mark.parametrize(("display", "terminal", "opened"), [("", True, 0), (":0", False, 0), (":0", True, 1)])
def test_a_page_is_opened_only_where_somebody_can_see_it(monkeypatch, tmp_path, display, terminal, opened):
    asked = []
    monkeypatch.setattr(page.sys, "platform", "linux")
    monkeypatch.setattr(page.webbrowser, "open", asked.append)
    monkeypatch.setattr(page.sys, "stdout", SimpleNamespace(isatty=lambda: terminal))
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    page.open_page(tmp_path / "x.html")
    assert asked == [(tmp_path / "x.html").as_uri()] * opened
