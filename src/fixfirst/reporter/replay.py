"""Episodes as one self-contained page (`replay.html`), as text, or as an animated GIF for talks.

They are known only as the document of `reporter/description.py`.

The page loads nothing: style, script and data are in it, and its policy forbids everything else. Data stand in a JSON block
in which `<` is escaped, and reach the reader as text, never as markup.
"""

from collections.abc import Sequence
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fixfirst.base import errors, files
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.scenario_names import scenario_named
from fixfirst.reporter import drawing
from fixfirst.reporter.page import as_data, fill, read_part

if TYPE_CHECKING:
    from PIL.Image import Image


def replay_page(document: dict[str, Any]) -> str:
    """Build the replay page. The same document gives the same bytes."""
    style, player, script = map(read_part, ("replay.css", "replay_player.js", "replay.js"))
    data = as_data(document | {"map": _map(_scenario_of(document))})
    return fill("replay.html", style=style, player=player, script=script, data=data)


def write_replay(path: Path, document: dict[str, Any]) -> None:
    """Write the page; its folder is made if need be."""
    with errors.writing(path, "; choose another place with --out", errors.ConfigError):
        path.parent.mkdir(exist_ok=True)
        files.write_atomically(path, replay_page(document).encode())


def _scenario_of(document: dict[str, Any]) -> Scenario:
    """Return the scenario that was played."""
    return scenario_named(document.get("scenario", CAGE2))


def _map(scenario: Scenario) -> dict[str, Any]:
    """Return where things stand, for the page to draw."""
    chart = drawing.map_of(scenario)
    return {
        "width": chart.width,
        "height": chart.height,
        "subnets": chart.subnet_rows,
        "places": chart.places,
        "links": chart.links,
        "foothold": scenario.start,
        "ot_server": scenario.target,
    }


# ---------------------------------------------------------------- text


def replay_text(document: dict[str, Any]) -> str:
    """Write all episodes for the terminal, a few lines per step; of two players, one after the other."""
    lines, hosts = [headline(document)], [host["name"] for host in document["hosts"]]
    for episode in document["episodes"]:
        lines += ["", episode_line(episode), episode["why"]]
        for step in episode["steps"][1:]:
            changed = [change["workflow"] for change in document["changes"] if change["step"] == step["step"]]
            lines += [f"from here on the order is {' > '.join(order)}" for order in changed]
            lines += _step_lines(step, hosts)
    return "\n".join(lines) + (f"\n\nbeside: {replay_text(document['beside'])}" if "beside" in document else "")


def order_at(document: dict[str, Any], step: int) -> tuple[list[str], int]:
    """Return the order in force at a step, and the step since when if it was changed on the way (else 0); [] without one."""
    order, since = document["workflow"] or [], 0
    for change in document["changes"]:
        if change["step"] <= step:
            order, since = change["workflow"], change["step"]
    return order, since


def headline(document: dict[str, Any]) -> str:
    """Say what is replayed, in one line."""
    order = document["workflow"]
    played = document["played"]
    parts = [
        document["policy"],
        f"order {' > '.join(order)}" if order else "no order",
        *(f"from step {change['step']} on {' > '.join(change['workflow'])}" for change in document["changes"]),
        f"against {document['red_agent']} on {document['backend']}, variant {document['variant']}",
        f"scenario {document['scenario']['name']}" if "scenario" in document else "",
        document.get("reward", ""),
        f"memory {document['memory']}" if document["memory"] != "none" else "",
        f"opening {', '.join(document['opening'])}" if document["opening"] else "",
        f"{played['episodes']:,} episodes of {document['steps']} steps, mean return {played['mean_return']:.2f}",
    ]
    return "; ".join(filter(None, parts))


def episode_line(episode: dict[str, Any]) -> str:
    """Say an episode's name and what came of it."""
    kept = f", {episode['violations']} of {episode['judged']} judged repairs out of order" if episode["judged"] else ""
    impacts = f", {episode['impacts']} impacts" if episode["impacts"] else ""
    who = f"episode {episode['number']} against {episode['red_agent']}"
    return f"{episode['label']}: {who}: return {drawing.tenths(episode['return10'])}{kept}{impacts}"


def _step_lines(step: dict[str, Any], hosts: list[str]) -> list[str]:
    def by_host(values: list[Any]) -> list[tuple[str, Any]]:
        return list(zip(hosts, values, strict=True))

    verdict = step["verdict"]
    judged = f"   [{verdict['kind']}: {verdict['reason']}]" if verdict else ""
    parts = ", ".join(f"{cost['what']} {drawing.tenths(cost['tenths'])}" for cost in step["costs"])
    rows = [
        ("red", step["red"] + drawing.outcome(step["red_worked"])),
        ("blue", step["blue"] + drawing.outcome(step["blue_worked"]) + judged),
        ("true", ", ".join(f"{name} {access}" for name, access in by_host(step["access"]) if access != "none")),
        ("thinks", f"red: {held}" if (held := _believed_by_red(step, hosts)) else ""),
        ("seen", ", ".join(f"{name} {believed}" for name, believed in by_host(_seen(step)) if believed)),
        ("decoys", ", ".join(f"{name} {' '.join(map(str, d))}" for name, d in by_host(step["decoys"]) if d)),
        ("memory", "; ".join(f"{whom} {what}" for whom, what in step["remembered"].items())),
        ("shield", shield_words(step)),
        (
            "cost",
            f"{parts or 'nothing'}; reward {drawing.tenths(step['reward10'])}, return {drawing.tenths(step['return10'])}",
        ),
    ]
    shown = [(name, words) for name, words in rows if words]
    return [f"{step['step'] if i == 0 else '':>4}  {name:6} {words}" for i, (name, words) in enumerate(shown)]


