from fixfirst.adapters.agents import Agent as Agent
from fixfirst.adapters.envs import (
    Cage2 as Cage2,
    CyborgVecEnv as CyborgVecEnv,
    Remember as Remember,
    VecCage2 as VecCage2,
    make_vec as make_vec,
)
from fixfirst.api.attackers import (
    Exploit as Exploit,
    exploit as exploit,
    train_red as train_red,
)
from fixfirst.api.blue_agent import BlueAgent as BlueAgent
from fixfirst.api.evaluate import compare as compare, evaluate as evaluate, leaderboard as leaderboard
from fixfirst.api.league import LeagueRun as LeagueRun, train_league as train_league
from fixfirst.api.policies import export as export, rollout as rollout
from fixfirst.api.red_env import RedEnv as RedEnv, VecRedEnv as VecRedEnv
from fixfirst.api.run_objects import (
    Progress as Progress,
    SearchRun as SearchRun,
    StudyRun as StudyRun,
    TrainRun as TrainRun,
)
from fixfirst.api.running import load_run as load_run, resume as resume, search as search, train as train
from fixfirst.api.watch import watch as watch
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
    ScenarioError as ScenarioError,
    SearchError as SearchError,
    WorkerError as WorkerError,
    WorkflowError as WorkflowError,
    WorldError as WorldError,
)
from fixfirst.cyborg.learned_red import LearnedRed as LearnedRed
from fixfirst.game.game_config import Game as Game
from fixfirst.game.red_agents import red_agent as red_agent
from fixfirst.game.scenario import CAGE2 as CAGE2, Scenario as Scenario
from fixfirst.orders.compliance import Judging as Judging
from fixfirst.orders.order import UnitScheme as UnitScheme, Workflow as Workflow
from fixfirst.policy.action_sets import ActionSet as ActionSet
from fixfirst.policy.memory import MemoryScheme as MemoryScheme
from fixfirst.policy.reds import RedPolicy as RedPolicy, load_red as load_red
from fixfirst.policy.trained import Policy as Policy, load_policy as load_policy
from fixfirst.reporter.report import report as report
from fixfirst.settings.search import SearchConfig as SearchConfig, search_config as search_config
from fixfirst.settings.training import TrainConfig as TrainConfig, make_config as make_config

__version__: str
__all__: list[str]
