"""What people see while searches and trainings run, without starting any."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from approved import approve
from fake_search import ORDERS, FakeSearch, shared_search, trial
from rich.console import Console
from run_folder import update_row

from fixfirst.reporter import live
from fixfirst.reporter.live import ProgressLine, SearchView, sparkline
from fixfirst.runs.layout import WARMUP_KEY
from fixfirst.searcher.jobs import Measured
from fixfirst.searcher.strategy import Choice


def test_a_sparkline_shows_each_value_or_the_mean_of_its_share_and_a_terrible_start_does_not_flatten_the_rest():
    """Median -20, highest -14: everything below -38 is drawn as -38, so that -26 and -20 are still told apart."""
    assert sparkline([]) == ""
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([0, 0, 7, 7, 0, 0, 7, 7], width=4) == "▁█▁█"
    assert sparkline([5.0, 5.0, 5.0]) == "▁▁▁"
    assert sparkline([-900, -26, -20, -20, -14]) == "▁▅▆▆█"


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """The time, as told to whatever shows progress; it stands still unless moved."""
    now = SimpleNamespace(s=1000.0)
    monkeypatch.setattr(live.time, "monotonic", lambda: now.s)
    return now


def update(episodes):
    return update_row(episodes=episodes, env_reward=-90.0)


def separate(searches, *, quiet=False):
    """Each search has a warm-up, is asked for an order, complains, and records a trial."""
    with SearchView(several=len(searches) > 1, quiet=quiet) as view:
        for search in searches:
            view.begin(search)
        for search in searches:
            view.progress(search, WARMUP_KEY, update(50))
            number = len(search.trials)
            believed = SimpleNamespace(mean=-14.04, std=1.0)
            view.chosen(search, number, Choice(ORDERS[number], "ucb", 2.0, {ORDERS[number]: believed}))
            view.progress(search, number, f"trial {number}: its worker is gone; trying again")
            search.trials.append(trial(number, -14.0))
            view.recorded(search, search.trials[-1])


def training(clock):
    progress = ProgressLine(10_000)
    for seconds, episodes in ((60, 1_000), (5, 2_000), (5, 3_000)):
        clock.s += seconds
        progress.show(episodes, "return -90.0")


def shared(clock):
    view, search = SearchView(), shared_search()
    view.begin(search)
    for seconds, episodes in ((60, 50), (2, 2_050), (9, 11_050)):
        clock.s += seconds
        view.progress(search, 0, update(episodes))


def cross_play(clock):
    view, search = SearchView(), shared_search()
    view.begin(search)
    view.measuring(search, "measuring 24 orders", 72)
    for seconds, orders in ((0, 1), (6, 13), (6, 25)):
        clock.s += seconds
        view.progress(search, 1, Measured(orders))


def test_what_is_said_while_runs_go_on_is_what_was_approved(clock, capsys):
    """Every choice, complaint and trial is told, and how much of all budgets is used; quiet leaves complaints, and where a
    search goes on. Nothing is said of the pace before the first report: 50 episodes after a minute of compiling are no
    reason to announce a day and a half. Of cross-play, 24 orders of three trainings, the first 12 s say two a second.
    """
    two = [FakeSearch([], seed, Path(f"runs/study/b_line-{seed}")) for seed in (3, 4)]
    said = []
    for name, story in {
        "a search": lambda: separate([FakeSearch([])]),
        "two": lambda: separate(two),
        "quiet, and resumed": lambda: separate([FakeSearch([trial(0, -14.0)])], quiet=True),
        "a training": lambda: training(clock),
        "one network": lambda: shared(clock),
        "cross-play": lambda: cross_play(clock),
    }.items():
        story()
        said += [f"=== {name}", *(line.removeprefix("fixfirst: ") for line in capsys.readouterr().err.splitlines())]
    approve("progress.txt", "\n".join(said) + "\n")


@pytest.fixture
def picture(monkeypatch, capsys):
    """What a view shows in a terminal, line by line."""
    monkeypatch.setattr(live, "PatientConsole", lambda **options: Console(force_terminal=True, width=60, **options))

    def look(view):
        Console(width=60).print(view._live.get_renderable())
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    return look


def test_the_picture_shows_the_budget_and_of_every_search_what_it_does_and_each_curve(clock, picture):
    """The warm-up counts as far as it is, though `used` has it as done from the start."""
    view, searches = SearchView(several=True), [FakeSearch([], seed, Path(f"b_line-{seed}")) for seed in (3, 4)]
    for search in searches:
        view.begin(search)
        view.progress(search, WARMUP_KEY, update(50))
    view.chosen(searches[1], 0, Choice("user > op_host", "random"))
    clock.s += 1
    view.progress(searches[1], 0, update(10))
    bar, *rest = picture(view)
    assert bar.split()[-1] == "160/2,000"
    assert rest == [
        "b_line-3: learning to defend, no order yet",
        "warm-up ▁ -90.0, 50 episodes",
        "b_line-4: trial 0: user > op_host (random)",
        "trial 0 ▁ -90.0, 10 episodes: user > op_host",
    ]


def test_a_live_picture_is_as_wide_as_the_terminal_and_tells_the_time_left(clock, picture):
    progress = ProgressLine(10_000)
    for episodes in (1_000, 2_000):
        clock.s += 5
        progress.point(-90.0)
        progress.show(episodes, "return -90.0")
    bar, curve = picture(progress)
    assert re.fullmatch("━+ +2,000/10,000, 40 s left", bar) and len(bar) == 60
    assert curve == "▁▁ return -90.0"
