"""One turn as a picture of the network: for `rgb_array`, and for animations."""

from typing import TYPE_CHECKING

import numpy as np

from fixfirst.game.base_world import BaseWorld
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.reporter.network_map import map_of
from fixfirst.reporter.turn import Turn, outcome, summarise_turn, tenths, turn_text

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont, ImageFont

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
        pen.line(*places[here], *places[there], "#c3ccd5", 1)
    if turn["red_target"] in places and turn["red_target"] != scenario.start:
        pen.line(*places[scenario.start], *places[turn["red_target"]], _RED, 2)
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
