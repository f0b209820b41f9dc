"""Evaluations: baselines earn what is known of them, intervals are honest, and episodes are those of their stream."""

import numpy as np
import pytest
from cage2 import SLEEP, action_id
from late import Late

from fixfirst.game.game_config import Game
from fixfirst.orders.compliance import DEFAULT_JUDGING, Judging
from fixfirst.orders.order import Workflow
from fixfirst.play.evaluation import BATCH, evaluate, play
from fixfirst.policy.scripts import make_baseline
from fixfirst.stats.evaluation import Evaluation

stats = Late("scipy.stats")

ORDER = (Workflow.parse("enterprise > op_server > op_host > user > defender"),)
STREAM = {"seed": 3, "purpose": "test"}
FALSE_ALARM = 1e-3  # of all comparisons together, had the seeds not been fixed

# Mean return and standard error of 4,000 episodes of 100 steps, of a simulator verified against CybORG step by step.
KNOWN = {
    ("b_line", "sleep"): (-1134.91, 0.30),
    ("b_line", "random"): (-747.87, 5.55),
    ("meander", "sleep"): (-972.51, 1.10),
    ("meander", "random"): (-582.21, 4.53),
}
# Restoring what is held at once, seen through the observation (react) or through the truth: from the table of known
# results, given to one decimal.
ROUGHLY = {("b_line", "react-restore"): -62.9, ("b_line", "priority-restore"): -52.2, ("meander", "priority-restore"): -48.8}


def evaluate_player(player, game, *, judging=DEFAULT_JUDGING, **options):
    return evaluate(play(player, game, **options, **STREAM), judging)


def judged(name, red_agent, episodes=1_000):
    orders = ORDER if name == "priority-restore" else ()
    return evaluate_player(make_baseline(name, orders), Game(red_agent=red_agent), episodes=episodes, workflows=orders)


@pytest.mark.parametrize(("red_agent", "name"), KNOWN)
def test_baselines_earn_what_is_known(red_agent, name):
    mean, error = KNOWN[red_agent, name]
    shown = judged(name, red_agent)
    margin = stats.norm.isf(FALSE_ALARM / len(KNOWN) / 2) * np.hypot(error, shown.standard_error)
    assert shown.mean == pytest.approx(mean, abs=margin)


@pytest.mark.parametrize(("red_agent", "name"), ROUGHLY)
def test_restoring_at_once_earns_what_is_known(red_agent, name):
    shown = judged(name, red_agent)
    assert shown.mean == pytest.approx(ROUGHLY[red_agent, name], abs=0.05 + 4 * shown.standard_error)


def test_removing_at_once_is_worse_than_restoring_and_better_than_nothing():
    restore, remove, nothing = (judged(name, "b_line", 200).mean for name in ("react-restore", "react-remove", "sleep"))
    assert nothing < remove < restore


def test_priority_restore_never_breaks_its_order_and_answers_every_need():
    shown = judged("priority-restore", "meander", 300).compliance
    assert shown.compliance.value == 1.0 and shown.response.value == 1.0
    assert shown.compliance.count > 300


class Restores:
    """Environment i restores a clean host i + 1 times, at 1 point each."""

    def act(self, moment):
        return np.where(moment.steps <= np.arange(len(moment.words)), action_id("Restore", "Op_Server0"), SLEEP)


def test_mean_standard_error_and_interval_by_hand():
    """Returns -1, -2, -3, -4: mean -2.5, variance 5/3, standard error sqrt(5/12) = 0.6455, t(3) at 97.5 % 3.1824."""
    shown = evaluate_player(Restores(), Game(red_agent="sleep", variant="debugged"), episodes=4)
    assert shown.mean == -2.5 and shown.standard_error == pytest.approx(0.6455, abs=1e-4)
    assert (shown.low, shown.high) == pytest.approx((-2.5 - 2.0543, -2.5 + 2.0543), abs=1e-3)
    assert shown.compliance is None and shown.episodes == 4  # without a workflow nothing is counted
    assert (shown.red_agent, shown.steps, shown.variant) == ("sleep", 100, "debugged")


