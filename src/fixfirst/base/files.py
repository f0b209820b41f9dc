"""Files from elsewhere, read strictly: regular files of a bounded size, UTF-8, documents of a bounded depth.

What the system refuses is an OSError, what makes no sense a ValueError; whoever asks adds what the file should have been.
"""

import errno
import json
import math
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any, NoReturn

MB = 2**20
LARGEST_DOCUMENT = 8 * MB  # JSON: those of a run have some kilobytes
LARGEST_SETTINGS = MB  # TOML, which takes a second per megabyte
DEEPEST = 32  # tables in tables, lists in lists: those of a run have five
LARGEST_TABLE = 1024 * MB  # a log of one row per episode may have some hundred megabytes
# A key that leads deeper than that, a.a.a. ...; tomllib would take for ever to find out.
_DOTTED = re.compile(rf"(?<![\w\"'-])(?:[\w\"'-]++\s*+\.\s*+){{{DEEPEST}}}")
# What only some systems know of opening files: not to wait for a pipe, not to hand it on, not to change line ends.
_AS_IT_IS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
TOO_DEEP = f"nested more than {DEEPEST} deep"


def read_file(path: Path, limit: int = LARGEST_TABLE) -> bytes:
    """All of a regular file that has at most `limit` bytes: no pipe that would never answer, no device that never ends."""
    descriptor = os.open(path, os.O_RDONLY | _AS_IT_IS)
    with open(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        mode = facts.st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        is_small = facts.st_size <= limit
        data = file.read(facts.st_size + 1) if is_small else b""  # to ask for more would reserve more
        while facts.st_size < len(data) <= limit and (more := file.read(MB)):  # it grows meanwhile
            data += more
    if not is_small or len(data) > limit:
        raise ValueError(f"more than {limit // MB} MB")
    return data


def read_json(path: Path, *, own: bool = False) -> Any:
    """The document of a JSON file. own: fixfirst wrote it."""
    return parse_json(read_file(path, LARGEST_DOCUMENT), own=own)


def read_toml(path: Path) -> dict[str, Any]:
    """The document of a TOML file."""
    text = read_file(path, LARGEST_SETTINGS).decode()
    if _DOTTED.search(text):
        raise ValueError(TOO_DEEP)
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    _check_depth(document)
    return document


def parse_json(data: bytes, *, own: bool = False) -> Any:
    """A JSON document; NaN and infinities are none, and a name stands once in a table.

    own: numbers are written as Python writes them. One digit more may leave a number what it is, and is damage all the same.
    """
    try:
        document = json.loads(
            data.decode(),
            parse_constant=_no_number,
            parse_float=_as_written if own else _finite,
            parse_int=_as_written_int if own else int,
            object_pairs_hook=_without_doubles,
        )
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    _check_depth(document)
    return document


def _check_depth(document: Any) -> None:
    level = [document]
    for _ in range(DEEPEST):
        tables = (value.values() for value in level if isinstance(value, dict))
        lists = (value for value in level if isinstance(value, list))
        level = [inner for values in (*tables, *lists) for inner in values]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a name stands twice in a table")
    return table


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text[:60])  # 1e999 is as little a number as Infinity


def _as_written(text: str) -> float:
    value = _finite(text)
    return value if repr(value) == text else _no_number_of_ours(text)


def _as_written_int(text: str) -> int:
    value = int(text)
    return value if str(value) == text else _no_number_of_ours(text)


def _no_number_of_ours(text: str) -> NoReturn:
    raise ValueError(f"{text[:60]} is a number that fixfirst would write otherwise")
