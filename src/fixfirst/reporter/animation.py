"""An animated GIF of one episode, for talks; two players stand side by side."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fixfirst.base import errors, files
from fixfirst.game.scenario import Scenario
from fixfirst.reporter.picture import picture
from fixfirst.reporter.replay import order_at, scenario_of

if TYPE_CHECKING:
    from PIL.Image import Image

STEP_MS, LAST_MS = 600, 3_000
COLOURS = 64
HEAD, FOOT, LEFT, GAP = 64, 40, 24, 16  # pixels: above and below the map, its margin, between two players
INK, FAINT, GOOD, BAD, PAPER = "#1c2733", "#5b6875", "#00664b", "#b84a00", "#ffffff"
LONGEST = 84  # characters of a line


def check_gif(path: Path) -> Path:
    """Return the path of an animation, which ends in .gif."""
    if path.suffix.lower() != ".gif":
        raise errors.ConfigError(f"--gif writes an animation, to a file that ends in .gif, got {str(path)!r}")
    return path


def write_gif(path: Path, document: dict[str, Any]) -> None:
    """Write the first episode of a replay, from the step before red's first success on."""
    players = [document, *([document["beside"]] if "beside" in document else [])]
    start = max(0, min(_first_compromise(player["episodes"][0], scenario_of(player)) for player in players) - 1)
    frames = [_frame(players, step) for step in range(start, len(document["episodes"][0]["steps"]))]
    data = BytesIO()
    times = [STEP_MS] * (len(frames) - 1) + [LAST_MS]
    first, *others = (frame.quantize(COLOURS) for frame in frames)
    first.save(data, "gif", save_all=True, append_images=others, duration=times, loop=0, optimize=True)
    with errors.writing(path, "; choose another place with --gif", errors.ConfigError):
        files.write_atomically(path, data.getvalue())


def _first_compromise(episode: dict[str, Any], scenario: Scenario) -> int:
    """Return the first step after which red holds more than its foothold; the last one if there is none."""
    for step in episode["steps"]:
        if any(access != "none" for host, access in enumerate(step["access"]) if host != scenario.start_id):
            return int(step["step"])
    return len(episode["steps"]) - 1


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
    """Draw one player's step: whose, under which order, the map, and what was said of the repair."""
    from PIL import Image, ImageDraw, ImageFont

    episode = player["episodes"][0]
    step = episode["steps"][number]
    drawn = Image.fromarray(picture(step, scenario_of(player)))
    panel = Image.new("RGB", (drawn.width, HEAD + drawn.height + FOOT), PAPER)
    panel.paste(drawn, (0, HEAD))
    pen, large, small = ImageDraw.Draw(panel), ImageFont.load_default(22), ImageFont.load_default(19)
    pen.text((LEFT, 8), f"{player['policy']} against {episode['red_agent']}"[:LONGEST], INK, large)
    order, since = order_at(player, number)
    changed = f" (since step {since})" if since else ""
    pen.text((LEFT, 36), f"order: {' > '.join(order)}{changed}"[:LONGEST] if order else "no order", FAINT, small)
    if (verdict := step["verdict"]) is not None:
        ink = {"violation": BAD, "in order": GOOD}.get(verdict["kind"], FAINT)
        pen.text((LEFT, HEAD + drawn.height), f"{verdict['kind']}: {verdict['reason']}"[:LONGEST], ink, small)
    return panel
