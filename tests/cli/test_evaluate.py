"""`fixfirst evaluate`: baselines earn what is known of them, intervals are honest, and misuse is one line."""

import csv
import io
import json

import numpy as np
import pytest
from scipy.stats import norm

from fixfirst.api import protocol
from fixfirst.cli.main import main
from fixfirst.learner.checkpoint import save_policy
from fixfirst.learner.config import make_config
from fixfirst.learner.training import Training
from fixfirst.orders.compliance import Counts
from fixfirst.orders.workflow import Workflow
from fixfirst.play.baselines import BASELINES, make_baseline
from fixfirst.play.evaluation import BATCH, Episodes, Evaluation, difference, evaluate, play_episodes, summary

ORDER = "enterprise > op_server > op_host > user > defender"
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


def judged(name, red_agent, episodes=1_000, **options):
    orders = (Workflow.parse(ORDER),) if name == "priority-restore" else ()
    return evaluate(
        make_baseline(name, orders),
        red_agent=red_agent,
        episodes=episodes,
        seed=3,
        purpose="test",
        workflows=orders,
        **options,
    )


@pytest.mark.parametrize(("red_agent", "name"), KNOWN)
def test_baselines_earn_what_is_known(red_agent, name):
    mean, error = KNOWN[red_agent, name]
    shown = judged(name, red_agent)
    margin = norm.isf(FALSE_ALARM / len(KNOWN) / 2) * np.hypot(error, shown.standard_error)
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


def test_mean_standard_error_and_interval_by_hand():
    """Returns -1, -2, -3, -4: mean -2.5, variance 5/3, standard error sqrt(5/12) = 0.6455, t(3) at 97.5 % 3.1824."""
    shown = summary(Episodes(np.array([-1.0, -2, -3, -4]), None), red_agent="b_line", steps=100, variant="current")
    assert shown.mean == -2.5 and shown.standard_error == pytest.approx(0.6455, abs=1e-4)
    assert (shown.low, shown.high) == pytest.approx((-2.5 - 2.0543, -2.5 + 2.0543), abs=1e-3)
    assert shown.compliance is None and shown.episodes == 4


def test_episodes_beyond_one_batch_are_new_ones():
    """1,300 episodes: a batch of 1,000 and 300 of the next; the first 1,000 are those of a shorter evaluation."""
    player = make_baseline("random")
    settings = {"red_agent": "b_line", "steps": 20, "seed": 0, "purpose": "test"}
    long, short = (play_episodes(player, episodes=n, **settings).returns for n in (1_300, BATCH))
    assert len(long) == 1_300 and np.array_equal(long[:BATCH], short)
    assert not np.array_equal(long[BATCH:], short[:300])


def test_counts_are_cut_to_the_episodes_asked_for():
    orders = (Workflow.parse(ORDER),)
    played = play_episodes(
        make_baseline("priority-restore", orders),
        red_agent="b_line",
        steps=20,
        episodes=1_001,
        seed=0,
        purpose="test",
        workflows=orders,
    )
    assert isinstance(played.counts, Counts) and all(len(column) == 1_001 for column in played.counts)


def test_the_same_seed_gives_the_same_evaluation():
    assert judged("random", "b_line", 50) == judged("random", "b_line", 50)


# ---------------------------------------------------------------- the command


SMALL = ["--episodes", "20"]


def test_the_protocol_has_nine_rows_and_a_sum(capsys):
    assert main(["evaluate", "react-restore", *SMALL]) == 0
    header, *rows, total = capsys.readouterr().out.splitlines()
    assert [row.split()[:2] for row in rows] == [
        [red, steps] for red in ("b_line", "meander", "sleep") for steps in ("30", "50", "100")
    ]
    assert header.split()[:2] == ["red", "agent"]
    shown = [float(row.split()[2]) for row in rows]
    assert float(total.split()[1]) == pytest.approx(sum(shown), abs=0.05)
    assert shown[6:] == [0, 0, 0] and "20 episodes each, variant current" in total  # sleep does no harm


