"""Ask and tell: what is chosen, what is not, and that a replayed ledger leads to the same choices."""

import math

import numpy as np
import pytest
from cage2 import HOST_NAMES

from fixfirst.base.errors import SearchError
from fixfirst.orders.order import FIVE_TYPES, UnitScheme, Workflow, all_workflows
from fixfirst.searcher import strategy as strategy_module
from fixfirst.searcher.gp import OrderGP
from fixfirst.searcher.strategy import (
    FAILED,
    NON_COMPLIANT,
    STRATEGIES,
    Strategy,
    StrategyConfig,
    TrialOutcome,
    _Status,
    neighbours,
    scheduled_beta,
)

WORKFLOWS = list(all_workflows())
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
    return TrialOutcome.compliant(-10 - 2 * pairs * workflow.kendall_distance(best), 0.5)


def play(strategy, rounds, size=1, outcome=distance_return):
    choices = []
    for _ in range(rounds):
        asked = strategy.ask(size)
        choices += asked
        for choice in asked:
            strategy.tell(choice.workflow, outcome(choice.workflow))
    return choices


@pytest.mark.parametrize("name", ["random", "exhaustive"])
def test_all_120_orders_come_once_and_then_all_a_second_time(name):
    numbers = [choice.workflow.number for choice in play(Strategy(StrategyConfig(name=name, seed=3)), 240)]
    assert sorted(numbers[:120]) == list(range(120)) and sorted(numbers[120:]) == list(range(120))
    assert (numbers == [*range(120), *range(120)]) == (name == "exhaustive")


def test_other_seeds_give_other_random_orders():
    firsts = {tuple(c.workflow.number for c in Strategy(StrategyConfig(name="random", seed=s)).ask(5)) for s in range(10)}
    assert len(firsts) == 10


def test_gp_ucb_finds_the_best_of_120_orders_in_25_trials():
    strategy = Strategy(StrategyConfig(seed=1))
    choices = play(strategy, 25)
    assert [choice.how for choice in choices] == ["random"] * 8 + ["ucb"] * 17
    assert strategy.best().workflow == BEST


def test_a_choice_can_be_redone_from_what_was_told_before_it():
    strategy = Strategy(StrategyConfig(seed=2, beta=1.5))
    play(strategy, 12)
    told = [(w.order, o) for w, o in strategy.told if o.status is _Status.COMPLIANT]
    (choice,) = strategy.ask()
    orders, outcomes = zip(*told, strict=True)
    gp = OrderGP(
        np.array(orders), np.array([o.mean_return for o in outcomes]), np.array([o.standard_error for o in outcomes])
    )
    mean, std = gp.predict(np.array([w.order for w in WORKFLOWS]))
    barred = {w for w, o in strategy.told if o is NON_COMPLIANT}
    tried = {w for w, _ in strategy.told}
    ranking = sorted(WORKFLOWS, key=lambda w: -(mean + 1.5 * std)[w.number])
    untried = next(w for w in ranking if w not in tried)
    ranking = [w for w in ranking if w not in tried or (w not in barred and std[w.number] >= std[untried.number])]
    assert [candidate.workflow for candidate in choice.top] == ranking[:3] and choice.workflow == ranking[0]
    first = choice.top[0]
    assert first.ucb == first.mean + 1.5 * first.std and first.mean == mean[ranking[0].number] and choice.beta == 1.5


@pytest.mark.parametrize("bad", [NON_COMPLIANT, FAILED])
@pytest.mark.parametrize("name", STRATEGIES)
def test_an_order_without_return_is_not_chosen_again_before_all_others_were_tried(name, bad):
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
        outcome = bad if choice.workflow in near else TrialOutcome.compliant(-choice.workflow.kendall_distance(best), 0.3)
        strategy.tell(choice.workflow, outcome)
    assert failed and (len(tried) == 24 or choice.workflow not in failed)
    if name != "gp_ucb":
        assert len(tried) == 24


def test_after_every_order_was_tried_an_order_without_return_gets_another_chance():
    strategy = Strategy(StrategyConfig(seed=0, initial_orders=2), scheme_of(3))
    for number in range(6):
        workflow = Workflow.from_number(number, strategy.scheme)
        strategy.tell(workflow, NON_COMPLIANT if number < 4 else TrialOutcome.compliant(-50.0 - number, 0.01))
    assert strategy.ask()[0].workflow.number < 4


def test_a_noisy_leader_is_tried_again_and_its_returns_are_averaged():
    strategy = Strategy(StrategyConfig(seed=0))
    for workflow in WORKFLOWS:
        strategy.tell(
            workflow, TrialOutcome.compliant(-10.0 if workflow == BEST else -40.0, 5.0 if workflow == BEST else 0.1)
        )
    assert strategy.ask()[0].workflow == BEST
    strategy.tell(BEST, TrialOutcome.compliant(-20.0, 5.0))
    strategy.pending.clear()
    random = Strategy(StrategyConfig(name="random"))
    random.told = strategy.told
    assert random.best().workflow == BEST and random.best().mean == pytest.approx(-15)
    assert random.best().std == pytest.approx(5 / math.sqrt(2))


