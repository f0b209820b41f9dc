"""What people see while searches run and when they are done, without starting any: pieces, lines, tables, documents."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from fixfirst.game.game_config import Game
from fixfirst.orders.order import FIVE_TYPES, all_workflows
from fixfirst.reporter import document, live
from fixfirst.reporter.live import ProgressLine, SearchView, sparkline
from fixfirst.reporter.results import print_searches, searches_document
from fixfirst.runs.layout import WARMUP_KEY
from fixfirst.runs.rows import Status, Trial
from fixfirst.searcher.jobs import JobProgress
from fixfirst.stats.across_seeds import SeedResult, rank_trials

ORDERS = list(all_workflows())


def trial(number, mean, *, order=None, status=Status.ACCEPTED):
    return Trial(
        id=number,
        workflow=str(ORDERS[number if order is None else order]),
        status=status,
        return_mean=mean,
        return_se=None if mean is None else 0.1,
        compliance=0.98,
        contested_compliance=0.9,
        episodes=10,
    )


@dataclass
class FakeSearch:
    """As much of a search as is shown."""

    trials: list
    seed: int = 0
    folder: Path = Path("runs/mine")
    scheme = FIVE_TYPES

    @property
    def config(self):
        game = Game(red_agent="b_line")
        training = SimpleNamespace(game=game)
        return SimpleNamespace(total_episodes=1000, seed=self.seed, separate=True, test_episodes=1000, training=training)

    @property
    def used(self):
        return 100 + sum(trial.episodes for trial in self.trials)

    def standings(self):
        return rank_trials(self.trials, self.scheme, 1000)

    @property
    def result(self):
        return SeedResult("b_line", self.seed, self.scheme, self.trials, self.standings())


# ---------------------------------------------------------------- pieces


def test_a_sparkline_shows_each_value_or_the_mean_of_its_share():
    assert sparkline([]) == ""
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([0, 0, 7, 7, 0, 0, 7, 7], width=4) == "▁█▁█"
    assert sparkline([5.0, 5.0, 5.0]) == "▁▁▁"


def test_a_terrible_start_does_not_flatten_the_rest_of_a_sparkline():
    """Median -20, highest -14: everything below -38 is drawn as -38, so that -26 and -20 are still told apart."""
    assert sparkline([-900, -26, -20, -20, -14]) == "▁▅▆▆█"


# ---------------------------------------------------------------- while it runs


def watch(searches, *, quiet=False):
    """Each search has a warm-up, is asked for an order, complains, and records a trial."""
    with SearchView(several=len(searches) > 1, quiet=quiet) as view:
        for search in searches:
            view.begin(search)
        for search in searches:
            view.progress(search, WARMUP_KEY, JobProgress(50, -90.0, None))
            number = len(search.trials)
            best = SimpleNamespace(mean=-14.04, std=1.0, ucb=-12.04)
            view.chosen(search, number, SimpleNamespace(workflow=ORDERS[number], how="ucb", top=(best,)))
            view.progress(search, number, f"trial {number}: its worker is gone; trying again")
            search.trials.append(trial(number, -14.0))
            view.recorded(search, search.trials[-1])
    return view


def test_one_search_tells_every_choice_complaint_and_trial(capsys):
    watch([FakeSearch([])])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"fixfirst: trial 0: {ORDERS[0]} (expects -14.0 ± 1.0, so at best -12.0)"
    assert lines[1] == "fixfirst: trial 0: its worker is gone; trying again"
    recorded = "trial 0: accepted, return -14.00 ± 0.10, compliance 98.0 %, 10 episodes"
    assert lines[2:] == [f"fixfirst: 110/1,000 episodes | {recorded}"]


def test_lines_of_several_searches_name_theirs_and_count_the_budget_of_all(capsys):
    watch([FakeSearch([], seed, Path(f"runs/study/b_line-{seed}")) for seed in (3, 4)])
    lines = capsys.readouterr().err.splitlines()
    assert (
        ["b_line-3: " in line for line in lines] == [True] * 3 + [False] * 3 == ["b_line-4: " not in line for line in lines]
    )
    assert lines[-1].startswith("fixfirst: 220/2,000 episodes | b_line-4: trial 0: accepted")


def test_quiet_leaves_complaints_and_where_a_search_goes_on(capsys):
    watch([FakeSearch([trial(0, -14.0)])], quiet=True)
    assert capsys.readouterr().err.splitlines() == [
        "fixfirst: going on after 1 trials, 110 of 1,000 episodes used",
        "fixfirst: trial 1: its worker is gone; trying again",
    ]


@pytest.fixture
def clock(monkeypatch):
    """The time, as told to whatever shows progress; it stands still unless moved."""
    now = SimpleNamespace(s=1000.0)
    monkeypatch.setattr(live.time, "monotonic", lambda: now.s)
    return now


def test_the_picture_shows_the_budget_and_of_every_search_what_it_does_and_each_curve(clock, monkeypatch, capsys):
    """The warm-up counts as far as it is, though `used` has it as done from the start."""
    monkeypatch.setattr(live, "PatientConsole", lambda **options: Console(force_terminal=True, width=100, **options))
    view, searches = SearchView(several=True), [FakeSearch([], seed, Path(f"b_line-{seed}")) for seed in (3, 4)]
    for search in searches:
        view.begin(search)
        view.progress(search, WARMUP_KEY, JobProgress(50, -90.0, None))
    view.chosen(searches[1], 0, SimpleNamespace(workflow=ORDERS[0], how="random", top=()))
    clock.s += 1
    view.progress(searches[1], 0, JobProgress(10, -80.0, None))
    Console(width=100).print(view._live.get_renderable())
    bar, *lines = (line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert bar.split()[-1] == "160/2,000"
    assert lines[:2] == ["b_line-3: learning to defend, no order yet", "warm-up ▁ -90.0, 50 episodes"]
    assert lines[2:] == [f"b_line-4: trial 0: {ORDERS[0]} (random)", f"trial 0 ▁ -80.0, 10 episodes: {ORDERS[0]}"]


def shared_search():
    config = SimpleNamespace(total_episodes=100_000, base_budget=0, num_rounds=10, can_settle=True)
    return SimpleNamespace(config=config, folder=Path("runs/mine"), used=0, rounds=0, idle=False, answer=None)


def test_a_search_says_how_long_it_will_take_only_when_it_knows_and_starting_does_not_count(clock, capsys):
    """50 episodes after a minute of compiling are no reason to announce a day and a half."""
    view, search = SearchView(), shared_search()
    view.begin(search)
    for seconds, episodes in ((60, 50), (2, 2_050), (9, 11_050)):
        clock.s += seconds
        view.progress(search, 0, JobProgress(episodes, -90.0, None))
    doing = "learning to defend, no order yet"
    assert capsys.readouterr().err.splitlines() == [
        f"fixfirst: 50/100,000 episodes | {doing}",
        f"fixfirst: 11,050/100,000 episodes, 1,000/s, 1 min 29 s left | {doing}",
    ]


def test_cross_play_says_how_many_orders_are_measured_and_how_long_the_rest_will_take(clock, capsys):
    """Three trainings, 24 orders: 72 to measure; the first 12 s say two a second."""
    view, search = SearchView(), shared_search()
    view.begin(search)
    view.measuring(search, "measuring 24 orders by cross-play", 72)
    for seconds, orders in ((0, 1), (6, 13), (6, 25)):
        clock.s += seconds
        view.progress(search, 1, JobProgress(10_000, -14.0, None, done=orders))
    said = "fixfirst: measuring 24 orders by cross-play"
    assert capsys.readouterr().err.splitlines() == [
        said,
        f"fixfirst: 0/100,000 episodes | {said[10:]}, 25 of 72 done, 24 s left",
    ]


def test_a_training_tells_its_speed_from_the_first_report_on_and_none_before(clock, capsys):
    progress = ProgressLine(10_000)
    for seconds, episodes in ((60, 1_000), (5, 2_000), (5, 3_000)):
        clock.s += seconds
        progress.show(episodes, "return -90.0")
    assert capsys.readouterr().err.splitlines() == [
        "fixfirst: 1,000/10,000 episodes | return -90.0",
        "fixfirst: 2,000/10,000 episodes, 200/s, 40 s left | return -90.0",
        "fixfirst: 3,000/10,000 episodes, 200/s, 35 s left | return -90.0",
    ]


def test_a_live_picture_is_as_wide_as_the_terminal_and_tells_the_time_left(clock, monkeypatch, capsys):
    monkeypatch.setattr(live, "PatientConsole", lambda **options: Console(force_terminal=True, width=60, **options))
    progress = ProgressLine(10_000)
    for episodes in (1_000, 2_000):
        clock.s += 5
        progress.point(-90.0)
        progress.show(episodes, "return -90.0")
    Console(width=60).print(progress._live.get_renderable())
    bar, curve = capsys.readouterr().out.splitlines()
    assert re.fullmatch("━+ +2,000/10,000, 40 s left", bar) and len(bar) == 60
    assert curve.rstrip() == "▁▁ return -90.0"


# ---------------------------------------------------------------- when it is done


def test_one_search_ends_with_its_ranking_its_verdict_and_what_to_do_next(capsys):
    search = FakeSearch([trial(0, -14.0), trial(1, -20.0), trial(2, -9.0, status=Status.NON_COMPLIANT)])
    print_searches([search], search.folder, Path("runs/mine/report.html"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "3 trials, 3 orders tried, 130 training episodes, red agent b_line, variant current"
    assert f"1 trials did not pass the gate: {ORDERS[2]}" in lines
    assert any(line.startswith(f"Best order (95 % confidence): {ORDERS[0]}, return -14.00") for line in lines)
    assert [line.split()[-1] for line in lines[-3:]] == ["runs/mine/best", "runs/mine/best", "runs/mine/report.html"]


def test_a_search_in_which_nothing_passed_says_what_to_do(capsys):
    print_searches([FakeSearch([trial(0, -9.0, status=Status.NON_COMPLIANT)])], Path("runs/mine"))
    said = "No order passed the gate: raise --total-episodes or --max-episodes, or lower --compliance-threshold."
    assert said in capsys.readouterr().out


def study():
    return [
        FakeSearch([trial(0, -14.0 - seed), trial(1, -30.0)], seed, Path(f"runs/study/b_line-{seed}")) for seed in (3, 4)
    ]


def test_several_searches_end_with_what_their_seeds_say_together(capsys):
    print_searches(study(), Path("runs/study"))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 searches, 4 trials, 240 training episodes, variant current"
    assert "red agent b_line, 2 seeds" in lines and f"seed 4: best -18.00  {ORDERS[0]}" in lines
    assert sum("tried  accepted  maybe best" in line for line in lines) == 1
    assert any(line.startswith("Over seeds: ") for line in lines)
    assert lines[-2:] == ["policies: runs/study/*/best", "next:     fixfirst evaluate runs/study/b_line-3"]


def test_documents_are_json_and_say_the_same():
    search = FakeSearch([trial(0, -14.0), trial(1, None, status=Status.FAILED)])
    told = json.loads(json.dumps(searches_document([search], search.folder, Path("x.html"))))
    assert (told["run"], told["episodes"], told["report"]) == ("runs/mine", 120, "x.html")
    assert [row["workflow"] for row in told["ranking"]] == [str(ORDERS[0])]
    assert [(row["id"], row["status"], row["return_mean"]) for row in told["trials"]] == [
        (0, "accepted", -14.0),
        (1, "failed", None),
    ]
    told = json.loads(json.dumps(searches_document(study(), Path("runs/study"))))
    assert (told["study"], told["report"]) == ("runs/study", None)
    (agent,) = told["red_agents"]
    assert [best["seed"] for best in agent["seeds"]] == [3, 4] and agent["verdict"].startswith("Over seeds: ")
    assert [(row["workflow"], row["tried"]) for row in agent["orders"]] == [(str(ORDERS[0]), 2), (str(ORDERS[1]), 2)]


# ---------------------------------------------------------------- a browser


@pytest.mark.parametrize(("display", "terminal", "opened"), [("", True, 0), (":0", False, 0), (":0", True, 1)])
def test_a_page_is_opened_only_where_somebody_can_see_it(monkeypatch, tmp_path, display, terminal, opened):
    asked = []
    monkeypatch.setattr(document.sys, "platform", "linux")
    monkeypatch.setattr(document.webbrowser, "open", asked.append)
    monkeypatch.setattr(document.sys, "stdout", SimpleNamespace(isatty=lambda: terminal))
    monkeypatch.setenv("DISPLAY", display)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    document.open_page(tmp_path / "x.html")
    assert asked == [(tmp_path / "x.html").as_uri()] * opened
