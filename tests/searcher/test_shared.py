"""Searches with one network for all orders."""

import itertools
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from answers import a_swap
from searches import SHARED, NoView, everything, interrupt_step

import fixfirst as ff
from fixfirst.base.errors import ConfigError
from fixfirst.base.jobs import InlineScheduler
from fixfirst.cli import main
from fixfirst.learner.training import Training
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.play.rollout import collect
from fixfirst.runs.csv_logs import read_rows
from fixfirst.runs.rows import ValueRow
from fixfirst.searcher.choosing import turns
from fixfirst.searcher.shared import worst_shortfall
from fixfirst.searcher.strategy import Strategy, StrategyConfig
from fixfirst.searcher.study import begin_study, run_searches
from fixfirst.settings.search import search_config

QUIET = {"quiet": True, "report": False}


@pytest.fixture
def run(answered):
    return ff.load_run(answered)


def test_a_search_ends_with_a_rule_its_price_and_a_policy_for_any_order(run):
    answer = run.answer
    assert answer.replicates == 2
    assert answer.idle == ("op_host", "defender") and answer.possible == 6 and answer.all_orders == 120
    assert answer.episodes == 240 and len(answer.orders) == 6 and len(answer.swaps) == 3
    assert answer.rule == "No answer yet" and not answer.is_settled
    assert answer.sentences[0] == (
        "No answer yet: this budget shows only what it costs to learn an order, not what it costs to keep one; try "
        "1,150,000 episodes and at least 3 trainings (--replicates)."
    )
    assert {(s.low, s.high) for s in (*answer.swaps, *answer.orders)} == {(None, None)}
    assert "Red never holds op_host or defender: where they stand is irrelevant." in answer.sentences
    document = json.loads((run.folder / "answer.json").read_text())
    assert document["rule"] == answer.rule and document["sentences"] == list(answer.sentences)
    assert document["settled"] is False and document["swaps"][0]["low"] is None
    assert all(abs(order.mean + sum(order.costs)) < 1e-6 for order in answer.orders)  # costs are taken apart
    assert all(abs(swap.price - sum(part.mean for part in swap.parts.values())) < 1e-6 for swap in answer.swaps)
    policy = run.best
    obs = np.zeros((3, 52), np.int8)
    for order in ("user > enterprise > op_server > op_host > defender", "critical_first", None):
        policy.reset(3)
        assert policy.act(obs, workflow=order).shape == (3,)
    assert str(policy.workflow) == answer.orders[0].workflow


def test_whoever_opened_it_before_another_ended_it_changes_nothing(run, tmp_path):
    """Two resumed at once: the second has seen the run as it was, and is let in when the first has ended."""
    folder = tmp_path / "run"
    (late,) = begin_study([search_config(**SHARED)], folder).searches
    ff.resume(folder, workers=1, **QUIET)
    assert run_searches([late], InlineScheduler(), NoView(), interrupt=False, folder=folder)
    assert late.answer == run.answer and everything(folder) == everything(run.folder)


def test_it_ends_the_same_with_more_workers_and_after_interruptions(run, tmp_path, monkeypatch):
    again = ff.search(out=tmp_path / "two", **SHARED, **QUIET, workers=2)
    assert again.answer == run.answer and everything(again.folder) == everything(run.folder)

    interrupt_step(monkeypatch, Training, 9)
    with pytest.raises(KeyboardInterrupt):
        ff.search(out=tmp_path / "cut", **SHARED, **QUIET, workers=1)
    assert ff.resume(tmp_path / "cut", **QUIET, workers=1).answer == run.answer
    assert everything(tmp_path / "cut") == everything(run.folder)


def test_a_training_lags_by_what_it_earns_less_under_all_orders_with_one_type_before_another():
    """Of three units, the second training earns 2 less where 1 comes before 0; the third 3 less, but under one order of
    three; the fourth 0.5 less under all.
    """
    orders = list(itertools.permutations(range(3)))
    behind = np.array([order.index(1) < order.index(0) for order in orders])
    one = np.arange(6) == np.flatnonzero(behind)[0]
    earned = -14.0 - np.stack([0 * behind, 2.0 * behind, 3.0 * one, np.full(6, 0.5)])
    assert worst_shortfall(earned, orders).tolist() == [0, 2, 1, 0.5]
    assert worst_shortfall(np.zeros((2, 0)), []).tolist() == [0, 0]  # before the first round


