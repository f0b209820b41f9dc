"""Does anything break it? Kills, crashes at file operations, damaged files, wrong arguments, bad states, full disks, races.

    python benchmarks/soak.py [--minutes 10] [--seed 0] [--only kills,races] [--tries N] [--slice] [--ray] [--keep FOLDER]

One line per kind: how often it was tried, and how often something was not as it must be. Exit code 1 if that happened at
all; what was found then lies in the folder of --keep. Every kind gets a share of the minutes; with --tries each is tried so
often instead. `docs/reliability.md` says what is expected, and what is not tried.

Commands run in forks of this process, in which everything is imported and compiled: a kill costs a tenth of a second.
"""

import argparse
import contextlib
import csv
import gzip
import io
import math
import mmap
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import tomli_w

import fixfirst as ff
from fixfirst.cli import main as fixfirst
from fixfirst.errors import LONGEST_MESSAGE
from fixfirst.game import STATE_DTYPE, World, compile_kernel
from fixfirst.game.world import check_states
from fixfirst.learner import make_config

PATIENCE_S = 300.0  # what takes longer hangs
RECORDING = Path(__file__).parent.parent / "tests" / "conformance" / "sleep.jsonl.gz"
SMALL = {
    "max_steps": 20,
    "gate_episodes": 20,
    "compliance_threshold": 0.2,
    "min_judged": 5,
    "min_episodes": 0,
    "checkpoint_every": 2,
    "n_envs": 4,
}
SEARCH = SMALL | {
    "separate": True,
    "keep": "penalty",
    "warmup_episodes": 16,
    "max_episodes": 16,
    "total_episodes": 80,
    "test_episodes": 20,
    "tensorboard": False,
}
TRAIN = SMALL | {"total_episodes": 80, "workflow": "critical_first"}
QUIET = ["--quiet", "--no-report"]

Trouble = str | int | None  # what was not as it must be; or of so many tries nothing
Kind = Iterator[Trouble]  # tries again and again
Share = tuple[int, float]  # most tries, most seconds


# ---------------------------------------------------------------- commands in forks


class Fork:
    """A command in a process group of its own. `before` is called in there first."""

    def __init__(self, arguments: list[str], said: Path, before: Callable[[], object] = lambda: None):
        self.said = said
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                os.setsid()
                signal.signal(signal.SIGINT, signal.default_int_handler)
                out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(out, 1), os.dup2(out, 2)
                sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False, buffering=1)
                before()
                code = fixfirst(arguments)
                sys.stdout.flush()
            except BaseException:
                import traceback

                traceback.print_exc(file=sys.stderr)
            finally:
                os._exit(code)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def wait(self, timeout_s: float = PATIENCE_S) -> int | None:
        """Its exit code, minus the signal that ended it; None: it still runs."""
        deadline = time.monotonic() + timeout_s
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                return None
            time.sleep(0.002)

    @property
    def text(self) -> str:
        return self.said.read_text(errors="replace")


def run(arguments: list[str], said: Path, before: Callable[[], object] = lambda: None) -> tuple[int | None, str]:
    """A command to its end: exit code and all it said."""
    fork = Fork(arguments, said, before)
    code = fork.wait()
    if code is None:
        fork.kill()
        fork.wait()
    return code, fork.text


def complaint(code: int | None, text: str, allowed: tuple[int, ...] = (0, 2)) -> Trouble:
    """What is wrong with how a command ended: a hang, a traceback, another code, more than one short printable line."""
    if code is None:
        return "hangs"
    if "Traceback" in text or code not in allowed:
        return f"exit code {code}: {text[-2000:]}"
    lines = [line for line in text.splitlines() if line.startswith("fixfirst: ")]
    if code == 2 and not lines:
        return f"exit code 2 without a message: {text[-500:]}"
    if any(len(line) > LONGEST_MESSAGE + 100 for line in lines) or any(ord(c) < 32 and c not in "\n\t\r" for c in text):
        return f"a message that is long, or not printable: {text[:500]!r}"
    return None


# ---------------------------------------------------------------- jobs: what is run, and what must come of it


