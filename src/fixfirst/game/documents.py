"""Files that come from others: YAML read as plain data (no tags), of bounded size and depth, without aliases.

A value is taken out with its *place* in the file, so that a refusal says where it was.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixfirst.base import errors, files

MOST_BYTES = 1_000_000
_DEEPEST = 20  # tables in tables
_LONGEST_NAME = 100


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
    """Return a table whose keys are strings."""
    if not isinstance(value, dict):
        raise place.refuse(f"must be a table, got {short(value)}")
    for key in value:
        if not isinstance(key, str):
            raise place.refuse(f"has the key {short(key)}, which is no string; put it in quotes")
    return value


def as_list(value: Any, place: Place) -> list[Any]:
    if not isinstance(value, list):
        raise place.refuse(f"must be a list, got {short(value)}")
    return value


def as_text(value: Any, place: Place) -> str:
    if not isinstance(value, str):
        raise place.refuse(f"must be a string, got {short(value)}")
    return value


def short(value: Any) -> str:
    """Quote a value that came from a file, at most the beginning of it."""
    text = repr(value)
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

    make_loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # safe: plain data only
    place = Place(name)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=make_loader):
            if isinstance(event, yaml.AliasEvent):  # nine lines of them can stand for a billion values
                raise place.refuse(f"has the alias *{event.anchor}, which is not read: write out what it stands for")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise place.refuse(f"is nested more than {_DEEPEST} deep, which no scenario is")
        loader = make_loader(text)
        node = loader.get_single_node()
        _check_keys(yaml, node, place)
        return None if node is None else loader.construct_document(node)
    except errors.ScenarioError:
        raise
    except yaml.YAMLError as e:
        raise place.refuse(f"is not YAML that can be read ({' '.join(str(e).split())})") from e
    except (UnicodeError, ValueError) as e:  # no Unicode, no date, too many digits
        raise place.refuse(f"is not YAML that can be read ({e})") from e


def _check_keys(yaml: Any, node: Any, place: Place) -> None:
    """Refuse a key that is there twice in one table."""
    children = node.value if isinstance(node, yaml.SequenceNode) else []
    if isinstance(node, yaml.MappingNode):
        children = [child for pair in node.value for child in pair]
        keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, times in keys.items():
            if times > 1:
                raise place.refuse(f"has the key {short(key)} twice in one table")
    for child in children:
        _check_keys(yaml, child, place)


def check_name(name: str, place: Place, what: str) -> None:
    """Refuse what cannot be the name of a host or subnet."""
    if name != errors.printable(name) or not 1 <= len(name) <= _LONGEST_NAME or name == "success":
        right = f"1 to {_LONGEST_NAME} printable letters, and not 'success'"
        raise place.refuse(f"{short(name)} cannot be the name of a {what}; use {right}")
