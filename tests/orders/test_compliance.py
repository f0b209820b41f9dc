"""Judging repairs: three rules, the foothold, rates with intervals, rewards and gates, on cases worked by hand."""

from typing import get_args

import numpy as np
import pytest
from cage2 import ACTIONS, HOST_ID, HOST_NAMES, NUM_ACTIONS, NUM_HOSTS, REPAIRED_HOSTS, SLEEP, action_id, hosts_mask

from fixfirst.orders.compliance import Gate, Judging, Rate, Rule, summarise
from fixfirst.orders.order import FIVE_TYPES, UnitScheme, Workflow
from fixfirst.orders.repairs import Counts, Judgement, held_mask, judge

ENTERPRISE_FIRST = Workflow.parse("enterprise > op_server > op_host > user > defender")


def episode(*steps, after=(), workflow=ENTERPRISE_FIRST, **options):
    """Judge one episode. A step: (hosts held before it, action); `after`: hosts held after the last one."""
    actions = np.array([[action] for _, action in steps])
    held = np.array([[hosts_mask(*hosts)] for hosts in (*(hosts for hosts, _ in steps), after)], np.int16)
    judged = judge(actions, held, workflow.ranks[None], workflow.scheme, Judging(**options))
    return Judgement(*(part[:, 0].tolist() for part in judged))


def restore(host):
    return action_id("Restore", host)


def test_a_repair_is_remove_or_restore_and_nothing_else():
    repairs = {str(ACTIONS[a]) for a in range(NUM_ACTIONS) if REPAIRED_HOSTS[a] >= 0}
    assert repairs == {f"{verb} {host}" for verb in ("Remove", "Restore") for host in HOST_NAMES}
    assert REPAIRED_HOSTS[action_id("Remove", "Op_Server0")] == HOST_ID["Op_Server0"]


USERS_FIRST = Workflow.parse("user > enterprise > op_server > op_host > defender")
ONE_STEP = {  # hosts held, the one restored, options -> judged, compliant, contested
    "a user while an enterprise host is held": (("User1", "Enterprise0"), "User1", {}, (1, 0, 1)),
    "the enterprise host first": (("User1", "Enterprise0"), "Enterprise0", {}, (1, 1, 1)),
    "any host of the type will do, even a clean one": (("Enterprise0",), "Enterprise1", {}, (1, 1, 0)),
    "also for the rule top": (("Enterprise0",), "Enterprise1", {"rule": "top"}, (1, 1, 0)),
    "above the need: nothing more important waits": (("User1",), "Enterprise0", {}, (1, 1, 0)),
    "above the need breaks top": (("User1",), "Enterprise0", {"rule": "top"}, (1, 0, 0)),
    "below the need": (("Op_Server0",), "User1", {}, (1, 0, 0)),
    "below the need breaks top, too": (("Op_Server0",), "User1", {"rule": "top"}, (1, 0, 0)),
    "two hosts of a type contest nothing": (("User1", "User2"), "User1", {}, (1, 1, 0)),
    "the foothold does not, either": (("User0", "Op_Host0"), "Op_Host0", {}, (1, 1, 0)),
    "the foothold needs no repair": (("User0",), "User0", {}, (0, 0, 0)),
    "unless it is counted": (("User0",), "User0", {"count_foothold": True}, (1, 1, 0)),
    "users first": (("User0", "Enterprise0"), "Enterprise0", {"workflow": USERS_FIRST}, (1, 1, 0)),
    "users first, and it is counted: forbidden for ever": (
        ("User0", "Enterprise0"),
        "Enterprise0",
        {"workflow": USERS_FIRST, "count_foothold": True},
        (1, 0, 1),
    ),
}


@pytest.mark.parametrize("case", ONE_STEP)
def test_one_repair(case):
    held, host, options, expected = ONE_STEP[case]
    judged = episode((held, restore(host)), **options)
    assert (*judged.judged, *judged.compliant, *judged.contested) == tuple(map(bool, expected))


