"""What starting costs: commands import what they need and nothing else, and Ctrl-C meanwhile is answered in one line."""

import ast
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest
from run_folder import write_search, write_training

import fixfirst as ff
from fixfirst.cli.app import COMMANDS, app

HEAVY = {"gymnasium", "matplotlib", "numba", "scipy", "torch"}
CLI = Path(ff.__file__).parent / "cli"

# Says, after all else, which modules are there.
MAIN = """
import atexit, sys
atexit.register(lambda: print("\\nmodules", *sys.modules))
from fixfirst.cli import main
sys.exit(main())
"""

# Presses Ctrl-C when a module, the first argument, begins to be imported.
INTERRUPTED_AT = """
import signal, sys
class Finger:
    def find_spec(self, name, path, target=None):
        if name == module:
            signal.raise_signal(signal.SIGINT)
module = sys.argv.pop(1)
sys.meta_path.insert(0, Finger())
from fixfirst.cli import main
sys.exit(main())
"""


def python(code, *arguments, folder=None):
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=folder)


def imported_by(code, *arguments, folder=None):
    """The heavy libraries that a process which ends well has imported in the end."""
    run = python(code, *arguments, folder=folder)
    assert run.returncode == 0, run.stderr
    return HEAVY & set(run.stdout.splitlines()[-1].split())


def test_importing_fixfirst_imports_no_library():
    assert imported_by("import sys, fixfirst; print(*sys.modules)") == set()
    run = python("import sys, fixfirst; print(*sys.modules)")
    assert not {"numpy", "pydantic", "cyclopts", "rich"} & set(run.stdout.split())


def test_help_imports_no_command():
    assert imported_by(MAIN, "--help") == set()
    run = python(MAIN, "--help")
    assert "numpy" not in run.stdout.split() and not any(f"fixfirst.cli.{name}" in run.stdout for name in COMMANDS)


@pytest.mark.parametrize("command", ["search", "train", "watch", "resume", "report", "runs"])
def test_a_commands_help_waits_for_no_simulator(command):
    assert imported_by(MAIN, command, "--help") == set()


def test_listing_runs_imports_what_reads_files(tmp_path):
    write_search(tmp_path / "runs" / "search")
    write_training(tmp_path / "runs" / "training")
    for arguments in (["runs"], ["runs", "--json"], []):  # without arguments: the welcome
        assert imported_by(MAIN, *arguments, folder=tmp_path) == set()


def test_evaluating_loads_machine_code_without_what_compiles_it():
    """Numba comes; what it brings to compile, SciPy among it, does not."""
    assert imported_by(MAIN, "evaluate", "react-restore", "--episodes", "2", "--steps", "3", "--quiet") <= {"numba", "scipy"}
    run = python(MAIN, "evaluate", "react-restore", "--episodes", "2", "--steps", "3", "--quiet")
    assert not {"scipy.linalg", "scipy.special", "numba.np.linalg"} & set(run.stdout.splitlines()[-1].split())


# ---------------------------------------------------------------- the same words


@pytest.mark.parametrize("command", COMMANDS)
def test_a_commands_help_is_its_docstring(command):
    resolved = app[command]
    assert ast.get_docstring(ast.parse(f"def f():\n    {resolved.default_command.__doc__!r}").body[0]) == resolved.help
    assert resolved.default_command.__module__ == f"fixfirst.cli.{command}"


def test_every_file_of_a_command_is_one():
    shared = {"__init__", "app", "entry", "flags"}
    assert {path.stem for path in CLI.glob("*.py")} == {*COMMANDS, *shared}


# ---------------------------------------------------------------- Gymnasium


@pytest.mark.parametrize("order", ["gymnasium, fixfirst", "fixfirst, gymnasium"])
def test_gymnasium_knows_the_environment_whoever_comes_first(order):
    use = (
        "e = gymnasium.make('fixfirst/Cage2-v0'); v = gymnasium.make_vec('fixfirst/Cage2-v0', num_envs=3); print(v.num_envs)"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", f"import {order}; {use}"], capture_output=True, text=True)
    assert (run.returncode, run.stdout.strip()) == (0, "3"), run.stderr


def test_nothing_of_ours_stays_where_modules_are_found():
    assert "fixfirst/Cage2-v0" in gym.registry
    run = python("import sys; before = list(sys.meta_path); import fixfirst, gymnasium; print(sys.meta_path == before)")
    assert run.stdout.strip() == "True", run.stderr


# ---------------------------------------------------------------- Ctrl-C


@pytest.mark.parametrize("module", ["cyclopts", "fixfirst.cli.evaluate", "numpy", "pydantic", "numba", "llvmlite.binding"])
def test_an_interrupt_during_an_import_is_answered_in_one_line(module):
    run = python(INTERRUPTED_AT, module, "evaluate", "sleep", "--episodes", "2")
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "fixfirst: interrupted\n")


CLASS_MAKER = """
import signal
class Member:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)
class Owner:
    member = Member()
"""


def test_an_interrupt_while_a_module_makes_a_class_is_no_other_error(tmp_path):
    """Python 3.11 makes a RuntimeError of whatever is raised there."""
    (tmp_path / "class_maker.py").write_text(CLASS_MAKER)
    code = "import sys; from fixfirst.cli import entry; entry._run = lambda arguments: __import__('class_maker')"
    run = python(f"{code}; sys.exit(entry.main())", folder=tmp_path)
    assert (run.returncode, run.stderr) == (130, "fixfirst: interrupted\n")


def test_whoever_ignores_interrupts_goes_on_ignoring_them():
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + INTERRUPTED_AT
    run = python(code, "numpy", "evaluate", "sleep", "--episodes", "2", "--steps", "3", "--quiet")
    assert run.returncode == 0, run.stderr
