"""The reference is made of docstrings: every public name has one, with an example that runs."""

import ast
import inspect
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from small import ONE_CORE, with_smaller

import fixfirst as ff
from fixfirst.cyborg.checkout import ENVIRONMENT_VARIABLE

NAMES = [
    name for name in ff.__all__ if not (inspect.isclass(getattr(ff, name)) and issubclass(getattr(ff, name), BaseException))
]
# Arrays go in or come out: the docstring says their shapes.
WITH_ARRAYS = ["Cage2", "CyborgVecEnv", "Policy", "Remember", "VecCage2", "make_vec", "rollout"]


def example(name):
    """The indented lines of a docstring, one program."""
    text = inspect.getdoc(getattr(ff, name)) or ""
    return textwrap.dedent("\n".join(line for line in text.splitlines() if line.startswith("    ") or not line.strip()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A place with a run, as examples name it."""
    made = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ONE_CORE.items():
            patch.setenv(name, value)
        ff.search(out=made / "runs/first", report=False, quiet=True)
    return made


@pytest.mark.parametrize("name", ff.__all__)
def test_every_public_name_says_what_it_is(name):
    first = (inspect.getdoc(getattr(ff, name)) or "").splitlines()
    assert first and first[0].endswith((".", "?")) and len(first[0]) > 20


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example_that_runs(name, folder, monkeypatch):
    code = example(name)
    assert "ff." in code
    ast.parse(code)
    if name == "red_agent":
        return  # it would be known to every test after this; `tests/game/test_own_agents.py` plays some
    if "cage-challenge-2" in code and not Path("cage-challenge-2").exists():
        pytest.skip(f"needs a checkout of CybORG, as {ENVIRONMENT_VARIABLE} names one")
    if '"onnx"' in code:
        pytest.importorskip("onnx", reason="needs pip install 'fixfirst[onnx]'")
    monkeypatch.chdir(folder)
    for setting, value in ONE_CORE.items():
        monkeypatch.setenv(setting, value)
    plays = re.search(r"ff\.(search|train|evaluate|leaderboard|rollout|watch)\(", code)
    exec(compile(with_smaller(code, steps=20) if plays else code, name, "exec"), {"ff": ff, "np": np})


@pytest.mark.parametrize("name", WITH_ARRAYS)
def test_shapes_are_said(name):
    assert re.search(r"\[\d+(, \d+)*\]|\[N(, \w+)*\]", inspect.getdoc(getattr(ff, name)))


def test_the_reference_lists_every_public_name():
    text = (Path(__file__).parents[2] / "docs/reference.md").read_text()
    missing = [name for name in NAMES if not re.search(rf"^::: fixfirst\.{name}$", text, re.M)]
    assert not missing