def test_only_repairs_on_steps_in_need_are_judged():
    """Sleeping on a need is no violation, decoys and Analyse are no repairs, and a repair without need is not judged."""
    shown = episode(
        (("User1",), SLEEP),
        (("User1",), action_id("Analyse", "User1")),
        (("User1",), action_id("DecoyApache", "User1")),
        ((), restore("User1")),
    )
    assert shown.judged == [False] * 4 and shown.compliant == [False] * 4
    assert shown.repair == [False, False, False, True] and shown.needed == [True, True, True, False]


def test_fixed_types_asks_which_types_were_repaired_before_whoever_is_held():
    """op_server needs an earlier enterprise repair, user also op_server and op_host; every repair is judged."""
    shown = episode(
        ((), restore("Op_Server0")),  # enterprise was never repaired
        ((), restore("Enterprise0")),  # the first of the order: always fine
        (("Enterprise0",), action_id("Remove", "Op_Server0")),  # fine now, though enterprise is held
        ((), SLEEP),
        ((), restore("User1")),  # op_host is missing
        ((), restore("Op_Host2")),
        ((), restore("User1")),
        rule="fixed_types",
    )
    assert shown.judged == [True, True, True, False, True, True, True]
    assert shown.compliant == [False, True, True, False, False, True, True]


def test_a_repair_is_effective_when_the_host_is_clean_after_the_step():
    """The third leaves red in place (say, Remove against root); the last finds the host clean and leaves it so."""
    shown = episode(
        (("User1",), restore("User1")),
        ((), SLEEP),
        (("User2",), action_id("Remove", "User2")),
        (("User2",), restore("Enterprise1")),
        after=("User2",),
    )
    assert shown.effective == [True, False, False, True]


def plainly(actions, held, workflows, rule, count_foothold):
    """`judge` in plain loops over sets of host names. Returns rows of `Judgement`, [T][N]."""
    rows = []
    targeted = [set() for _ in workflows]
    for t, step in enumerate(actions):
        row = []
        for i, (action, workflow) in enumerate(zip(step, workflows, strict=True)):
            scheme = workflow.scheme
            order = [scheme.names[unit] for unit in workflow.order]
            unit_of = dict(zip(HOST_NAMES, (scheme.names[unit] for unit in scheme.host_unit), strict=True))

            def hosts_at(time, i=i):
                return {host for h, host in enumerate(HOST_NAMES) if held[time][i] >> h & 1}

            needy = {h for h in hosts_at(t) if h != "User0" or count_foothold}
            types = {unit_of[h] for h in needy}
            verb, host = ACTIONS[action]
            repair = verb in ("Remove", "Restore")
            judged = repair and (rule == "fixed_types" or bool(needy))
            compliant = False
            if judged:
                higher = set(order[: order.index(unit_of[host])])
                if rule == "no_higher":
                    compliant = not higher & types
                elif rule == "top":
                    compliant = unit_of[host] == next(unit for unit in order if unit in types)
                else:
                    compliant = higher <= targeted[i]
            if repair:
                targeted[i].add(unit_of[host])
            effective = repair and host not in hosts_at(t + 1)
            row.append((repair, judged, compliant, judged and len(types) >= 2, effective, bool(needy)))
        rows.append(row)
    return np.array(rows)


TWO_GROUPS = UnitScheme.from_dict({"cheap": list(HOST_NAMES[4:]), "dear": list(HOST_NAMES[:4])})


