"""Files of scenarios and images, read with care: they come from others.

YAML is read as plain data (no tags), from files of bounded size, with bounds on depth and on what aliases amount to: nine
lines can stand for a billion values. A value is then taken out with its *place*, so that a refusal says where it was.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixfirst.base import errors, files

MOST_BYTES = 1_000_000
MOST_VALUES = 100_000  # in a file, counting what an alias stands for each time
_DEEPEST = 20  # tables in tables


@dataclass(frozen=True)
class Place:
    """Where in a file something is: `lab.yaml: Hosts.User3.image`."""

    file: str
    path: tuple[str, ...] = ()

    def __truediv__(self, key: str) -> "Place":
        return Place(self.file, (*self.path, key))

    def __str__(self) -> str:
        return f"{self.file}: {'.'.join(self.path)}" if self.path else self.file

    def refuse(self, why: str) -> errors.ScenarioError:
        """Return the error to raise: what is wrong here, and what is right."""
        return errors.ScenarioError(f"{self}: {why}")


def as_table(value: Any, place: Place) -> dict[str, Any]:
    """Return a table whose keys are texts."""
    if not isinstance(value, dict):
        raise place.refuse(f"must be a table, got {short(value)}")
    for key in value:
        if not isinstance(key, str):
            raise place.refuse(f"has the key {short(key)}, which is no text; put it in quotes")
    return value


def as_list(value: Any, place: Place) -> list[Any]:
    if not isinstance(value, list):
        raise place.refuse(f"must be a list, got {short(value)}")
    return value


def as_text(value: Any, place: Place) -> str:
    if not isinstance(value, str):
        raise place.refuse(f"must be a text, got {short(value)}")
    return value


def short(value: Any) -> str:
    """Quote a value that came from a file, at most the beginning of it."""
    text = errors.quoted(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_bytes(path: Path) -> bytes:
    """Return a regular file's contents, if it is small enough for what it should be."""
    try:
        return files.read_file(path, MOST_BYTES)
    except OSError as e:
        raise errors.ScenarioError(f"{path}: cannot be read ({e.strerror})") from e
    except ValueError as e:
        raise errors.ScenarioError(f"{path}: is larger than {MOST_BYTES:,} bytes, which no scenario needs") from e


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds."""
    return parse_yaml(read_bytes(path), str(path))


def parse_yaml(text: str | bytes, name: str) -> Any:
    """Return the values of a YAML text. name: of its file, for errors."""
    import yaml  # 20 ms: only for those who read files

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    place = Place(name)
    try:
        _check_size(yaml, yaml.parse(text, Loader=loader), place)
        return yaml.load(text, Loader=loader)  # a safe loader: plain data only
    except errors.ScenarioError:
        raise
    except yaml.YAMLError as e:
        raise place.refuse(f"is not YAML that can be read ({' '.join(str(e).split())})") from e
    except (UnicodeError, ValueError, RecursionError) as e:  # no Unicode, no date, too many digits
        raise place.refuse(f"is not YAML that can be read ({e})") from e


def _check_size(yaml: Any, events: Any, place: Place) -> None:
    """Refuse a text that is nested too deeply, stands for too many values, or says a key twice."""
    named: dict[str, int] = {}  # anchor -> how many values it stands for; 0 while its end has not come
    open_nodes: list[list[Any]] = []  # [anchor, values so far, keys or None, is a key next?]

    def add(values: int, key: str | None = None) -> None:
        if not open_nodes:
            return
        node = open_nodes[-1]
        node[1] += values
        if node[1] > MOST_VALUES:
            raise place.refuse(f"stands for more than {MOST_VALUES:,} values, which no scenario needs")
        if node[2] is not None:
            if node[3] and key is not None:
                if key in node[2]:
                    raise place.refuse(f"has the key {short(key)} twice in one table")
                node[2].add(key)
            node[3] = not node[3]

    for event in events:
        if isinstance(event, yaml.AliasEvent):
            if not named.get(event.anchor, 1):
                raise place.refuse(f"has an alias *{event.anchor} inside of what it stands for")
            add(named.get(event.anchor, 1))
        elif isinstance(event, yaml.ScalarEvent):
            if event.anchor:
                named[event.anchor] = 1
            add(1, event.value if event.value != "<<" else None)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            if event.anchor:
                named[event.anchor] = 0
            is_table = isinstance(event, yaml.MappingStartEvent)
            open_nodes.append([event.anchor, 1, set() if is_table else None, is_table])
            if len(open_nodes) > _DEEPEST:
                raise place.refuse(f"is nested more than {_DEEPEST} deep, which no scenario is")
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            anchor, values, _, _ = open_nodes.pop()
            if anchor:
                named[anchor] = values
            add(values)
