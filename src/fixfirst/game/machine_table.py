"""Scenarios from a table of machines: a CSV file, of which what it does not say is guessed, and said."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from fixfirst.base import errors
from fixfirst.game import documents, parts
from fixfirst.game.documents import check_name, check_one_of
from fixfirst.game.images import PRIVILEGED, built_in
from fixfirst.game.new_scenario import Machine, fields_of
from fixfirst.game.parts import Image, Service
from fixfirst.game.scenario_reading import VALUES

ROLES = ("start", "target", "gateway")
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


@dataclass(frozen=True)
class _Row:
    """A machine, as the table says it; "" where it says nothing."""

    place: str  # the file and the row
    name: str = ""
    subnet: str = ""
    image: str = ""
    os: str = ""
    services: str = ""
    value: str = ""
    leads_to: str = ""
    role: str = ""
    watched: str = ""


_COLUMNS = tuple(field.name for field in fields(_Row) if field.name != "place")


def fields_from(path: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the fields of the scenario that a CSV file of machines describes. say: is given every guess."""
    return _Table(path, say).fields()


def _words(text: str) -> list[str]:
    return text.replace(";", " ").split()


class _Table:
    """Reads a table of machines, guesses what it does not say, and says what it guessed."""

    def __init__(self, path: Path, say: Callable[[str], None]):
        self.file, self.say = str(path), say
        try:
            text = documents.read_bytes(path).decode("utf-8-sig")
            cells = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text), strict=True)]
        except (UnicodeDecodeError, csv.Error) as e:
            raise errors.ScenarioError(f"{self.file}: is not a CSV file that can be read ({e})") from e
        header, *lines = [row for row in cells if any(row)] or [[]]
        for column in header:
            check_one_of(column, _COLUMNS, f"{self.file}: column")
        for columns in (("name",), ("subnet",), ("image", "os")):
            self._check(bool({*columns} & {*header}), f"has no column {' or '.join(columns)}, which cannot be guessed")
        self._check(1 <= len(lines) <= parts.MOST_HOSTS, f"has {len(lines)} machines; it must have 1 to {parts.MOST_HOSTS}")
        self.rows = []
        for number, line in enumerate(lines, start=2):
            place = f"{self.file}: row {number}"
            self._check(len(line) <= len(header), f"has {len(line)} cells for {len(header)} columns", place)
            self.rows.append(_Row(place, **dict(zip(header, line, strict=False))))
        names = [row.name for row in self.rows]
        for row in self.rows:
            check_name(row.name, row.place, "machine")
            check_name(row.subnet, row.place, "subnet")
            self._check(names.count(row.name) == 1, f"{row.name} is there twice", row.place)
            check_one_of(row.role, ROLES, f"{row.place}: role", optional=True)
        self.images: dict[str, Image] = {}

    def _check(self, right: bool, why: str, place: str = "") -> None:
        if not right:
            raise errors.ScenarioError(f"{place or self.file}: {why}")

    def fields(self) -> dict[str, Any]:
        start, target, gateways = self._roles()
        new = self._new_names(start, target, gateways)
        links = {row.name: _words(row.leads_to) for row in self.rows}
        subnet_of = {row.name: row.subnet for row in self.rows}
        for row in self.rows:
            for name in links[row.name]:
                check_one_of(name, new, f"{row.place}: leads_to")
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
            image, value = self._image(row, row.name == target), self._value(row, row.name == start)
            leads_to = tuple(new[name] for name in links[row.name])
            check_one_of(row.watched.lower(), ("yes", "no"), f"{row.place}: watched", optional=True)
            machines.append(Machine(new[row.name], row.subnet, image, value, leads_to, row.watched.lower() != "no"))
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
            self._check(not several, f"has {len(having[role])} machines with the role {role}; at most one has it")
        nowhere = "says nowhere where the attacker starts: give one machine the role start"
        self._check(bool(having["start"]), nowhere)
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
            self._check(not twice, f"{name} would be called {called}, as another machine is; give that another name")
            if name != called:
                self.say(f"{name} is called {called}: attackers know it by this name")
        return new

    def _value(self, row: _Row, is_start: bool) -> str:
        if row.value:
            check_one_of(row.value.capitalize(), VALUES, f"{row.place}: value")
            return row.value.capitalize()
        usual = "None" if is_start else "Low"
        self.say(f"{row.name}: value {usual}")
        return usual

    def _image(self, row: _Row, is_target: bool) -> str:
        if row.image:
            check_one_of(row.image, built_in(), f"{row.place}: image")
            return row.image
        os, words = row.os.lower(), _words(row.services.lower())
        check_one_of(os, PRIVILEGED, f"{row.place}: os")
        for word in words:
            check_one_of(word, _SERVICES, f"{row.place}: service")
        if words:
            return self._own_image(os, sorted(set(words), key=list(_SERVICES).index), is_target)
        usual = "OP_Server" if is_target and os == parts.LINUX else _USUAL_IMAGE[os]
        self.say(f"{row.name}: image {usual}")
        return usual

    def _own_image(self, os: str, words: list[str], runs_ot: bool) -> str:
        """Return the name of the built-in image with exactly these services, or of a new one."""
        for image in built_in().values():
            kinds = sorted({service.kind or "" for service in image.services})
            if image.os == os and kinds == sorted(words) and image.runs_ot == runs_ot:
                return image.name
        name = "-".join((os, *words, *(["ot"] if runs_ot else [])))
        listen = (replace(_SERVICES[word], immune=word == "smb" and os == parts.LINUX) for word in words)
        if name not in self.images:
            self.images[name] = Image(name, os, tuple(listen), runs_ot)
            self.say(f"image {name} is new: CybORG itself would need it in its folder of images")
        return name
