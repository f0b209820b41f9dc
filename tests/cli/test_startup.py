"""What starting costs: commands import what they need and nothing else, and Ctrl-C meanwhile is answered in one line."""

import signal
import subprocess
import sys

import pytest
from run_folder import write_search, write_training

from fixfirst.cli import COMMANDS, main

HEAVY = {"gymnasium", "matplotlib", "numba", "scipy", "torch"}

# Runs commands, separated by commas, and says after all else which modules are there.
COMMANDS_OF = """
import sys
from fixfirst.cli import main
assert all(main(command.split()) == 0 for command in sys.argv[1].split(","))
print("\\nmodules", *sys.modules)
"""

# Presses Ctrl-C when a module, the first argument, begins to be imported.
FINGER = """
import signal, sys
class Finger:
    def find_spec(self, name, path, target=None):
        if name == module:
            signal.raise_signal(signal.SIGINT)
module = sys.argv.pop(1)
sys.meta_path.insert(0, Finger())
"""
INTERRUPTED_AT = f"{FINGER}from fixfirst.cli import main; sys.exit(main())"


def python(code, *arguments, folder=None):
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=folder)


def imported_by(code, *arguments, folder=None):
    """The modules that a process which ends well has imported in the end."""
    run = python(code, *arguments, folder=folder)
    assert run.returncode == 0, run.stderr
    return set(run.stdout.splitlines()[-1].split())


def test_importing_fixfirst_imports_no_library_and_help_no_command():
    modules = imported_by("import sys, fixfirst; print(*sys.modules)")
    assert not (HEAVY | {"numpy", "pydantic", "cyclopts", "rich"}) & modules
    modules = imported_by(COMMANDS_OF, "--help")
    assert not (HEAVY | {"numpy", *(f"fixfirst.cli.{file}" for file in COMMANDS.values())}) & modules


def test_neither_the_help_of_commands_nor_listing_runs_waits_for_a_simulator(tmp_path):
    """The empty command is the welcome, which lists runs, too."""
    write_search(tmp_path / "runs" / "search")
    write_training(tmp_path / "runs" / "training")
    helps = [f"{command} --help" for command in ("search", "train", "watch", "resume", "report", "runs")]
    assert not HEAVY & imported_by(COMMANDS_OF, ",".join([*helps, "runs", "runs --json", ""]), folder=tmp_path)


def test_evaluating_loads_machine_code_without_what_compiles_it():
    """Numba comes; what it brings to compile, SciPy among it, does not."""
    command = "evaluate react-restore --episodes 2 --steps 3 --quiet"
    assert main(command.split()) == 0  # compiles, if nobody did
    modules = imported_by(COMMANDS_OF, command)
    assert modules & HEAVY <= {"numba", "scipy"}
    assert not {"scipy.linalg", "scipy.special", "numba.np.linalg"} & modules


# ---------------------------------------------------------------- Gymnasium


@pytest.mark.parametrize("order", ["gymnasium, fixfirst", "fixfirst, gymnasium"])
def test_gymnasium_knows_the_environment_whoever_comes_first_and_nothing_stays_where_modules_are_found(order):
    code = f"import sys; before = list(sys.meta_path); import {order}; print(sys.meta_path == before)\n"
    code += "gymnasium.make('fixfirst/Cage2-v0'); print(gymnasium.make_vec('fixfirst/Cage2-v0', num_envs=3).num_envs)"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stdout.split()) == (0, ["True", "3"]), run.stderr


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


def test_an_interrupt_when_all_is_done_changes_nothing():
    code = "import atexit, signal, sys; from fixfirst.__main__ import main\n"
    code += "atexit.register(lambda: signal.raise_signal(signal.SIGINT)); sys.exit(main())"
    run = python(code, "--version")
    assert (run.returncode, run.stderr) == (0, "") and run.stdout


@pytest.mark.parametrize(
    ("statement", "says"), [("import fixfirst.__main__", ""), ("import fixfirst.cli", "KeyboardInterrupt")]
)
def test_only_the_command_itself_ends_without_a_traceback_from_its_first_import_on(statement, says):
    run = python(FINGER + statement, "fixfirst.cli.entry")
    assert run.stderr.strip().endswith(says) and bool(run.stderr) == bool(says)
    assert run.returncode in (-signal.SIGINT, 130)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_polite_kill_and_a_closed_terminal_are_answered_like_ctrl_c(number):
    """Also in a shell's background, where Ctrl-C is ignored."""
    code = "import signal, sys; from fixfirst.cli import entry; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    code += "entry._run = lambda words: signal.raise_signal(int(words[0])); sys.exit(entry.main())"
    run = python(code, str(int(number)))
    assert (run.returncode, run.stderr) == (130, "fixfirst: interrupted\n")