def test_a_well_known_leader_is_not_repeated_while_orders_are_untried():
    """An order 25 standard errors above 30 equal ones, far more than beta = 2: plain UCB would never leave it."""
    strategy = Strategy(StrategyConfig(seed=0))
    for workflow in WORKFLOWS[:31]:
        strategy.tell(workflow, TrialOutcome.compliant(-10.0 if workflow.number == 15 else -60.0, 2.0))
    numbers = {choice.workflow.number for choice in play(strategy, 30, outcome=lambda w: TrialOutcome.compliant(-60.0, 2.0))}
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
    for workflow, outcome in first.told:
        again.tell(workflow, outcome)
    assert again.ask(4) == first.ask(4)
    assert again.ask(2) == first.ask(2), "pending orders are part of the state"


def test_a_round_has_different_orders_and_knows_of_pending_ones():
    strategy = Strategy(StrategyConfig(seed=0))
    play(strategy, 10)
    choices = strategy.ask(6)
    assert len({choice.workflow for choice in choices}) == 6
    lonely = Strategy(StrategyConfig(seed=0))
    for workflow, outcome in strategy.told:
        lonely.tell(workflow, outcome)
    others = OrderGP(*lonely._observations()).predict(np.array([choices[1].workflow.order]))
    assert choices[1].top[0].std < others.std[0] and choices[1].top[0].mean == pytest.approx(others.mean[0])


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_round_larger_than_the_number_of_orders_repeats_some(name):
    strategy = Strategy(StrategyConfig(name=name), scheme_of(2))
    play(strategy, 2, size=5, outcome=lambda w: TrialOutcome.compliant(float(w.number), 0.1))
    assert {choice.workflow.number for choice in strategy.ask(5)} == {0, 1}


@pytest.mark.parametrize(("units", "rounds", "better_than"), [(8, 22, 0.99), (13, 20, 0.9)])
def test_large_spaces_are_searched_without_enumerating_them(units, rounds, better_than, monkeypatch):
    """Return falls with Kendall distance; random orders lie around 0.5 of the way down."""
    monkeypatch.setattr(strategy_module, "permutations", None)  # would be called to list all orders
    scheme = scheme_of(units)
    best = Workflow.from_number(12345, scheme)
    strategy = Strategy(StrategyConfig(seed=0), scheme)
    choices = play(strategy, rounds, outcome=lambda w: TrialOutcome.compliant(-w.kendall_distance(best), 0.01))
    found = strategy.best()
    assert 1 - found.workflow.kendall_distance(best) >= better_than
    assert all(len(choice.top) == 3 for choice in choices if choice.how == "ucb")


@pytest.mark.parametrize("name", ["random", "exhaustive"])
def test_thirteen_factorial_orders_are_no_trouble_for_the_simple_strategies(name):
    strategy = Strategy(StrategyConfig(name=name), UnitScheme.per_host())
    numbers = [c.workflow.number for c in strategy.ask(20)]
    assert len(set(numbers)) == 20 and (name == "random" or numbers == list(range(20)))


def test_neighbours_swap_two_unit_types_side_by_side():
    assert neighbours((0, 1, 2, 3)) == [(1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)]


def test_scheduled_beta_worked_by_hand():
    """t = 1: sqrt(2 ln(120 * 1.6449 / 0.1)) = sqrt(2 * 7.5877) = 3.8955."""
    assert scheduled_beta(120, 1, 0.1) == pytest.approx(3.8955, abs=1e-4)
    strategy = Strategy(StrategyConfig(beta_schedule=True))
    play(strategy, 9)
    assert strategy.ask()[0].beta == scheduled_beta(120, 10, 0.1)


def test_without_any_compliant_order_gp_ucb_goes_on_at_random():
    strategy = Strategy(StrategyConfig(seed=0))
    choices = play(strategy, 15, outcome=lambda w: NON_COMPLIANT)
    assert {choice.how for choice in choices} == {"random"} and len({c.workflow for c in choices}) == 15
    assert strategy.best() is None


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: StrategyConfig(name="gp"), "'gp' is none of gp_ucb, random, exhaustive"),
        (lambda: StrategyConfig(seed=-1), "seed is at least 0, got -1"),
        (lambda: StrategyConfig(beta=-2.0), "beta must be at least 0, got -2.0"),
        (lambda: StrategyConfig(beta=math.nan), "beta must be at least 0"),
        (lambda: StrategyConfig(delta=0.0), "between 0 and 1, got 0.0"),
        (lambda: StrategyConfig(initial_orders=0), "at least 1 initial order, got 0"),
        (lambda: TrialOutcome.compliant(math.nan, 1.0), "finite mean return"),
        (lambda: TrialOutcome.compliant(1.0, -1.0), "at least 0, got -1.0"),
        (lambda: TrialOutcome(_Status.COMPLIANT), "needs a finite mean return"),
        (lambda: TrialOutcome(_Status.NON_COMPLIANT, 3.0, 1.0), "told without a return, got 3.0"),
        (lambda: Strategy(StrategyConfig()).ask(0), "at least 1 order, got 0"),
        (lambda: Strategy(StrategyConfig()).tell(Workflow((0, 1), scheme_of(2)), FAILED), "another unit scheme"),
    ],
)
def test_bad_input_is_one_clear_error(make, says):
    with pytest.raises(SearchError) as error:
        make()
    assert says in str(error.value)