def test_compliance_is_judged_by_the_given_rule():
    """Random repairs break the order under any rule; `top` also forbids needless repairs of urgent types."""
    player, game = make_baseline("random"), Game(red_agent="meander")
    by_rule = {
        rule: evaluate_player(player, game, episodes=20, workflows=ORDER, judging=Judging(rule=rule)).compliance
        for rule in ("no_higher", "top")
    }
    assert 0 < by_rule["top"].compliance.value < by_rule["no_higher"].compliance.value < 1


def episodes_of(number, seed=3, purpose="test"):
    return play(make_baseline("random"), Game(max_steps=20), episodes=number, seed=seed, purpose=purpose).returns


def test_the_same_seed_and_purpose_give_the_same_episodes_and_others_do_not():
    first, again, *others = (episodes_of(20, *stream) for stream in ((0, "gate"), (0, "gate"), (1, "gate"), (0, "test")))
    assert np.array_equal(first, again) and not any(np.array_equal(first, other) for other in others)


def test_episodes_beyond_one_batch_are_new_ones():
    """1,300 episodes: a batch of 1,000 and 300 of the next; the first 1,000 are those of a shorter evaluation."""
    long, short = episodes_of(1_300), episodes_of(BATCH)
    assert len(long) == 1_300 and np.array_equal(long[:BATCH], short)
    assert not np.array_equal(long[BATCH:], short[:300])


def test_counts_are_cut_to_the_episodes_asked_for(monkeypatch):
    """25 episodes in passes of 10 are the first 10, 10 and 5 of three passes."""
    monkeypatch.setattr("fixfirst.play.evaluation.BATCH", 10)
    said = []
    player = make_baseline("priority-restore", ORDER)
    played = play(player, Game(max_steps=20), episodes=25, workflows=ORDER, on_pass=said.append, **STREAM)
    assert said == sorted(said) and {10, 20, 25} <= set(said) and max(said) == 25  # also within a pass
    assert len(played.returns) == 25 and played.rollout.packed_obs.shape == (21, 25)
    assert all(len(column) == 25 for column in played.counts())


def test_evaluation_in_worker_processes_gives_the_same_numbers():
    player = make_baseline("react-restore")
    here, there = (
        evaluate_player(player, Game(red_agent="meander", max_steps=20, backend=backend), episodes=30)
        for backend in ("simulator", "workers")
    )
    assert here == there


def test_no_variant_is_the_one_that_the_world_is():
    player, game = make_baseline("random"), Game(variant=None, max_steps=10)
    assert evaluate_player(player, game, episodes=2).variant == "current"


def evaluation(mean, error, episodes=1_000):
    return Evaluation("b_line", 100, "current", episodes, mean, error, mean - 2 * error, mean + 2 * error, None)


def test_two_close_and_precise_means_are_shown_to_be_equivalent():
    """Difference 0.1 with standard error 0.141: the margin 0.5 is 2.83 standard errors away, p = 0.0023."""
    gap = evaluation(-15.0, 0.1).difference(evaluation(-14.9, 0.1), margin=0.5)
    assert gap.mean == pytest.approx(0.1) and gap.equivalent and gap.p_value == pytest.approx(0.0024, abs=2e-4)
    assert gap.low == pytest.approx(0.1 - 1.961 * 0.1414, abs=1e-3)


def test_noise_is_not_evidence_of_equivalence():
    """Standard error 0.71: an interval of +-1.4 cannot show +-0.5; these episodes would show 0.1 + 1.65 * 0.71 = 1.26."""
    gap = evaluation(-15.0, 0.5).difference(evaluation(-14.9, 0.5), margin=0.5)
    assert not gap.equivalent and gap.smallest_margin == pytest.approx(0.1 + 1.646 * 0.7071, abs=2e-3)


def test_a_difference_beyond_the_margin_is_not_equivalent_however_precise():
    assert not evaluation(-15.0, 0.01).difference(evaluation(-14.0, 0.01), margin=0.5).equivalent
    assert evaluation(0.0, 0.0).difference(evaluation(0.0, 0.0), margin=0.5).equivalent
