"""Free-running, the simulator has CybORG's distribution: returns, who is held when, what blue sees.

The reference are statistics of untouched CybORG (`conformance/stats.json`). All seeds are fixed. Every family of comparisons
together has a false-alarm rate of about 1 in 1,000 (Bonferroni), had the seeds not been fixed.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from late import Late
from policies import play

stats = Late("scipy.stats")

FALSE_ALARM = 1e-3


def z_limit(comparisons):
    return stats.norm.isf(FALSE_ALARM / comparisons / 2)


@pytest.mark.parametrize("red", ["b_line", "meander"])
@pytest.mark.parametrize("policy", ["sleep", "opfirst"])
def test_without_decoys_and_user_restores_leaderboard_plays_exactly_like_current(red, policy):
    current, leaderboard = (play(red, policy, 500, variant=v, seed=3) for v in ("current", "leaderboard"))
    assert np.array_equal(current.rewards10, leaderboard.rewards10)


def test_against_a_sleeping_red_only_restores_cost():
    """145 actions, 13 of them Restore at -1: 100 random steps cost 8.97 on average; other policies cost nothing."""
    assert play("sleep", "sleep", 10).returns(100).tolist() == [0.0] * 10
    returns = play("sleep", "random", 4_000).returns(100)
    assert abs(returns.mean() + 100 * 13 / 145) < 4 * returns.std() / np.sqrt(4_000)


STATS = json.loads((Path(__file__).parent.parent / "conformance" / "stats.json").read_text())["combos"]
OUR_EPISODES = 2_500


@pytest.fixture(scope="module", params=STATS)
def combo(request):
    return request.param


@pytest.fixture(scope="module")
def ours(combo):
    red, policy = combo.split("|")
    red, _, green = red.partition("+")
    return play(red.lower(), policy, OUR_EPISODES, green=bool(green), seed=5)


def test_returns_and_reward_curve_equal_cyborgs(combo, ours):
    stats = STATS[combo]
    limit = z_limit(len(STATS) * 103)
    for length in (30, 50, 100):
        theirs, mine = stats["lengths"][str(length)], ours.returns(length)
        spread = mine.std() * np.sqrt(1 / stats["episodes"] + 1 / OUR_EPISODES)
        assert abs(mine.mean() - theirs["mean"]) <= limit * spread + 1e-9
    rewards = ours.rewards10 / 10  # [T, N]
    spread = rewards.std(axis=1) * np.sqrt(1 / stats["episodes"] + 1 / OUR_EPISODES)
    # A rare reward has no normal mean at one step; the floor is one such event of 10 points among their episodes.
    tolerance = np.maximum(limit * spread, 10 / stats["episodes"])
    assert (np.abs(rewards.mean(axis=1) - stats["reward_curve"]) <= tolerance).all()


def level_p_values(combo, access):
    """Two-sided p-values of CybORG's counts per (time, host, level), [21 * 13 * 3]. access [T, N, 13].

    Our frequencies are taken for the true chances. They come from at least five times CybORG's episodes; their own noise
    makes a false alarm about ten times as likely as said above, at most.
    """
    episodes = STATS[combo]["episodes"]
    theirs = np.rint(np.array(STATS[combo]["level_freq"]) * episodes).astype(int)  # [21, 13, 3]
    ours = np.stack([(access[STATS[combo]["level_t"]] == level).sum(axis=1) for level in range(3)], axis=2)
    p = (ours + 0.5) / (access.shape[1] + 1)
    at_most, at_least = stats.binom.cdf(theirs, episodes, p), stats.binom.sf(theirs - 1, episodes, p)
    return (2 * np.minimum(at_most, at_least)).clip(max=1)


CELLS = 21 * 13 * 3


def test_hosts_are_held_as_often_as_in_cyborg(combo, ours):
    """After steps 1, 5, 10, ... 100, each host at each level of access."""
    assert level_p_values(combo, ours.access).min() > FALSE_ALARM / (len(STATS) * CELLS)


def test_blue_sees_each_code_as_often_as_in_cyborg(combo, ours):
    """Share of steps on which a host shows a 4-bit code, over 30, 50 and 100 steps; codes of few episodes are skipped."""
    stats, obs = STATS[combo], ours.observations
    codes = obs.reshape(*obs.shape[:2], 13, 4) @ np.array([8, 4, 2, 1], np.int8)  # [T, N, 13]
    limit = z_limit(len(STATS) * 3 * 13 * 16)
    compared = 0
    for code in range(16):
        shown = codes == code
        for length in (30, 50, 100):
            share = np.count_nonzero(shown[:length], axis=0) / length  # [N, 13] of each episode
            theirs = np.array([row[code] for row in stats["code_freq"][str(length)]])
            often = (share > 0).mean(axis=0) * stats["episodes"] >= 20
            spread = share.std(axis=0) * np.sqrt(1 / stats["episodes"] + 1 / OUR_EPISODES)
            assert (np.abs(share.mean(axis=0) - theirs) <= limit * spread + 1e-5)[often].all()
            compared += often.sum()
    assert compared >= 3 * 13  # at least the code 0 of every host


def test_the_comparison_would_notice_the_wrong_variant():
    """The same test rejects `debugged` against the statistics of `current`: it has power."""
    wrong = play("b_line", "react_remove", OUR_EPISODES, variant="debugged", seed=5)
    assert level_p_values("B_line|react_remove", wrong.access).min() < FALSE_ALARM / (len(STATS) * CELLS)
