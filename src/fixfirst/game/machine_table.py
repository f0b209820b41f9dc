"""Scenarios from a table of machines: a CSV file, of which what it does not say is guessed, and said."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field

from fixfirst.base import errors
from fixfirst.game import parts
from fixfirst.game.documents import Name, Table, as_table, check, one_of, read_bytes
from fixfirst.game.new_scenario import Machine, fields_of
from fixfirst.game.parts import Image, Service
from fixfirst.game.scenario_reading import Value

_SERVICES = {
    "ssh": Service((22,), "ssh"),
    "ftp": Service((21,), "ftp", root=True),
    "web": Service((80, 443), "web"),
    "smtp": Service((25,), "smtp", root=True),
    "mysql": Service((3390,), "mysql", root=True),
    "rdp": Service((3389,), "rdp"),
    "smb": Service((445, 139), "smb", root=True),
}
_USUAL_IMAGE = {parts.LINUX: "Gateway", parts.WINDOWS: "windows_user_host1"}


def _words(text: str) -> list[str]:
    return text.replace(";", " ").split()


_Word = TypeVar("_Word")
_Words = Annotated[list[_Word], BeforeValidator(_words)]


class _Row(Table, extra="forbid"):
    """A machine, as the table says it."""

    name: Name
    subnet: Name
    image: Annotated[str, one_of("images")] | None = None
    os: Annotated[Literal["linux", "windows"], BeforeValidator(str.lower)] | None = None
    services: _Words[Annotated[str, BeforeValidator(str.lower), one_of("services")]] = Field([])
    value: Annotated[Value, BeforeValidator(str.capitalize)] | None = None
    leads_to: _Words[Annotated[str, one_of("machines")]] = Field([])
    role: Literal["start", "target", "gateway"] | None = None
    watched: Annotated[Literal["yes", "no"], BeforeValidator(str.lower)] = "yes"


def fields_from(path: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the fields of the scenario that a CSV file of machines describes. say: is given every guess."""
    return _Machines(path, say).fields()


