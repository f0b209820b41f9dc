"""Jobs for tests of schedulers, which workers can import."""

import os
import signal
import time


def double(number, tell, interrupt):
    return 2 * number


def count_up(number, tell, interrupt):
    for i in range(number):
        tell(i)
    return number


def who(argument, tell, interrupt):
    return os.getpid()


def raise_it(error, tell, interrupt):
    raise error


def stumble(argument, tell, interrupt):
    return 1 / argument


def die(argument, tell, interrupt):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(code, tell, interrupt):
    os._exit(code)


def work_until_interrupted(file, tell, interrupt):
    """Begins a file, ends it when interrupted: `begun` alone means that it was not allowed to save."""
    file.write_text("begun")
    tell("begun")
    while not interrupt:
        time.sleep(0.01)
    file.write_text("saved")


def overlap(argument, tell, interrupt):
    """How many of these ran at a time, at most, as far as this one saw: for a while, and until `wanted` ran at a time."""
    folder, wanted, while_s = argument
    own, met = folder / str(time.monotonic_ns()), folder.parent / "met"
    own.touch()
    seen = 0
    until = time.monotonic() + while_s
    while time.monotonic() < until or not met.exists():
        tell("still here")
        seen = max(seen, len(list(folder.iterdir())))
        if seen >= wanted:
            met.touch()
        time.sleep(0.01)
    own.unlink()
    return seen


def no_progress(key, message):
    raise AssertionError(f"job {key} told {message!r}")