@pytest.mark.parametrize("scheme", [FIVE_TYPES, TWO_GROUPS, UnitScheme.per_host()], ids=["five", "two", "per_host"])
@pytest.mark.parametrize("rule", get_args(Rule))
@pytest.mark.parametrize("count_foothold", [False, True])
def test_judge_equals_plain_loops_on_random_episodes(scheme, rule, count_foothold):
    rng = np.random.default_rng(len(scheme.names))
    steps, n = 40, 12
    repairs = np.flatnonzero(np.array(REPAIRED_HOSTS) >= 0)
    actions = np.where(rng.random((steps, n)) < 0.7, rng.choice(repairs, (steps, n)), rng.integers(0, 145, (steps, n)))
    bits = rng.random((steps + 1, n, NUM_HOSTS)) < 0.12
    bits[:, :, HOST_ID["User0"]] = True
    workflows = [Workflow(tuple(rng.permutation(scheme.size).tolist()), scheme) for _ in range(n)]
    ranks = np.array([w.ranks for w in workflows])
    judging = Judging(rule=rule, count_foothold=count_foothold)
    fast = np.stack(judge(actions, held_mask(bits), ranks, scheme, judging), axis=2)
    slow = plainly(actions, held_mask(bits).tolist(), workflows, rule, count_foothold)
    assert np.array_equal(fast, slow)
    varied = slow[..., :5] if count_foothold else slow  # with the foothold counted, every step is one of need
    assert varied.any(axis=(0, 1)).all() and not varied.all(axis=(0, 1)).any()  # every outcome occurs, and its opposite


def judgement(judged, compliant):
    """One episode [T, 1] with only what rewards look at."""
    columns = (np.array(values, bool)[:, None] for values in (judged, judged, compliant, judged, judged, judged))
    return Judgement(*columns)


def test_delta_rewards_the_change_of_compliance_so_far():
    """Compliance so far 0, 1/1, 1/1, 1/2, 2/3: changes 0, 1, 0, -1/2, 1/6, times 30. They sum to that of the episode."""
    rewards = judgement([0, 1, 0, 1, 1], [0, 1, 0, 0, 1]).reward("delta", 30.0)
    assert rewards[:, 0] == pytest.approx([0, 30, 0, -15, 5])


def test_penalty_costs_the_weight_per_violation_and_nothing_else():
    rewards = judgement([0, 1, 0, 1, 1], [0, 1, 0, 0, 0]).reward("penalty", 5.0)
    assert rewards[:, 0].tolist() == [0, 0, 0, -5, -5]


def counts(judged, compliant, **columns):
    """Counts of N episodes, all repairs judged unless said otherwise."""
    zeros = dict.fromkeys(Counts._fields, np.zeros(len(judged), int))
    given = {"repairs": judged, "judged": judged, "compliant": compliant, **columns}
    return Counts(**(zeros | {name: np.array(values) for name, values in given.items()}))


def test_rates_are_pooled_over_episodes_not_averaged():
    """1 of 1 and 1 of 9: pooled 2 of 10, while the mean of ratios would be 0.56."""
    shown = summarise(counts([1, 9], [1, 1]))
    assert shown.compliance.value == pytest.approx(0.2) and shown.compliance.count == 10
    assert shown.repairs_per_episode == 5


def test_counts_of_an_episode_worked_by_hand():
    """Five steps: a violation, a contested success, a preventive repair, a need slept on, quiet."""
    steps = (
        (("User1", "Enterprise0"), restore("User1")),
        (("User2", "Enterprise0"), restore("Enterprise0")),
        ((), restore("User1")),
        (("User3",), SLEEP),
        ((), SLEEP),
    )
    actions = np.array([[action] for _, action in steps])
    held = np.array([[hosts_mask(*hosts)] for hosts, _ in steps] + [[0]], np.int16)
    counted = Counts.of(judge(actions, held, ENTERPRISE_FIRST.ranks[None], FIVE_TYPES))
    assert {name: int(column[0]) for name, column in counted._asdict().items()} == {
        "repairs": 3,
        "judged": 2,
        "compliant": 1,
        "contested": 2,
        "contested_compliant": 1,
        "effective": 3,
        "needed": 3,
        "responded": 2,
    }
    shown = summarise(Counts(*(np.tile(column, 2) for column in counted)))
    assert shown.compliance.value == 0.5 and shown.compliance.count == 4
    assert shown.response.value == pytest.approx(2 / 3) and shown.effectiveness.value == 1.0


