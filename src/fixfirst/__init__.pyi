from fixfirst.api.blue_agent import BlueAgent as BlueAgent
from fixfirst.api.comparing import compare as compare
from fixfirst.api.evaluating import evaluate as evaluate, leaderboard as leaderboard
from fixfirst.api.exporting import export as export
from fixfirst.api.playing import rollout as rollout
from fixfirst.api.reporting import report as report
from fixfirst.api.resuming import resume as resume
from fixfirst.api.run_objects import (
    SearchRun as SearchRun,
    StudyRun as StudyRun,
    TrainRun as TrainRun,
    load_run as load_run,
)
from fixfirst.api.searching import search as search
from fixfirst.api.training import train as train
from fixfirst.api.watching import watch as watch
from fixfirst.base.errors import (
    ActionError as ActionError,
    ConfigError as ConfigError,
    ConformanceError as ConformanceError,
    CyborgError as CyborgError,
    FixfirstError as FixfirstError,
    Interrupted as Interrupted,
    PolicyError as PolicyError,
    ResetNeeded as ResetNeeded,
    RunDirError as RunDirError,
    SearchError as SearchError,
    WorkerError as WorkerError,
    WorkflowError as WorkflowError,
    WorldError as WorldError,
)
from fixfirst.game.game import Game as Game
from fixfirst.game.own_agents import red_agent as red_agent
from fixfirst.learner.config import TrainConfig as TrainConfig
from fixfirst.learner.settings import make_config as make_config
from fixfirst.orders.compliance import Judging as Judging
from fixfirst.orders.order import UnitScheme as UnitScheme, Workflow as Workflow
from fixfirst.play.envs import (
    Cage2 as Cage2,
    CyborgVecEnv as CyborgVecEnv,
    Remember as Remember,
    VecCage2 as VecCage2,
    make_vec as make_vec,
)
from fixfirst.policy.action_sets import ActionSet as ActionSet
from fixfirst.policy.file import Policy as Policy, load_policy as load_policy
from fixfirst.policy.memory import MemoryScheme as MemoryScheme
from fixfirst.searcher.config import SearchConfig as SearchConfig, search_config as search_config

__version__: str
__all__: list[str]