class _Machines:
    """Reads a table of machines, guesses what it does not say, and says what it guessed."""

    def __init__(self, path: Path, say: Callable[[str], None]):
        self.file, self.say = str(path), say
        try:
            text = read_bytes(path).decode("utf-8-sig")
            cells = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text), strict=True)]
        except (UnicodeDecodeError, csv.Error) as e:
            raise errors.ScenarioError(f"{self.file}: is not a CSV file that can be read ({e})") from e
        header, *lines = [row for row in cells if any(row)] or [[]]
        right = f"has {len(lines)} machines; it must have 1 to {parts.MOST_HOSTS}"
        check(1 <= len(lines) <= parts.MOST_HOSTS, self.file, right)
        rows = [{column: cell for column, cell in zip(header, line, strict=False) if cell} for line in lines]
        names = [row.get("name", "") for row in rows]
        names_of = {"machines": names, "images": [*parts.IMAGES], "services": [*_SERVICES]}
        self.rows = [as_table(_Row, row, self.file, f"row {n}", **names_of) for n, row in enumerate(rows, start=2)]
        for name, line in zip(names, lines, strict=True):
            check(names.count(name) == 1, self.file, f"{name} is there twice")
            check(len(line) <= len(header), self.file, f"{name} has {len(line)} cells for {len(header)} columns")
        self.images: dict[str, Image] = {}

    def fields(self) -> dict[str, Any]:
        start, target, gateways = self._roles()
        new = self._new_names(start, target, gateways)
        links = {row.name: [*row.leads_to] for row in self.rows}
        subnet_of = {row.name: row.subnet for row in self.rows}
        doors = [new[gateway] for gateway in gateways]
        if target is not None and gateways and not any(target in names for names in links.values()):
            for gateway in gateways:
                links[gateway].append(target)
            self.say(f"{errors.list_words(doors)}: red finds the address of {new[target]} there")
        for name in links:
            near = subnet_of[name] == subnet_of[start] and name not in (start, *gateways)
            if gateways and near and not links[name]:
                links[name].append(gateways[0])
                self.say(f"{new[name]}: red finds the address of {doors[0]} there")
        gated = []
        if target is not None and gateways and subnet_of[target] not in {subnet_of[name] for name in (start, *gateways)}:
            gated = [subnet_of[target]]
            self.say(f"subnet {gated[0]}: red gets in while it holds {errors.list_words(doors, 'or')}")
        machines = []
        lists: dict[str, list[str]] = {}
        for row in self.rows:
            image, value = self._image(row, row.name == target), row.value
            if value is None:
                value = "None" if row.name == start else "Low"
                self.say(f"{row.name}: value {value}")
            leads_to = tuple(new[name] for name in links[row.name])
            machines.append(Machine(new[row.name], row.subnet, image, value, leads_to, row.watched == "yes"))
            lists.setdefault(row.subnet, []).append(new[row.name])
        return fields_of(machines, lists, new[start], gated, self.images)

    def _roles(self) -> tuple[str, str | None, list[str]]:
        """Return who is start, target and gateway: by the column `role`, else by name."""
        usual = {"start": parts.HOME_NAME, "target": parts.TARGET_NAME, "gateway": parts.GATE_WORD}
        having: dict[str, list[str]] = {}
        for role, name in usual.items():
            by_name = [row.name for row in self.rows if row.name == name or (role == "gateway" and name in row.name)]
            having[role] = [row.name for row in self.rows if row.role == role] or by_name
            several = len(having[role]) > 1 and role != "gateway"
            check(not several, self.file, f"has {len(having[role])} machines with the role {role}; at most one has it")
        nowhere = "says nowhere where the attacker starts: give one machine the role start"
        check(bool(having["start"]), self.file, nowhere)
        if not having["target"]:
            self.say("no machine has the role target: nothing can be impacted, and b_line cannot play")
        if not having["gateway"]:
            self.say("no machine has the role gateway: b_line finds its way by whatever addresses there are")
        return having["start"][0], next(iter(having["target"]), None), having["gateway"]

    def _new_names(self, start: str, target: str | None, gateways: list[str]) -> dict[str, str]:
        """Return what machines are called in the scenario: agents know some only by name."""
        new = {row.name: row.name for row in self.rows}
        new[start] = parts.HOME_NAME
        if target is not None:
            new[target] = parts.TARGET_NAME
        for name in gateways:
            if parts.GATE_WORD not in new[name] and name not in (start, target):
                new[name] = f"{parts.GATE_WORD}_{name}"
        for name, called in new.items():
            twice = list(new.values()).count(called) > 1
            check(not twice, self.file, f"{name} would be called {called}, as another machine is; give that another name")
            if name != called:
                self.say(f"{name} is called {called}: attackers know it by this name")
        return new

    def _image(self, row: _Row, is_target: bool) -> str:
        if row.image is not None:
            return row.image
        if row.os is None:
            raise errors.ScenarioError(f"{self.file}: {row.name} has neither image nor os, which cannot be guessed")
        if row.services:
            return self._own_image(row.os, sorted(set(row.services), key=[*_SERVICES].index), is_target)
        usual = "OP_Server" if is_target and row.os == parts.LINUX else _USUAL_IMAGE[row.os]
        self.say(f"{row.name}: image {usual}")
        return usual

    def _own_image(self, os: str, words: list[str], runs_ot: bool) -> str:
        """Return the name of the built-in image with exactly these services, or of a new one."""
        for image in parts.IMAGES.values():
            kinds = sorted({service.kind or "" for service in image.services})
            if image.os == os and kinds == sorted(words) and image.runs_ot == runs_ot:
                return image.name
        name = "-".join((os, *words, *(["ot"] if runs_ot else [])))
        listen = (replace(_SERVICES[word], immune=word == "smb" and os == parts.LINUX) for word in words)
        if name not in self.images:
            self.images[name] = Image(name, os, tuple(listen), runs_ot)
            self.say(f"image {name} is new: CybORG itself would need it in its folder of images")
        return name
