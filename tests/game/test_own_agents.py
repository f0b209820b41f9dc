"""Red agents of users: registered by name, compiled by themselves; where it matters what came first, in a new process."""

import importlib
import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

import fixfirst as ff
from fixfirst.cli import main
from fixfirst.game import red_agents
from fixfirst.game.state import RedVerb

SCANNER = """
import fixfirst as ff
from fixfirst.red import USER, Verb, any_user, intends

@ff.red_agent("scanner")
def scanner(env, chance):
    if env.red_verb == Verb.SLEEP:
        intends(env, Verb.DISCOVER, USER)
    else:
        intends(env, Verb.SCAN, any_user(env, chance))
"""


def turns(red_agent, steps=3):
    """What red does in its first turns, and whether to a host of the user subnet."""
    envs = ff.make_vec(1, red_agent=red_agent)
    envs.reset(seed=0)
    said = []
    for _ in range(steps):
        envs.step(np.zeros(1, int))
        (state,) = envs.get_state()
        said.append(f"{RedVerb(state['red_verb']).name} {9 <= state['red_target'] <= 12}")
    return said


PLAY = f"""
import sys, numpy as np, fixfirst as ff
from fixfirst.game.state import RedVerb

{inspect.getsource(turns)}
print(*turns(sys.argv[1]), sep="\\n")
"""
DECIDES = ["DISCOVER False", "SCAN True", "SCAN True"]


def run(folder, *arguments, **variables):
    command = [sys.executable, *(["-c"] if arguments[0].count("\n") else []), *arguments]
    return subprocess.run(command, cwd=folder, env=os.environ | variables, capture_output=True, text=True)


def lines(result):
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A file with an agent, in the folder where everything happens; whatever is registered is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(red_agents.FILES_VARIABLE, "")
    monkeypatch.setattr(red_agents, "_own", {})
    monkeypatch.setattr(red_agents, "_files", set())
    (tmp_path / "mine.py").write_text(SCANNER)
    yield tmp_path / "mine.py"
    sys.modules.pop("mine", None)


def test_an_agent_decides_wherever_it_comes_from(mine, monkeypatch):
    """Before the rules; as the script; after the rules: it adds itself to the variable unless it is there."""
    assert lines(run(mine.parent, f"import mine\n{PLAY}", "scanner")) == DECIDES
    mine.write_text(SCANNER + PLAY)
    assert lines(run(mine.parent, "mine.py", "scanner", FIXFIRST_RED_AGENTS="mine.py")) == DECIDES
    mine.write_text(SCANNER)
    importlib.import_module("mine")
    assert turns("scanner") == DECIDES and os.environ[red_agents.FILES_VARIABLE] == str(mine)
    monkeypatch.setenv(red_agents.FILES_VARIABLE, "mine.py")
    importlib.reload(sys.modules["mine"])
    assert turns("scanner") == DECIDES and os.environ[red_agents.FILES_VARIABLE] == "mine.py"


def complaint(file, content, monkeypatch, capsys):
    """What is said where the variable names a file of this content."""
    file.write_text(content)
    monkeypatch.setenv(red_agents.FILES_VARIABLE, "mine.py")
    assert main(["evaluate", "sleep", "--red-agent", "broken"]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("def x(:", "does not run (SyntaxError: invalid syntax (mine.py, line 1))"),
        ("import fixfirst\n\n{}[5]", "does not run, line 3 (KeyError: 5)"),
        ("import sys; sys.exit(3)", "does not run, line 1 (SystemExit: 3)"),
    ],
)
def test_a_file_of_the_variable_that_does_not_run_is_one_line(content, says, mine, monkeypatch, capsys):
    said = complaint(mine, content, monkeypatch, capsys)
    assert said == f"fixfirst: FIXFIRST_RED_AGENTS names mine.py, which {says}\n"
    monkeypatch.setenv(red_agents.FILES_VARIABLE, "no.py")
    assert main(["evaluate", "sleep", "--red-agent", "broken"]) == 2
    assert capsys.readouterr().err == "fixfirst: FIXFIRST_RED_AGENTS names no.py, which is not a Python file\n"


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("intends(env, Verb.SCAN, env.nothing_there)", "line 4) does not compile: KeyError: 'nothing_there'"),
        ("env.red_target = len(some_name)", "line 4) does not compile: NameError: name 'some_name' is not defined"),
        ("x = 5\n    if env.step:\n        x = 'five'\n    env.red_target = x", "line 9) does not compile: Cannot unify"),
        ("return 5", "line 6) does not compile: No conversion from Literal[int](5) to none"),
    ],
)
def test_an_agent_that_does_not_compile_is_one_line_with_its_place(body, says, mine, monkeypatch, capsys):
    imports = "import fixfirst as ff\nfrom fixfirst.red import Verb, intends\n\n"
    agent = f"{imports}@ff.red_agent('broken')\ndef broken(env, chance):\n    {body}\n"
    error = complaint(mine, agent, monkeypatch, capsys)
    assert error.startswith(f"fixfirst: red agent 'broken' (mine.py, {says}") and error.count("\n") == 1, error
    assert error.endswith("; docs/extend.md tells what it may do\n")


