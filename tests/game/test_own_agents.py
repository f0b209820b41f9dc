"""Red agents of users: registered by name. Processes of their own, not compiled: that would take half a minute each."""

import os
import subprocess
import sys

import pytest

import fixfirst as ff

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
THREE_TURNS = """
import numpy as np
from fixfirst.game.game import red_odds
from fixfirst.game.chance import CHANCE_DTYPE
from fixfirst.game.attackers import choose_red
from fixfirst.game.state import STATE_DTYPE, RedVerb

print(red_odds("sleep:1,scanner:3", 1).tolist())
env, chance = (np.zeros(1, dtype).view(np.recarray)[0] for dtype in (STATE_DTYPE, CHANCE_DTYPE))
env.red_agent = 3
for env.step in range(3):
    choose_red(env, chance)
    print(RedVerb(env.red_verb).name, 9 <= env.red_target <= 12)
"""
DECIDES = ["[[0.0, 0.0, 0.25, 1.0]]", "DISCOVER False", "SCAN True", "SCAN True"]


def ran(code, folder, **variables):
    outside = os.environ | {"NUMBA_DISABLE_JIT": "1"} | variables
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=outside, capture_output=True, text=True)


@pytest.mark.parametrize("first", ["", "import fixfirst.game.attackers"])
def test_an_agent_decides_whether_it_comes_before_the_rules_or_after(first, tmp_path):
    (tmp_path / "mine.py").write_text(SCANNER)
    result = ran(f"{first}\nimport mine\n{THREE_TURNS}", tmp_path)
    assert result.stdout.splitlines() == DECIDES, result.stderr


def test_a_file_of_the_variable_is_read_and_a_module_adds_itself_to_it(tmp_path):
    (tmp_path / "mine.py").write_text(SCANNER)
    result = ran(THREE_TURNS, tmp_path, FIXFIRST_RED_AGENTS="mine.py")
    assert result.stdout.splitlines() == DECIDES, result.stderr
    added = ran("import os, mine; print(os.environ['FIXFIRST_RED_AGENTS'])", tmp_path)
    assert added.stdout.strip() == str(tmp_path / "mine.py"), added.stderr
    missing = ran("import fixfirst as ff; ff.make_vec(red_agent='scanner')", tmp_path, FIXFIRST_RED_AGENTS="nothing.py")
    assert "FIXFIRST_RED_AGENTS names nothing.py, which is not a Python file" in missing.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("def x(:", "mine.py, which does not run (SyntaxError: invalid syntax (mine.py, line 1))"),
        ("import fixfirst\n\n{}[5]", "mine.py, which does not run, line 3 (KeyError: 5)"),
        ("import sys; sys.exit(3)", "mine.py, which does not run, line 1 (SystemExit: 3)"),
    ],
)
def test_a_file_of_the_variable_that_does_not_run_is_one_line(content, says, tmp_path):
    (tmp_path / "mine.py").write_text(content)
    code = "import sys; from fixfirst.cli import main; sys.exit(main(['evaluate', 'sleep', '--red-agent', 'scanner']))"
    result = ran(code, tmp_path, FIXFIRST_RED_AGENTS="mine.py")
    assert (result.returncode, result.stderr) == (2, f"fixfirst: FIXFIRST_RED_AGENTS names {says}\n")


COMPILE = """
import numpy as np
from numba import typeof
from fixfirst.base.errors import FixfirstError
from fixfirst.game import own_agents
from fixfirst.game.chance import CHANCE_DTYPE
from fixfirst.base.compile import own_piece
from fixfirst.game.state import STATE_DTYPE
import mine
from fixfirst.game.attackers import choose_own

records = tuple(typeof(np.zeros(1, dtype).view(np.recarray)[0]) for dtype in (STATE_DTYPE, CHANCE_DTYPE))
pieces = [own_piece(name, agent) for name, agent in own_agents.own_agents().items()]
for piece in (*pieces, choose_own):
    try:
        piece.compile(records)
    except FixfirstError as e:
        print(e)
"""
BROKEN = """
import fixfirst as ff
from fixfirst.red import Verb, intends

@ff.red_agent("asks")
def asks(env, chance):
    intends(env, Verb.SCAN, env.nothing_there)

@ff.red_agent("calls")
def calls(env, chance):
    env.red_target = len(some_name)

@ff.red_agent("wavers")
def wavers(env, chance):
    x = 5
    if env.step:
        x = "five"
    intends(env, Verb.SCAN, x)
"""


def test_an_agent_that_does_not_compile_is_one_line_that_names_its_own(tmp_path):
    (tmp_path / "mine.py").write_text(BROKEN)
    result = ran(COMPILE, tmp_path, NUMBA_CACHE_DIR=str(tmp_path), NUMBA_DISABLE_JIT="0")
    told = [line.removesuffix("; docs/extend.md tells what it may do") for line in result.stdout.splitlines()]
    assert told[:2] == [
        "red agent 'asks' (mine.py, line 5) does not compile: KeyError: 'nothing_there'",
        "red agent 'calls' (mine.py, line 9) does not compile: NameError: name 'some_name' is not defined",
    ], result.stderr
    assert told[2].startswith("red agent 'wavers' (mine.py, line 18) does not compile: Cannot unify Literal[int](5)")
    assert told[3:] == told[:1]  # as a part of the rules


ASTRAY = """
@ff.red_agent("astray")
def astray(env, chance):
    verb, target = ((1, 3), (2, 13), (3, -1), (4, 127), (0, 50), (5, -7), (200, 0), (2, 12))[env.step]
    intends(env, verb, target)
"""


def test_an_intention_that_cannot_be_is_slept_over(tmp_path):
    """Else the compiled rules would look it up beyond their tables. Only the last of eight can be."""
    (tmp_path / "mine.py").write_text(SCANNER + ASTRAY)
    turns = THREE_TURNS.replace("red_agent = 3", "red_agent = 4").replace("range(3)", "range(8)")
    result = ran(f"import mine\n{turns}", tmp_path)
    assert result.stdout.splitlines()[1:] == ["SLEEP False"] * 7 + ["SCAN True"], result.stderr


def test_machine_code_is_kept_by_what_an_agent_is_made_of(tmp_path):
    """Comments outside of it do not matter, a number that it takes from around it does."""
    told = "from fixfirst.game.own_agents import digest; print(digest())"
    digests = []
    for extra in ("", "# a remark", "USER = 1"):
        (tmp_path / "mine.py").write_text(f"{SCANNER}{extra}\n")
        digests.append(ran(f"import mine; {told}", tmp_path).stdout)
    assert digests[0] == digests[1] != digests[2]
    assert ran(told, tmp_path).stdout.strip() == ""


@pytest.mark.parametrize("name", ["Scanner", "two words", "", 3])
def test_a_name_is_a_word_in_lower_case(name):
    with pytest.raises(ff.ConfigError, match="a word in lower case"):
        ff.red_agent(name)


def test_our_own_agents_stay_as_they_are():
    with pytest.raises(ff.ConfigError, match="b_line is one of our red agents"):
        ff.red_agent("b_line")


def test_an_agent_is_a_function_of_env_and_chance():
    with pytest.raises(ff.ConfigError, match="must be a function of"):
        ff.red_agent("short")(lambda env: None)
