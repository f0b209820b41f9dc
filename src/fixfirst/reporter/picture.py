"""The network drawn: its map, one turn as a picture for `rgb_array`, and an episode as an animated GIF."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fixfirst.base import errors, files
from fixfirst.game.base_world import BaseWorld
from fixfirst.game.game_config import scenario_named
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.reporter.turn import Turn, outcome, summarise_turn, tenths, turn_text
from fixfirst.runs import layout

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

_SCALE = 2  # pixels per unit of the map
_OVERSAMPLE = 2  # drawn larger and shrunk: Pillow draws hard edges
_CAPTION = 62  # height of the lines below the map
_BOX_W, _BOX_H = 54, 30
_INK, _FAINT, _PAPER, _FIELD = "#1c2733", "#5b6875", "#ffffff", "#f1f4f7"
# Colours of Okabe and Ito, told apart by colour-blind readers; every state has a letter as well.
_RED, _BLUE, _GREEN = "#b84a00", "#005a8f", "#00664b"
_TRUE = {"none": (_PAPER, _INK, ""), "user": ("#f3c676", _INK, "U"), "root": (_RED, _PAPER, "R")}
_BELIEVED = {"clean": (_PAPER, _INK, ""), "unknown": ("#dbe9f4", _INK, "?"), "user": ("#8cc8ec", _INK, "U")}
_BELIEVED["root"] = _BLUE, _PAPER, "R"
_ROW_HEIGHT = 112
_FEW_IN_A_ROW, _MOST_IN_A_ROW, _SMALL_MAP = 5, 8, 30  # hosts: up to 30, names can be read on a telephone
_LETTERS_IN_A_ROW = 72
# Of animations:
_STEP_MS, _LAST_MS = 600, 3_000
_COLOURS = 64
_HEAD, _FOOT, _LEFT, _GAP = 64, 40, 24, 16  # pixels: above and below the map, its margin, between two players
_LONGEST = 84  # characters of a line


@dataclass(frozen=True)
class NetworkMap:
    """Where the hosts of a scenario stand, in units of the map. Red comes in at the top, its target is at the bottom."""

    width: int
    height: int
    rows: dict[str, list[tuple[str, ...]]]  # subnet -> its rows of hosts
    subnets: dict[str, tuple[int, int]]  # subnet -> the upper edge of its rows, and their height
    middles: dict[str, tuple[float, float]]  # of hosts
    links: tuple[tuple[str, str], ...]  # from the first of two hosts red learns the address of the second


@cache
def map_of(scenario: Scenario) -> NetworkMap:
    """Return the map of a scenario."""
    rows: dict[str, list[tuple[str, ...]]] = {}
    for row in scenario.map_rows or _rows(scenario):
        rows.setdefault(scenario.subnet_names[scenario.hosts[scenario.host_ids[row[0]]].subnet], []).append(row)
    longest = max(len(row) for of_subnet in rows.values() for row in of_subnet)
    width, top = 80 * max(_FEW_IN_A_ROW, longest), 0
    subnets, middles = {}, {}
    for subnet, of_subnet in rows.items():
        subnets[subnet] = top, _ROW_HEIGHT * len(of_subnet)
        for row in of_subnet:
            for x, name in enumerate(row):
                middles[name] = width / 2 + width / longest * (x - (len(row) - 1) / 2), top + _ROW_HEIGHT / 2
            top += _ROW_HEIGHT
    links = ((host.name, f.host) for host in scenario.hosts for f in host.reveals if f.host != host.name)
    return NetworkMap(width, top, rows, subnets, middles, tuple(links))


def _rows(scenario: Scenario) -> list[tuple[str, ...]]:
    """Return the hosts of each subnet, in as few rows as they need, of about the same length."""
    first = scenario.hosts[scenario.start_id].subnet
    last = scenario.hosts[scenario.target_id].subnet if scenario.target is not None else -1
    order = sorted(range(len(scenario.subnets)), key=lambda s: (s != first, s == last, s))
    fitting = _LETTERS_IN_A_ROW // (max(map(len, scenario.host_names)) + 2)  # names of neighbours must not overlap
    most = _FEW_IN_A_ROW if scenario.num_hosts <= _SMALL_MAP else max(_FEW_IN_A_ROW, min(_MOST_IN_A_ROW, fitting))
    rows = []
    for hosts in (scenario.subnets[subnet].hosts for subnet in order):
        count = -(-len(hosts) // most)
        rows += [tuple(hosts[a:b]) for a, b in pairwise(len(hosts) * k // count for k in range(count + 1))]
    return rows


def frames(world: BaseWorld, *, as_text: bool) -> tuple[np.ndarray, ...] | tuple[str, ...]:
    """Return how every environment stands, as a picture or as text."""
    turns = [summarise_turn(record, world.variant, world.scenario) for record in world.turns()]
    if as_text:
        return tuple(turn_text(turn, world.scenario) for turn in turns)
    return tuple(picture(turn, world.scenario) for turn in turns)


def picture(turn: Turn, scenario: Scenario = CAGE2) -> np.ndarray:
    """Return the turn as a picture, [height, width, 3] uint8. A host's left half: what blue believes; right: the truth."""
    from PIL import Image, ImageDraw  # a tenth of a second: only for those who look

    factor, chart = _SCALE * _OVERSAMPLE, map_of(scenario)
    width, height, places = chart.width, chart.height, chart.middles
    size = width, height + _CAPTION
    image = Image.new("RGB", (size[0] * factor, size[1] * factor), _PAPER)
    pen = _Pen(ImageDraw.Draw(image), factor)
    for subnet, (top, rows_height) in chart.subnets.items():
        edge = _RED if subnet == turn["red_target"] else _FIELD
        pen.box(4, top + 4, width - 8, rows_height - 8, _FIELD, edge, line=2, radius=6)
        pen.text(12, top + 9, subnet, _FAINT, 11)
    pen.text(width - 12, 9, "left: blue believes, right: true.  U user  R root  ? unknown", _FAINT, 9, anchor="ra")
    for here, there in chart.links:
        pen.line(*places[here], *places[there], ink="#c3ccd5", width=1)
    if turn["red_target"] in places and turn["red_target"] != scenario.start:
        pen.line(*places[scenario.start], *places[turn["red_target"]], ink=_RED, width=2)
    for host in range(scenario.num_hosts):
        _draw_host(pen, turn, host, scenario)
    pen.text(12, height + 4, f"step {turn['step']}", _INK, 12)
    pen.text(90, height + 4, f"reward {tenths(turn['reward10'])}", _INK, 12)
    pen.text(190, height + 4, f"return {tenths(turn['return10'])}", _INK, 12)
    pen.text(12, height + 22, f"red  {turn['red']}{outcome(turn['red_worked'])}", _RED, 12)
    pen.text(12, height + 40, f"blue  {turn['blue']}{outcome(turn['blue_worked'])}", _BLUE, 12)
    small = image.resize((size[0] * _SCALE, size[1] * _SCALE), Image.Resampling.BOX)
    return np.asarray(small, np.uint8).copy()


