"""The house: ten rooms in the order data flows, each entered by its face; and the public names are what they seem."""

import ast
import inspect
import pickle
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import gymnasium as gym
import pytest

import fixfirst as ff

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "fixfirst"

# A room imports only from the rooms before it.
ROOMS = ("game", "orders", "cyborg", "play", "runs", "learner", "searcher", "reporter", "api", "cli")
BESIDE_THE_ROOMS = {"__init__.py", "__main__.py", "errors.py", "faces.py", "locks.py", "py.typed", "reading.py", "red.py"}
BESIDE_THE_ROOMS |= {"sb3.py", "starting.py"}
# Rooms that keep to fewer: the run directory knows orders only, and a report can be rebuilt from files.
KEEPS_TO = {
    "runs": {"errors", "faces", "locks", "reading", "orders"},
    "reporter": {"errors", "faces", "reading", "game", "orders", "play", "runs"},
}


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


def room_of(path):
    return path.relative_to(SOURCE).parts[0]


# ---------------------------------------------------------------- rooms


def test_the_house_has_ten_rooms_and_nothing_lies_about():
    inside = {path.name for path in SOURCE.iterdir()} - {"__pycache__"}
    assert inside == {*ROOMS, *BESIDE_THE_ROOMS}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_the_rooms_before_it(room):
    before = {"errors", "faces", "locks", "reading", "starting", *ROOMS[: ROOMS.index(room)]}
    for path in modules(room):
        for module, name in imports(path):
            found = module.split(".")[0] or name
            if room == "reporter" and found == "searcher":  # whom it shows, for type checkers
                assert ("searcher", name) not in {(m, n) for m, n in imports(path, at_run_time=True)}
            elif not (found == "__version__" and room == "cli"):
                assert found == room or found in KEEPS_TO.get(room, before), f"{path.name} imports {found}.{name}"


@pytest.mark.parametrize("room", ROOMS)
def test_outside_a_room_only_its_face_is_imported(room):
    for path in modules():
        if path.parent == SOURCE or room_of(path) != room:
            for module, name in imports(path):
                assert not module.startswith(f"{room}."), f"{path.name} imports {module}.{name}; the face is fixfirst.{room}"


@pytest.mark.parametrize("room", ROOMS)
def test_a_face_says_what_the_room_is_for_and_offers_what_others_use(room):
    face = SOURCE / room / "__init__.py"
    tree = ast.parse(face.read_text())
    assert 40 < len(ast.get_docstring(tree)) < 600
    offered = {name for module, name in imports(face)} - {"offers"}
    outside = (path for path in modules() if path.parent == SOURCE or room_of(path) != room)
    used = {name for path in outside for module, name in imports(path) if module == room}
    assert offered == used, f"offered in vain: {offered - used}"


@pytest.mark.parametrize("room", ROOMS)
def test_whatever_a_face_offers_can_be_had_and_is_hidden_by_no_module_of_the_room(room):
    """A module, once imported, would stand in the face under its own name."""
    face = import_module(f"fixfirst.{room}")
    offered = {name for module, name in imports(SOURCE / room / "__init__.py") if module.startswith(room)}
    assert offered <= set(dir(face))
    assert not offered & {path.stem for path in (SOURCE / room).iterdir()}
    assert not any(inspect.ismodule(getattr(face, name)) for name in offered)
    with pytest.raises(AttributeError, match=f"module 'fixfirst.{room}' has no attribute 'nonsense'"):
        _ = face.nonsense


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


def test_choosing_orders_knows_neither_the_world_nor_learning():
    """Of the game they take its compiler and its mathematics only."""
    for name in ("gp", "posterior", "strategy"):
        for module, imported in imports(SOURCE / "searcher" / f"{name}.py"):
            assert module.split(".")[0] in {"errors", "orders", "searcher"} or imported in {"compiled", "exp", "log"}


def test_importing_everything_brings_neither_pytorch_nor_matplotlib():
    """PyTorch comes when something is trained, matplotlib when something is drawn."""
    everything = "import sys; from fixfirst import *; from fixfirst.cli.app import app; [app[name] for name in app]"
    code = f"{everything}; sys.exit(bool({{'torch', 'matplotlib', 'ray'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


THE_CORE_ALONE = """
import sys
for name in ("torch", "gpytorch", "botorch", "tensorflow", "scipy"):
    sys.modules[name] = None  # as if not installed: importing it raises
from pathlib import Path
import numpy as np
import fixfirst, fixfirst.api, fixfirst.cli
from fixfirst.runs.events import TensorBoard
from fixfirst.searcher.gp import OrderGP
orders = np.array([[0, 1, 2], [2, 1, 0]])
assert OrderGP(orders, np.array([1.0, 2.0]), np.array([0.1, 0.1])).predict(orders).mean.argmax() == 1
TensorBoard(Path(sys.argv[1]), first_step=1).close()
"""


def test_the_core_needs_neither_pytorch_nor_what_rests_on_it_nor_scipy(tmp_path):
    assert subprocess.run([sys.executable, "-c", THE_CORE_ALONE, tmp_path]).returncode == 0


def test_neither_is_a_dependency_of_the_core():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {re.match(r"[\w-]+", requirement)[0] for requirement in project["dependencies"]}
    assert not named & {"torch", "gpytorch", "botorch", "stable-baselines3", "ray", "scipy"}


# ---------------------------------------------------------------- public names

KINDS = {
    "functions": "compare evaluate export leaderboard load_policy load_run make_config make_vec red_agent report resume "
    "rollout search search_config train watch",
    "environments": "Cage2 CyborgVecEnv Remember VecCage2",
    "values": "ActionSet BlueAgent Game Judging MemoryScheme Policy SearchConfig SearchRun StudyRun TrainConfig TrainRun "
    "UnitScheme Workflow",
    "errors": "ActionError ConfigError ConformanceError CyborgError FixfirstError Interrupted PolicyError ResetNeeded "
    "RunDirError SearchError WorkerError WorkflowError WorldError",
}


def test_public_names_are_sorted_and_all_of_a_known_kind():
    assert sorted(ff.__all__) == ff.__all__ == sorted(" ".join(KINDS.values()).split())
    assert set(ff.__all__) <= set(dir(ff))


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
    hidden = {path.stem for path in (*SOURCE.iterdir(), *(SOURCE / "api").iterdir())} & set(ff.__all__)
    assert not hidden


def test_everything_public_can_be_pickled_by_name():
    for name in ff.__all__:
        assert pickle.loads(pickle.dumps(getattr(ff, name))) is getattr(ff, name)


# ---------------------------------------------------------------- documents


def test_the_readme_shows_the_rooms_in_their_order():
    blocks = (ROOT / "README.md").read_text().split("```")
    (tree,) = (block for block in blocks if block.strip().startswith("src/fixfirst/"))
    assert tuple(re.findall(r"^  (\w+)/", tree, re.M)) == ROOMS
    assert len(tree.strip().splitlines()) <= 12


def test_the_documents_name_only_functions_that_exist():
    """They say of each rule where it lives, as `room/file.py: function`."""
    text = "\n".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    named = re.findall(r"`((?:\w+/)*\w+)\.py: ([\w., ]+)`", text)
    assert len(named) > 40
    for module, functions in named:
        (path,) = (path for path in modules() if str(path.relative_to(SOURCE).with_suffix("")).endswith(module))
        for function in functions.split(", "):
            name = function.split(".")[-1]
            assert re.search(rf"\b{name}\b", path.read_text()), f"{module}.py has no {name}"