def test_json_and_csv_hold_the_same_numbers(tmp_path, capsys):
    path = tmp_path / "table.csv"
    arguments = ["priority-restore", "--workflow", ORDER, "--red-agent", "b_line,meander", "--steps", "30,50"]
    assert main(["evaluate", *arguments, *SMALL, "--json", "--csv", str(path)]) == 0
    documents = json.loads(capsys.readouterr().out)
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert len(documents) == len(rows) == 4
    for document, row in zip(documents, rows, strict=True):
        assert (row["red_agent"], int(row["steps"]), row["variant"]) == (document["red_agent"], document["steps"], "current")
        for name in ("mean", "standard_error", "low", "high"):
            assert float(row[name]) == document[name]
        for rate in ("compliance", "effectiveness", "response"):
            assert float(row[rate]) == document["compliance"][rate]["value"]
        assert float(row["repairs_per_episode"]) == document["compliance"]["repairs_per_episode"]


def test_without_an_order_there_is_no_compliance(tmp_path, capsys):
    path = tmp_path / "table.csv"
    assert main(["evaluate", "sleep", *SMALL, "--steps", "5", "--json", "--csv", str(path)]) == 0
    assert all(row["compliance"] is None for row in json.loads(capsys.readouterr().out))
    assert all(row["compliance"] == "" for row in csv.DictReader(io.StringIO(path.read_text())))


def test_a_baseline_is_judged_by_the_given_order(capsys):
    assert main(["evaluate", "random", "--workflow", ORDER, *SMALL, "--red-agent", "b_line", "--json"]) == 0
    (row, *_) = json.loads(capsys.readouterr().out)
    assert 0 < row["compliance"]["compliance"]["value"] < 1


def test_other_spellings_variants_and_greens(capsys):
    arguments = ["--red-agent", "B_lineAgent", "--steps", "10", "--variant", "leaderboard", "--green", *SMALL, "--json"]
    assert main(["evaluate", "sleep", *arguments]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["red_agent"], row["variant"]) == ("b_line", "leaderboard")


@pytest.fixture
def policy(tmp_path):
    """Saves an untrained policy of the given workflow setting; returns its folder."""

    def make(workflow):
        save_policy(tmp_path / "policy", Training(make_config(workflow=workflow)))
        return str(tmp_path / "policy")

    return make


