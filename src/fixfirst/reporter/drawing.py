"""One turn to look at: in words, as lines of text, and as a picture of the network.

Works on the records that every world hands out (`BaseWorld.turns`), so it tells of CybORG's games as well.
H hosts, in the order of the scenario. Where hosts stand on the map is decided here, for pictures and the replay page alike.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fixfirst.game import parts
from fixfirst.game.parts import BITS_PER_HOST
from fixfirst.game.rules import QUIET, SEEN_EXPLOIT, SEEN_SCAN
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.state import LEARNED, NO_TARGET, OTService, RedVerb, Success

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

ACCESS = ("none", "user", "root")  # what red truly has on a host
BELIEF = ("clean", "unknown", "user", "root")  # what blue believes of it; CybORG: No, Unknown, User, Privileged
_ACTIVITY = ("none", "scan", "exploit")  # what blue saw there in this step
RED_BELIEF = ("none", "user", "root", "lost")  # what a learned attacker believes to have on it
OT_STATES = tuple(state.name.lower() for state in OTService)  # running, stopped, restored

_SEEN = dict(zip((QUIET, SEEN_SCAN, SEEN_EXPLOIT), _ACTIVITY, strict=True))
_WORKED = {Success.UNKNOWN: None, Success.FALSE: False, Success.TRUE: True}


@dataclass(frozen=True)
class Cost:
    """A part of a reward, in tenths: never positive."""

    what: str  # a host that red holds, "impact", or "restore"
    tenths: int


@dataclass(frozen=True)
class TurnSummary:
    """The end of one turn: what red and blue did in it, what is true since, and what blue sees of it."""

    step: int  # turns taken; 0 = nobody has acted yet
    red: str  # in words
    red_target: str | None  # a host or a subnet
    red_worked: bool | None  # None: nothing that can fail
    blue: str
    blue_target: str | None  # a host
    blue_worked: bool | None
    access: tuple[str, ...]  # [H] of ACCESS
    belief: tuple[str, ...]  # [H] of BELIEF
    activity: tuple[str, ...]  # [H] of ACTIVITY
    decoys: tuple[tuple[int, ...], ...]  # [H] ports that decoys opened
    ot: str  # of OT_STATES: the service on Op_Server0 that Impact stops
    costs: tuple[Cost, ...]  # their sum is the reward of this turn
    return10: int  # rewards so far, in tenths
    red_belief: tuple[str, ...]  # [H] of RED_BELIEF; empty, if a script attacks

    @property
    def reward10(self) -> int:
        return sum(cost.tenths for cost in self.costs)


def summarise_turn(turn: np.void, variant: parts.VariantName, scenario: Scenario = CAGE2) -> TurnSummary:
    """Return one record of `turn_dtype` in plain values."""
    red, red_target, red_worked = _red(turn, scenario)
    action = scenario.actions[turn["blue_action"]]
    words = sum(int(word) << 64 * k for k, word in enumerate(np.atleast_1d(turn["observation"])))
    seen = {host: words >> BITS_PER_HOST * place for place, host in enumerate(scenario.listed)}
    view = [seen.get(host, 0) for host in range(scenario.num_hosts)]
    open_ports = (int(mask) for mask in turn["decoys"])
    return TurnSummary(
        step=int(turn["step"]),
        red=red,
        red_target=red_target,
        red_worked=red_worked,
        blue=str(action) if turn["step"] else "nothing yet",
        blue_target=action.host,
        blue_worked=_WORKED[Success(turn["blue_success"])] if action.host else None,
        access=tuple(ACCESS[level] for level in turn["access"]),
        belief=tuple(BELIEF[bits >> 2 & 0b11] for bits in view),
        activity=tuple(_SEEN[bits & 0b11] for bits in view),
        decoys=tuple(tuple(p for bit, p in enumerate(scenario.ports) if mask >> bit & 1) for mask in open_ports),
        ot=OT_STATES[turn["ot"]],
        costs=costs(turn, variant, scenario),
        return10=int(turn["return10"]),
        red_belief=tuple(RED_BELIEF[number] for number in turn["red_belief"]) if turn["red_agent"] >= LEARNED else (),
    )


def _red(turn: np.void, scenario: Scenario) -> tuple[str, str | None, bool | None]:
    """Return red's action in words, its target, and whether it achieved anything.

    Two actions are reported to red as successes and achieve nothing: a scan of a host it cannot reach, and Impact on a
    service that was restored before.
    """
    verb, worked = RedVerb(turn["red_verb"]), _WORKED[Success(turn["red_success"])]
    if turn["red_target"] == NO_TARGET:
        return ("Sleep" if turn["step"] else "nothing yet"), None, None
    target = (scenario.subnet_names if verb == RedVerb.DISCOVER else scenario.host_names)[turn["red_target"]]
    if verb == RedVerb.DISCOVER:
        return f"Discover subnet {target}", target, worked
    if verb == RedVerb.SCAN:
        answered = bool(turn["scan_answered"])
        return f"Scan {target}" + ("" if answered else " (out of reach)"), target, answered
    if verb == RedVerb.EXPLOIT:
        weapon = scenario.exploit_names[turn["red_exploit"]] if turn["red_exploit"] >= 0 else "never scanned"
        return f"Exploit {target} ({weapon})", target, worked
    if verb == RedVerb.ESCALATE:
        return f"Escalate on {target}", target, worked
    harmless = bool(worked) and turn["ot"] == OTService.RESTORED
    return f"Impact {target}" + (" (harmless once restored)" if harmless else ""), target, worked and not harmless


def costs(turn: np.void, variant: parts.VariantName, scenario: Scenario = CAGE2) -> tuple[Cost, ...]:
    """Return what this turn cost blue: hosts that red holds, the stopped OT service, blue's Restore. Sums to the reward."""
    charged = turn["access"] >= (1 if parts.variant_named(variant).any_session_costs else 2)
    held = (scenario.hosts[h] for h in np.flatnonzero(charged))
    found = [Cost(host.name, -round(10 * host.value)) for host in held if host.value]
    if turn["ot"] == OTService.STOPPED:
        found.append(Cost("impact", -round(10 * scenario.ot_cost)))
    if scenario.actions[turn["blue_action"]].verb == "Restore":
        found.append(Cost("restore", -round(10 * scenario.restore_cost)))
    return tuple(found)


