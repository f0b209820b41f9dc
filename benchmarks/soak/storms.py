"""Runs that are killed, interrupted, begun twice, looked at while they are written, or given too little."""

import mmap
import os
import random
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from forks import PATIENCE_S, Fork, Trouble, complaint, in_process, run
from jobs import AGAIN, ALONE, QUIET, Job, contents, difference

import fixfirst as ff

Kind = Iterator[Trouble]  # tries again and again
notes: Counter[str] = Counter()  # what is counted besides


def kills(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """A run is killed at a random moment, again and again, and goes on to the same files."""
    out, said = folder / "run", folder / "said"
    for job in _taking_turns(rng, made):
        shutil.rmtree(out, ignore_errors=True)
        killed = 0
        for _ in range(rng.randint(1, MOST_KILLS)):
            began = time.monotonic()
            if rng.random() < 0.05:  # from its very first moment
                fork, moment = Fork(job.go_on(out), said, fresh=True), rng.choice((0.05, 0.5, 2.0)) * rng.random()
            else:
                fork, moment = Fork(job.go_on(out), said), rng.uniform(0, job.seconds * rng.choice((0.2, 0.5, 1.0)))
            if fork.wait(moment) is None:
                _end(rng, fork)
                killed += 1
            else:  # it was over before; machines are not always as busy
                job.seconds += 0.2 * (time.monotonic() - began - job.seconds)
        notes[f"of {job.name}"] += killed
        yield job.finish(out, said) or killed  # only what was compared in the end counts


MOST_KILLS = 8  # of one run


def _end(rng: random.Random, fork: Fork) -> None:
    """Mostly kill it with all its processes; or only the first of them; or hang up, as a terminal that is closed does."""
    how = rng.random()
    if how < 0.8:
        return fork.kill()
    if how < 0.9:
        os.kill(fork.pid, signal.SIGKILL)
    else:
        fork.send(rng.choice((signal.SIGHUP, signal.SIGQUIT)))
    if fork.wait() is None:
        fork.kill()


def _taking_turns(rng: random.Random, made: list[Job]) -> Iterator[Job]:
    """Those that start further processes take ten times as long, and come less often; courses take long, too."""
    weights = [{"course": 3, "train": 20}.get(job.name, 10 if job.name in ALONE else 4) for job in made]
    while True:
        yield rng.choices(made, weights)[0]


def interrupts(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """Ctrl-C at a random moment, often in the first 50 ms: one line and exit code 130; the run goes on to the same files.

    Before Python has come to the first line of fixfirst it answers itself, with a traceback of its own; they are counted.
    """
    out, said = folder / "run", folder / "said"
    for job in _taking_turns(rng, made):
        shutil.rmtree(out, ignore_errors=True)
        fresh = rng.random() < 0.5
        fork = Fork(job.start(out), said, fresh=fresh)
        code = fork.wait(rng.choice((0.05, 0.2, 1.0, 3.0)) * rng.random() if fresh else rng.uniform(0, 1.1 * job.seconds))
        if code is None:
            fork.send(signal.SIGINT)
            code = fork.wait()
        text = fork.text
        begun = out.exists() and job.name != "exploit"  # which is given a run
        if (fresh or (not begun and not text)) and _is_pythons_own(code, text):
            notes["of them in Python's own start"] += 1
            wrong = None
        elif code == 130:
            lines = [line for line in text.splitlines() if line.startswith("fixfirst: ")]  # beside a result
            right = len(lines) == 1 and lines[0].startswith("fixfirst: interrupted") and "Traceback" not in text
            wrong = None if right else f"said {text[-2000:]!r}"
        else:
            wrong = complaint(code, text, (0,))
        yield (wrong and f"{job.name}: {wrong}") or job.finish(out, said)


def _is_pythons_own(code: int | None, text: str) -> bool:
    """Did it end before fixfirst's first lines were over?"""
    if code == -signal.SIGINT and not text:  # before Python knew what to do with it
        return True
    ours = [line for line in text.splitlines() if "/fixfirst/" in line]
    begun = all("/fixfirst/__init__.py" in line or "/fixfirst/__main__.py" in line for line in ours)
    return code in (1, -signal.SIGINT) and "KeyboardInterrupt" in text and begun


def crashes(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """A run dies right before its n-th file operation, for every n, and goes on to the same files."""
    out, said = folder / "run", folder / "said"
    left: dict[str, list[int]] = {}
    for job in _taking_turns(rng, made):
        if not left.get(job.name):
            count = file_operations(job, out, said)
            left[job.name] = rng.sample(range(1, 1 + count), count)
            notes[f"operations of {job.name}"] = count
        point = left[job.name].pop()
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
            writes = event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
        if writes and str(arguments[0]).startswith(str(folder)):
            done += 1
            if counted is not None:
                counted[:8] = done.to_bytes(8, "little")
            if done == point:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def races(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """Two begin in one folder at once, under different seeds, while others look: one is let in, and keeps its seed.

    Or several go on with one run, some of them when others are about to end it.
    """
    for number in range(10**9):
        job = rng.choice([job for job in made if job.name in ALONE and job.name != "study"])
        if job.name in AGAIN or rng.random() < 0.5:
            yield _resumed_by_many(rng, folder, job)
            continue
        out = folder / f"races{number}" / "run"
        out.parent.mkdir()
        at = time.monotonic() + 0.05
        pause = rng.choice((0.0, 0.0, rng.uniform(0, 0.02)))
        forks = [
            Fork(job.start(out, "--seed", str(seed)), folder / f"said{seed}", partial(_wait_until, at + seed * pause))
            for seed in (0, 1)
        ]
        looking = Fork(["runs", str(out.parent)], folder / "said2", partial(_wait_until, at + rng.uniform(0, 0.05)))
        codes: list[int | None] = [None, None]
        deadline = time.monotonic() + PATIENCE_S
        while codes == [None, None] and time.monotonic() < deadline:
            codes = [fork.wait(0.001) for fork in forks]
        wrong = complaint(looking.wait(), looking.text)
        if 2 not in codes or set(codes) - {None, 0, 2} or codes == [2, 2]:
            wrong = f"exit codes {codes}: {forks[0].text[-300:]} {forks[1].text[-300:]}"
        elif not _wait_for(out / "manifest.json") or ff.load_run(out).config.seed != 1 - codes.index(2):
            wrong = "one runs under the other's seed"
        for fork, code in zip(forks, codes, strict=True):
            if code is None:
                fork.kill()
        if wrong is None:
            shutil.rmtree(out.parent)
        yield wrong and f"{job.name}: {wrong}"


def _resumed_by_many(rng: random.Random, folder: Path, job: Job) -> Trouble:
    out = folder / "resumed"
    shutil.rmtree(out, ignore_errors=True)
    first = Fork(job.start(out), folder / "said")
    if first.wait(rng.uniform(0, job.seconds)) is None:
        first.kill()
    at = time.monotonic() + 0.05
    moments = [at + rng.uniform(0, job.seconds) for _ in range(3)]
    forks = [
        Fork(job.go_on(out), folder / f"said{i}", partial(_wait_until, moment)) for i, moment in enumerate((at, *moments))
    ]
    codes = [fork.wait() for fork in forks]
    wrong = next(filter(None, (complaint(code, fork.text) for code, fork in zip(codes, forks, strict=True))), None)
    return (wrong and f"{job.name}: {wrong}") or job.finish(out, folder / "said")


def _wait_for(path: Path) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    return path.exists()


def _wait_until(moment: float) -> None:
    time.sleep(max(moment - time.monotonic() - 0.005, 0))
    while time.monotonic() < moment:
        pass


def readers(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """A run is listed, loaded and reported while it is written."""
    while True:
        job = rng.choice([job for job in made if job.name in ALONE])
        out = folder / "readers" / "run"
        shutil.rmtree(out.parent, ignore_errors=True)
        out.parent.mkdir()
        fork = Fork(job.start(out), folder / "said")
        while (code := fork.wait(0)) is None:
            command = rng.choice((["runs", str(out.parent)], ["report", str(out)], ["resume", str(out), *QUIET]))
            wrong = in_process(command)
            yield wrong and f"{job.name}: {wrong}"
        if code == 2 and "in use by another process" in fork.text:  # one who resumed was let in first, and ended it
            code = 0
            notes["of them overtaken by who resumed"] += 1
        found = {name: held for name, held in contents(out).items() if not name.endswith("report.html")}
        wrong = complaint(code, fork.text, (0,)) or difference(job.expected, found)
        yield wrong and f"{job.name}: {wrong}"


def limits(rng: random.Random, folder: Path, made: list[Job]) -> Kind:
    """Files that may not grow, few open files, little memory, a full or closed stdout: a line each; the run can go on."""
    out, said = folder / "run", folder / "said"
    for job in _taking_turns(rng, [job for job in made if not job.name.endswith("ray")]):
        shutil.rmtree(out, ignore_errors=True)
        limit, low, high = rng.choice(LIMITS)
        code, text = run(job.start(out), said, partial(restrict, limit, rng.randrange(low, high)))
        wrong = complaint(code, text)
        if wrong is None and code == 2 and limit == "full":
            wrong = None if out.exists() else "a full stdout undid a run"
        yield (wrong and f"{job.name} under {limit}: {wrong}") or job.finish(out, said)


LIMITS = (
    (resource.RLIMIT_FSIZE, 0, 60_000),
    (resource.RLIMIT_NOFILE, 6, 40),
    (resource.RLIMIT_DATA, 200 * 2**20, 600 * 2**20),
    ("full", 0, 1),
    ("closed", 0, 1),
)


def restrict(limit: int | str, value: int) -> None:
    if limit == "full":
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    elif limit == "closed":
        os.close(1)
        sys.stdout = None  # as Python has it then
    else:
        resource.setrlimit(limit, (value, resource.getrlimit(limit)[1]))