def _draw_host(pen: "_Pen", turn: Turn, host: int, scenario: Scenario) -> None:
    name = scenario.host_names[host]
    x, y = map_of(scenario).middles[name]
    left, top, half = x - _BOX_W / 2, y - _BOX_H / 2, _BOX_W / 2
    if name == turn["blue_target"]:
        pen.box(left - 4, top - 4, _BOX_W + 8, _BOX_H + 8, _PAPER, _BLUE, line=2, radius=7)
    if name == turn["red_target"]:
        pen.box(left - 4, top - 4, _BOX_W + 8, _BOX_H + 8, None, _RED, line=2, radius=7)
    for offset, (fill, ink, letter) in ((0.0, _BELIEVED[turn["belief"][host]]), (half, _TRUE[turn["access"][host]])):
        pen.box(left + offset, top, half, _BOX_H, fill, "#7b8794", line=1)
        pen.text(left + offset + half / 2, y, letter, ink, 15, anchor="mm")
    pen.label(x, top + _BOX_H + 12, name, _INK, 11)
    if turn["activity"][host] != "none":
        pen.label(x, top - 10, turn["activity"][host], _BLUE, 10)
    notes = [f"{len(turn['decoys'][host])} decoy{'s' * (len(turn['decoys'][host]) > 1)}"] if turn["decoys"][host] else []
    notes += [f"OT {turn['ot']}"] if name == scenario.target else ["foothold"] if name == scenario.start else []
    if notes:
        pen.label(x, top + _BOX_H + 24, ", ".join(notes), _FAINT, 9)


