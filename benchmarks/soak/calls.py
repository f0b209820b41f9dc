"""Anything as any argument of anything public."""

import os
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
from forks import Trouble
from jobs import Job

import fixfirst as ff
from fixfirst.base.errors import LONGEST_MESSAGE

try:
    from fixfirst import sb3
except ModuleNotFoundError:
    sb3 = None  # type: ignore[assignment]


class Odd:
    """What nobody expects: nothing can be looked up with it, and it has a length that it has not."""

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return 2**31


WRONG: tuple[object, ...] = (
    None,
    True,
    -1,
    0,
    2.5,
    float("nan"),
    float("inf"),
    2**63,
    2**200,
    "",
    "x",
    "\x1b[2J",
    b"b_line",
)
WRONG += ([], {}, (1, 2), object(), np.zeros(3), np.array(["a"]), np.array(None), ["b_line"] * 3, {"a": 1}, np.int64(5))
WRONG += (Path("nowhere"), slice(3), print, [[[]]], 1 + 2j, "a\x00b", "x" * 100_000, np.float64("nan"), {None: None}, {1, 2})
WRONG += (np.zeros((2, 52)), np.full((1, 52), 2), np.zeros((3, 52), np.float16), np.zeros((0, 52)), np.zeros((1, 53)))
WRONG += (
    np.zeros((1, 52), object),
    np.ma.zeros((1, 52)),
    np.zeros((52, 1)).T,
    np.zeros(1, "datetime64[s]"),
    np.void(b"abc"),
)
WRONG += (ff.Workflow.parse("critical_first"), ff.Workflow, range(3), iter([1]), Odd(), "\ud800", -(2**70), np.bool_(True))
WRONG += (np.zeros((1, 52), ">f4"), np.broadcast_to(np.int8(0), (1, 52)), np.full((1, 52), np.nan), np.array([145]), [None])
WRONG += (
    b"",
    bytearray(5),
    memoryview(b"ab"),
    Decimal(1),
    Fraction(1, 3),
    datetime.max,
    NotImplemented,
    ...,
    " ",
    "\n",
    "-1",
)
WRONG += (
    "b_line:",
    "b_line:nan",
    "b_line:-1,meander:1",
    "b_line:1,b_line:1",
    "b_line:0",
    "user > " * 1_000,
    "user > user",
    ">",
)
WRONG += (
    np.recarray((1,), [("a", int)]),
    np.array([[None]]),
    np.zeros((1, 52), "S1"),
    [np.zeros(52), np.zeros(51)],
    1e308,
    -0.0,
)
TAKES_LONG = ("num_envs", "steps", "policy.reset", "episodes", "search(workers)", "search(seeds)", "cpus_per_trial")
WORLDS = ("num_envs", "red_agent", "variant", "green", "max_steps", "env_ids", "autoreset_mode", "render_mode", "memory")
WORLDS += ("action_set", "backend", "arrays")
SETTINGS = ("red_agent", "seed", "total_episodes", "n_envs", "max_steps", "preset", "workflow", "units", "ppo", "gate")
SETTINGS += ("memory", "growth", "variant", "checkpoint_every", "opening", "game", "idle", "keep", "starts", "course")
SEARCH = ("strategy", "inherit", "replicates", "rounds", "separate", "margin", "training", "from_policy")
SMALL = {"episodes": 2, "steps": 2, "red_agent": "sleep", "quiet": True}

Target = tuple[str, Callable[[object], object]]


def calls(rng: random.Random, folder: Path, made: list[Job]) -> Iterator[Trouble]:
    """Anything as any argument of anything public: it works, or a FixfirstError says what is wrong."""
    here = folder / "here"
    here.mkdir()
    targets = [*_worlds(), *_configs(), *_values(), *_policies(made, here), *_networks(here)]
    targets += _verbs(folder / "calls", made)
    cases = [(target, value) for target in targets for value in WRONG]
    before = os.getcwd()
    while True:
        rng.shuffle(cases)
        for (name, call), value in cases:
            if isinstance(value, int) and any(word in name for word in TAKES_LONG) and value not in (True, 0, -1):
                continue
            os.chdir(here)
            wrong = _tried(call, value)
            os.chdir(before)
            yield f"{name} of {ascii(value)[:60]}: {wrong}" if wrong else None


def _tried(call: Callable[[object], object], value: object) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(value)
        except ff.FixfirstError as e:
            return "a long message" if len(str(e)) > LONGEST_MESSAGE + 100 else None
        except MemoryError:
            return None
        except BaseException as e:
            return f"{type(e).__name__}: {str(e)[:300]!a}"
    return None


