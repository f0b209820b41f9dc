"""fixfirst: when an attacker holds machines of several kinds, which kind should the defender fix first?

    import fixfirst as ff
    run = ff.search(red_agent="b_line", total_episodes=100_000)
    run.ranking, run.best, run.folder

Rooms in the order data flows; each imports only from those before it:
base (what all need) -> game (CAGE2 itself) -> orders (what to fix first) -> runs (the run directory) -> policy (what a
player is) -> play (a policy meets a world) -> cyborg (the original behind the same arrays) -> learner -> searcher ->
reporter -> api (the verbs below) -> cli (the commands).
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

# The public names, by the module each lives in. Type checkers read the same in __init__.pyi.
PUBLIC = {
    "base.errors": "ActionError ConfigError ConformanceError CyborgError FixfirstError Interrupted PolicyError "
    "ResetNeeded RunDirError ScenarioError SearchError WorkerError WorkflowError WorldError",
    "game.game_config": "Game",
    "game.red_agents": "red_agent",
    "game.scenario": "CAGE2 Scenario",
    "orders.compliance": "Judging",
    "orders.order": "UnitScheme Workflow",
    "policy.action_sets": "ActionSet",
    "policy.trained": "Policy load_policy",
    "policy.memory": "MemoryScheme",
    "policy.reds": "RedPolicy load_red",
    "adapters.agents": "Agent",
    "cyborg.learned_red": "LearnedRed",
    "adapters.envs": "Cage2 CyborgVecEnv Remember VecCage2 make_vec",
    "settings.training": "TrainConfig make_config",
    "settings.search": "SearchConfig search_config",
    "reporter.report": "report",
    "api.attackers": "Exploit exploit train_red",
    "api.league": "LeagueRun train_league",
    "api.blue_agent": "BlueAgent",
    "api.evaluate": "compare evaluate leaderboard",
    "api.policies": "export rollout",
    "api.running": "load_run resume search train",
    "api.red_env": "RedEnv VecRedEnv",
    "api.run_objects": "Progress SearchRun StudyRun TrainRun",
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


# ---------------------------------------------------------------- environments
#
# Gymnasium takes two tenths of a second to import, which a command that plays nothing need not wait for.

_GYMNASIUM = "gymnasium"
_ENVS = "fixfirst.adapters.envs"


def _register_environments() -> None:
    """Make `gymnasium.make("fixfirst/Cage2-v0")` work, whether Gymnasium is imported before fixfirst or after."""
    if _GYMNASIUM in sys.modules:
        _register(sys.modules[_GYMNASIUM])
    else:
        sys.meta_path.insert(0, _AfterGymnasium())


def _register(gymnasium: Any) -> None:
    gymnasium.register(id="fixfirst/Cage2-v0", entry_point=f"{_ENVS}:Cage2", vector_entry_point=f"{_ENVS}:VecCage2")
    gymnasium.register(id="fixfirst/Red-v0", entry_point="fixfirst.api.red_env:RedEnv")


class _AfterGymnasium:
    """A finder of modules that waits for Gymnasium, then removes itself and registers once Gymnasium is imported."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        if name != _GYMNASIUM:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                _register(module)

            spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


_register_environments()
