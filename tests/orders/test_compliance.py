"""Judging repairs: three rules, the foothold, rates with intervals, rewards and gates, on cases worked by hand."""

from typing import get_args

import numpy as np
import pytest
from cage2 import ACTIONS, HOST_ID, HOST_NAMES, NUM_ACTIONS, NUM_HOSTS, REPAIRED_HOSTS, SLEEP, action_id, hosts_mask

from fixfirst.orders.compliance import Compliance, Gate, Judging, Rate, Rule
from fixfirst.orders.order import FIVE_TYPES, UnitScheme, Workflow
from fixfirst.orders.repairs import Counts, Judgement, judge

ENTERPRISE_FIRST = Workflow.parse("enterprise > op_server > op_host > user > defender")


def episode(*steps, workflow=ENTERPRISE_FIRST, **options):
    """Judge one episode, after which red holds nothing. A step: (hosts held before it, action)."""
    actions = np.array([[action] for _, action in steps])
    held = np.array([[hosts_mask(*hosts)] for hosts, _ in (*steps, ((), None))], np.int16)
    return judge(actions, held, workflow.ranks[None], workflow.scheme, Judging(**options))


def restore(host):
    return action_id("Restore", host)


def test_a_repair_is_remove_or_restore_and_nothing_else():
    repairs = {str(ACTIONS[a]) for a in range(NUM_ACTIONS) if REPAIRED_HOSTS[a] >= 0}
    assert repairs == {f"{verb} {host}" for verb in ("Remove", "Restore") for host in HOST_NAMES}
    assert REPAIRED_HOSTS[action_id("Remove", "Op_Server0")] == HOST_ID["Op_Server0"]


ONE_STEP = {  # hosts held, the one restored, options -> judged, compliant, contested
    "a user while an enterprise host is held": (("User1", "Enterprise0"), "User1", {}, (1, 0, 1)),
    "the enterprise host first": (("User1", "Enterprise0"), "Enterprise0", {}, (1, 1, 1)),
    "any host of the type will do, even a clean one": (("Enterprise0",), "Enterprise1", {}, (1, 1, 0)),
    "above the need: nothing more important waits": (("User1",), "Enterprise0", {}, (1, 1, 0)),
    "above the need breaks top": (("User1",), "Enterprise0", {"rule": "top"}, (1, 0, 0)),
    "below the need": (("Op_Server0",), "User1", {}, (1, 0, 0)),
    "two hosts of a type contest nothing": (("User1", "User2"), "User1", {}, (1, 1, 0)),
    "the foothold does not, either": (("User0", "Op_Host0"), "Op_Host0", {}, (1, 1, 0)),
    "the foothold needs no repair": (("User0",), "User0", {}, (0, 0, 0)),
    "unless it is counted": (("User0",), "User0", {"count_foothold": True}, (1, 1, 0)),
    "users first, and it is counted: forbidden for ever": (
        ("User0", "Enterprise0"),
        "Enterprise0",
        {"workflow": Workflow.parse("user > enterprise > op_server > op_host > defender"), "count_foothold": True},
        (1, 0, 1),
    ),
}


@pytest.mark.parametrize("case", ONE_STEP)
def test_one_repair(case):
    held, host, options, expected = ONE_STEP[case]
    judged = episode((held, restore(host)), **options)
    assert (judged.judged.item(), judged.compliant.item(), judged.contested.item()) == expected


def test_fixed_types_asks_which_types_were_repaired_before_whoever_is_held():
    """op_server needs an earlier enterprise repair, user also op_server and op_host; every repair is judged."""
    judged = episode(
        ((), restore("Op_Server0")),  # enterprise was never repaired
        ((), restore("Enterprise0")),  # the first of the order: always fine
        (("Enterprise0",), action_id("Remove", "Op_Server0")),  # fine now, though enterprise is held
        ((), SLEEP),
        ((), restore("User1")),  # op_host is missing
        ((), restore("Op_Host2")),
        ((), restore("User1")),
        rule="fixed_types",
    )
    assert judged.judged[:, 0].tolist() == [1, 1, 1, 0, 1, 1, 1]
    assert judged.compliant[:, 0].tolist() == [0, 1, 1, 0, 0, 1, 1]