def test_those_that_lag_least_go_on_as_replicates(tmp_path):
    """Four trainings begin and play the first of three rounds; the best two play the others."""
    settings = SHARED | {"trainings": 4}
    config = search_config(**settings)
    budget = config.budget
    assert (budget.base, budget.round_episodes, budget.num_rounds, budget.drop_round) == (30, 10, 3, 1)
    run = ff.search(out=tmp_path / "one", **settings, **QUIET, workers=1)
    rows = list(read_rows(run.folder / "rounds.csv", ValueRow))
    players = [{row.replicate for row in rows if row.round == number} for number in (1, 2, 3)]
    assert players[0] == {0, 1, 2, 3} and players[1] == players[2]
    earned = np.array([[row.mean for row in rows if (row.round, row.replicate) == (1, number)] for number in range(4)])
    played = [Workflow.parse(row.workflow, config.scheme).order for row in rows if (row.round, row.replicate) == (1, 0)]
    assert players[1] == set(np.argsort(worst_shortfall(earned, played))[:2].tolist())
    assert run.answer.replicates == 2 and run.answer.episodes == 4 * 30 + (4 + 2 * 2) * 10
    cut = shutil.copytree(run.folder, tmp_path / "cut")
    (cut / "answer.json").unlink()
    lines = (cut / "rounds.csv").read_text().splitlines(keepends=True)
    (cut / "rounds.csv").write_text("".join(lines[:-3]))  # the last round is not complete
    assert ff.resume(cut, **QUIET, workers=1).answer == run.answer
    assert everything(cut) == everything(run.folder)


def test_larger_budgets_have_more_replicates_and_trainings_and_are_longer_where_more_orders_differ_unless_given():
    for episodes, *expected in (
        (150_000, 3, 3, False),
        (260_000, 3, 3, True),
        (500_000, 3, 4, True),
        (1_150_000, 8, 12, True),
        (9_000_000, 8, 12, True),
    ):
        config = search_config(total_episodes=episodes)
        assert [config.replicates, config.trainings, config.budget.is_long] == expected
        of_all = 4 if config.trainings > config.replicates else 0
        rounds = config.trainings * of_all + config.replicates * (10 - of_all)
        assert 0.9 * episodes < config.trainings * config.budget.base + rounds * config.budget.round_episodes <= episodes
    for red_agent, episodes in (("B_lineAgent", 1_150_000), ("meander", 1_800_000), ("b_line:1,meander:1", 1_800_000)):
        assert search_config(red_agent=red_agent).total_episodes == episodes
    assert search_config(red_agent="meander", total_episodes=10_000).total_episodes == 10_000
    assert search_config(red_agent="meander", separate=True).total_episodes == 1_150_000


@pytest.mark.parametrize(
    ("episodes", "settings", "following"),
    [
        (3_000, {}, 1_150_000),
        (3_000, {"red_agent": "meander"}, 1_800_000),
        (1_150_000, {"replicates": 1}, 1_150_000),
        (1_150_000, {"replicates": 20}, 2_300_000),
        (1_150_000, {}, 2_300_000),  # it can settle, but its prices may still fall
    ],
)
def test_a_search_that_cannot_settle_names_a_budget_that_can(episodes, settings, following):
    config = search_config(total_episodes=episodes, **settings)
    assert config.next_budget == following
    longer = settings | {"total_episodes": following, "replicates": max(config.replicates, 3)}
    assert search_config(**longer).budget.can_settle


def test_dear_orders_have_three_turns_to_two_of_the_others():
    """Three orders in a round that has room for all: the last costs 1, more than the margin of 0.5, the second 0.4."""
    orders = [Workflow.from_number(number) for number in range(3)]
    earned = np.array([[-14.0, -14.4, -15.0]] * 2)
    assert turns(orders, [], earned[:, :0], margin=0.5) == orders  # nothing is known yet
    assert [turns(orders, orders, earned, margin=0.5).count(order) for order in orders] == [2, 2, 3]
    # Of one that is chosen alone half of the turns are its own.
    assert [turns(orders[:1], orders, earned, margin=0.5).count(order) for order in orders] == [2, 1, 1]


def test_some_are_dropped_after_a_single_round_too():
    assert search_config(**SHARED | {"trainings": 3, "rounds": 1}).budget.drop_round == 1
    assert search_config(**SHARED | {"trainings": 2, "rounds": 10}).budget.drop_round == 0
    with pytest.raises(ConfigError, match="a search chooses the workflows itself: leave workflow at 'all'"):
        search_config(**SHARED, workflow="critical_first")


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_round_goes_on_from_its_own_checkpoint_or_not_at_all(run, tmp_path, capsys, has_checkpoint):
    """The last of three rounds is begun again: with its checkpoint it ends the same, without it is refused."""
    folder = shutil.copytree(run.folder, tmp_path / "run")
    (folder / "answer.json").unlink()
    rows = (folder / "rounds.csv").read_text().splitlines(keepends=True)
    (folder / "rounds.csv").write_text("".join(row for row in rows if not row.startswith("3,")))
    for replicate in (folder / "replicates").iterdir():
        (replicate / "result.json").unlink()
        for checkpoint in sorted(replicate.glob("checkpoint-*"))[-2 if has_checkpoint else 0 :]:
            checkpoint.unlink()
    code = main(["resume", str(folder), "--no-report", "--workers", "1", "--quiet"])
    refused = "is damaged or gone, and round 3 goes on from it; begin a new run"
    assert (code, refused in capsys.readouterr().err) == ((0, False) if has_checkpoint else (2, True))
    assert ff.load_run(folder).search.answer == (run.answer if has_checkpoint else None)


