"""One turn in words: what red and blue did, what is true since, what blue sees, and what the turn cost.

Works on the records that every world hands out (`BaseWorld.turns`, TURN_DTYPE), so it tells of CybORG's games as well.
H = 13 hosts, in the order of `HOSTS`.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fixfirst.game.actions import ACTIONS
from fixfirst.game.rules import OT_TENTHS, QUIET, RESTORE_TENTHS, SEEN_EXPLOIT, SEEN_SCAN
from fixfirst.game.scenario import (
    EXPLOIT_NAMES,
    FOOTHOLD,
    HOST_ID,
    HOST_NAMES,
    HOSTS,
    NUM_HOSTS,
    OT_SERVER,
    PORTS,
    SUBNETS,
    VARIANT_ID,
    VARIANTS,
    VariantName,
)
from fixfirst.game.state import BITS_PER_HOST, NO_TARGET, OTService, RedVerb, Success
from fixfirst.game.tables import VALUE_TENTHS

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

ACCESS = ("none", "user", "root")  # what red truly has on a host
BELIEF = ("clean", "unknown", "user", "root")  # what blue believes of it; CybORG: No, Unknown, User, Privileged
ACTIVITY = ("none", "scan", "exploit")  # what blue saw there in this step
OT_STATES = tuple(state.name.lower() for state in OTService)  # running, stopped, restored

_SEEN = dict(zip((QUIET, SEEN_SCAN, SEEN_EXPLOIT), ACTIVITY, strict=True))
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

    @property
    def reward10(self) -> int:
        return sum(cost.tenths for cost in self.costs)


def summarise_turn(turn: np.void, variant: VariantName) -> TurnSummary:
    """One record of TURN_DTYPE in plain values."""
    red, red_target, red_worked = _red(turn)
    action = ACTIONS[turn["blue_action"]]
    view = [int(turn["observation"]) >> BITS_PER_HOST * host for host in range(NUM_HOSTS)]
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
        decoys=tuple(_ports(mask) for mask in turn["decoys"].tolist()),
        ot=OT_STATES[turn["ot"]],
        costs=costs(turn, variant),
        return10=int(turn["return10"]),
    )


def _red(turn: np.void) -> tuple[str, str | None, bool | None]:
    """Red's action in words, its target, and whether it achieved anything.

    Two actions are reported to red as successes and achieve nothing: a scan of a host it cannot reach, and Impact on a
    service that was restored before.
    """
    verb, worked = RedVerb(turn["red_verb"]), _WORKED[Success(turn["red_success"])]
    if turn["red_target"] == NO_TARGET:
        return ("Sleep" if turn["step"] else "nothing yet"), None, None
    target = (SUBNETS if verb == RedVerb.DISCOVER else HOST_NAMES)[turn["red_target"]]
    if verb == RedVerb.DISCOVER:
        return f"Discover subnet {target}", target, worked
    if verb == RedVerb.SCAN:
        answered = bool(turn["scan_answered"])
        return f"Scan {target}" + ("" if answered else " (out of reach)"), target, answered
    if verb == RedVerb.EXPLOIT:
        weapon = EXPLOIT_NAMES[turn["red_exploit"]] if turn["red_exploit"] >= 0 else "never scanned"
        return f"Exploit {target} ({weapon})", target, worked
    if verb == RedVerb.ESCALATE:
        return f"Escalate on {target}", target, worked
    harmless = bool(worked) and turn["ot"] == OTService.RESTORED
    return f"Impact {target}" + (" (harmless once restored)" if harmless else ""), target, worked and not harmless


def costs(turn: np.void, variant: VariantName) -> tuple[Cost, ...]:
    """What this turn cost blue: the hosts red holds, the stopped OT service, blue's Restore. `reward_tenths` in parts."""
    charged = turn["access"] >= (1 if VARIANTS[VARIANT_ID[variant]].any_session_costs else 2)
    parts = [Cost(HOST_NAMES[h], -int(VALUE_TENTHS[h])) for h in np.flatnonzero(charged) if VALUE_TENTHS[h]]
    if turn["ot"] == OTService.STOPPED:
        parts.append(Cost("impact", -OT_TENTHS))
    if ACTIONS[turn["blue_action"]].verb == "Restore":
        parts.append(Cost("restore", -RESTORE_TENTHS))
    return tuple(parts)


def _ports(mask: int) -> tuple[int, ...]:
    return tuple(port for bit, port in enumerate(PORTS) if mask >> bit & 1)


# ---------------------------------------------------------------- drawing
# Two ways to show a moment of a game: a picture of the network, and lines of text.
#
# Where hosts stand on the map is decided here, for the picture and for the replay page alike.


