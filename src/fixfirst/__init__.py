"""fixfirst: when an attacker holds machines of several kinds, which kind should the defender fix first?

    import fixfirst as ff
    run = ff.search(red_agent="b_line", total_episodes=100_000)
    run.ranking, run.best, run.folder

Rooms in the order data flows; each imports only from those before it:
base (what all need) -> game (CAGE2 itself) -> orders (what to fix first) -> runs (the run directory) -> policy (what a
player is) -> play (a policy meets a world) -> cyborg (the original behind the same arrays) -> learner -> searcher ->
reporter -> api (the verbs below) -> cli (the commands).
"""

from importlib import import_module
from typing import Any

from fixfirst.play.registration import register_environments

__version__ = "0.1.0"

# The public names, by the module each lives in. Type checkers read the same in __init__.pyi.
PUBLIC = {
    "base.errors": "ActionError ConfigError ConformanceError CyborgError FixfirstError Interrupted PolicyError "
    "ResetNeeded RunDirError ScenarioError SearchError WorkerError WorkflowError WorldError",
    "game.game": "Game",
    "game.own_agents": "red_agent",
    "game.scenario": "CAGE2 Scenario",
    "orders.compliance": "Judging",
    "orders.order": "UnitScheme Workflow",
    "policy.action_sets": "ActionSet",
    "policy.file": "Policy load_policy",
    "policy.memory": "MemoryScheme",
    "policy.red_file": "RedPolicy load_red",
    "play.agents": "Agent",
    "cyborg.learned_red": "LearnedRed",
    "play.envs": "Cage2 CyborgVecEnv Remember VecCage2 make_vec",
    "learner.config": "TrainConfig make_config",
    "searcher.config": "SearchConfig search_config",
    "reporter.report": "report",
    "api.attackers": "Exploit exploit train_red",
    "api.blue_agent": "BlueAgent",
    "api.evaluate": "compare evaluate leaderboard",
    "api.following": "Progress",
    "api.league": "LeagueRun train_league",
    "api.policies": "export rollout",
    "api.red_env": "RedEnv VecRedEnv",
    "api.resuming": "resume",
    "api.run_objects": "SearchRun StudyRun TrainRun load_run",
    "api.searching": "search",
    "api.training": "train",
    "api.watch": "watch",
}
_MODULE_OF = {name: f"fixfirst.{module}" for module, names in PUBLIC.items() for name in names.split()}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Import a public name when somebody asks for it: nobody waits for what the others need."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register_environments()
