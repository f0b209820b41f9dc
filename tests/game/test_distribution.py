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


STATS = json.loads((Path(__file__).parent.parent / "conformance" / "stats.json").read_text())["combos"]
OUR_EPISODES = 2_500


def check_returns_and_reward_curve(combo, ours):
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


def check_what_blue_sees(combo, ours):
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


@pytest.mark.parametrize("combo", STATS)
def test_returns_rewards_what_is_held_and_what_blue_sees_are_distributed_as_in_cyborg(combo):
    """Access of each host at each level after steps 1, 5, 10, ... 100."""
    red, policy = combo.split("|")
    red, _, green = red.partition("+")
    ours = play(red.lower(), policy, OUR_EPISODES, green=bool(green), seed=5)
    check_returns_and_reward_curve(combo, ours)
    assert level_p_values(combo, ours.access).min() > FALSE_ALARM / (len(STATS) * CELLS)
    check_what_blue_sees(combo, ours)


def test_the_comparison_would_notice_the_wrong_variant():
    """The same test rejects `debugged` against the statistics of `current`: it has power."""
    wrong = play("b_line", "react_remove", OUR_EPISODES, variant="debugged", seed=5)
    assert level_p_values("B_line|react_remove", wrong.access).min() < FALSE_ALARM / (len(STATS) * CELLS)
