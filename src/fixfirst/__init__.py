"""fixfirst: when an attacker holds machines of several kinds, which kind should the defender fix first?

    import fixfirst as ff
    run = ff.search(red_agent="b_line", total_episodes=100_000)
    run.ranking, run.best, run.folder

How data flows through the rooms, each of which imports only from those before it:
game (CAGE2 itself) -> orders (what to fix first) -> cyborg (the original behind the same arrays) -> play (a policy meets a
world) -> runs (the run directory) -> learner -> searcher -> reporter -> api (the verbs below) -> cli (the commands).
"""

# ruff: noqa: E402  Ctrl-C is answered before anything else is imported
from fixfirst.starting import answer_interrupts

answer_interrupts()

from typing import TYPE_CHECKING

from fixfirst.faces import offers
from fixfirst.game.registration import register_environments

if TYPE_CHECKING:
    from fixfirst.api.blue_agent import BlueAgent
    from fixfirst.api.comparing import compare
    from fixfirst.api.evaluating import evaluate, leaderboard
    from fixfirst.api.exporting import export
    from fixfirst.api.playing import rollout
    from fixfirst.api.reporting import report
    from fixfirst.api.resuming import resume
    from fixfirst.api.run_objects import SearchRun, StudyRun, TrainRun, load_run
    from fixfirst.api.searching import search
    from fixfirst.api.training import train
    from fixfirst.api.watching import watch
    from fixfirst.cyborg.vec_env import CyborgVecEnv, make_vec
    from fixfirst.errors import (
        ActionError,
        ConfigError,
        ConformanceError,
        CyborgError,
        FixfirstError,
        Interrupted,
        PolicyError,
        ResetNeeded,
        RunDirError,
        SearchError,
        WorkerError,
        WorkflowError,
        WorldError,
    )
    from fixfirst.game.action_sets import ActionSet
    from fixfirst.game.gym_env import Cage2, Remember, VecCage2
    from fixfirst.game.memory_schemes import MemoryScheme
    from fixfirst.game.own_agents import red_agent
    from fixfirst.game.settings import Game
    from fixfirst.learner.config import TrainConfig
    from fixfirst.learner.policy_file import Policy, load_policy
    from fixfirst.learner.settings import make_config
    from fixfirst.orders.compliance import Judging
    from fixfirst.orders.workflow import UnitScheme, Workflow
    from fixfirst.searcher.config import SearchConfig, search_config
else:
    __getattr__, __dir__ = offers(__name__)

__version__ = "0.1.0"
__all__ = [
    "ActionError",
    "ActionSet",
    "BlueAgent",
    "Cage2",
    "ConfigError",
    "ConformanceError",
    "CyborgError",
    "CyborgVecEnv",
    "FixfirstError",
    "Game",
    "Interrupted",
    "Judging",
    "MemoryScheme",
    "Policy",
    "PolicyError",
    "Remember",
    "ResetNeeded",
    "RunDirError",
    "SearchConfig",
    "SearchError",
    "SearchRun",
    "StudyRun",
    "TrainConfig",
    "TrainRun",
    "UnitScheme",
    "VecCage2",
    "WorkerError",
    "Workflow",
    "WorkflowError",
    "WorldError",
    "compare",
    "evaluate",
    "export",
    "leaderboard",
    "load_policy",
    "load_run",
    "make_config",
    "make_vec",
    "red_agent",
    "report",
    "resume",
    "rollout",
    "search",
    "search_config",
    "train",
    "watch",
]

register_environments()
