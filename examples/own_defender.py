"""A defender of your own: a function from what blue sees to actions. Judged as ours are.

fixfirst evaluate examples/own_defender.py:restore_what_looks_bad --leaderboard
"""

import numpy as np

import fixfirst as ff
from fixfirst.game.scenario import CAGE2

RESTORES = np.array([CAGE2.action_id("Restore", host) for host in CAGE2.host_names])


def restore_what_looks_bad(obs):
    """[N, 52] -> [N]. Bits 4h + 2 and 4h + 3 say what blue believes of host h."""
    believed = obs[:, 2::4] + obs[:, 3::4] > 0  # [N, 13]
    return np.where(believed.any(axis=1), RESTORES[believed.argmax(axis=1)], 0)


if __name__ == "__main__":
    for row in ff.compare(restore_what_looks_bad, "champion-current", episodes=500, quiet=True):
        print(f"{row.red_agent}: {row.first:.1f}, the champion {row.second:.1f}, more by [{row.low:.1f}, {row.high:.1f}]")