class Job:
    """A command that makes a run; what must be in its folder whatever happens to it on the way."""

    def __init__(self, name: str, command: str, settings: dict[str, object], folder: Path, *arguments: str):
        self.name, self.folder, self.arguments = name, folder / name, [*arguments]
        self.folder.mkdir(parents=True)
        self.settings = self.folder / "settings.toml"
        self.settings.write_text(tomli_w.dumps(settings))
        self.command = command
        where = arguments[: arguments.index("--seeds")] if "--seeds" in arguments else arguments
        self.resuming = [*where]
        self.reference = self.folder / "reference"
        began = time.monotonic()
        code, text = run(self.start(self.reference), self.folder / "said")
        if code != 0:
            raise RuntimeError(f"{name}: exit code {code}: {text}")
        self.seconds = time.monotonic() - began
        self.expected = contents(self.reference)

    def start(self, out: Path, *more: str) -> list[str]:
        quiet = QUIET if self.command == "search" else ["--quiet", "--no-tensorboard"]
        return [self.command, "--config", str(self.settings), "--out", str(out), *quiet, *self.arguments, *more]

    def resume(self, out: Path) -> list[str]:
        return ["resume", str(out), *QUIET, *self.resuming]

    def go_on(self, out: Path) -> list[str]:
        """Resume what can be resumed, else begin again."""
        begun = (out / "manifest.json").exists() or (out / "study.json").exists()
        return self.resume(out) if begun else self.start(out)

    def finish(self, out: Path, said: Path) -> Trouble:
        """Go on to the end, and compare."""
        code, text = run(self.go_on(out), said)
        if code == 2 and "is finished" in text:
            code = 0
        if code != 0:
            return f"{self.name}: cannot be finished, exit code {code}: {text[-1000:]}"
        return difference(self.expected, contents(out))


def jobs(folder: Path, names: tuple[str, ...]) -> list[Job]:
    """Searches in one process, in two workers and on Ray, a training, a study."""
    ways = {
        "inline": partial(Job, "inline", "search", SEARCH, folder, "--workers", "1"),
        "train": partial(Job, "train", "train", TRAIN, folder),
        "study": partial(Job, "study", "search", SEARCH | {"total_episodes": 48}, folder, "--workers", "1", "--seeds", "2"),
        "workers": partial(Job, "workers", "search", SEARCH, folder, "--workers", "2"),
        "ray": partial(Job, "ray", "search", SEARCH, folder, "--executor", "ray", "--workers", "2"),
    }
    return [ways[name]() for name in names]


CLOCK = {"seconds", "Collection_Time", "Update_Time"}


