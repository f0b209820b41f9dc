"""Ask and tell: what is chosen, what is not, and that a replayed ledger leads to the same choices."""

import math

import numpy as np
import pytest
from cage2 import HOST_NAMES

from fixfirst.base.errors import SearchError
from fixfirst.orders.order import FIVE_TYPES, UnitScheme, Workflow, all_workflows
from fixfirst.searcher import strategy as strategy_module
from fixfirst.searcher.gp import OrderGP
from fixfirst.searcher.strategy import STRATEGIES, Strategy, StrategyConfig, neighbours, scheduled_beta
from fixfirst.stats.ranking import rank

WORKFLOWS = list(all_workflows())
NON_COMPLIANT = (None,)
BEST = Workflow.parse("op_server > enterprise > user > op_host > defender")


def scheme_of(units):
    """The first units - 1 hosts alone, the rest together."""
    groups = {host: [host] for host in HOST_NAMES[: units - 1]}
    return UnitScheme.from_dict(groups | {"rest": list(HOST_NAMES[units - 1 :])})


def distance_return(workflow, best=BEST):
    """Best at `best`, 2 less per pair of unit types turned; every fifth order number never becomes compliant."""
    if workflow.number % 5 == 4:
        return NON_COMPLIANT
    pairs = math.comb(workflow.scheme.size, 2)
    return -10 - 2 * pairs * workflow.kendall_distance(best), 0.5


def play(strategy, rounds, size=1, outcome=distance_return):
    choices = []
    for _ in range(rounds):
        asked = strategy.ask(size)
        choices += asked
        for choice in asked:
            strategy.tell(choice.workflow, *outcome(choice.workflow))
    return choices


@pytest.mark.parametrize("name", ["random", "exhaustive"])
def test_simple_strategies_give_all_120_orders_once_and_again_and_are_not_troubled_by_thirteen_factorial(name):
    numbers = [choice.workflow.number for choice in play(Strategy(StrategyConfig(name=name, seed=3)), 240)]
    assert sorted(numbers[:120]) == list(range(120)) and sorted(numbers[120:]) == list(range(120))
    assert (numbers == [*range(120), *range(120)]) == (name == "exhaustive")
    firsts = {tuple(c.workflow for c in Strategy(StrategyConfig(name=name, seed=seed)).ask(5)) for seed in range(10)}
    assert len(firsts) == (10 if name == "random" else 1)
    thirteen = [choice.workflow.number for choice in Strategy(StrategyConfig(name=name), UnitScheme.per_host()).ask(20)]
    assert len({*thirteen}) == 20 and (name == "random" or thirteen == list(range(20)))


def test_gp_ucb_finds_the_best_of_120_orders_in_25_trials():
    strategy = Strategy(StrategyConfig(seed=1))
    choices = play(strategy, 25)
    assert [choice.how for choice in choices] == ["random"] * 8 + ["ucb"] * 17
    assert strategy.best() == BEST


def test_a_choice_can_be_redone_from_what_was_told_before_it():
    strategy = Strategy(StrategyConfig(seed=2, beta=1.5))
    play(strategy, 12)
    orders, returns, errors = zip(*strategy.returns, strict=True)
    (choice,) = strategy.ask()
    gp = OrderGP(np.array([order.order for order in orders]), np.array(returns), np.array(errors))
    mean, std = gp.predict(np.array([w.order for w in WORKFLOWS]))
    barred = {*strategy.without_return}
    tried = {*orders, *barred}
    ranking = sorted(WORKFLOWS, key=lambda w: -(mean + 1.5 * std)[w.number])
    untried = next(w for w in ranking if w not in tried)
    ranking = [w for w in ranking if w not in tried or (w not in barred and std[w.number] >= std[untried.number])]
    assert [*choice.top] == ranking[:3] and choice.workflow == ranking[0]
    first = choice.top[ranking[0]]
    assert choice.ucb(ranking[0]) == first.mean + 1.5 * first.std
    assert first.mean == mean[ranking[0].number] and choice.beta == 1.5


@pytest.mark.parametrize("name", STRATEGIES)
def test_an_order_without_return_is_not_chosen_again_before_all_others_were_tried(name):
    """Four units, 24 orders; the best third never becomes compliant, so that a GP would love to go back there."""
    scheme = scheme_of(4)
    best = Workflow((2, 1, 3, 0), scheme)
    near = set(sorted(all_workflows(scheme), key=best.kendall_distance)[:8])
    strategy = Strategy(StrategyConfig(name=name, seed=0, beta=0.5, initial_orders=4), scheme)
    tried, failed = set(), set()
    for _ in range(150):
        (choice,) = strategy.ask()
        if choice.workflow in failed:
            break
        tried.add(choice.workflow)
        if choice.workflow in near:
            failed.add(choice.workflow)
        distance = choice.workflow.kendall_distance(best)
        strategy.tell(choice.workflow, None if choice.workflow in near else -distance, 0.3)
    assert failed and (len(tried) == 24 or choice.workflow not in failed)
    if name != "gp_ucb":
        assert len(tried) == 24


def test_after_every_order_was_tried_an_order_without_return_gets_another_chance():
    strategy = Strategy(StrategyConfig(seed=0, initial_orders=2), scheme_of(3))
    for number in range(6):
        workflow = Workflow.from_number(number, strategy.scheme)
        strategy.tell(workflow, None if number < 4 else -50.0 - number, 0.01)
    assert strategy.ask()[0].workflow.number < 4


