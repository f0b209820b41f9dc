"""The public names are what they seem, and importing them is light.

The rooms and who imports whom: `python benchmarks/house.py --check`.
"""

import ast
import inspect
import pickle
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import gymnasium as gym

import fixfirst as ff

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "fixfirst"


def test_importing_everything_brings_neither_pytorch_nor_matplotlib():
    """PyTorch comes when something is trained, matplotlib when something is drawn."""
    everything = "import sys; from fixfirst import *; from fixfirst.cli.app import app; [app[name] for name in app]"
    code = f"{everything}; sys.exit(bool({{'torch', 'matplotlib', 'ray'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


THE_CORE_ALONE = """
import sys
for name in ("torch", "gpytorch", "botorch", "tensorflow", "tensorboard", "scipy"):
    sys.modules[name] = None  # as if not installed: importing it raises
import numpy as np
import fixfirst, fixfirst.api, fixfirst.cli
from fixfirst.searcher.gp import OrderGP
orders = np.array([[0, 1, 2], [2, 1, 0]])
assert OrderGP(orders, np.array([1.0, 2.0]), np.array([0.1, 0.1])).predict(orders).mean.argmax() == 1
"""


def test_the_core_needs_neither_pytorch_nor_what_rests_on_it_nor_scipy_and_none_is_a_dependency():
    assert subprocess.run([sys.executable, "-c", THE_CORE_ALONE]).returncode == 0
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {re.match(r"[\w-]+", requirement)[0] for requirement in project["dependencies"]}
    assert not named & {"torch", "gpytorch", "botorch", "stable-baselines3", "ray", "scipy", "tensorboard"}


KINDS = {
    "functions": "compare evaluate exploit export leaderboard load_policy load_red load_run make_config make_vec red_agent "
    "report resume rollout search search_config train train_league train_red watch",
    "environments": "Cage2 CyborgVecEnv RedEnv Remember VecCage2 VecRedEnv",
    "values": "ActionSet Agent BlueAgent Exploit Game Judging LeagueRun LearnedRed MemoryScheme Policy Progress RedPolicy "
    "Scenario SearchConfig SearchRun StudyRun TrainConfig TrainRun UnitScheme Workflow",
    "built-in values": "CAGE2",
    "errors": "ActionError ConfigError ConformanceError CyborgError FixfirstError Interrupted PolicyError ResetNeeded "
    "RunDirError ScenarioError SearchError WorkerError WorkflowError WorldError",
}


def test_public_names_are_sorted_all_of_a_known_kind_and_the_same_for_type_checkers():
    assert sorted(ff.__all__) == ff.__all__ == sorted(" ".join(KINDS.values()).split())
    assert set(ff.__all__) <= set(dir(ff))
    assert not {path.stem for path in SOURCE.iterdir()} & set(ff.__all__)  # no room hides a name
    tree = ast.parse((SOURCE / "__init__.pyi").read_text())
    stub = {alias.name: node.module for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert stub == {name: f"fixfirst.{module}" for module, names in ff.PUBLIC.items() for name in names.split()}


def test_public_names_are_what_their_kind_says_also_on_second_use_and_can_be_pickled():
    are = {
        "functions": inspect.isfunction,
        "environments": lambda value: issubclass(value, gym.Env | gym.vector.VectorEnv),
        "values": inspect.isclass,
        "built-in values": lambda value: isinstance(value, ff.Scenario),
        "errors": lambda value: issubclass(value, ff.FixfirstError | KeyboardInterrupt),
    }
    for _ in range(2):
        for kind, names in KINDS.items():
            for name in names.split():
                value = getattr(ff, name)
                assert are[kind](value) and value.__doc__ and pickle.loads(pickle.dumps(value)) is value, name
        __import__("fixfirst.cli")  # whatever else is imported, a function is not hidden by a module
