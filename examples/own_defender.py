"""A defender of your own: a function from what blue sees to probabilities. Judged as ours are."""

import numpy as np

import fixfirst as ff
from fixfirst.game.scenario import CAGE2
from fixfirst.play.evaluation import evaluate
from fixfirst.policy.table import PolicyTable

RESTORES = np.array([CAGE2.action_id("Restore", host) for host in CAGE2.host_names])


def restore_what_looks_bad(inputs):
    """[M, 52] -> [M, 145]. Bits 4h + 2 and 4h + 3 say what blue believes of host h."""
    believed = inputs[:, 2::4] + inputs[:, 3::4] > 0  # [M, 13]
    actions = np.where(believed.any(axis=1), RESTORES[believed.argmax(axis=1)], 0)
    return np.eye(CAGE2.num_actions)[actions]


for red_agent in ("b_line", "meander"):
    game = ff.Game(red_agent=red_agent)
    mine = evaluate(PolicyTable(restore_what_looks_bad), game, episodes=500, seed=0, purpose="test")
    (ours,) = ff.evaluate("champion-current", red_agent=red_agent, steps=100, episodes=500, quiet=True)
    print(f"{red_agent}: {mine.mean:.1f} [{mine.low:.1f}, {mine.high:.1f}], the champion {ours.mean:.1f}")