def test_a_noisy_leader_is_tried_again_and_averaged_a_well_known_one_not_while_orders_are_untried():
    strategy = Strategy(StrategyConfig(seed=0))
    for workflow in WORKFLOWS:
        strategy.tell(workflow, *((-10.0, 5.0) if workflow == BEST else (-40.0, 0.1)))
    assert strategy.ask()[0].workflow == BEST
    random = Strategy(StrategyConfig(name="random"))
    for mean in (-10.0, -20.0):  # together -15
        random.tell(BEST, mean, 5.0)
    random.tell(WORKFLOWS[0], -14.9, 0.1)
    assert random.best() == WORKFLOWS[0]
    # An order 25 standard errors above 30 equal ones, far more than beta = 2: plain UCB would never leave it.
    strategy = Strategy(StrategyConfig(seed=0))
    for workflow in WORKFLOWS[:31]:
        strategy.tell(workflow, -10.0 if workflow.number == 15 else -60.0, 2.0)
    numbers = {choice.workflow.number for choice in play(strategy, 30, outcome=lambda w: (-60.0, 2.0))}
    assert 15 not in numbers and len(numbers) == 30


@pytest.mark.parametrize("units", [5, 8])
@pytest.mark.parametrize("name", STRATEGIES)
def test_replaying_the_ledger_gives_the_same_next_round(name, units):
    scheme = FIVE_TYPES if units == 5 else scheme_of(units)
    best = Workflow.from_number(77, scheme)
    config = StrategyConfig(name=name, seed=5)
    first = Strategy(config, scheme)
    play(first, 3, size=4, outcome=lambda w: distance_return(w, best))
    again = Strategy(config, scheme)
    for told in (*first.returns, *((workflow, None) for workflow in first.without_return)):
        again.tell(*told)
    assert again.ask(4) == first.ask(4)
    assert again.ask(2) == first.ask(2), "pending orders are part of the state"


def test_a_round_has_different_orders_and_knows_of_pending_ones_and_a_large_one_repeats_some():
    strategy = Strategy(StrategyConfig(seed=0))
    play(strategy, 10)
    choices = strategy.ask(6)
    assert len({choice.workflow for choice in choices}) == 6
    others = OrderGP(*strategy._observations()).predict(np.array([choices[1].workflow.order]))
    second = choices[1].top[choices[1].workflow]
    assert second.std < others.std[0] and second.mean == pytest.approx(others.mean[0])
    for name in STRATEGIES:
        strategy = Strategy(StrategyConfig(name=name), scheme_of(2))
        play(strategy, 2, size=5, outcome=lambda w: (float(w.number), 0.1))
        assert {choice.workflow.number for choice in strategy.ask(5)} == {0, 1}


@pytest.mark.parametrize(("units", "rounds", "better_than"), [(8, 22, 0.99), (13, 20, 0.9)])
def test_large_spaces_are_searched_without_enumerating_them(units, rounds, better_than, monkeypatch):
    """Return falls with Kendall distance; random orders lie around 0.5 of the way down."""
    monkeypatch.setattr(strategy_module, "permutations", None)  # would be called to list all orders
    scheme = scheme_of(units)
    best = Workflow.from_number(12345, scheme)
    strategy = Strategy(StrategyConfig(seed=0), scheme)
    choices = play(strategy, rounds, outcome=lambda w: (-w.kendall_distance(best), 0.01))
    assert 1 - strategy.best().kendall_distance(best) >= better_than
    assert all(len(choice.top) == 3 for choice in choices if choice.how == "ucb")


def test_neighbours_and_scheduled_beta_worked_by_hand():
    """t = 1: sqrt(2 ln(120 * 1.6449 / 0.1)) = sqrt(2 * 7.5877) = 3.8955."""
    assert neighbours((0, 1, 2, 3)) == [(1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)]
    assert scheduled_beta(120, 1) == pytest.approx(3.8955, abs=1e-4)
    strategy = Strategy(StrategyConfig(beta_schedule=True))
    play(strategy, 9)
    assert strategy.ask()[0].beta == scheduled_beta(120, 10)


def test_without_any_compliant_order_gp_ucb_goes_on_at_random_and_another_unit_scheme_is_refused():
    strategy = Strategy(StrategyConfig(seed=0))
    choices = play(strategy, 15, outcome=lambda w: NON_COMPLIANT)
    assert {choice.how for choice in choices} == {"random"} and len({c.workflow for c in choices}) == 15
    assert strategy.best() is None
    with pytest.raises(SearchError, match="is an order of another unit scheme than "):
        strategy.tell(Workflow((0, 1), scheme_of(2)), None)


def test_a_search_on_a_flat_landscape_names_no_winner():
    """Where all orders are worth the same. Sampling is adaptive: gp_ucb goes back to lucky orders. 20 seeds, 20 trials."""
    declared = 0
    for seed in range(20):
        strategy, returns = Strategy(StrategyConfig(seed=seed)), np.random.default_rng(seed).standard_normal(20)
        for mean in returns.tolist():
            strategy.tell(strategy.ask()[0].workflow, mean, 1.0)
        declared += rank(*zip(*strategy.returns, strict=True)).winner is not None
    assert declared <= 1
