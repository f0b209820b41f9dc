"""Wrong values as the arguments of public functions and methods."""

import inspect
import os
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from forks import Trouble
from jobs import Job

import fixfirst as ff
from fixfirst.base.errors import LONGEST_MESSAGE

WRONG: tuple[object, ...] = (None, True, -1, 0, 2.5, float("nan"), float("inf"), 2**63, 2**200, -0.0, "", "x", b"", print)
WRONG += ([], {}, (1, 2), object(), slice(3), 1 + 2j, "a\x00b", "\x1b[2J", "x" * 100_000, "\ud800", ["b_line"] * 3, {"a": 1})
WRONG += ([None], {None: None}, range(3), np.zeros(3), np.array(["a"]), np.array(None), np.int64(5), np.float64("nan"))
WRONG += (np.zeros((2, 52)), np.full((1, 52), 2), np.full((1, 52), np.nan), np.zeros((0, 52)), np.zeros((1, 53)))
WRONG += (np.zeros((1, 52), ">f4"), np.array([145]), Path("nowhere"), ">", "user > user", "b_line:0", "b_line:nan")
WRONG += ("b_line:-1,meander:1", "b_line:1,b_line:1")

PLAYED = {"episodes": 2, "steps": 2, "red_agent": "sleep", "quiet": True}
EXPLOITED = {"train_episodes": 50, "episodes": 2, "max_steps": 2, "starts": ["scratch"], "quiet": True}
TAKES_LONG = ("num_envs", "steps", "episodes", "reset", "workers", "seeds", "cpus_per_trial")  # with a whole number
LEFT_OUT = ("total_episodes", "updates", "kwargs", "callback", "say")

Target = tuple[str, Callable[[object], object]]


def calls(rng: random.Random, folder: Path, made: list[Job]) -> Iterator[Trouble]:
    """Call with a wrong value: it works, or a FixfirstError says what is wrong, and nothing is left behind."""
    here = folder / "here"
    here.mkdir()
    os.environ["BROWSER"] = "true"  # a page to be shown is shown to nobody
    cases = [(target, value) for target in targets(made) for value in WRONG]
    before = os.getcwd()
    while True:
        rng.shuffle(cases)
        for (name, call), value in cases:
            if isinstance(value, int | np.integer) and any(word in name for word in TAKES_LONG) and value not in (0, 1, -1):
                continue
            os.chdir(here)
            wrong = _tried(call, value)
            os.chdir(before)
            yield f"{name} of {ascii(value)[:60]}: {wrong}" if wrong else None


def _tried(call: Callable[[object], object], value: object) -> str | None:
    refused, run = True, Path("run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(value)
            refused = False
        except ff.FixfirstError as e:
            if len(str(e)) > LONGEST_MESSAGE + 100:
                return "a long message"
        except MemoryError:
            pass
        except BaseException as e:
            return f"{type(e).__name__}: {str(e)[:300]!a}"
    left = run.exists()
    shutil.rmtree(run, ignore_errors=True)
    return "it was refused and left a folder" if refused and left else None


def targets(made: list[Job]) -> Iterator[Target]:
    """Yield one for every argument: of public functions and values, of methods of environments and policies."""
    envs, remembering = ff.make_vec(3), ff.make_vec(2, memory="full", action_set="macros")
    envs.reset(seed=0), remembering.reset(seed=0)
    for which in (envs, remembering):
        for method in (which.reset, which.step, which.set_state):
            yield from _arguments(method, {"actions": np.zeros(which.num_envs, int), "states": which.get_state()}, ())
    policies = [ff.load_policy(job.reference) for job in made if job.name in ("train", "shared", "course")]
    for policy in policies:
        policy.reset(1)
        for method in (policy.act, policy.reset, policy.player, policy.orders, policy.probabilities):
            yield from _arguments(method, {"obs": np.zeros((1, 52))}, ())
    run = {"out": "run", "quiet": True, "total_episodes": 1}  # so small that it is refused, whatever else is right
    search, train, game = (tuple(kind.model_fields) for kind in (ff.SearchConfig, ff.TrainConfig, ff.Game))
    for policy in (policies[0] if policies else "sleep", "sleep"):
        yield from _arguments(ff.rollout, {"envs": envs, "policy": policy, "steps": 2}, ())
        yield from _arguments(ff.evaluate, PLAYED | {"policy": policy}, game)
        yield from _arguments(ff.compare, PLAYED | {"first": policy, "second": "sleep"}, game)
        yield from _arguments(ff.leaderboard, {"policy": policy, "episodes": 2, "quiet": True}, game)
        yield from _arguments(ff.watch, {"policy": policy, "out": "w.html", "episodes": 2, "steps": 2}, game)
    yield from _arguments(ff.exploit, EXPLOITED | {"policy": "sleep"}, game)
    yield from _arguments(ff.export, {"policy": "sleep", "to": "numpy", "out": "p.npz"}, ())
    yield from _arguments(ff.search, run, search)
    yield from _arguments(ff.train, run, train)
    yield from _arguments(ff.train_red, run | {"against": "sleep"}, ())
    yield from _arguments(ff.train_league, {"out": "run", "quiet": True, "updates": 0}, ("live", "life", "frozen", "picky"))
    for call, names in ((ff.make_config, train), (ff.search_config, search), (ff.make_vec, game), (ff.Cage2, game)):
        yield from _arguments(call, {}, names)
    for kind in (ff.SearchConfig, ff.TrainConfig, ff.Game, ff.Judging):
        yield from _arguments(kind, {}, tuple(kind.model_fields))
    for parse in (ff.Workflow.parse, ff.Workflow.from_number, ff.UnitScheme.from_dict, ff.UnitScheme.from_toml, ff.Workflow):
        given = {"text": "critical_first", "number": 1, "order": (0, 1, 2, 3, 4), "path": "nowhere", "units": {}}
        yield from _arguments(parse, given, ())
    for parse in (ff.MemoryScheme.parse, ff.ActionSet.parse, ff.Scenario.load, ff.Scenario.from_table, ff.Scenario.generate):
        yield from _arguments(parse, {"seed": 0, "text": "all", "path": "office"}, ())
    for verb in (ff.load_policy, ff.load_red, ff.load_run, ff.resume, ff.report, ff.BlueAgent, ff.Remember, ff.red_agent):
        given = {"policy": "sleep", "env": ff.Cage2(), **dict.fromkeys(("path", "run", "runs"), "nowhere")}
        yield from _arguments(verb, given, ())


def _arguments(call: Callable[..., object], given: dict[str, object], more: tuple[str, ...]) -> Iterator[Target]:
    """Yield a call for each of its arguments and settings; the other ones are as given, where it has them."""
    own = [p for p in inspect.signature(call).parameters.values() if p.kind is not p.VAR_KEYWORD]
    given = {name: value for name, value in given.items() if name in (*(p.name for p in own), *more)}
    for p in own:
        is_given = p.name in given or p.default is not p.empty or p.kind is p.VAR_POSITIONAL
        assert is_given or len(own) == 1, f"say what {call.__qualname__} is to be given as {p.name}"
        if p.kind is p.VAR_POSITIONAL:
            yield f"{call.__qualname__}(*{p.name})", lambda value: call(value, **given)
        elif p.name not in LEFT_OUT:
            yield f"{call.__qualname__}({p.name})", lambda value, name=p.name: call(**given | {name: value})
    for name in more:
        if name not in LEFT_OUT and name not in [p.name for p in own]:
            yield f"{call.__qualname__}({name})", lambda value, name=name: call(**given | {name: value})
