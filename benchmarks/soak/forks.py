"""Commands in forks of this process, in which everything is imported, compiled and loaded; or in processes of their own."""

import contextlib
import io
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from fixfirst.base.errors import LONGEST_MESSAGE
from fixfirst.cli import main as fixfirst

PATIENCE_S = 300.0  # what takes longer hangs

Trouble = str | int | None  # what was not as it must be; or of so many tries nothing


def nothing() -> None:
    """To do before a command."""


class Fork:
    """A command in a process group of its own. `before` is called in there first; fresh: Python is started anew."""

    def __init__(self, arguments: list[str], said: Path, before: Callable[[], object] = nothing, *, fresh: bool = False):
        self.said = said
        sys.stdout.flush()
        signal.pthread_sigmask(
            signal.SIG_BLOCK, {signal.SIGINT}
        )  # whoever sends one means the command, not our preparations
        self.pid = os.fork()
        if self.pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        else:
            code = 70
            try:
                os.setsid()
                out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(out, 1), os.dup2(out, 2)
                if fresh:
                    signal.signal(signal.SIGINT, signal.SIG_DFL)
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
                    os.execv(sys.executable, [sys.executable, "-m", "fixfirst", *arguments])
                sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False, buffering=1)
                before()
                # One that came during our preparations ends it, as in Python's own start.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
                signal.signal(signal.SIGINT, signal.default_int_handler)  # as the command has it when it has begun
                sys.argv = ["fixfirst", *arguments]
                code = fixfirst()
                if sys.stdout is not None:
                    sys.stdout.flush()
            except BaseException:
                traceback.print_exc(file=sys.stderr)
            finally:
                os._exit(code)

    def send(self, number: signal.Signals) -> None:
        """A signal to it and all its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.wait()

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


def run(arguments: list[str], said: Path, before: Callable[[], object] = nothing) -> tuple[int | None, str]:
    """A command to its end: exit code and all it said."""
    fork = Fork(arguments, said, before)
    code = fork.wait()
    if code is None:
        fork.kill()
    return code, fork.text


def in_process(arguments: list[str], allowed: tuple[int, ...] = (0, 2), most_s: float = PATIENCE_S) -> Trouble:
    """A command in this process: what is wrong with how it ended."""
    began = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code = fixfirst(arguments)
        except BaseException as e:
            return f"fixfirst {' '.join(arguments)}: {type(e).__name__}: {str(e)[:500]}"
    wrong = complaint(code, err.getvalue(), allowed)
    if wrong is None and time.monotonic() - began > most_s:
        wrong = f"fixfirst {' '.join(arguments)}: took {time.monotonic() - began:.0f} s"
    if wrong is None and "\x1b" in out.getvalue():
        wrong = f"terminal escapes: {out.getvalue()[:500]!r}"
    return wrong


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