def _worlds() -> Iterator[Target]:
    envs, env = ff.make_vec(3), ff.Cage2()
    remembering = ff.make_vec(2, memory="full", action_set="macros")

    def fresh() -> ff.VecCage2:
        envs.reset(seed=0)
        return envs

    def one() -> ff.Cage2:
        env.reset(seed=0)
        return env

    def both() -> ff.VecCage2:
        remembering.reset(seed=0)
        return remembering

    for n in WORLDS:
        yield f"make_vec({n})", lambda v, n=n: ff.make_vec(**{"num_envs": 2, n: v})
        if sb3 is not None:
            yield f"sb3.make({n})", lambda v, n=n: sb3.make(**{"num_envs": 2, n: v})
    for n in ("red_agent", "variant", "green", "max_steps", "env_id", "render_mode"):
        yield f"Cage2({n})", lambda v, n=n: ff.Cage2(**{n: v})
    yield "reset(seed)", lambda v: fresh().reset(seed=v)
    yield "reset(options)", lambda v: fresh().reset(options=v)
    yield "reset(reset_mask)", lambda v: fresh().reset(options={"reset_mask": v})
    yield "step", lambda v: fresh().step(v)
    yield "step with memory", lambda v: both().step(v)
    yield "set_state", lambda v: fresh().set_state(v)
    yield "set_state(memories)", lambda v: fresh().set_state(fresh().get_state(), v)
    yield "set_state(memories) with memory", lambda v: both().set_state(both().get_state(), v)
    yield "Cage2.step", lambda v: one().step(v)
    yield "Cage2.reset(seed)", lambda v: one().reset(seed=v)
    yield "Cage2.reset(options)", lambda v: one().reset(options=v)
    yield "Cage2.set_state", lambda v: one().set_state(v)
    yield "Remember", lambda v: ff.Remember(v)
    yield "Remember(memory)", lambda v: ff.Remember(ff.Cage2(), memory=v)
    yield "Remember(action_set)", lambda v: ff.Remember(ff.Cage2(), action_set=v)
    yield "red_agent", lambda v: ff.red_agent(v)
    yield "red_agent(name)(function)", lambda v: ff.red_agent("mine")(v)
    if sb3 is not None:
        yield "sb3.step_async", lambda v: _stepped(v)
        yield "sb3.seed", lambda v: _seeded(v)


def _stepped(actions: object) -> None:
    envs = sb3.make(2)
    envs.reset()
    envs.step(actions)  # type: ignore[arg-type]


def _seeded(seed: object) -> None:
    envs = sb3.make(2)
    if isinstance(seed, int):  # else Stable-Baselines3 itself complains
        envs.seed(seed)
        envs.reset()


def _configs() -> Iterator[Target]:
    for n in SETTINGS:
        yield f"make_config({n})", lambda v, n=n: ff.make_config(**{n: v})
        yield f"search_config({n})", lambda v, n=n: ff.search_config(**{n: v})
    for n in SEARCH:
        yield f"search_config({n})", lambda v, n=n: ff.search_config(**{n: v})
    yield "Workflow.parse", lambda v: ff.Workflow.parse(v)
    yield "Workflow.parse(scheme)", lambda v: ff.Workflow.parse("critical_first", v)
    yield "UnitScheme.from_dict", lambda v: ff.UnitScheme.from_dict(v)
    yield "UnitScheme.from_toml", lambda v: ff.UnitScheme.from_toml(v)
    yield "MemoryScheme.parse", lambda v: ff.MemoryScheme.parse(v)
    yield "ActionSet.parse", lambda v: ff.ActionSet.parse(v)