# ---------------------------------------------------------------- where things are

# Red comes in at the top and works its way down. Hosts that lead to each other stand near each other.
ROWS = (
    ("User0", "User1", "User2", "User3", "User4"),
    ("Defender", "Enterprise1", "Enterprise2", "Enterprise0"),
    ("Op_Host0", "Op_Host1", "Op_Server0", "Op_Host2"),
)
WIDTH, ROW_HEIGHT = 400, 112  # of the map, in its own units
HEIGHT = ROW_HEIGHT * len(ROWS)
_SPACING = WIDTH / max(len(row) for row in ROWS)
LINKS = tuple((host.name, host.reveals) for host in HOSTS if host.reveals)  # from here red learns the address of there


def _place(name: str) -> tuple[float, float]:
    y, row = next((y, row) for y, row in enumerate(ROWS) if name in row)
    return WIDTH / 2 + _SPACING * (row.index(name) - (len(row) - 1) / 2), ROW_HEIGHT * (y + 0.5)


PLACES = {name: _place(name) for name in HOST_NAMES}  # the middle of each host
SUBNET_TOP = {SUBNETS[HOSTS[HOST_ID[row[0]]].subnet]: ROW_HEIGHT * y for y, row in enumerate(ROWS)}


# ---------------------------------------------------------------- as text


def tenths(value: int) -> str:
    """-13 -> "-1.3"."""
    return f"{value / 10:.1f}" if value else "0.0"


def outcome(worked: bool | None) -> str:
    """How an action went, to be put behind it."""
    return {True: ": worked", False: ": failed", None: ""}[worked]


def as_text(moment: TurnSummary) -> str:
    """The moment as lines of text, a line per host."""
    lines = [
        f"step {moment.step}   reward {tenths(moment.reward10)}   return {tenths(moment.return10)}   OT service {moment.ot}",
        f"red   {moment.red}{outcome(moment.red_worked)}",
        f"blue  {moment.blue}{outcome(moment.blue_worked)}",
        f"{'host':12} {'true':6} {'believed':9} {'seen now':9} decoys",
    ]
    for name, access, belief, activity, decoys in zip(
        HOST_NAMES, moment.access, moment.belief, moment.activity, moment.decoys, strict=True
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


def picture(moment: TurnSummary) -> np.ndarray:
    """The moment as a picture, [height, width, 3] uint8. A host's left half: what blue believes; right: the truth."""
    from PIL import Image, ImageDraw  # a tenth of a second: only for those who look

    factor = _SCALE * _OVERSAMPLE
    size = WIDTH, HEIGHT + _CAPTION
    image = Image.new("RGB", (size[0] * factor, size[1] * factor), _PAPER)
    pen = _Pen(ImageDraw.Draw(image), factor)
    for subnet, top in SUBNET_TOP.items():
        edge = _RED if subnet == moment.red_target else _FIELD
        pen.box(4, top + 4, WIDTH - 8, ROW_HEIGHT - 8, _FIELD, edge, line=2, radius=6)
        pen.text(12, top + 9, subnet, _FAINT, 11)
    pen.text(WIDTH - 12, 9, "left: blue believes, right: true.  U user  R root  ? unknown", _FAINT, 9, anchor="ra")
    for here, there in LINKS:
        pen.line(*PLACES[here], *PLACES[there], "#c3ccd5", 1)
    if moment.red_target in PLACES and moment.red_target != HOST_NAMES[FOOTHOLD]:
        pen.line(*PLACES[HOST_NAMES[FOOTHOLD]], *PLACES[moment.red_target], _RED, 2)
    for host in range(NUM_HOSTS):
        _draw_host(pen, moment, host)
    pen.text(12, HEIGHT + 4, f"step {moment.step}", _INK, 12)
    pen.text(90, HEIGHT + 4, f"reward {tenths(moment.reward10)}", _INK, 12)
    pen.text(190, HEIGHT + 4, f"return {tenths(moment.return10)}", _INK, 12)
    pen.text(12, HEIGHT + 22, f"red  {moment.red}{outcome(moment.red_worked)}", _RED, 12)
    pen.text(12, HEIGHT + 40, f"blue  {moment.blue}{outcome(moment.blue_worked)}", _BLUE, 12)
    small = image.resize((size[0] * _SCALE, size[1] * _SCALE), Image.Resampling.BOX)
    return np.asarray(small, np.uint8).copy()


def _draw_host(pen: "_Pen", moment: TurnSummary, host: int) -> None:
    name = HOST_NAMES[host]
    x, y = PLACES[name]
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
    notes += [f"OT {moment.ot}"] if host == OT_SERVER else ["foothold"] if host == FOOTHOLD else []
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
