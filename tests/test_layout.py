"""The house: twelve rooms in the order data flows; and the public names are what they seem."""

import ast
import inspect
import pickle
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import gymnasium as gym
import pytest

import fixfirst as ff

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "fixfirst"

# A room imports only from the rooms before it.
ROOMS = ("base", "game", "orders", "runs", "policy", "play", "cyborg", "learner", "searcher", "reporter", "api", "cli")
BESIDE_THE_ROOMS = {"__init__.py", "__init__.pyi", "__main__.py", "py.typed", "red.py", "sb3.py", "shipped"}
# Rooms that keep to fewer: the run directory knows orders only, and a report can be rebuilt from files.
KEEPS_TO = {"runs": {"base", "orders"}, "reporter": {"base", "game", "orders", "runs", "policy", "play"}}
# CybORG is an adapter: worlds of it are made by name, and only verbs and commands import it.
MAY_IMPORT_CYBORG = {"cyborg", "api", "cli"}


def modules(room=""):
    return sorted(path for path in (SOURCE / room).rglob("*.py"))


def imports(path, *, at_run_time=False):
    """What a file imports of fixfirst: the dotted module below it, and the name; at run time or for type checkers, too."""
    tree = ast.parse(path.read_text())
    if at_run_time:
        tree.body = [
            node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        ]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fixfirst":
            yield from ((node.module.partition(".")[2], alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("fixfirst") for alias in node.names), f"{path}: import names, not modules"


# ---------------------------------------------------------------- rooms


def test_the_house_has_twelve_rooms_and_nothing_lies_about():
    inside = {path.name for path in SOURCE.iterdir()} - {"__pycache__"}
    assert inside == {*ROOMS, *BESIDE_THE_ROOMS}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_the_rooms_before_it(room):
    before = set(ROOMS[: ROOMS.index(room)]) - ({"cyborg"} if room not in MAY_IMPORT_CYBORG else set())
    for path in modules(room):
        for module, name in imports(path):
            found = module.split(".")[0] or name
            if room == "reporter" and found == "searcher":  # whom it shows, for type checkers
                assert (module, name) not in {(m, n) for m, n in imports(path, at_run_time=True)}
            elif not (found == "__version__" and room == "cli"):
                assert found == room or found in KEEPS_TO.get(room, before), f"{path.name} imports {found}.{name}"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for_and_offers_nothing_by_itself(room):
    """Imports name the module a thing lives in."""
    tree = ast.parse((SOURCE / room / "__init__.py").read_text())
    assert 40 < len(ast.get_docstring(tree)) < 600
    assert room == "cli" or len(tree.body) == 1


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_can_be_read_from_top_to_bottom(room):
    """Its modules can be put in an order in which each imports only earlier ones: no cycle."""
    inside = {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in modules(room)}
    waiting = {
        name: {m if m in inside else f"{m}.{n}" for m, n in imports(path, at_run_time=True)} & set(inside) - {name}
        for name, path in inside.items()
        if not name.endswith("__init__")
    }
    while waiting:
        ready = [name for name, needs in waiting.items() if not needs & set(waiting)]
        assert ready, f"these import each other: {sorted(waiting)}"
        for name in ready:
            del waiting[name]


def test_every_file_of_tests_has_a_name_of_its_own():
    """Or pytest, which imports them by name, would refuse to run them together."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py")]
    assert sorted(set(names)) == sorted(names)


def test_outside_the_game_sizes_are_asked_of_the_scenario_that_was_given():
    """What the kernel looks up stays in its room; the most that a type of records holds is no size of a scenario."""
    for room in ROOMS[2:]:
        for path in modules(room):
            if ("game", "tables") in imports(path):
                nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)]
                names = {node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == "tables"}
                assert names <= {"SMALL", "LARGE", "Size", "size_of", "tables_of"}, f"{path.name} uses {names}"
            assert "game.tables" not in {module for module, _ in imports(path)}, f"{path.name} imports names of tables"


def test_choosing_orders_knows_neither_the_world_nor_learning():
    for name in ("gp", "strategy"):
        for module, _ in imports(SOURCE / "searcher" / f"{name}.py"):
            assert module.split(".")[0] in {"base", "orders", "searcher"}


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


def test_the_core_needs_neither_pytorch_nor_what_rests_on_it_nor_scipy():
    assert subprocess.run([sys.executable, "-c", THE_CORE_ALONE]).returncode == 0


def test_neither_is_a_dependency_of_the_core():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {re.match(r"[\w-]+", requirement)[0] for requirement in project["dependencies"]}
    assert not named & {"torch", "gpytorch", "botorch", "stable-baselines3", "ray", "scipy", "tensorboard"}


# ---------------------------------------------------------------- public names

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


def test_public_names_are_sorted_and_all_of_a_known_kind():
    assert sorted(ff.__all__) == ff.__all__ == sorted(" ".join(KINDS.values()).split())
    assert set(ff.__all__) <= set(dir(ff))


def test_type_checkers_read_the_same_public_names():
    tree = ast.parse((SOURCE / "__init__.pyi").read_text())
    stub = {alias.name: node.module for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert stub == {name: f"fixfirst.{module}" for module, names in ff.PUBLIC.items() for name in names.split()}


def test_public_names_are_what_their_kind_says_also_on_second_use():
    for _ in range(2):
        for name in KINDS["functions"].split():
            assert inspect.isfunction(getattr(ff, name)) and getattr(ff, name).__doc__, name
            __import__("fixfirst.cli")  # whatever else is imported, a function is not hidden by a module
        for name in KINDS["environments"].split():
            assert issubclass(getattr(ff, name), gym.Env | gym.vector.VectorEnv), name
        for name in KINDS["values"].split():
            assert inspect.isclass(getattr(ff, name)) and getattr(ff, name).__doc__, name
        for name in KINDS["errors"].split():
            assert issubclass(getattr(ff, name), ff.FixfirstError | KeyboardInterrupt), name


def test_no_module_of_the_house_hides_a_public_name():
    """A file of a room may have the name of its verb: whoever imports it asks the room, not the package, for it."""
    assert not {path.stem for path in SOURCE.iterdir()} & set(ff.__all__)


def test_everything_public_can_be_pickled_by_name():
    for name in ff.__all__:
        assert pickle.loads(pickle.dumps(getattr(ff, name))) is getattr(ff, name)


# ---------------------------------------------------------------- documents


def test_contributors_see_the_rooms_in_their_order():
    blocks = (ROOT / "CONTRIBUTING.md").read_text().split("```")
    (tree,) = (block for block in blocks if block.strip().startswith("src/fixfirst/"))
    assert tuple(re.findall(r"^  (\w+)/", tree, re.M)) == ROOMS
    assert len(tree.strip().splitlines()) <= 13


def test_the_documents_name_only_functions_that_exist():
    """They say of each rule where it lives, as `room/file.py: function`."""
    text = "\n".join(path.read_text() for path in (ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")))
    named = re.findall(r"`((?:\w+/)*\w+)\.py: ([\w., ]+)`", text)
    assert len(named) > 30
    for module, functions in named:
        (path,) = (path for path in modules() if str(path.relative_to(SOURCE).with_suffix("")).endswith(module))
        for function in functions.split(", "):
            name = function.split(".")[-1]
            assert re.search(rf"\b{name}\b", path.read_text()), f"{module}.py has no {name}"
