"""Several seeds and red agents as one job: the bytes of each search alone, and honest sums over seeds."""

import json
from math import sqrt
from pathlib import Path

import pytest
from searches import EASY, RANDOM, NoView, ledger, outcome, rows, settings_file

from fixfirst.api import settings
from fixfirst.cli.main import main
from fixfirst.cli.search import study_name
from fixfirst.orders.workflow import all_workflows
from fixfirst.reporter.live_study import verdict
from fixfirst.searcher.config import search_config
from fixfirst.searcher.executors.inline import InlineExecutor
from fixfirst.searcher.loop import Search, begin_search, run_searches
from fixfirst.searcher.strategy import Strategy, StrategyConfig
from fixfirst.searcher.study import begin_study, compare, mean_interval, open_study, spread_between_seeds

MEMBERS = ["b_line-3", "b_line-4", "meander-3", "meander-4"]


def run_alone(folder, **changes):
    search = begin_search(search_config(**EASY | changes), folder)
    assert run_searches([search], InlineExecutor(), NoView(), interrupt=False, folder=folder)
    return folder


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two seeds, two red agents, on two workers."""
    folder = tmp_path_factory.mktemp("study")
    arguments = ["--seed", "3", "--seeds", "2", "--red-agent", "B_lineAgent,meander", "--workers", "2", "--quiet"]
    assert main(["search", "--out", str(folder / "study"), "--config", str(settings_file(folder, EASY)), *arguments]) == 0
    return folder / "study"


def one_line(capsys, says):
    error = capsys.readouterr().err
    assert error.startswith("fixfirst: ") and error.count("\n") == 1 and says in error, error


# ---------------------------------------------------------------- running


@pytest.mark.parametrize(("name", "agent", "seed"), [("b_line-4", "b_line", 4), ("meander-3", "meander", 3)])
def test_a_search_of_a_study_has_the_bytes_of_the_same_search_alone(study, tmp_path, name, agent, seed):
    alone = run_alone(tmp_path / "alone", red_agent=agent, seed=seed)
    assert outcome(study / name) == outcome(alone)
    assert (study / name / "config.toml").read_bytes() == (alone / "config.toml").read_bytes()


def test_a_study_is_a_folder_of_run_directories(study):
    assert sorted(path.name for path in study.iterdir()) == [*MEMBERS, "report.html", "study.json"]
    assert all((study / name / "report.html").exists() for name in MEMBERS)
    manifest = json.loads((study / "study.json").read_text())
    assert (manifest["kind"], manifest["seed"], manifest["options"]) == ("study", 3, {"searches": MEMBERS})
    assert main(["resume", str(study / "b_line-3"), "--quiet", "--no-report"]) == 0  # each stands on its own


class Watched(InlineExecutor):
    """Remembers how many jobs were waiting, at most."""

    most = 0

    def wait(self, on_progress):
        self.most = max(self.most, len(self._jobs))
        return super().wait(on_progress)


def test_trials_of_different_searches_run_side_by_side(tmp_path):
    """Three searches with rounds of one trial keep three workers busy."""
    configs = settings.resolve_study(RANDOM | {"round_size": 1, "n_workflows": 2}, seeds=3)
    study, executor = begin_study(configs, tmp_path / "study"), Watched()
    assert run_searches(study.searches, executor, NoView(), interrupt=False, folder=study.folder)
    assert executor.most == 3 and [len(ledger(search.folder)) for search in study.searches] == [2, 2, 2]


class InterruptAfter(NoView):
    """As interrupt: true once so many trials are recorded."""

    def __init__(self, trials):
        self.left = trials

    def recorded(self, search, trial):
        self.left -= 1

    def __bool__(self):
        return self.left <= 0


def test_resume_goes_on_with_all_that_is_unfinished_and_with_nothing_else(study, tmp_path):
    folder = tmp_path / "study"
    configs = [search.config for search in open_study(study).searches]
    begun = begin_study(configs, folder)
    assert run_searches(begun.searches[:1], InlineExecutor(), NoView(), interrupt=False, folder=folder)
    interrupt = InterruptAfter(3)
    assert not run_searches(begun.searches[1:], InlineExecutor(interrupt), interrupt, interrupt, folder)
    assert main(["resume", str(folder), "--workers", "1", "--quiet", "--no-report"]) == 0
    assert [outcome(folder / name) for name in MEMBERS] == [outcome(study / name) for name in MEMBERS]
    ends = [[row["outcome"] for row in rows(folder / name / "runtime.csv")] for name in MEMBERS]
    assert ends == [["finished"], *[["interrupted", "finished"]] * 3]


# ---------------------------------------------------------------- across seeds


def test_the_mean_over_two_seeds_and_its_t_interval():
    """1 and 3: mean 2, standard error 1, and t with 1 degree of freedom is 12.706."""
    assert mean_interval([1.0, 3.0]) == (2.0, pytest.approx(2 - 12.706, abs=1e-3), pytest.approx(2 + 12.706, abs=1e-3))
    assert mean_interval([-14.0]) == (-14.0, None, None) and mean_interval([]) == (None, None, None)


def test_the_spread_between_seeds_is_pooled_over_orders():
    """1, 3 differ from 2 by 1 each: 2. 5, 5, 8 from 6 by 1, 1, 2: 6. Together 8, with 1 + 2 degrees of freedom."""
    assert spread_between_seeds([[1.0, 3.0], [5.0, 5.0, 8.0], [40.0]]) == (pytest.approx(sqrt(8 / 3)), 3)
    assert spread_between_seeds([[1.0], [2.0]]) == (None, 0)


A, B, C, D = list(all_workflows())[:4]


def told(seed, *trials, red_agent="b_line"):
    """A search that was told some returns; None: not compliant."""
    search = Search(search_config(seed=seed, red_agent=red_agent), Path("nowhere"), [], Strategy(StrategyConfig()))
    for number, (workflow, mean) in enumerate(trials):
        status = "non_compliant" if mean is None else "accepted"
        row = {"id": number, "workflow": str(workflow), "status": status, "return_mean": mean, "return_se": 0.1}
        search.tell(row | {"episodes": 10})
    return search


def test_what_two_seeds_say_together():
    """A: -10 and -12. B: -30 twice (-29 and -31), and -32. C passed once, at -50, D never."""
    first = told(0, (A, -10.0), (B, -29.0), (B, -31.0), (C, None))
    second = told(1, (B, -32.0), (A, -12.0), (C, -50.0), (D, None))
    (found,) = compare([first, second])
    shown = [(row.workflow, row.tried, row.accepted, row.maybe_best, row.mean) for row in found.orders]
    assert shown == [(A, 2, 2, 2, -11.0), (B, 2, 2, 0, -31.0), (C, 2, 1, 0, -50.0), (D, 1, 0, 0, None)]
    assert [(best.seed, best.workflow, best.mean) for best in found.best] == [(0, A, -10.0), (1, A, -12.0)]
    assert found.spread == pytest.approx(sqrt(2)) and found.freedom == 2  # A and B vary by 2 each
    assert [row.standard_error for row in found.ranking.rows] == [pytest.approx(1), pytest.approx(1), pytest.approx(sqrt(2))]
    assert found.ranking.winner == A
    assert verdict(found).startswith(f"Over seeds: Best order (95 % confidence): {A}, return -11.00")
    assert verdict(found).endswith("(spread between seeds 1.41, measured with 2 degrees of freedom)")


def test_seeds_that_disagree_declare_no_winner():
    """A and B change places: each search alone is sure, the two together are not."""
    searches = [told(0, (A, -10.0), (B, -20.0)), told(1, (A, -20.0), (B, -10.0))]
    assert [search.standings().ranking.winner for search in searches] == [A, B]
    (found,) = compare(searches)
    assert found.ranking.winner is None and found.ranking.maybe_best == (A, B)


def test_without_an_order_seen_twice_nothing_is_claimed():
    (found,) = compare([told(0, (A, -10.0)), told(1, (B, -99.0))])
    assert found.ranking is None and found.spread is None
    assert verdict(found).startswith("No order was accepted under two seeds")


def test_red_agents_are_compared_apart():
    found = compare([told(0, (A, -10.0)), told(0, (A, -20.0), red_agent="meander")])
    assert [(c.red_agent, c.orders[0].mean) for c in found] == [("b_line", -10.0), ("meander", -20.0)]


# ---------------------------------------------------------------- what a user says and sees


def test_a_plain_list_is_several_red_agents_and_weights_make_one_mixture():
    def searches(**given):
        return [(config.red_agent, config.seed) for config in settings.resolve_study(given, seeds=2)]

    assert searches(red_agent="b_line,RedMeanderAgent", seed=5) == [
        ("b_line", 5),
        ("b_line", 6),
        ("meander", 5),
        ("meander", 6),
    ]
    assert searches(red_agent="b_line:0.5,meander:0.5") == [("b_line:0.5,meander:0.5", 0), ("b_line:0.5,meander:0.5", 1)]
    assert searches() == [("b_line", 0), ("b_line", 1)]


def test_the_folder_of_a_study_names_its_agents_and_seeds():
    assert study_name(settings.resolve_study({})) == "search-b_line-0"
    assert study_name(settings.resolve_study({"red_agent": "b_line,meander"}, seeds=5)) == "study-b_line-meander-0-4"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--seeds", "0"], "--seeds must be at least 1, got 0"),
        (["--red-agent", "b_line,b_line"], "a study has each red agent and seed once, got b_line-0 more often"),
        (["--red-agent", "b_line,meander:0.5"], "needs a weight for 'b_line'"),
        (["--red-agent", "b_line,green"], "green"),
        (["--seeds", "2", "--from", "nowhere"], "nowhere: holds no policy"),
    ],
)
def test_studies_that_make_no_sense_are_one_line_and_leave_nothing_behind(tmp_path, capsys, arguments, says):
    assert main(["search", "--out", str(tmp_path / "run"), "--quiet", *arguments]) == 2
    one_line(capsys, says)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("names", ['["../elsewhere"]', '"b_line-0"', "[]", "[7]", '["b_line-0/.."]'])
def test_a_damaged_study_is_one_line(tmp_path, capsys, names):
    (tmp_path / "study.json").write_text(f'{{"schema": 1, "kind": "study", "options": {{"searches": {names}}}}}')
    assert main(["resume", str(tmp_path), "--quiet"]) == 2
    one_line(capsys, "study.json: damaged, it does not name the searches of this study")


def test_a_study_is_not_written_over(study, capsys):
    assert main(["search", "--out", str(study), "--seeds", "2", "--quiet"]) == 2
    one_line(capsys, f"{study} exists already; go on with it: fixfirst resume {study}")


def test_a_finished_study_is_shown_again_as_tables_and_as_json(study, capsys):
    assert main(["resume", str(study), "--quiet", "--no-report", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["study"] == str(study) and told["runs"] == [str(study / name) for name in MEMBERS]
    assert [(c["red_agent"], [best["seed"] for best in c["seeds"]]) for c in told["red_agents"]] == [
        ("b_line", [3, 4]),
        ("meander", [3, 4]),
    ]
    for comparison, names in zip(told["red_agents"], (MEMBERS[:2], MEMBERS[2:]), strict=True):
        orders = {row["workflow"] for name in names for row in ledger(study / name)}
        assert {row["workflow"] for row in comparison["orders"]} == orders
    assert main(["resume", str(study), "--quiet", "--no-report"]) == 0
    lines = capsys.readouterr().out.splitlines()
    trials = sum(len(ledger(study / name)) for name in MEMBERS)
    assert lines[0] == f"4 searches, {trials} trials, 192 training episodes, variant current"
    assert "red agent b_line, 2 seeds" in lines and "red agent meander, 2 seeds" in lines
    assert sum("tried  accepted  maybe best" in line for line in lines) == 2
