"""Files of others: YAML as plain data of bounded size and depth, without aliases of tables; and models of its tables."""

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from fixfirst.base import arguments, errors, files

if TYPE_CHECKING:
    import yaml

MOST_BYTES = 1_000_000
_DEEPEST = 20  # tables in tables
_LONGEST_NAME = 100


class Table(BaseModel):
    """A table of a file. Keys that a class does not name play no part, but for those that are not modelled."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, allow_inf_nan=False)
    not_modelled: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _is_modelled(cls, values: Any) -> Any:
        if odd := [key for key in cls.not_modelled if isinstance(values, dict) and key in values]:
            raise ValueError(f"has {', '.join(odd)}, which is not modelled here")
        return values

    @classmethod
    def keys(cls) -> dict[str, str]:
        """Return the names of its fields by the keys that files have for them."""
        return {field.alias or name: name for name, field in cls.model_fields.items()}

    def slips(self, *path: str) -> Iterator[str]:
        """Note the keys that play no part although they look like one that does, also in tables within this one."""
        absent = [key for key, name in self.keys().items() if name not in self.model_fields_set]
        for key in self.model_extra or ():
            if near := errors.did_you_mean(key, absent):
                yield f"{'.'.join((*path, key))} plays no part{near}"
        for key, name in self.keys().items():
            value = getattr(self, name)
            for inner, table in value.items() if isinstance(value, dict) else ((None, value),):
                if isinstance(table, Table):
                    yield from table.slips(*path, key, *([inner] if inner else []))


def one_of(kind: str) -> AfterValidator:
    """Check that a string is one of the names of a kind that `as_table` is given."""

    def check(name: str, info: "ValidationInfo[dict[str, Collection[str]]]") -> str:
        names = info.context[kind]
        if name not in names:
            raise PydanticCustomError("unknown_name", "must be one of {names}", {"names": ", ".join(map(str, names))})
        return name

    return AfterValidator(check)


def _as_name(name: str) -> str:
    if name != errors.printable(name) or not 1 <= len(name) <= _LONGEST_NAME or name == "success":
        raise ValueError(f"must be 1 to {_LONGEST_NAME} printable letters, and not 'success'")
    return name


Name = Annotated[str, AfterValidator(_as_name)]  # of a host or subnet
AnyTable = TypeVar("AnyTable", bound=Table)


def as_table(model: type[AnyTable], value: Any, file: str, *path: str, **names: Collection[str]) -> AnyTable:
    """Return the table that values of a file are; raise ScenarioError where they are none.

    path: of keys, to the table. names: those that it may use, by their kind (see `one_of`).
    """
    try:
        return model.model_validate(value, context=names)
    except ValidationError as error:
        first = error.errors()[0]
        key, near = str(first["loc"][-1]) if first["loc"] else "", ""
        if first["type"] == "missing":
            near = errors.did_you_mean(key, map(str, first["input"]))
        elif first["type"] == "unknown_name":
            near = errors.did_you_mean(first["input"], first["ctx"]["names"].split(", "))
        elif first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            near = f"; use {', '.join(model.keys())}{errors.did_you_mean(key, model.keys())}"
        problem = arguments.first_problem(error, lambda keys: ".".join((*path, *(key for key in keys if key != "[key]"))))
        raise errors.ScenarioError(f"{file}: {problem}{near}") from None


def check(right: bool, where: str, why: str) -> None:
    """Raise unless something is right. where: the file, and the keys to it."""
    if not right:
        raise errors.ScenarioError(f"{where}: {why}")


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


def parse_yaml(text: str | bytes, file: str) -> Any:
    """Return the values of a YAML text. file: its name, for errors."""
    import yaml  # 20 ms: only for those who read files

    make_loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # safe: plain data only
    depth, is_single = 0, {}  # is_single: by anchor; of single values, CybORG's own images have aliases
    try:
        for event in yaml.parse(text, Loader=make_loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if not isinstance(event, yaml.AliasEvent):
                is_single[getattr(event, "anchor", None)] = isinstance(event, yaml.ScalarEvent)
            elif not is_single.get(event.anchor):  # nine lines of lists of aliases can stand for a billion values
                raise ValueError(f"it has the alias *{event.anchor}: write out what that stands for")
            if depth > _DEEPEST:
                raise ValueError(f"it is nested more than {_DEEPEST} deep")
        loader = make_loader(text)
        node = loader.get_single_node()
        for key in _keys_twice(node):
            raise ValueError(f"it has the key {key!r} twice in one table")
        return None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, ValueError) as e:  # also what is no Unicode, no date, or has too many digits
        raise errors.ScenarioError(f"{file}: is not YAML that can be read ({e})") from e


def _keys_twice(node: "yaml.Node | None") -> Iterator[str]:
    """Yield the keys that are twice in a table of this node of a YAML text."""
    inner = node.value if node is not None and node.id != "scalar" else ()
    if node is not None and node.id == "mapping":
        keys = Counter(key.value for key, _ in inner if key.id == "scalar")
        yield from (key for key, times in keys.items() if times > 1)
        inner = [part for pair in inner for part in pair]
    for part in inner:
        yield from _keys_twice(part)