TWINS = """
import numpy as np, fixfirst as ff
from fixfirst.game import rules
from fixfirst.game.attackers import decide_b_line
from fixfirst.game.tables import tables_of
from fixfirst.red import Verb, intends

TABLES = tables_of(ff.Game().scenario)

def play(red_agent):
    envs = ff.make_vec(20, red_agent=red_agent)
    envs.reset(seed=3)
    actions = np.random.default_rng(0).integers(0, 145, (150, 20))
    return b"".join(part.tobytes() for row in actions for part in envs.step(row)[:2])

@ff.red_agent("twin")
def twin(env, chance):
    verb, target = decide_b_line(env, TABLES[0], chance)
    intends(env, verb, target)

print(play("b_line") == play("twin"), play("sleep:1,twin:1") not in (play("b_line"), play("sleep")))

@ff.red_agent("twin")
def other(env, chance):
    intends(env, Verb.SLEEP, -1)

print(play("sleep") == play("twin"))

@ff.red_agent("tired")
def tired(env, chance):
    raise ValueError("tired")

try:
    play("tired")
except ValueError as e:
    print(e, len(rules.step_batch.signatures))  # compiled once
"""


def test_an_own_agent_plays_as_one_of_ours_can_be_replaced_and_may_raise(tmp_path):
    assert lines(run(tmp_path, TWINS)) == ["True True", "True", "tired 1"]


ASTRAY = """
@ff.red_agent("astray")
def astray(env, chance):
    verb, target = ((1, 3), (2, 13), (3, -1), (4, 127), (0, 50), (5, -7), (200, 0), (2, 12))[env.step]
    intends(env, verb, target)
"""


def test_an_intention_that_cannot_be_is_slept_over(mine):
    """Else the compiled rules would look it up beyond their tables. Only the last of eight can be."""
    mine.write_text(SCANNER + ASTRAY)
    importlib.import_module("mine")
    assert turns("astray", 8) == ["SLEEP False"] * 7 + ["SCAN True"]


def test_without_a_compiler_an_agent_is_a_plain_function(mine):
    plain = """
import numpy as np, mine
from fixfirst.game.attackers import decide_red, own_addresses
from fixfirst.game.chance import chance_dtype
from fixfirst.game.state import RedAgent, state_dtype
from fixfirst.game.scenario import CAGE2
from fixfirst.game.tables import SMALL, tables_of

env, chance = (np.zeros(1, dtype).view(np.recarray)[0] for dtype in (state_dtype(SMALL), chance_dtype(SMALL)))
env.red_agent = len(RedAgent)
tables = tables_of(CAGE2).view(np.recarray)[0]
print(*decide_red(env, tables, chance, own_addresses([len(RedAgent)])))
"""
    assert lines(run(mine.parent, plain, NUMBA_DISABLE_JIT="1")) == ["1 2"]


def test_what_cannot_be_registered():
    for says, name, function in (
        *(("a word in lower case", name, None) for name in ("Scanner", "two words", "", 3)),
        ("b_line is one of our red agents", "b_line", None),
        ("must be a function of", "short", lambda env: None),
        ("must be a function of", "number", 5),
    ):
        with pytest.raises(ff.ConfigError, match=says):
            ff.red_agent(name)(function)
