"""Everything fixfirst raises on purpose: kinds of FixfirstError, and Interrupted.

A message says what came, what is wrong and what is right, in one printable line. The command line prints it and exits with 2
(130 if interrupted); a traceback is a bug.
"""

import contextlib
import difflib
import shlex
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LONGEST_MESSAGE = 2_000


def did_you_mean(word: str, known: "Iterable[str]") -> str:
    """Return the end of a message about a word that is not known: what is nearest to it, if anything is near."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def list_words(texts: "list[str] | tuple[str, ...]", word: str = "and") -> str:
    """Join texts, as in "a, b and c"."""
    return ", ".join(texts) if len(texts) < 2 else f"{', '.join(texts[:-1])} {word} {texts[-1]}"


def printable(text: str) -> str:
    """Without control characters, which a terminal would obey, and lone surrogates, which neither XML nor UTF-8 can hold."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c == " " else "\ufffd" for c in text)


def in_one_line(text: str) -> str:
    """Return a message, whatever it quotes: printable, and not longer than somebody reads. Its end often says what to do."""
    line = printable(" ".join(text.split()))
    if len(line) <= LONGEST_MESSAGE:
        return line
    return f"{line[: LONGEST_MESSAGE // 2]} ... {line[-(LONGEST_MESSAGE // 2) :]}"


def command(*words: object) -> str:
    """Return a command of ours to be pasted into a shell, whatever is in its words."""
    return shlex.join(["fixfirst", *map(str, words)])


def note(text: str) -> None:
    """Print a line that the user should read, on stderr; in a terminal it is broken between words."""
    line = f"fixfirst: {in_one_line(text)}"
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        line = textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
    print(line, file=sys.stderr, flush=True)


class FixfirstError(Exception):
    """Base of all errors a user can cause. Its message is one printable line."""

    def __str__(self) -> str:
        return in_one_line(super().__str__())


class ConfigError(FixfirstError, ValueError):
    """Settings that contradict each other or make no sense."""


class WorkflowError(FixfirstError, ValueError):
    """An order of unit types, or a grouping of hosts, that makes no sense."""


class ScenarioError(FixfirstError, ValueError):
    """A scenario file, or what it describes, that cannot be played exactly: names the place."""


class WorldError(FixfirstError, ValueError):
    """A simulated network that cannot be built or stepped as asked."""


class ActionError(WorldError):
    """Actions of the wrong shape, type or range."""


class ResetNeeded(WorldError):
    """A step where a reset must come first."""


class SearchError(FixfirstError, ValueError):
    """A search that cannot be set up, or is told something impossible."""


class ConformanceError(FixfirstError, ValueError):
    """A recording of CybORG episodes that cannot be read."""


class CyborgError(FixfirstError, RuntimeError):
    """CybORG cannot be found or loaded, or does not behave as any variant we know."""


class WorkerError(FixfirstError, RuntimeError):
    """A worker process raised an exception (its traceback is attached as a note), died, or does not answer."""


class RunDirError(FixfirstError):
    """A run directory that cannot be used, or is used by somebody else."""


class PolicyError(FixfirstError):
    """A policy or checkpoint file that is missing, damaged or of another kind."""


class Interrupted(KeyboardInterrupt):
    """A run was stopped by Ctrl-C or a polite kill after saving itself; the message says how to go on."""


# What reading a damaged file may raise.
UNREADABLE = (FixfirstError, OSError, ValueError, TypeError, KeyError, ArithmeticError, RecursionError)


@contextlib.contextmanager
def writing(place: object, hint: str = "", error: type[FixfirstError] = RunDirError) -> "Iterator[None]":
    """Turn what the system refuses while something is written to a file or folder into one line. hint: what to do then."""
    try:
        yield
    except OSError as e:
        raise error(f"{place}: cannot be written ({e.strerror or e}){hint}") from e
