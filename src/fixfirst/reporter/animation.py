"""An episode of a replay as an animated GIF, for talks: the map of every step, the order in force, the verdict."""

from collections.abc import Sequence
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fixfirst.base.errors import ConfigError
from fixfirst.game.drawing import Cost, TurnSummary, picture
from fixfirst.game.scenario import FOOTHOLD
from fixfirst.reporter.replay import order_at
from fixfirst.runs.files import write_atomically

if TYPE_CHECKING:
    from PIL.Image import Image

STEP_MS, LAST_MS = 600, 3_000
COLOURS = 64
HEAD, FOOT, LEFT, GAP = 64, 40, 24, 16  # pixels: above and below the map, its margin, between two players
INK, FAINT, GOOD, BAD, PAPER = "#1c2733", "#5b6875", "#00664b", "#b84a00", "#ffffff"
LONGEST = 84  # characters of a line


def write_gif(path: Path, document: dict[str, Any]) -> None:
    """The first episode of a replay, from the step before red's first success on; two players stand side by side."""
    players = [document, *([document["beside"]] if "beside" in document else [])]
    start = max(0, min(first_compromise(player["episodes"][0]) for player in players) - 1)
    frames = [_frame(players, step) for step in range(start, len(document["episodes"][0]["steps"]))]
    data = BytesIO()
    times = [STEP_MS] * (len(frames) - 1) + [LAST_MS]
    first, *others = (frame.quantize(COLOURS) for frame in frames)
    first.save(data, "gif", save_all=True, append_images=others, duration=times, loop=0, optimize=True)
    try:
        write_atomically(path, data.getvalue())
    except OSError as e:
        raise ConfigError(f"{path}: cannot be written ({e.strerror}); choose another place with --gif") from e


def first_compromise(episode: dict[str, Any]) -> int:
    """The first step after which red holds more than its foothold; the last one if there is none."""
    for step in episode["steps"]:
        if any(access != "none" for host, access in enumerate(step["access"]) if host != FOOTHOLD):
            return int(step["step"])
    return int(episode["steps"][-1]["step"])


def _frame(players: Sequence[dict[str, Any]], step: int) -> "Image":
    from PIL import Image  # here, because it takes a tenth of a second

    panels = [_panel(player, step) for player in players]
    width = sum(panel.width for panel in panels) + GAP * (len(panels) - 1)
    frame, x = Image.new("RGB", (width, panels[0].height), PAPER), 0
    for panel in panels:
        frame.paste(panel, (x, 0))
        x += panel.width + GAP
    return frame


def _panel(player: dict[str, Any], number: int) -> "Image":
    """One player's step: whose, under which order, the map, and what was said of the repair."""
    from PIL import Image, ImageDraw, ImageFont

    step = player["episodes"][0]["steps"][number]
    drawn = picture(_moment(step))
    panel = Image.new("RGB", (drawn.shape[1], HEAD + len(drawn) + FOOT), PAPER)
    panel.paste(Image.fromarray(np.ascontiguousarray(drawn)), (0, HEAD))
    pen, large, small = ImageDraw.Draw(panel), ImageFont.load_default(22), ImageFont.load_default(19)
    pen.text((LEFT, 8), f"{player['policy']} against {player['episodes'][0]['red_agent']}"[:LONGEST], INK, large)
    order, since = order_at(player, number)
    changed = f" (since step {since})" if since else ""
    pen.text((LEFT, 36), f"order: {' > '.join(order)}{changed}"[:LONGEST] if order else "no order", FAINT, small)
    verdict = step["verdict"]
    if verdict is not None:
        ink = {"violation": BAD, "in order": GOOD}.get(verdict["kind"], FAINT)
        pen.text((LEFT, HEAD + len(drawn)), f"{verdict['kind']}: {verdict['reason']}"[:LONGEST], ink, small)
    return panel


def _moment(step: dict[str, Any]) -> TurnSummary:
    """The moment that a step of the document tells of."""
    told = {f.name: step[f.name] for f in fields(TurnSummary)}
    return TurnSummary(**told | {"costs": tuple(Cost(**cost) for cost in step["costs"])})