def shown(judged, compliant):
    return summarise(counts(judged, compliant))


def test_the_interval_and_the_bound_see_that_violations_cluster_in_episodes():
    """90 of 100 each time: one violation in each of ten episodes, or all ten in one episode of ten."""
    spread, clustered = shown([10] * 10, [9] * 10), shown([10] * 10, [10] * 9 + [0])
    independent = shown([1] * 100, [1] * 90 + [0] * 10).compliance
    assert spread.compliance.value == clustered.compliance.value == independent.value == 0.9
    assert spread.compliance.low == spread.compliance.high == 0.9
    assert clustered.compliance.high - clustered.compliance.low > 2 * (independent.high - independent.low)
    assert clustered.lower_bound < spread.lower_bound < 0.9


def test_the_interval_of_independent_repairs_is_the_binomial_one():
    """400 of 500 with 1 repair per episode: 0.8 +- 1.96 * sqrt(0.8 * 0.2 / 500) = 0.8 +- 0.035."""
    rate = shown([1] * 500, [1] * 400 + [0] * 100).compliance
    assert rate.low == pytest.approx(0.765, abs=0.005) and rate.high == pytest.approx(0.835, abs=0.005)


@pytest.mark.parametrize(
    ("judged", "compliant", "bound"),
    [
        # Clopper and Pearson: p ** 50 = 0.05, even a policy of 94.2 % shows 50 of 50 once in twenty times.
        ([1] * 50, [1] * 50, 0.05 ** (1 / 50)),
        ([10] * 10, [10] * 10, 0.05 ** (1 / 100)),
        ([5], [0], 0),
        ([0, 0], [0, 0], None),
    ],
)
def test_the_lower_bound_of_all_and_of_none(judged, compliant, bound):
    measured = shown(judged, compliant)
    assert measured.lower_bound == (None if bound is None else pytest.approx(bound))
    assert (str(measured.compliance) == "-") == (measured.compliance == Rate(None, None, None, 0)) == (bound is None)


@pytest.mark.parametrize(
    ("gate", "judged", "compliant", "accepted"),
    [
        ({}, [1] * 100, [1] * 100, True),  # 100 of 100 proves 97 %
        ({}, [1] * 59, [1] * 59, True),  # 95.05 %
        ({}, [1] * 58, [1] * 58, False),  # 94.97 %
        ({}, [1] * 100, [1] * 96 + [0] * 4, False),  # above 95 %, but 90 % would show it easily
        ({}, [1] * 2000, [1] * 1960 + [0] * 40, True),
        ({"min_judged": 50}, [1] * 49, [1] * 49, False),
        ({"min_judged": 50}, [1] * 50, [1] * 50, True),
        ({"min_judged": 1}, [0, 0], [0, 0], False),
    ],
)
def test_the_gate_wants_enough_judged_repairs_and_their_lower_bound_above_the_threshold(gate, judged, compliant, accepted):
    threshold = {"compliance_threshold": 0.5} if gate else {}
    assert Gate(**gate, **threshold).accepts(shown(judged, compliant)) == accepted


@pytest.mark.parametrize(
    ("judged", "compliant", "accepted"),
    [
        ([1, 20], [1, 18], True),  # 1.0 and 0.9 average to 0.95, though pooled it is 19 of 21
        ([1, 100], [1, 89], False),
        ([9], [9], False),  # ten repairs are asked for
        ([10], [10], True),
        ([0, 10], [0, 10], True),  # an episode without a judged repair is left out
    ],
)
def test_the_published_gate_averages_the_latest_episode_of_every_environment(judged, compliant, accepted):
    assert Gate().accepts_latest(counts(judged, compliant)) == accepted
    assert not Gate().accepts_latest(counts([0, 0], [0, 0], repairs=[20, 20]))