def plainly(actions, held, workflow, rule, count_foothold):
    """`judge` one episode in plain loops over sets of host names. Returns rows of `Judgement`, [T]."""
    scheme, targeted, rows = workflow.scheme, set(), []
    order = [scheme.names[unit] for unit in workflow.order]
    unit_of = {host: name for name, hosts in scheme.as_dict().items() for host in hosts}
    held = [{host for h, host in enumerate(HOST_NAMES) if hosts >> h & 1} for hosts in held]
    for t, action in enumerate(actions):
        types = {unit_of[host] for host in held[t] if host != "User0" or count_foothold}
        verb, host = ACTIONS[action]
        repair, compliant = verb in ("Remove", "Restore"), False
        judged = repair and (rule == "fixed_types" or bool(types))
        if judged:
            higher = set(order[: order.index(unit_of[host])])
            highest = next((unit for unit in order if unit in types), None)
            compliant = {
                "no_higher": not higher & types,
                "top": unit_of[host] == highest,
                "fixed_types": higher <= targeted,
            }[rule]
        targeted |= {unit_of[host]} if repair else set()
        effective = repair and host not in held[t + 1]
        rows.append((repair, judged, compliant, judged and len(types) >= 2, effective, bool(types)))
    return rows


@pytest.mark.parametrize("scheme", [FIVE_TYPES, UnitScheme.per_host()], ids=["five", "per_host"])
@pytest.mark.parametrize("rule", get_args(Rule))
@pytest.mark.parametrize("count_foothold", [False, True])
def test_judge_equals_plain_loops_on_random_episodes(scheme, rule, count_foothold):
    rng = np.random.default_rng(len(scheme.names))
    steps, n = 40, 12
    repairs = np.flatnonzero(np.array(REPAIRED_HOSTS) >= 0)
    actions = np.where(rng.random((steps, n)) < 0.7, rng.choice(repairs, (steps, n)), rng.integers(0, 145, (steps, n)))
    bits = rng.random((steps + 1, n, NUM_HOSTS)) < 0.12
    bits[:, :, HOST_ID["User0"]] = True
    workflows, held = (
        [Workflow(tuple(rng.permutation(scheme.size).tolist()), scheme) for _ in range(n)],
        (bits @ (1 << np.arange(NUM_HOSTS))).astype(np.int16),
    )
    judging = Judging(rule=rule, count_foothold=count_foothold)
    fast = np.stack(judge(actions, held, np.array([w.ranks for w in workflows]), scheme, judging), axis=2)
    slow = [plainly(actions[:, i], held[:, i].tolist(), w, rule, count_foothold) for i, w in enumerate(workflows)]
    assert np.array_equal(fast, np.swapaxes(slow, 0, 1))
    varied = fast[..., :5] if count_foothold else fast  # with the foothold counted, every step is one of need
    assert varied.any(axis=(0, 1)).all() and not varied.all(axis=(0, 1)).any()  # every outcome occurs, and its opposite


def test_delta_rewards_the_change_of_compliance_and_penalty_costs_every_violation():
    """Compliance so far 0, 1/1, 1/1, 1/2, 2/3, 2/4: changes 0, 1, 0, -1/2, 1/6, -1/6. They sum to that of the episode."""
    judged, compliant = (np.array(values, bool)[:, None] for values in ([0, 1, 0, 1, 1, 1], [0, 1, 0, 0, 1, 0]))
    judgement = Judgement(judged, judged, compliant, judged, judged, judged)
    assert judgement.reward("delta", 30.0)[:, 0] == pytest.approx([0, 30, 0, -15, 5, -5])
    assert judgement.reward("penalty", 5.0)[:, 0] == pytest.approx([0, 0, 0, -5, 0, -5])


def test_counts_of_an_episode_worked_by_hand():
    """A violation, which also leaves red in place, a contested success, a repair without need, a need slept on, quiet."""
    judgement = episode(
        (("User1", "Enterprise0"), action_id("Remove", "User1")),
        (("User1", "Enterprise0"), restore("Enterprise0")),
        ((), restore("User1")),
        (("User3",), SLEEP),
        ((), SLEEP),
    )
    counted = Counts.of(judgement)._asdict()
    assert [counted[name].item() for name in ("repairs", "judged", "compliant", "needed", "responded")] == [3, 2, 1, 3, 2]
    assert [counted[name].item() for name in ("contested", "contested_compliant", "effective")] == [2, 1, 2]