def _believed_by_red(step: dict[str, Any], hosts: list[str]) -> str:
    """Say what a learned attacker believes to have, and what it found lost; empty if nothing."""
    return ", ".join(f"{name} {what}" for name, what in zip(hosts, step["red_belief"], strict=False) if what != "none")


def shield_words(step: dict[str, Any]) -> str:
    """Say what the order forbade when blue chose, and why; empty if nothing."""
    if not step["forbidden"]:
        return ""
    return f"suspected {', '.join(step['suspected'])}; forbade repairs of {', '.join(step['forbidden'])}"


def _seen(step: dict[str, Any]) -> list[str]:
    """Return what blue believes and sees of each host; nothing of those that are clean and quiet."""
    return [
        "" if (belief, activity) == ("clean", "none") else belief + ("" if activity == "none" else f" ({activity} now)")
        for belief, activity in zip(step["belief"], step["activity"], strict=True)
    ]


# ---------------------------------------------------------------- an animation

STEP_MS, LAST_MS = 600, 3_000
COLOURS = 64
HEAD, FOOT, LEFT, GAP = 64, 40, 24, 16  # pixels: above and below the map, its margin, between two players
_INK, FAINT, GOOD, BAD, PAPER = "#1c2733", "#5b6875", "#00664b", "#b84a00", "#ffffff"
LONGEST = 84  # characters of a line


def check_gif(path: Path) -> Path:
    """Return the path of an animation, which ends in .gif."""
    if path.suffix.lower() != ".gif":
        raise errors.ConfigError(f"--gif writes an animation, to a file that ends in .gif, got {str(path)!r}")
    return path


def write_gif(path: Path, document: dict[str, Any]) -> None:
    """Write the first episode of a replay, from the step before red's first success on; two players stand side by side."""
    players = [document, *([document["beside"]] if "beside" in document else [])]
    start = max(0, min(first_compromise(player["episodes"][0], _scenario_of(document)) for player in players) - 1)
    frames = [_frame(players, step) for step in range(start, len(document["episodes"][0]["steps"]))]
    data = BytesIO()
    times = [STEP_MS] * (len(frames) - 1) + [LAST_MS]
    first, *others = (frame.quantize(COLOURS) for frame in frames)
    first.save(data, "gif", save_all=True, append_images=others, duration=times, loop=0, optimize=True)
    with errors.writing(path, "; choose another place with --gif", errors.ConfigError):
        files.write_atomically(path, data.getvalue())


def first_compromise(episode: dict[str, Any], scenario: Scenario) -> int:
    """Return the first step after which red holds more than its foothold; the last one if there is none."""
    for step in episode["steps"]:
        if any(access != "none" for host, access in enumerate(step["access"]) if host != scenario.start_id):
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
    """Draw one player's step: whose, under which order, the map, and what was said of the repair."""
    from PIL import Image, ImageDraw, ImageFont

    step = player["episodes"][0]["steps"][number]
    drawn = drawing.picture(_moment(step), _scenario_of(player))
    panel = Image.new("RGB", (drawn.shape[1], HEAD + len(drawn) + FOOT), PAPER)
    panel.paste(Image.fromarray(np.ascontiguousarray(drawn)), (0, HEAD))
    pen, large, small = ImageDraw.Draw(panel), ImageFont.load_default(22), ImageFont.load_default(19)
    pen.text((LEFT, 8), f"{player['policy']} against {player['episodes'][0]['red_agent']}"[:LONGEST], _INK, large)
    order, since = order_at(player, number)
    changed = f" (since step {since})" if since else ""
    pen.text((LEFT, 36), f"order: {' > '.join(order)}{changed}"[:LONGEST] if order else "no order", FAINT, small)
    verdict = step["verdict"]
    if verdict is not None:
        ink = {"violation": BAD, "in order": GOOD}.get(verdict["kind"], FAINT)
        pen.text((LEFT, HEAD + len(drawn)), f"{verdict['kind']}: {verdict['reason']}"[:LONGEST], ink, small)
    return panel


def _moment(step: dict[str, Any]) -> drawing.TurnSummary:
    """Return the turn that a step of the document tells of."""
    values = {f.name: step[f.name] for f in fields(drawing.TurnSummary)}
    return drawing.TurnSummary(**values | {"costs": tuple(drawing.Cost(**cost) for cost in step["costs"])})