def rows_of(capsys, *arguments):
    assert main(["evaluate", *arguments, *SMALL, "--red-agent", "b_line", "--steps", "30", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_policy_follows_its_own_order_or_the_given_one(policy, capsys):
    folder = policy(ORDER)
    own, same, other = (rows_of(capsys, folder, *more) for more in ([], ["--workflow", ORDER], ["--workflow", "reverse"]))
    assert own == same != other


def test_greedy_is_another_policy(policy, capsys):
    folder = policy(ORDER)
    assert rows_of(capsys, folder) != rows_of(capsys, folder, "--greedy")


def test_a_policy_that_knows_no_order_can_still_be_judged_by_one(policy, capsys):
    folder = policy("none")
    (free,), (held,) = rows_of(capsys, folder), rows_of(capsys, folder, "--workflow", ORDER)
    assert free["compliance"] is None and held["compliance"]["compliance"]["count"] > 0
    assert free["mean"] == held["mean"]  # it plays the same


def test_the_seed_matters(capsys):
    assert rows_of(capsys, "random") != rows_of(capsys, "random", "--seed", "1")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nobody"], "'nobody' is neither a file or run nor a baseline (sleep, random, react-restore"),
        (["sleep", "--episodes", "1"], "episodes must be at least 2 for a standard error, got 1"),
        (["sleep", "--episodes", "many"], "--episodes"),
        (["priority-restore"], "priority-restore follows an order: give one with --workflow"),
        (["priority-restore", "--workflow", "user"], "must name each of user, op_host"),
        (["sleep", "--steps", "thirty"], "--steps must be whole numbers separated by commas, got 'thirty'"),
        (["sleep", "--steps", "0"], "max_steps must be a whole number, at least 1, got 0"),
        (["sleep", "--red-agent", "purple"], "unknown red agent 'purple'"),
        (["sleep", "--rule", "strict"], "--rule"),
        (["/proc"], "holds no policy (policy.json is missing)"),
        (["sleep", "--episodes", "2", "--csv", "/proc/table.csv"], "/proc/table.csv: cannot be written ("),
        ([], "POLICY"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(arguments, says, capsys):
    assert main(["evaluate", *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1 and error.startswith("fixfirst: ")


def test_a_universal_policy_needs_an_order(policy, capsys):
    assert main(["evaluate", policy("all"), *SMALL]) == 2
    assert "this policy follows any order: say which one (workflow=..., --workflow)" in capsys.readouterr().err


def test_every_baseline_plays():
    for name in BASELINES:
        player, orders = protocol.make_player(name, ORDER, greedy=False)
        shown = evaluate(player, red_agent="meander", steps=5, episodes=3, seed=0, purpose="test", workflows=orders)
        assert shown.episodes == 3 and shown.mean <= 0


# ---------------------------------------------------------------- two worlds


def evaluation(mean, error, episodes=1_000):
    return Evaluation("b_line", 100, "current", episodes, mean, error, mean - 2 * error, mean + 2 * error, None)


def test_two_close_and_precise_means_are_shown_to_be_equivalent():
    """Difference 0.1 with standard error 0.141: the margin 0.5 is 2.83 standard errors away, p = 0.0023."""
    gap = difference(evaluation(-15.0, 0.1), evaluation(-14.9, 0.1), margin=0.5)
    assert gap.mean == pytest.approx(0.1) and gap.equivalent and gap.p_value == pytest.approx(0.0024, abs=2e-4)
    assert gap.low == pytest.approx(0.1 - 1.961 * 0.1414, abs=1e-3)


def test_noise_is_not_evidence_of_equivalence():
    """Standard error 0.71: an interval of +-1.4 cannot show +-0.5; these episodes would show 0.1 + 1.65 * 0.71 = 1.26."""
    gap = difference(evaluation(-15.0, 0.5), evaluation(-14.9, 0.5), margin=0.5)
    assert not gap.equivalent and gap.smallest_margin == pytest.approx(0.1 + 1.646 * 0.7071, abs=2e-3)


def test_a_difference_beyond_the_margin_is_not_equivalent_however_precise():
    assert not difference(evaluation(-15.0, 0.01), evaluation(-14.0, 0.01), margin=0.5).equivalent
    assert difference(evaluation(0.0, 0.0), evaluation(0.0, 0.0), margin=0.5).equivalent


def test_evaluation_in_worker_processes_gives_the_same_numbers():
    player = make_baseline("react-restore")
    here, there = (
        evaluate(player, red_agent="meander", steps=20, episodes=30, seed=1, purpose="x", backend=backend)
        for backend in ("simulator", "workers")
    )
    assert here == there


def test_episodes_do_not_depend_on_how_they_are_batched_into_passes(monkeypatch):
    """25 episodes in passes of 10 are the first 10, 10 and 5 of three passes: as many returns as asked for."""
    monkeypatch.setattr("fixfirst.play.evaluation.BATCH", 10)
    told = []
    played = play_episodes(
        make_baseline("random"), red_agent="b_line", steps=10, episodes=25, seed=0, purpose="x", on_pass=told.append
    )
    assert len(played.returns) == 25 and told == [10, 20, 25]


def test_both_backends_without_cyborg_is_one_clear_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("FIXFIRST_CYBORG", str(tmp_path))
    assert main(["evaluate", "sleep", "--backend", "both", "--steps", "5", "--episodes", "5", "--red-agent", "b_line"]) == 2
    error = capsys.readouterr().err
    assert "holds no package CybORG" in error and error.count("\n") == 1
    assert main(["evaluate", "sleep", "--backend", "both", "--margin", "0"]) == 2
