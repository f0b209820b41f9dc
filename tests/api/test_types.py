"""Editors and type checkers know every setting: the typed dictionaries are those of the configs, and mypy reads the README.

`python tests/api/test_types.py` writes `src/fixfirst/typed.pyi` anew, after a setting was added or changed.
"""

import inspect
import re
import sys
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import fixfirst as ff
from fixfirst.api.watch import replay
from fixfirst.settings.search import SearchConfig

ROOT = Path(__file__).parent.parent.parent
FILE = ROOT / "src/fixfirst/typed.pyi"
HEAD = '''"""The settings of functions that take many, by name and kind, for editors and type checkers.

Written by `python tests/api/test_types.py` from the configs, and tested against them: change those, not this file.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

'''


def kind(annotation):
    """A type as source code; what only we can make is Any."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return kind(parts[0])
    if origin is Literal:
        return f"Literal[{', '.join(f'{part!r}' for part in parts)}]".replace("'", '"')
    if origin in (Union, UnionType):
        kinds = list(dict.fromkeys(map(kind, parts)))
        return "Any" if "Any" in kinds else " | ".join(kinds)
    if origin is tuple and parts[-1] is ...:
        return f"Sequence[{kind(parts[0])}]"
    if origin in (tuple, dict, list):
        return f"{origin.__name__}[{', '.join(map(kind, parts))}]"
    if annotation in (NoneType, Path):
        return "None" if annotation is NoneType else "Path"
    return annotation.__name__ if annotation in (int, float, bool, str) else "Any"


def fields(model, without=()):
    found = {name: kind(info.annotation) for name, info in model.model_fields.items() if name not in without}
    return found | ({"red_agent": "str | Sequence[str]"} if "red_agent" in found else {})


def parameters(function, without=()):
    """The keyword parameters of a function, as its source has them."""
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind == parameter.KEYWORD_ONLY and name not in without:
            found[name] = kind(parameter.annotation)
    return found


def classes():
    """The typed dictionaries by name: who takes settings, and which."""
    game, judging = fields(ff.Game), fields(ff.Judging)
    vec = parameters(ff.VecCage2.__init__)
    where = {name: of for name, of in game.items() if name not in ("red_agent", "max_steps")}
    return {
        "CompareSettings": where,
        "GameSettings": game,
        "JudgingSettings": judging,
        "EvaluateSettings": where | judging,
        "WatchSettings": parameters(replay) | game | judging,
        "VecSettings": vec | game,
        "TrainSettings": fields(ff.TrainConfig, without=("units", "from_policy")),
        "SearchSettings": parameters(ff.search, without=("seeds",)) | fields(SearchConfig, without=("units",)),
    }


def written():
    """The file: each dictionary inherits from the largest ones before it that it holds, and that share no field."""
    parts, known = [], {}
    for name, found in classes().items():
        bases, own = [], dict(found)
        for base in sorted(known, key=lambda each: -len(known[each])):
            if known[base].items() <= own.items():
                bases.append(base)
                own = {field: of for field, of in own.items() if field not in known[base]}
        known[name] = found
        lines = [f"    {field}: {of}" for field, of in sorted(own.items())] or ["    pass"]
        parts.append("\n".join([f"class {name}({', '.join(bases or ['TypedDict'])}, total=False):", *lines, ""]))
    return HEAD + "\n".join(parts)


def test_the_typed_settings_are_those_of_the_configs():
    assert FILE.read_text() == written(), "run: python tests/api/test_types.py"


WRONG = """
ff.search(totl_episodes=3)
ff.train(red_agent=5)
ff.evaluate("champion", varian="current")
ff.make_vec(3, max_step=5)
ff.watch("champion", episode=5)
ff.search(seeds=2).answer
"""


def test_mypy_accepts_the_readme_and_refuses_what_is_misspelt(tmp_path):
    from mypy import api

    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    right = "\n".join(blocks)
    program = tmp_path / "readme.py"
    program.write_text(right + WRONG)
    config = ROOT / "pyproject.toml"
    said, complaints, _ = api.run(
        ["--strict", "--config-file", str(config), "--cache-dir", str(ROOT / ".mypy_cache"), str(program)]
    )
    lines = {int(number) for number in re.findall(r"readme\.py:(\d+): error", said)}
    first = right.count("\n") + 2
    assert lines == set(range(first, first + WRONG.strip().count("\n") + 1)), said + complaints


if __name__ == "__main__":
    FILE.write_text(written())
    sys.exit(0)