def counts(judged, compliant, **columns):
    """Counts of N episodes, all repairs judged unless said otherwise."""
    zeros = dict.fromkeys(Counts._fields, np.zeros(len(judged), int))
    given = {"repairs": judged, "judged": judged, "compliant": compliant, **columns}
    return Counts(**(zeros | {name: np.array(values) for name, values in given.items()}))


def measured(judged, compliant, **columns):
    return Compliance.of(counts(judged, compliant, **columns))


def test_rates_are_pooled_over_episodes_and_their_intervals_see_that_violations_cluster_in_episodes():
    """1 of 1 and 1 of 9: pooled 2 of 10, while the mean of ratios would be 0.56."""
    pooled = measured([1, 9], [1, 1], effective=[1, 4], needed=[2, 10], responded=[2, 1])
    assert pooled.compliance.value == pytest.approx(0.2) and pooled.compliance.count == 10
    assert (pooled.repairs_per_episode, pooled.effectiveness.value, pooled.response.value) == (5, 0.5, 0.25)
    # 90 of 100 each time: one violation in each of ten episodes, or all ten in one episode of ten.
    spread, clustered = measured([10] * 10, [9] * 10), measured([10] * 10, [10] * 9 + [0])
    independent = measured([1] * 100, [1] * 90 + [0] * 10).compliance
    assert spread.compliance.value == clustered.compliance.value == independent.value == 0.9
    assert spread.compliance.low == spread.compliance.high == 0.9
    assert clustered.compliance.high - clustered.compliance.low > 2 * (independent.high - independent.low)
    assert clustered.lower_bound < spread.lower_bound < 0.9
    # 400 of 500 with 1 repair per episode, the binomial one: 0.8 +- 1.96 * sqrt(0.8 * 0.2 / 500) = 0.8 +- 0.035.
    rate = measured([1] * 500, [1] * 400 + [0] * 100).compliance
    assert rate.low == pytest.approx(0.765, abs=0.005) and rate.high == pytest.approx(0.835, abs=0.005)


@pytest.mark.parametrize(
    ("judged", "compliant", "bound"),
    [
        # Clopper and Pearson: p ** 50 = 0.05, even a policy of 94.2 % shows 50 of 50 once in twenty times.
        ([1] * 50, [1] * 50, 0.05 ** (1 / 50)),
        ([5], [0], 0),
        ([0, 0], [0, 0], None),
    ],
)
def test_the_lower_bound_of_all_and_of_none(judged, compliant, bound):
    rates = measured(judged, compliant)
    assert rates.lower_bound == (None if bound is None else pytest.approx(bound))
    assert (str(rates.compliance) == "-") == (rates.compliance == Rate(None, None, None, 0)) == (bound is None)


@pytest.mark.parametrize(
    ("gate", "judged", "compliant", "accepted"),
    [
        ({}, [1] * 59, [1] * 59, True),  # 95.05 %
        ({}, [1] * 58, [1] * 58, False),  # 94.97 %
        ({}, [1] * 100, [1] * 96 + [0] * 4, False),  # above 95 %, but 90 % would show it easily
        ({"min_judged": 50, "compliance_threshold": 0.5}, [1] * 49, [1] * 49, False),
        ({"min_judged": 50, "compliance_threshold": 0.5}, [1] * 50, [1] * 50, True),
        ({"min_judged": 1, "compliance_threshold": 0.5}, [0, 0], [0, 0], False),
    ],
)
def test_the_gate_wants_enough_judged_repairs_and_their_lower_bound_above_the_threshold(gate, judged, compliant, accepted):
    assert Gate(**gate).accepts(measured(judged, compliant)) == accepted


def test_the_published_gate_averages_the_latest_episode_of_every_environment():
    def accepts(judged, compliant, repairs=None):
        return Gate().accepts_latest(counts(judged, compliant, repairs=repairs or judged))

    assert accepts([1, 20], [1, 18])  # 1.0 and 0.9 average to 0.95, though pooled it is 19 of 21
    assert not accepts([1, 100], [1, 89])
    assert accepts([0, 10], [0, 10]) and not accepts([0, 9], [0, 9])  # ten repairs; episodes without one are left out
    assert not accepts([0, 0], [0, 0], repairs=[20, 20])  # none was judged