def _values() -> Iterator[Target]:
    """What is handed to others: orders, units, sets of actions, memories, games; and questions to them."""
    order, units, chosen, memory = (
        ff.Workflow.parse("critical_first"),
        ff.UnitScheme.per_host(),
        ff.ActionSet.parse("macros"),
        ff.MemoryScheme.parse("full"),
    )
    yield "Workflow(order)", lambda v: ff.Workflow(v)
    yield "Workflow(scheme)", lambda v: ff.Workflow((0, 1, 2, 3, 4), v)
    yield "Workflow.from_number", lambda v: ff.Workflow.from_number(v)
    yield "Workflow.from_number(scheme)", lambda v: ff.Workflow.from_number(1, v)
    yield "Workflow.with_last", lambda v: order.with_last(v)
    yield "Workflow.kendall_distance", lambda v: order.kendall_distance(v)
    yield "UnitScheme(names)", lambda v: ff.UnitScheme(v, (0,) * 13)
    yield "UnitScheme(host_unit)", lambda v: ff.UnitScheme(("one",), v)
    yield "UnitScheme.untouched", lambda v: units.untouched(v)
    yield "UnitScheme.numbers", lambda v: units.numbers(v, "units")
    yield "UnitScheme.hosts", lambda v: units.hosts(v)
    for n in ("name", "actions", "macros", "lists", "repeats"):
        given = {"name": "mine", "actions": (0, 132), "macros": ("User2",)}
        yield f"ActionSet({n})", lambda v, n=n, g=given: ff.ActionSet(**g | {n: v})
    yield "ActionSet.first_masked", lambda v: chosen.first_masked(v)
    yield "MemoryScheme(groups)", lambda v: ff.MemoryScheme(v)
    yield "MemoryScheme.in_words", lambda v: memory.in_words(v)
    for n in ("red_agent", "variant", "green", "max_steps", "backend", "cyborg"):
        yield f"Game({n})", lambda v, n=n: ff.Game(**{n: v})
    for n in ("rule", "count_foothold"):
        yield f"Judging({n})", lambda v, n=n: ff.Judging(**{n: v})
    for n in SETTINGS:
        yield f"TrainConfig({n})", lambda v, n=n: ff.TrainConfig(**{n: v})
    for n in (*SEARCH, "total_episodes", "trainings"):
        yield f"SearchConfig({n})", lambda v, n=n: ff.SearchConfig(**{n: v})


def _policies(made: list[Job], here: Path) -> Iterator[Target]:
    """Policies of all kinds: with an order, with a shield and any order, with memory and opening."""
    loaded = {job.name: ff.load_policy(job.reference) for job in made if job.name in ("train", "shared", "course")}
    envs = ff.make_vec(3)
    seen = np.zeros((1, 52))
    for kind, policy in loaded.items():

        def fresh(policy: ff.Policy = policy) -> ff.Policy:
            policy.reset(1)
            envs.reset(seed=0)
            return policy

        yield f"{kind}: act(obs)", lambda v, f=fresh: f().act(v)
        for n in ("episode_start", "workflow", "seed", "step", "greedy"):
            yield f"{kind}: act({n})", lambda v, f=fresh, n=n: f().act(seen, **{n: v})
        yield f"{kind}: policy.reset", lambda v, f=fresh: f().reset(v)
        yield f"{kind}: player(workflow)", lambda v, f=fresh: f().player(v)
        yield f"{kind}: orders", lambda v, f=fresh: f().orders(v)
        yield f"{kind}: probabilities", lambda v, f=fresh: f().probabilities(v)
        yield f"{kind}: player_of", lambda v, f=fresh: f().player_of(v)
        for n in ("workflow", "num_envs"):
            yield f"{kind}: assign({n})", lambda v, f=fresh, n=n: f().assign(**{"workflow": None, "num_envs": 2, n: v})
        for n in ("steps", "seed", "greedy", "workflow"):
            yield f"{kind}: rollout({n})", lambda v, f=fresh, n=n: ff.rollout(envs, f(), **{"steps": 2, n: v})
        for n in (*SMALL, "workflow", "seed", "greedy", "variant", "backend", "rule"):
            yield f"{kind}: evaluate({n})", lambda v, f=fresh, n=n: ff.evaluate(f(), **SMALL | {n: v})
            yield f"{kind}: compare({n})", lambda v, f=fresh, n=n: ff.compare(f(), "sleep", **SMALL | {n: v})
        for n in ("episodes", "seed", "workflow", "greedy", "quiet"):
            yield (
                f"{kind}: leaderboard({n})",
                lambda v, f=fresh, n=n: ff.leaderboard(f(), **{"episodes": 2, "quiet": True, n: v}),
            )
        for n in ("to", "out", "workflow"):
            given = {"to": "numpy", "out": here / "policy.npz"}
            yield f"{kind}: export({n})", lambda v, f=fresh, n=n, g=given: ff.export(f(), **g | {n: v})
        for n in ("out", "workflow", "seed", "steps", "episodes", "red_agent", "greedy"):
            yield (
                f"{kind}: watch({n})",
                lambda v, f=fresh, n=n: ff.watch(f(), **{"out": here / "w.html", "episodes": 2, "steps": 2, n: v}),
            )
        for n in ("workflow", "greedy", "seed"):
            yield f"{kind}: BlueAgent({n})", lambda v, f=fresh, n=n: ff.BlueAgent(f(), **{n: v}).get_action(seen[0])
        yield f"{kind}: get_action", lambda v, f=fresh: ff.BlueAgent(f()).get_action(v)
        yield f"{kind}: rollout(envs)", lambda v, f=fresh: ff.rollout(v, f(), 2)