# ---------------------------------------------------------------- where things are


FEW_IN_A_ROW, MOST_IN_A_ROW, SMALL_MAP = 5, 8, 30  # hosts: up to 30, names can be read on a telephone
LETTERS_IN_A_ROW = 72


@dataclass(frozen=True)
class NetworkMap:
    """Where the hosts of a scenario stand, in units of the map."""

    scenario: Scenario
    row_height: int = 112

    @cached_property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Hosts from top to bottom and from left to right: red comes in at the top, its target is at the bottom."""
        scenario = self.scenario
        if scenario.map_rows:
            return scenario.map_rows
        first = scenario.hosts[scenario.start_id].subnet
        last = scenario.hosts[scenario.target_id].subnet if scenario.target is not None else -1
        order = sorted(range(len(scenario.subnets)), key=lambda s: (s != first, s == last, s))
        fitting = LETTERS_IN_A_ROW // (max(map(len, scenario.host_names)) + 2)  # names of neighbours must not overlap
        most = FEW_IN_A_ROW if scenario.num_hosts <= SMALL_MAP else max(FEW_IN_A_ROW, min(MOST_IN_A_ROW, fitting))
        return tuple(row for s in order for row in _even_rows(scenario.subnets[s].hosts, most))

    @property
    def width(self) -> int:
        return 80 * max(FEW_IN_A_ROW, *map(len, self.rows))

    @property
    def height(self) -> int:
        return self.row_height * len(self.rows)

    @cached_property
    def places(self) -> dict[str, tuple[float, float]]:
        """Host -> its middle."""
        rows = self.rows
        spacing = self.width / max(map(len, rows))
        return {
            name: (self.width / 2 + spacing * (x - (len(row) - 1) / 2), self.row_height * (y + 0.5))
            for y, row in enumerate(rows)
            for x, name in enumerate(row)
        }

    @cached_property
    def subnet_rows(self) -> dict[str, tuple[int, int]]:
        """Subnet -> the upper edge of its rows, and their height."""
        found: dict[str, tuple[int, int]] = {}
        for y, row in enumerate(self.rows):
            name = self.scenario.subnet_names[self.scenario.hosts[self.scenario.host_ids[row[0]]].subnet]
            top, height = found.get(name, (self.row_height * y, 0))
            found[name] = top, height + self.row_height
        return found

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """From the first of two hosts red learns the address of the second."""
        return tuple((host.name, f.host) for host in self.scenario.hosts for f in host.reveals if f.host != host.name)


def _even_rows(hosts: Sequence[str], most: int) -> Iterator[tuple[str, ...]]:
    """Yield a subnet's hosts in as few rows as they need, of about the same length."""
    count = -(-len(hosts) // most)
    bounds = [len(hosts) * k // count for k in range(count + 1)]
    yield from (tuple(hosts[here:there]) for here, there in pairwise(bounds))


@cache
def map_of(scenario: Scenario) -> NetworkMap:
    """Return the map of a scenario."""
    return NetworkMap(scenario)


# ---------------------------------------------------------------- as text


def tenths(value: int) -> str:
    """-13 -> "-1.3"."""
    return f"{value / 10:.1f}" if value else "0.0"


def outcome(worked: bool | None) -> str:
    """Return how an action went, to be put behind it."""
    return {True: ": worked", False: ": failed", None: ""}[worked]


def draw_state(moment: TurnSummary, scenario: Scenario = CAGE2) -> str:
    """Return the moment as lines of text, a line per host."""
    lines = [
        f"step {moment.step}   reward {tenths(moment.reward10)}   return {tenths(moment.return10)}   OT service {moment.ot}",
        f"red   {moment.red}{outcome(moment.red_worked)}",
        f"blue  {moment.blue}{outcome(moment.blue_worked)}",
        f"{'host':12} {'true':6} {'believed':9} {'seen now':9} decoys",
    ]
    for name, access, belief, activity, decoys in zip(
        scenario.host_names, moment.access, moment.belief, moment.activity, moment.decoys, strict=True
    ):
        ports = " ".join(map(str, decoys))
        lines.append(f"{name:12} {access:6} {belief:9} {activity:9} {ports}".rstrip())
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- as a picture

_SCALE = 2  # pixels per unit of the map
_OVERSAMPLE = 2  # drawn larger and shrunk: Pillow draws hard edges
_CAPTION = 62  # height of the lines below the map
_BOX_W, _BOX_H = 54, 30
_INK, _FAINT, _PAPER, _FIELD = "#1c2733", "#5b6875", "#ffffff", "#f1f4f7"
# Colours of Okabe and Ito, told apart by colour-blind readers; every state has a letter as well.
_TRUE = {"none": ("#ffffff", "#1c2733", ""), "user": ("#f3c676", "#1c2733", "U"), "root": ("#b84a00", "#ffffff", "R")}
_BELIEVED = {
    "clean": ("#ffffff", "#1c2733", ""),
    "unknown": ("#dbe9f4", "#1c2733", "?"),
    "user": ("#8cc8ec", "#1c2733", "U"),
    "root": ("#005a8f", "#ffffff", "R"),
}
_RED, _BLUE = "#b84a00", "#005a8f"


def picture(moment: TurnSummary, scenario: Scenario = CAGE2) -> np.ndarray:
    """Return the moment as a picture, [height, width, 3] uint8. A host's left half: what blue believes; right: the truth."""
    from PIL import Image, ImageDraw  # a tenth of a second: only for those who look

    factor, chart = _SCALE * _OVERSAMPLE, map_of(scenario)
    width, height, places = chart.width, chart.height, chart.places
    size = width, height + _CAPTION
    image = Image.new("RGB", (size[0] * factor, size[1] * factor), _PAPER)
    pen = _Pen(ImageDraw.Draw(image), factor)
    for subnet, (top, rows_height) in chart.subnet_rows.items():
        edge = _RED if subnet == moment.red_target else _FIELD
        pen.box(4, top + 4, width - 8, rows_height - 8, _FIELD, edge, line=2, radius=6)
        pen.text(12, top + 9, subnet, _FAINT, 11)
    pen.text(width - 12, 9, "left: blue believes, right: true.  U user  R root  ? unknown", _FAINT, 9, anchor="ra")
    for here, there in chart.links:
        pen.line(*places[here], *places[there], "#c3ccd5", 1)
    if moment.red_target in places and moment.red_target != scenario.start:
        pen.line(*places[scenario.start], *places[moment.red_target], _RED, 2)
    for host in range(scenario.num_hosts):
        _draw_host(pen, moment, host, scenario)
    pen.text(12, height + 4, f"step {moment.step}", _INK, 12)
    pen.text(90, height + 4, f"reward {tenths(moment.reward10)}", _INK, 12)
    pen.text(190, height + 4, f"return {tenths(moment.return10)}", _INK, 12)
    pen.text(12, height + 22, f"red  {moment.red}{outcome(moment.red_worked)}", _RED, 12)
    pen.text(12, height + 40, f"blue  {moment.blue}{outcome(moment.blue_worked)}", _BLUE, 12)
    small = image.resize((size[0] * _SCALE, size[1] * _SCALE), Image.Resampling.BOX)
    return np.asarray(small, np.uint8).copy()


def _draw_host(pen: "_Pen", moment: TurnSummary, host: int, scenario: Scenario) -> None:
    name = scenario.host_names[host]
    x, y = map_of(scenario).places[name]
    left, top, half = x - _BOX_W / 2, y - _BOX_H / 2, _BOX_W / 2
    if name == moment.blue_target:
        pen.box(left - 4, top - 4, _BOX_W + 8, _BOX_H + 8, _PAPER, _BLUE, line=2, radius=7)
    if name == moment.red_target:
        pen.box(left - 4, top - 4, _BOX_W + 8, _BOX_H + 8, None, _RED, line=2, radius=7)
    for offset, (fill, ink, letter) in ((0.0, _BELIEVED[moment.belief[host]]), (half, _TRUE[moment.access[host]])):
        pen.box(left + offset, top, half, _BOX_H, fill, "#7b8794", line=1)
        pen.text(left + offset + half / 2, y, letter, ink, 15, anchor="mm")
    pen.label(x, top + _BOX_H + 12, name, _INK, 11)
    if moment.activity[host] != "none":
        pen.label(x, top - 10, moment.activity[host], _BLUE, 10)
    notes = [f"{len(moment.decoys[host])} decoy{'s' * (len(moment.decoys[host]) > 1)}"] if moment.decoys[host] else []
    notes += [f"OT {moment.ot}"] if name == scenario.target else ["foothold"] if name == scenario.start else []
    if notes:
        pen.label(x, top + _BOX_H + 24, ", ".join(notes), _FAINT, 9)


class _Pen:
    """Draws in units of the map."""

    def __init__(self, draw: "ImageDraw", factor: int):
        self._draw, self._factor = draw, factor
        self._fonts: dict[int, FreeTypeFont | ImageFont] = {}

    def line(self, x0: float, y0: float, x1: float, y1: float, ink: str, width: int) -> None:
        f = self._factor
        self._draw.line((x0 * f, y0 * f, x1 * f, y1 * f), ink, width * f)

    def box(
        self, x: float, y: float, w: float, h: float, fill: str | None, edge: str, line: int = 1, radius: float = 0
    ) -> None:
        f = self._factor
        self._draw.rounded_rectangle((x * f, y * f, (x + w) * f, (y + h) * f), radius * f, fill, edge, line * f)

    def text(self, x: float, y: float, words: str, ink: str, size: int, anchor: str = "la") -> None:
        self._draw.text((x * self._factor, y * self._factor), words, ink, self._font(size), anchor=anchor)

    def label(self, x: float, y: float, words: str, ink: str, size: int) -> None:
        """Words around a place within a subnet; no line runs through them."""
        f = self._factor
        left, top, right, bottom = self._draw.textbbox((x * f, y * f), words, self._font(size), anchor="mm")
        self._draw.rectangle((left - 2 * f, top - f, right + 2 * f, bottom + f), _FIELD)
        self.text(x, y, words, ink, size, anchor="mm")

    def _font(self, size: int) -> "FreeTypeFont | ImageFont":
        from PIL import ImageFont

        if size not in self._fonts:
            self._fonts[size] = ImageFont.load_default(size * self._factor)
        return self._fonts[size]