class _Pen:
    """Draws in units of the map."""

    def __init__(self, draw: "ImageDraw", factor: int):
        self._draw, self._factor = draw, factor

    def _pixels(self, *lengths: float) -> tuple[float, ...]:
        return tuple(self._factor * length for length in lengths)

    def line(self, *ends: float, ink: str, width: int) -> None:
        self._draw.line(self._pixels(*ends), ink, width * self._factor)

    def box(
        self, x: float, y: float, w: float, h: float, fill: str | None, edge: str, line: int = 1, radius: float = 0
    ) -> None:
        corners = self._pixels(x, y, x + w, y + h)
        self._draw.rounded_rectangle(corners, radius * self._factor, fill, edge, line * self._factor)

    def text(self, x: float, y: float, words: str, ink: str, size: int, anchor: str = "la") -> None:
        self._draw.text((x * self._factor, y * self._factor), words, ink, _font(size * self._factor), anchor=anchor)

    def label(self, x: float, y: float, words: str, ink: str, size: int) -> None:
        """Words around a place within a subnet; no line runs through them."""
        f = self._factor
        left, top, right, bottom = self._draw.textbbox((x * f, y * f), words, _font(size * f), anchor="mm")
        self._draw.rectangle((left - 2 * f, top - f, right + 2 * f, bottom + f), _FIELD)
        self.text(x, y, words, ink, size, anchor="mm")


@cache
def _font(size: int) -> "FreeTypeFont | ImageFont":
    from PIL import ImageFont

    return ImageFont.load_default(size)


def check_gif(path: str | Path, policy: object) -> Path:
    """Return where an animation goes, which ends in .gif: over no run, and not over the policy."""
    gif = layout.check_output("gif", path, policy)
    if gif.suffix.lower() != ".gif":
        raise errors.ConfigError(f"--gif writes an animation, to a file that ends in .gif, got {str(gif)!r}")
    return gif


def write_gif(path: Path, document: dict[str, Any]) -> None:
    """Write the first episode of a replay, from the step before red's first success on; two players stand side by side."""
    players = [document, *([document["beside"]] if "beside" in document else [])]
    start = max(0, min(_first_compromise(player["episodes"][0], scenario_of(player)) for player in players) - 1)
    frames = [_frame(players, step) for step in range(start, len(document["episodes"][0]["steps"]))]
    data = BytesIO()
    times = [_STEP_MS] * (len(frames) - 1) + [_LAST_MS]
    first, *others = (frame.quantize(_COLOURS) for frame in frames)
    first.save(data, "gif", save_all=True, append_images=others, duration=times, loop=0, optimize=True)
    with errors.writing(path, "; choose another place with --gif", errors.ConfigError):
        files.write_atomically(path, data.getvalue())


def scenario_of(document: dict[str, Any]) -> Scenario:
    """Return the scenario that was played."""
    return scenario_named(document.get("scenario", CAGE2))


def _first_compromise(episode: dict[str, Any], scenario: Scenario) -> int:
    """Return the first step after which red holds more than its foothold; the last one if there is none."""
    for step in episode["steps"]:
        if any(access != "none" for host, access in enumerate(step["access"]) if host != scenario.start_id):
            return int(step["step"])
    return len(episode["steps"]) - 1


def _frame(players: Sequence[dict[str, Any]], step: int) -> "Image":
    from PIL import Image

    panels = [_panel(player, step) for player in players]
    width = sum(panel.width for panel in panels) + _GAP * (len(panels) - 1)
    frame, x = Image.new("RGB", (width, panels[0].height), _PAPER), 0
    for panel in panels:
        frame.paste(panel, (x, 0))
        x += panel.width + _GAP
    return frame


def _panel(player: dict[str, Any], number: int) -> "Image":
    """Draw one player's step: whose, under which order, the map, and what was said of the repair."""
    from PIL import Image, ImageDraw

    episode = player["episodes"][0]
    step, verdict = episode["steps"][number], episode["steps"][number]["verdict"]
    drawn = Image.fromarray(picture(step, scenario_of(player)))
    panel = Image.new("RGB", (drawn.width, _HEAD + drawn.height + _FOOT), _PAPER)
    panel.paste(drawn, (0, _HEAD))
    order, since = player["workflow"], 0
    for change in player["changes"]:
        if change["step"] <= number:
            order, since = change["workflow"], change["step"]
    changed = f" (since step {since})" if since else ""
    lines = [
        (8, 22, _INK, f"{player['policy']} against {episode['red_agent']}"),
        (36, 19, _FAINT, f"order: {' > '.join(order)}{changed}" if order else "no order"),
    ]
    if verdict is not None:
        ink = {"violation": _RED, "in order": _GREEN}.get(verdict["kind"], _FAINT)
        lines.append((_HEAD + drawn.height, 19, ink, f"{verdict['kind']}: {verdict['reason']}"))
    pen = ImageDraw.Draw(panel)
    for y, size, ink, text in lines:
        pen.text((_LEFT, y), text[:_LONGEST], ink, _font(size))
    return panel