def _verbs(out: Path, made: list[Job]) -> Iterator[Target]:
    envs = ff.make_vec(3)
    envs.reset(seed=0)
    yield "load_policy", lambda v: ff.load_policy(v)
    yield "load_run", lambda v: ff.load_run(v)
    yield "resume", lambda v: ff.resume(v)
    yield "report", lambda v: ff.report(v)
    yield "rollout(policy)", lambda v: ff.rollout(envs, v, 2)
    yield "evaluate(policy)", lambda v: ff.evaluate(v, **SMALL)
    yield "leaderboard(policy)", lambda v: ff.leaderboard(v, episodes=2, quiet=True)
    yield "compare(first)", lambda v: ff.compare(v, "sleep", **SMALL)
    yield "compare(second)", lambda v: ff.compare("sleep", v, **SMALL)
    yield "export(policy)", lambda v: ff.export(v)
    yield "watch(policy)", lambda v: ff.watch(v)
    yield "BlueAgent(policy)", lambda v: ff.BlueAgent(v)
    for n in ("workers", "executor", "ray_address", "cpus_per_trial", "cyborg", "report", "quiet"):
        yield f"resume({n})", lambda v, n=n: ff.resume(made[0].reference, **{"quiet": True, "report": False, n: v})
    for n in ("seeds", "workers", "executor", "units", "config", "ray_address", "preset", "out", "red_agent"):
        yield f"search({n})", lambda v, n=n: _refused(ff.search, out, n, v)
    for n in ("from_policy", "units", "config", "seed", "out", "workflow", "scenario"):
        yield f"train({n})", lambda v, n=n: _refused(ff.train, out, n, v)


def _networks(here: Path) -> Iterator[Target]:
    """Networks of one's own, and who plays on them."""
    yield "Scenario.load", lambda v: ff.Scenario.load(v)
    yield "Scenario.load(images)", lambda v: ff.Scenario.load("tiny", images=v)
    yield "Scenario.from_table", lambda v: ff.Scenario.from_table(v)
    for n in ("seed", "hosts", "subnets"):
        yield f"Scenario.generate({n})", lambda v, n=n: ff.Scenario.generate(**{"seed": 0, n: v})
    for n in ("num_envs", "scenario", "red_agent", "memory", "action_set", "max_steps"):
        yield f"tiny: make_vec({n})", lambda v, n=n: ff.make_vec(**{"num_envs": 2, "scenario": "tiny", n: v})
    for n in (*SMALL, "scenario", "seed", "greedy", "variant"):
        yield f"tiny: evaluate({n})", lambda v, n=n: ff.evaluate("react-restore", **SMALL | {"scenario": "tiny", n: v})
    few = {"train_episodes": 50, "episodes": 2, "max_steps": 2, "starts": ["scratch"], "quiet": True}
    for n in (*few, "workflow", "greedy", "picky", "seed", "variant", "green", "scenario"):
        if n != "train_episodes":
            yield f"exploit({n})", lambda v, n=n: ff.exploit("sleep", **few | {n: v})
    yield "exploit(policy)", lambda v: ff.exploit(v, **few)
    yield "load_red", lambda v: ff.load_red(v)
    for n in ("against", "start", "picky", "greedy", "seed", "max_steps", "variant"):
        given = {"against": "sleep", "out": here / "red", "total_episodes": 1, "quiet": True}
        yield f"train_red({n})", lambda v, n=n, g=given: ff.train_red(**g | {n: v})
    for n in ("start", "seed", "variant", "live", "life", "frozen", "envs", "script_envs", "picky"):
        given = {"out": here / "league", "updates": 0, "quiet": True}
        yield f"train_league({n})", lambda v, n=n, g=given: ff.train_league(**g | {n: v})


def _refused(call: Callable[..., object], out: Path, name: str, value: object) -> None:
    """A call that is refused, for its argument or else for its budget, and must leave nothing behind."""
    try:
        call(**{"out": out, "total_episodes": 1, "quiet": True, name: value})
    except ff.FixfirstError:
        if out.exists():
            raise AssertionError("it was refused and left a folder") from None
        raise
    finally:
        shutil.rmtree(out, ignore_errors=True)
