"""Scenarios from a table of machines: a CSV file, of which what it does not say is guessed, and said."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fixfirst.base import errors
from fixfirst.game import documents, parts
from fixfirst.game.documents import check_name
from fixfirst.game.images import PRIVILEGED, built_in
from fixfirst.game.new_scenario import Machine, fields_of
from fixfirst.game.parts import Image, Service
from fixfirst.game.scenario_reading import VALUES

_COLUMNS = ("name", "subnet", "image", "os", "services", "value", "leads_to", "role", "watched")
ROLES = ("start", "target", "gateway")
_KNOWN_SERVICES = {
    "ssh": Service((22,), "ssh"),
    "ftp": Service((21,), "ftp", root=True),
    "web": Service((80, 443), "web"),
    "smtp": Service((25,), "smtp", root=True),
    "mysql": Service((3390,), "mysql", root=True),
    "rdp": Service((3389,), "rdp"),
    "smb": Service((445, 139), "smb", root=True),
}
_USUAL_IMAGE = {parts.LINUX: "Gateway", parts.WINDOWS: "windows_user_host1"}


def fields_from(path: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Return the fields of the scenario that a CSV file of machines describes. say: is told every default."""
    return _Table(path, say).fields()


class _Table:
    """Reads a table of machines, guesses what it does not say, and says what it guessed."""

    def __init__(self, path: Path, say: Callable[[str], None]):
        self.place, self.say = documents.Place(str(path)), say
        try:
            text = documents.read_bytes(path).decode("utf-8-sig")
            rows = list(csv.reader(io.StringIO(text), strict=True))
        except (UnicodeDecodeError, csv.Error) as e:
            raise self.place.refuse(f"is not a CSV file that can be read ({e})") from e
        header, *lines = [[cell.strip() for cell in row] for row in rows if any(cell.strip() for cell in row)] or [[]]
        for column in header:
            if column not in _COLUMNS:
                near = errors.did_you_mean(column, _COLUMNS)
                raise self.place.refuse(f"has the column {documents.short(column)}; use {', '.join(_COLUMNS)}{near}")
        for column in ("name", "subnet"):
            if column not in header:
                raise self.place.refuse(f"has no column {column}; use {', '.join(_COLUMNS)}")
        if "image" not in header and "os" not in header:
            raise self.place.refuse("has neither a column image nor a column os: what runs on a machine cannot be guessed")
        if not 1 <= len(lines) <= parts.MOST_HOSTS:
            raise self.place.refuse(f"has {len(lines)} machines; a scenario has 1 to {parts.MOST_HOSTS}")
        self.rows = []
        for number, line in enumerate(lines, start=2):
            if len(line) > len(header):
                raise (self.place / f"row {number}").refuse(f"has {len(line)} cells for {len(header)} columns")
            self.rows.append(dict(zip(header, line, strict=False)) | {"row": str(number)})
        self.images: dict[str, Image] = {}
        self._check_names()

    def _check_names(self) -> None:
        names = [row.get("name", "") for row in self.rows]
        for row in self.rows:
            at = self.place / f"row {row['row']}"
            for column in ("name", "subnet"):
                if not row.get(column):
                    raise at.refuse(f"has no {column}")
                check_name(row[column], at, column)
            if names.count(row["name"]) > 1:
                raise at.refuse(f"{row['name']} is there twice")
            if row.get("role", "") not in ("", *ROLES):
                raise at.refuse(f"role {documents.short(row['role'])} must be {', '.join(ROLES)}, or nothing")

    def fields(self) -> dict[str, Any]:
        start, target, gateways = self._roles()
        new = self._new_names(start, target, gateways)
        links = {row["name"]: self._links(row, new) for row in self.rows}
        subnet_of = {row["name"]: row["subnet"] for row in self.rows}
        if target is not None and not any(target in names for names in links.values()):
            for gateway in gateways:
                links[gateway].append(target)
            if gateways:
                self.say(f"{errors.list_words([new[g] for g in gateways])}: red finds the address of {new[target]} there")
        for name, row in ((row["name"], row) for row in self.rows):
            if gateways and not links[name] and row["subnet"] == subnet_of[start] and name != start and name not in gateways:
                links[name].append(gateways[0])
                self.say(f"{new[name]}: red finds the address of {new[gateways[0]]} there")
        gated = []
        if target is not None and gateways:
            behind = subnet_of[target]
            if behind not in {subnet_of[start], *(subnet_of[g] for g in gateways)}:
                gated = [behind]
                self.say(
                    f"subnet {behind}: red gets in while it holds {errors.list_words([new[g] for g in gateways], 'or')}"
                )
        machines = [
            Machine(
                new[row["name"]],
                row["subnet"],
                self._image(row, row["name"] == target),
                self._value(row, row["name"] == start),
                tuple(new[name] for name in links[row["name"]]),
                self._watched(row),
            )
            for row in self.rows
        ]
        lists: dict[str, list[str]] = {}
        for machine in machines:
            lists.setdefault(machine.subnet, []).append(machine.name)
        return fields_of(machines, lists, new[start], gated, self.images)

    def _roles(self) -> tuple[str, str | None, list[str]]:
        """Return who is start, target and gateway: by the column `role`, else by name."""
        by_role = {role: [row["name"] for row in self.rows if row.get("role") == role] for role in ROLES}
        names = [row["name"] for row in self.rows]
        for role in ("start", "target"):
            if len(by_role[role]) > 1:
                raise self.place.refuse(f"has {len(by_role[role])} machines with the role {role}; at most one has it")
        start = (by_role["start"] or [name for name in names if name == parts.HOME_NAME])[:1]
        if not start:
            raise self.place.refuse("says nowhere where the attacker starts: give one machine the role start")
        target = (by_role["target"] or [name for name in names if name == parts.TARGET_NAME])[:1]
        if not target:
            self.say("no machine has the role target: nothing can be impacted, and b_line cannot play")
        gateways = by_role["gateway"] or [name for name in names if parts.GATE_WORD in name]
        if not gateways:
            self.say("no machine has the role gateway: b_line finds its way by whatever addresses there are")
        return start[0], target[0] if target else None, gateways

    def _new_names(self, start: str, target: str | None, gateways: list[str]) -> dict[str, str]:
        """Return what machines are called in the scenario: agents know some only by name."""
        new = {row["name"]: row["name"] for row in self.rows}
        new[start] = parts.HOME_NAME
        if target is not None:
            new[target] = parts.TARGET_NAME
        for name in gateways:
            if parts.GATE_WORD not in new[name] and name not in (start, target):
                new[name] = f"{parts.GATE_WORD}_{name}"
        for name, called in new.items():
            if list(new.values()).count(called) > 1:
                raise self.place.refuse(f"{name} would be called {called}, as another machine is; give that another name")
            if name != called:
                self.say(f"{name} is called {called}: attackers know it by this name")
        return new

    def _links(self, row: dict[str, str], known: dict[str, str]) -> list[str]:
        names = row.get("leads_to", "").replace(";", " ").split()
        for name in names:
            if name not in known:
                near = errors.did_you_mean(name, known)
                raise (self.place / f"row {row['row']}").refuse(
                    f"leads to {documents.short(name)}, which is no machine{near}"
                )
        return names

    def _value(self, row: dict[str, str], is_start: bool) -> str:
        word = row.get("value", "").capitalize()
        if word in VALUES:
            return word
        if word:
            raise (self.place / f"row {row['row']}").refuse(
                f"value {documents.short(row['value'])} must be {', '.join(VALUES)}"
            )
        usual = "None" if is_start else "Low"
        self.say(f"{row['name']}: value {usual}")
        return usual

    def _watched(self, row: dict[str, str]) -> bool:
        word = row.get("watched", "").lower() or "yes"
        if word not in ("yes", "no"):
            raise (self.place / f"row {row['row']}").refuse(f"watched {documents.short(row['watched'])} must be yes or no")
        return word == "yes"

    def _image(self, row: dict[str, str], is_target: bool) -> str:
        at = self.place / f"row {row['row']}"
        image, os, services = row.get("image", ""), row.get("os", "").lower(), row.get("services", "")
        if image:
            if image not in built_in():
                near = errors.did_you_mean(image, built_in())
                raise at.refuse(f"image {documents.short(image)} is unknown; use {', '.join(built_in())}{near}")
            return image
        if os not in PRIVILEGED:
            raise at.refuse(f"os {documents.short(row.get('os', ''))} must be {' or '.join(PRIVILEGED)}, or give an image")
        words = services.lower().replace(";", " ").split()
        for word in words:
            if word not in _KNOWN_SERVICES:
                near = errors.did_you_mean(word, _KNOWN_SERVICES)
                raise at.refuse(f"service {documents.short(word)} is unknown; use {', '.join(_KNOWN_SERVICES)}{near}")
        if not words:
            usual = "OP_Server" if is_target and os == parts.LINUX else _USUAL_IMAGE[os]
            self.say(f"{row['name']}: image {usual}")
            return usual
        return self._own_image(os, sorted(set(words), key=list(_KNOWN_SERVICES).index), is_target)

    def _own_image(self, os: str, words: list[str], runs_ot: bool) -> str:
        """Return the name of the built-in image with exactly these services, or of a new one."""
        for image in built_in().values():
            kinds = sorted({s.kind or "" for s in image.services})
            if image.os == os and kinds == sorted(words) and image.runs_ot == runs_ot:
                return image.name
        name = "-".join((os, *words, *(["ot"] if runs_ot else [])))
        listen = (replace(_KNOWN_SERVICES[word], immune=word == "smb" and os == parts.LINUX) for word in words)
        if name not in self.images:
            self.images[name] = Image(name, os, tuple(listen), runs_ot)
            self.say(f"image {name} is new: CybORG itself would need it in its folder of images")
        return name
