"""Small numbers for commands and programs of the documents: a search takes seconds, and some order passes its gate."""

import re

from fixfirst.settings.resolve import ENVIRONMENT_PREFIX

SMALLER = dict(
    re.findall(
        r"(\w+)=(\S+)",
        """
    total_episodes=80 episodes=4 warmup_episodes=8 max_episodes=8 min_episodes=4 test_episodes=10 gate_episodes=10 n_envs=4
    episodes_per_update=4 max_steps=20 start_episodes=8 seek_episodes=8 final_episodes=4 replicates=2 rounds=2
    base_episodes=8 watch_episodes=8 selection_episodes=4 measure_episodes=8 opening_episodes=8 min_judged=2
    compliance_threshold=0.05 workers=1 seeds=2 exploit_episodes=50 exploit_updates=2 exploit_rounds=1
    exploit_replicates=1 exploit_test_episodes=4 train_episodes=50 updates=2 response_episodes=50""",
    )
)
SMALL_VARIABLES = {ENVIRONMENT_PREFIX + name.upper(): value for name, value in SMALLER.items()}
ONE_CORE = SMALL_VARIABLES | {"FIXFIRST_CORES": "1"}  # spares worker processes, which have their own tests


def with_smaller(code, **more):
    """Python code with small numbers in place of those it gives by name."""
    known = SMALLER | more
    return re.sub(r"\b(\w+)=[\d_]+", lambda given: f"{given[1]}={known.get(given[1], given[0].split('=')[1])}", code)