def test_a_finished_search_resumed_is_shown_again_as_json_and_listed_with_its_rule(run, tmp_path, capsys):
    folder = shutil.copytree(run.folder, tmp_path / "run")
    assert main(["resume", str(folder), "--no-report", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["rule"] == run.answer.rule
    assert printed.err == f"fixfirst: {folder} was finished already; this is its result\n"  # and nothing went on
    assert main(["runs", str(tmp_path)]) == 0
    assert run.answer.rule[:20] in capsys.readouterr().out


def test_a_report_links_the_two_episodes_that_show_a_price_or_says_how_to_write_them(run, tmp_path, capsys):
    """A search without its pages, whose answer names a rule: from Python nothing is played; the command plays them first."""
    folder = shutil.copytree(run.folder, tmp_path / "run", ignore=shutil.ignore_patterns("replays", "report.html"))
    orders = {order.workflow: order for order in run.answer.orders}
    right, wrong = (next(name for name in orders if name.startswith(start)) for start in ("enterprise > u", "user > e"))
    shown = (a_swap("enterprise", "user", 4.3, 4.1, 4.5),)
    answer = replace(run.answer, swaps=shown, replicates=3, long_enough=True, orders=(orders[right], orders[wrong]))
    answer.write(folder)
    assert answer.telling_orders == (right, wrong)
    document = ff.report(folder).document
    assert document.link is None and document.answer[-1].endswith(f"fixfirst report {folder} --replays")
    assert main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert (folder / "replays" / "why.html").is_file() and 'href="replays/why.html"' in page and "--replays" not in page
    assert main(["report", str(folder), "--format", "md", "--out", str(tmp_path / "page.md")]) == 0
    assert "](<run/replays/why.html>)" in (tmp_path / "page.md").read_text()


def test_host_orders_are_chosen_without_listing_them():
    """13! orders: the strategy keeps hosts that red never holds at their end, and lists none of the others."""
    scheme = UnitScheme.per_host()
    strategy = Strategy(StrategyConfig(), scheme, idle=(0, 5, 6))
    asked = [choice.workflow for choice in strategy.ask(4)]
    assert strategy.num_orders == 3_628_800 and len(set(asked)) == 4
    assert all(workflow.order[-3:] == (0, 5, 6) for workflow in asked)
    for number, workflow in enumerate(asked):
        strategy.tell(workflow, -14.0 - number, 0.1)
    (best,) = strategy.ask(1)
    assert best.workflow.order[-3:] == (0, 5, 6)


def test_a_search_over_host_orders_prices_swaps_and_says_what_it_never_tried(tmp_path):
    """One unit type per host: 8! orders against B_line, who never holds the other five, of which 18 at most are tried."""
    hosts = UnitScheme.per_host().as_dict()
    units = tmp_path / "hosts.toml"
    units.write_text("[units]\n" + "".join(f"{name} = {json.dumps(group)}\n" for name, group in hosts.items()))
    found = ff.search(out=tmp_path / "run", units=units, **SHARED, **QUIET, workers=1).answer
    assert found.possible == 40_320 and len(found.orders) <= 18 and len(found.swaps) >= 2
    settled = replace(found, long_enough=True, replicates=3, swaps=())
    assert f"{40_320 - len(found.orders):,} of 40,320 orders were never tried" in settled.sentences[0]


def test_an_effect_that_is_planted_is_found(tmp_path, monkeypatch):
    """As `benchmarks/planted.py`: keeping op_server before enterprise costs 200 points more, far more than a first policy
    loses by anything else; the price of that swap is 200, and of another it is not.
    """

    def taxed(*args, **settings):
        rollout = collect(*args, **settings)
        late = [
            w.ranks[w.scheme.names.index("enterprise")] > w.ranks[w.scheme.names.index("op_server")]
            for w in rollout.workflows
        ]
        if late:
            rollout.rewards10[-1] -= 2_000 * np.array(late, np.int32)[rollout.assigned]
        return rollout

    for place in ("fixfirst.play.rollout.collect", "fixfirst.play.evaluation.collect"):
        monkeypatch.setattr(place, taxed)
    first, *others = ff.search(out=tmp_path / "run", **SHARED, **QUIET, workers=1).answer.swaps
    assert (first.first, first.second) == ("enterprise", "op_server") and 150 < first.price < 250
    assert all(swap.price < 100 for swap in others)
    assert 150 < first.parts["stopped service"].mean < 250  # the part that nothing explains