def contents(folder: Path) -> dict[str, object]:
    """Every file of a run by name, with what must not depend on when and how often it was worked on."""
    return {str(path.relative_to(folder)): _content(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def _content(path: Path) -> object:
    if path.name in ("manifest.json", "study.json", "runtime.csv", "result.json", ".lock", "policy.json"):
        return None  # they say when and where
    if path.suffix == ".csv":
        with open(path, newline="", encoding="utf-8") as file:
            return [{k: v for k, v in row.items() if k not in CLOCK} for row in csv.DictReader(file)]
    return path.read_bytes()


def difference(expected: dict[str, object], found: dict[str, object]) -> Trouble:
    names = sorted(expected.keys() ^ found.keys())
    if names:
        return f"other files: {', '.join(names[:5])}"
    odd = [name for name in expected if expected[name] != found[name]]
    return f"other contents: {', '.join(odd[:5])}" if odd else None


# ---------------------------------------------------------------- kinds


def kills(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """A run is killed at a random moment, again and again, and goes on to the same files."""
    for number in range(10**9):
        job, out, said = made[number % len(made)], folder / "run", folder / "said"
        shutil.rmtree(out, ignore_errors=True)
        for _ in range(rng.randint(1, 4)):
            fork = Fork(job.go_on(out), said)
            if fork.wait(rng.uniform(0, 1.1 * job.seconds)) is None:
                fork.kill()
                fork.wait()
            yield None
        yield job.finish(out, said)


def crashes(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """A run dies right before its n-th file operation, for every n, and goes on to the same files."""
    out, said = folder / "run", folder / "said"
    points = [(job, point) for job in made for point in range(1, 1 + file_operations(job, out, said))]
    while True:
        rng.shuffle(points)
        for job, point in points:
            shutil.rmtree(out, ignore_errors=True)
            code, text = run(job.start(out), said, partial(die_at, point, out))
            wrong = job.finish(out, said) if code == -signal.SIGKILL else complaint(code, text)
            yield wrong and f"{job.name}, operation {point}: {wrong}"


def file_operations(job: Job, out: Path, said: Path) -> int:
    """How many a run has, in the process that was asked for it."""
    shutil.rmtree(out, ignore_errors=True)
    with mmap.mmap(-1, 8) as counted:  # shared with the fork
        run(job.start(out), said, partial(die_at, 0, out, counted))
        return int.from_bytes(counted[:8], "little")


def die_at(point: int, folder: Path, counted: mmap.mmap | None = None) -> None:
    """Have this process killed before its n-th file operation below a folder; 0: never, only count."""
    done = 0

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal done
        if event == "open":
            writes = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        else:
            writes = event in ("os.rename", "os.remove", "os.mkdir", "os.truncate")
        if writes and str(arguments[0]).startswith(str(folder)):
            done += 1
            if counted is not None:
                counted[:8] = done.to_bytes(8, "little")
            if done == point:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def races(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """Two begin in one folder at once, under different seeds, while others look: one is let in, and keeps its seed."""
    job = made[0]
    for number in range(10**9):
        out = folder / f"races{number}" / "run"
        out.parent.mkdir()
        at = time.monotonic() + 0.05
        pause = rng.choice((0.0, 0.0, rng.uniform(0, 0.02)))
        forks = [
            Fork(job.start(out, "--seed", str(seed)), folder / f"said{seed}", partial(wait_until, at + seed * pause))
            for seed in (0, 1)
        ]
        looking = Fork(["runs", str(out.parent)], folder / "said2", partial(wait_until, at + rng.uniform(0, 0.05)))
        codes: list[int | None] = [None, None]
        deadline = time.monotonic() + PATIENCE_S
        while codes == [None, None] and time.monotonic() < deadline:
            codes = [fork.wait(0.001) for fork in forks]
        wrong = complaint(looking.wait(), looking.text)
        if 2 not in codes or set(codes) - {None, 0, 2} or codes == [2, 2]:
            wrong = f"exit codes {codes}: {forks[0].text[-300:]} {forks[1].text[-300:]}"
        elif not wait_for(out / "manifest.json") or ff.load_run(out).config.seed != 1 - codes.index(2):
            wrong = "one runs under the other's seed"
        for fork, code in zip(forks, codes, strict=True):
            if code is None:
                fork.kill()
                fork.wait()
        if wrong is None:
            shutil.rmtree(out.parent)
        yield wrong


def wait_for(path: Path) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    return path.exists()


def wait_until(moment: float) -> None:
    while time.monotonic() < moment:
        pass


def readers(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """A run is listed, loaded and reported while it is written."""
    job = made[0]
    while True:
        out = folder / "readers" / "run"
        shutil.rmtree(out.parent, ignore_errors=True)
        out.parent.mkdir()
        fork = Fork(job.start(out), folder / "said")
        while (code := fork.wait(0)) is None:
            yield in_process(rng.choice((["runs", str(out.parent)], ["report", str(out)], ["resume", str(out), *QUIET])))
        yield complaint(code, fork.text, (0,)) or difference(job.expected, _without_report(contents(out)))


def _without_report(found: dict[str, object]) -> dict[str, object]:
    return {name: content for name, content in found.items() if name != "report.html"}


def in_process(arguments: list[str], allowed: tuple[int, ...] = (0, 2)) -> Trouble:
    """A command in this process."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code = fixfirst(arguments)
        except BaseException as e:
            return f"fixfirst {' '.join(arguments)}: {type(e).__name__}: {str(e)[:500]}"
    return complaint(code, err.getvalue(), allowed)


NASTY = (
    b"",
    b"\xff\xfe",
    b"\x00",
    b"[" * 20_000,
    b"1e999",
    b"-inf",
    b"nan",
    b"1e308",
    b"-1",
    b"9" * 5000,
    b"\x1b[2J",
    b"{}",
)
NASTY += (b"a" * 200_000, b"null", b'"', b",", b"\n", b"[]", b"true", b"../..", b"1_0", b"5", b"x = " + b"[" * 20_000)


def mutated(rng: random.Random, data: bytes) -> bytes:
    """A file as a bad disk, a bad editor or a bad person leaves it."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((1, 2, 8, 100)))
    how = rng.randrange(6)
    if how == 0 and data:  # a flipped bit
        place = rng.randrange(len(data))
        return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
    if how == 1:
        return data[:start]
    if how == 2:
        return data[:start] + data[end:]
    if how == 3:
        return data[:end] + data[start:]
    if how == 4:
        return data[:start] + rng.choice(NASTY) + data[end:]
    cells = data.replace(b"=", b",").replace(b":", b",").split(b",")  # a whole value
    cell = rng.choice(cells)
    return data.replace(cell, rng.choice(NASTY), 1) if cell.strip() else rng.choice(NASTY)


def damage(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """One file of a run, of a policy, or a recording is damaged: every command says so in a line, or is right."""
    recording = folder / "recording.jsonl"
    recording.write_bytes(b"".join(gzip.decompress(RECORDING.read_bytes()).splitlines(keepends=True)[:2]))
    while True:
        job = rng.choice([job for job in made if job.name in ALONE])
        out = folder / "damaged" / "run"
        shutil.rmtree(out.parent, ignore_errors=True)
        shutil.copytree(job.reference, out)
        if rng.random() < 0.5:  # as if it was interrupted before its end
            for name in ("result.json", "runtime.csv", "best/policy.json"):
                (out / name).unlink(missing_ok=True)
        path = rng.choice([path for path in sorted(out.rglob("*")) if path.is_file()])
        path.write_bytes(mutated(rng, path.read_bytes()))
        few = ["--episodes", "2", "--steps", "2", "--red-agent", "sleep"]
        commands = [["runs", str(out.parent)], job.resume(out), ["evaluate", str(out), *few, "--quiet"]]
        commands += [["watch", str(out), *few, "--text"], ["report", str(out), "--out", str(folder / "page.html")]]
        command = rng.choices(commands, (8, 8, 2, 2, 1))[0]  # the last ones take long
        wrong = in_process(command)
        if wrong is None and job.name == "inline" and path.name in ("trials.csv", "policy.safetensors", "result.json"):
            wrong = silent(job, out)
        yield f"{path.relative_to(out)}: {wrong}" if wrong else None
        recorded = folder / f"mutated.{rng.choice(('jsonl', 'jsonl.gz'))}"
        data = recording.read_bytes()
        data = mutated(rng, data) if recorded.suffix == ".jsonl" else mutated(rng, gzip.compress(data, 1))
        recorded.write_bytes(data)
        yield in_process(["conform", str(recorded)], (0, 1, 2))


def silent(job: Job, out: Path) -> Trouble:
    """After a resume that complained of nothing: is the ledger another, or is best/ another policy?"""
    if in_process(job.resume(out), (0,)) is not None:
        return None  # it complained
    names = ("trials.csv", "best/policy.safetensors")
    return difference({n: job.expected[n] for n in names}, {n: _content(out / n) for n in names})


WRONG = (
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
    [],
    {},
    (1, 2),
    object(),
)
WRONG += (
    np.zeros(3),
    np.array(["a"]),
    np.array(None),
    ["b_line"] * 3,
    {"a": 1},
    np.int64(5),
    Path("nowhere"),
    slice(3),
    print,
    [[[]]],
)


def calls(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """Anything as any argument of anything public: it works, or a FixfirstError says what is wrong."""
    run, empty = made[1].reference, folder / "calls"
    envs = ff.make_vec(3)
    envs.reset(seed=0)
    env = ff.Cage2()
    env.reset(seed=0)
    policy = ff.load_policy(run)
    worlds = ("num_envs", "red_agent", "variant", "green", "max_steps", "env_ids", "autoreset_mode", "render_mode", "memory")
    worlds += ("action_set", "backend", "arrays")
    settings = ("red_agent", "seed", "total_episodes", "n_envs", "max_steps", "preset", "workflow", "units", "ppo", "gate")
    settings += ("memory", "growth", "variant", "checkpoint_every", "opening", "game")
    small = {"episodes": 2, "steps": 2, "red_agent": "sleep", "quiet": True}
    targets: list[tuple[str, Callable[[object], object]]] = [
        *((f"make_vec({n})", lambda v, n=n: ff.make_vec(**{"num_envs": 2, n: v})) for n in worlds),
        *(
            (f"Cage2({n})", lambda v, n=n: ff.Cage2(**{n: v}))
            for n in ("red_agent", "variant", "green", "max_steps", "env_id")
        ),
        *((f"make_config({n})", lambda v, n=n: ff.make_config(**{n: v})) for n in settings),
        *((f"search_config({n})", lambda v, n=n: ff.search_config(**{n: v})) for n in (*settings, "strategy", "inherit")),
        ("reset(seed)", lambda v: envs.reset(seed=v)),
        ("reset(options)", lambda v: envs.reset(options=v)),
        ("reset(reset_mask)", lambda v: envs.reset(options={"reset_mask": v})),
        ("step", lambda v: envs.step(v)),
        ("set_state", lambda v: envs.set_state(v)),
        ("set_state(memories)", lambda v: envs.set_state(envs.get_state(), v)),
        ("Cage2.step", lambda v: env.step(v)),
        ("Cage2.reset(seed)", lambda v: env.reset(seed=v)),
        ("Cage2.reset(options)", lambda v: env.reset(options=v)),
        ("Cage2.set_state", lambda v: env.set_state(v)),
        ("Remember(memory)", lambda v: ff.Remember(ff.Cage2(), memory=v)),
        ("Remember(action_set)", lambda v: ff.Remember(ff.Cage2(), action_set=v)),
        ("load_policy", lambda v: ff.load_policy(v)),
        ("load_run", lambda v: ff.load_run(v)),
        ("resume", lambda v: ff.resume(v)),
        ("report", lambda v: ff.report(v)),
        ("Workflow.parse", lambda v: ff.Workflow.parse(v)),
        ("UnitScheme.from_dict", lambda v: ff.UnitScheme.from_dict(v)),
        ("UnitScheme.from_toml", lambda v: ff.UnitScheme.from_toml(v)),
        ("MemoryScheme.parse", lambda v: ff.MemoryScheme.parse(v)),
        ("ActionSet.parse", lambda v: ff.ActionSet.parse(v)),
        ("act(obs)", lambda v: policy.act(v)),
        *((f"act({n})", lambda v, n=n: policy.act(np.zeros((1, 52)), **{n: v})) for n in ("episode_start", "workflow")),
        *((f"act({n})", lambda v, n=n: policy.act(np.zeros((1, 52)), **{n: v})) for n in ("seed", "step", "greedy")),
        ("policy.reset", lambda v: policy.reset(v)),
        ("rollout(envs)", lambda v: ff.rollout(v, policy, 2)),
        ("rollout(policy)", lambda v: ff.rollout(envs, v, 2)),
        *((f"rollout({n})", lambda v, n=n: ff.rollout(envs, policy, **{"steps": 2, n: v})) for n in ("steps", "seed")),
        ("evaluate(policy)", lambda v: ff.evaluate(v, **small)),
        *((f"evaluate({n})", lambda v, n=n: ff.evaluate(policy, **small | {n: v})) for n in (*small, "workflow", "seed")),
        *(
            (f"search({n})", lambda v, n=n: _refused(ff.search, empty, n, v))
            for n in ("seeds", "workers", "executor", "units")
        ),
        *((f"search({n})", lambda v, n=n: _refused(ff.search, empty, n, v)) for n in ("config", "ray_address", "preset")),
        *(
            (f"train({n})", lambda v, n=n: _refused(ff.train, empty, n, v))
            for n in ("from_policy", "units", "config", "seed")
        ),
    ]
    cases = [(target, value) for target in targets for value in WRONG]
    rng.shuffle(cases)
    while True:
        for (name, call), value in cases:
            if isinstance(value, int) and name in TAKES_LONG and value not in (True, 0, -1):
                continue
            envs.reset(seed=0)
            policy.reset(1)
            wrong = None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    call(value)
                except ff.FixfirstError as e:
                    if len(str(e)) > LONGEST_MESSAGE + 100:
                        wrong = "a long message"
                except MemoryError:
                    pass
                except BaseException as e:
                    wrong = f"{type(e).__name__}: {str(e)[:300]}"
            yield f"{name} of {str(value)[:40]!r}: {wrong}" if wrong else None


TAKES_LONG = (
    "make_vec(num_envs)",
    "rollout(steps)",
    "policy.reset",
    "evaluate(episodes)",
    "evaluate(steps)",
    "search(workers)",
)
TAKES_LONG += ("search(seeds)",)


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


def limits(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """Files that may not grow, few open files, little memory, a full stdout: a line each, and the run can go on."""
    while True:
        job, out, said = rng.choice(made), folder / "run", folder / "said"
        shutil.rmtree(out, ignore_errors=True)
        limit, low, high = rng.choice(LIMITS)
        code, text = run(job.start(out), said, partial(restrict, limit, rng.randrange(low, high)))
        wrong = complaint(code, text)
        if wrong is None and code == 2 and limit is None:
            wrong = None if out.exists() else "a full stdout undid a run"
        yield (wrong and f"{limit}: {wrong}") or job.finish(out, said)


LIMITS = (
    (resource.RLIMIT_FSIZE, 0, 60_000),
    (resource.RLIMIT_NOFILE, 6, 40),
    (resource.RLIMIT_DATA, 200 * 2**20, 600 * 2**20),
    (None, 0, 1),
)


def restrict(limit: int | None, value: int) -> None:
    if limit is None:
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        return
    resource.setrlimit(limit, (value, resource.getrlimit(limit)[1]))


def states(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """Corrupted states are refused, or played on without leaving an array: compiled anew, with its bounds checked.

    The first ones are played in the machine code that everybody has.
    """
    play_states(500, rng.randrange(2**31), control=False)
    yield 500
    each = 20_000
    while True:
        variables = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder.parent / "bounds-checked")}
        command = [sys.executable, __file__, "--play-states", str(each), "--seed", str(rng.randrange(2**31))]
        played = subprocess.run(command, env=variables, capture_output=True, text=True)
        yield each if played.returncode == 0 else f"exit code {played.returncode}: {played.stderr[-1000:]}"


def play_states(count: int, seed: int, control: bool = True) -> None:
    """control: in a process that checks bounds, which is shown first, by a state that must be refused and leads astray."""
    rng = np.random.default_rng(seed)
    n = 500
    worlds = [
        World(n, red_agent=red, variant=variant, green=green, max_steps=limit)
        for red, variant, green, limit in (
            ("b_line", "current", False, 30),
            ("meander", "leaderboard", True, 100),
            ("b_line:0.5,meander:0.5", "debugged", True, None),
        )
    ]
    if control:
        astray = World(1)
        astray.reset(0)
        astray._states["bline_stage"] = 200
        with contextlib.suppress(IndexError):
            astray.step(np.zeros(1, np.int64))
            sys.exit("bounds are not checked")
    for number in range(-(-count // n)):
        world = worlds[number % len(worlds)]
        world.reset(int(rng.integers(2**32)))
        for _ in range(int(rng.integers(0, 12))):
            world.step(rng.integers(0, 145, n))
        corrupted = world.get_state()
        for state in range(n):
            _corrupt(corrupted[state : state + 1], rng)
        good = [state for state in range(n) if _accepted(corrupted[state : state + 1])]
        world.set_state(corrupted[rng.choice(good, n)])
        for _ in range(5):
            world.step(rng.integers(0, 145, n))
        world.turns()


def _corrupt(state: np.ndarray, rng: np.random.Generator) -> None:
    """Random bytes anywhere, or a random value in some fields."""
    if rng.random() < 0.3:
        data = state.view(np.uint8)
        data[rng.integers(0, len(data), rng.integers(1, 4))] ^= rng.integers(1, 256, dtype=np.uint8)
        return
    for name in rng.choice(STATE_DTYPE.names, rng.integers(1, 4)):
        values = state[name].reshape(-1)
        bits = int(rng.integers(1, 8 * values.dtype.itemsize + 1))
        state[name] = (rng.integers(0, 2 ** min(bits, 62), values.shape)).astype(values.dtype).reshape(state[name].shape)


def _accepted(state: np.ndarray) -> bool:
    try:
        check_states(state)
    except ff.WorldError:
        return False
    return True


def memory(rng: random.Random, folder: Path, made: list[Job], episodes: int = 1_000_000) -> Kind:
    """A long training takes no more memory at its end than after its first tenth. A try is 10,000 episodes."""
    from fixfirst.learner import TrainingRun

    while True:
        config = make_config(total_episodes=episodes, workflow="critical_first", n_envs=100, seed=rng.randrange(2**31))
        used: list[float] = []
        with TrainingRun(config, Path(tempfile.mkdtemp(dir=folder))) as training:
            for update in training.updates():
                if update.row.episodes % 10_000 == 0:
                    used.append(resident_mb())
                    yield None
        early, late = max(used[: max(1, len(used) // 10)]), max(used)
        yield f"{early:.0f} MB grew to {late:.0f} MB" if late > 1.1 * early + 5 else None


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


KINDS = {  # its share of the time, and how often it is tried in a slice
    kills: (6, 4),
    crashes: (4, 3),
    races: (1, 2),
    readers: (1, 4),
    damage: (5, 20),
    calls: (1, 1500),
    limits: (2, 2),
    states: (2, 500),
    memory: (2, 2),
}
ALONE = ("inline", "train", "study")  # jobs in one process


# ---------------------------------------------------------------- all of them


def soak(
    names: list[str], share: Callable[[Callable[..., Kind]], Share], seed: int, ways: tuple[str, ...], keep: Path
) -> int:
    """Try every kind; the number of troubles."""
    compile_kernel()
    troubles = 0
    with tempfile.TemporaryDirectory(prefix="fixfirst-soak-") as scratch:
        made = jobs(Path(scratch) / "jobs", ways)
        for kind in (kind for kind in KINDS if kind.__name__ in names):
            folder = Path(scratch) / kind.__name__
            folder.mkdir()
            rng = random.Random(f"{seed} {kind.__name__}")
            began, count, found, (most, most_s) = time.monotonic(), 0, 0, share(kind)
            for trouble in kind(rng, folder, made):
                count += trouble if isinstance(trouble, int) else 1
                if isinstance(trouble, str):
                    found += 1
                    report(keep, kind.__name__, found, trouble, folder)
                if count >= most or time.monotonic() - began > most_s:
                    break
            troubles += found
            seconds = time.monotonic() - began
            print(f"{kind.__name__:10} {count:10,} tried {found:6,} not as it must be {seconds:8.0f} s", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    return troubles


def report(keep: Path, kind: str, number: int, trouble: str, folder: Path) -> None:
    """Print it, and keep what lies there."""
    print(f"  {kind} {number}: {trouble[:600]}", flush=True)
    if number <= 20:
        evidence = keep / f"{kind}-{number}"
        shutil.rmtree(evidence, ignore_errors=True)
        shutil.copytree(folder, evidence, ignore=shutil.ignore_patterns("bounds-checked"), dirs_exist_ok=True)
        (evidence / "trouble.txt").write_text(trouble, errors="replace")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(kind.__name__ for kind in KINDS), help="some kinds, separated by commas")
    parser.add_argument("--tries", type=int, help="try every kind so often, however long it takes")
    parser.add_argument("--slice", action="store_true", help="a few tries of every kind, half a minute")
    parser.add_argument("--ray", action="store_true", help="also on a Ray cluster of this machine")
    parser.add_argument("--keep", type=Path, default=Path("soak"), help="where to put what was found")
    parser.add_argument("--play-states", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.play_states is not None:
        play_states(args.play_states, args.seed)
        return
    names = args.only.split(",")
    shares = sum(KINDS[kind][0] for kind in KINDS if kind.__name__ in names)

    def share(kind: Callable[..., Kind]) -> Share:
        if args.slice or args.tries is not None:
            return (KINDS[kind][1] if args.slice else args.tries), math.inf
        return sys.maxsize, 60 * args.minutes * KINDS[kind][0] / shares

    ways = ALONE[:2] if args.slice else (*ALONE, "workers", *(("ray",) if args.ray else ()))
    sys.exit(1 if soak(names, share, args.seed, ways, args.keep) else 0)


if __name__ == "__main__":
    main()
