"""Episodes as one self-contained page (`replay.html`), or as text. Knows them only as the document of `play/episodes.py`.

The page loads nothing: style, script and data are in it, and its policy forbids everything else. Data stand in a JSON block
in which `<` is escaped, and reach the reader as text, never as markup.
"""

from pathlib import Path
from typing import Any

from fixfirst.base.errors import ConfigError
from fixfirst.game.drawing import HEIGHT, LINKS, PLACES, ROW_HEIGHT, SUBNET_TOP, WIDTH, outcome, tenths
from fixfirst.game.scenario import FOOTHOLD, HOST_NAMES, OT_SERVER
from fixfirst.reporter.page import TEMPLATES, as_data, fill
from fixfirst.runs.files import write_atomically

PARTS = ("replay.css", "replay_player.js", "replay.js")


def replay_page(document: dict[str, Any]) -> str:
    """The replay page. The same document gives the same bytes."""
    from markupsafe import Markup

    style, player, script = (Markup((TEMPLATES / name).read_text(encoding="utf-8")) for name in PARTS)
    data = as_data(document | {"map": _map()})
    return fill("replay.html", style=style, player=player, script=script, data=data)


def write_replay(path: Path, document: dict[str, Any]) -> None:
    """Write the page; its folder is made if need be."""
    try:
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, replay_page(document).encode())
    except OSError as e:
        raise ConfigError(f"{path}: cannot be written ({e.strerror}); choose another place with --out") from e


def _map() -> dict[str, Any]:
    """Where things stand, for the page to draw."""
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "row_height": ROW_HEIGHT,
        "subnets": SUBNET_TOP,
        "places": PLACES,
        "links": LINKS,
        "foothold": HOST_NAMES[FOOTHOLD],
        "ot_server": HOST_NAMES[OT_SERVER],
    }


# ---------------------------------------------------------------- text


def replay_text(document: dict[str, Any]) -> str:
    """All episodes for the terminal, a few lines per step; of two players, one after the other."""
    lines = [headline(document)]
    for episode in document["episodes"]:
        lines += ["", episode_line(episode), episode["why"]]
        for step in episode["steps"][1:]:
            changed = [change["workflow"] for change in document["changes"] if change["step"] == step["step"]]
            lines += [f"from here on the order is {' > '.join(order)}" for order in changed]
            lines += _step_lines(step)
    return "\n".join(lines) + (f"\n\nbeside: {replay_text(document['beside'])}" if "beside" in document else "")


def order_at(document: dict[str, Any], step: int) -> tuple[list[str], int]:
    """The order in force at a step, and the step since when if it was changed on the way (else 0); [] without one."""
    order, since = document["workflow"] or [], 0
    for change in document["changes"]:
        if change["step"] <= step:
            order, since = change["workflow"], change["step"]
    return order, since


def headline(document: dict[str, Any]) -> str:
    """What is replayed, in one line."""
    order = document["workflow"]
    played = document["played"]
    parts = [
        document["policy"],
        f"order {' > '.join(order)}" if order else "no order",
        *(f"from step {change['step']} on {' > '.join(change['workflow'])}" for change in document["changes"]),
        f"against {document['red_agent']} on {document['backend']}, variant {document['variant']}",
        f"memory {document['memory']}" if document["memory"] != "none" else "",
        f"opening {', '.join(document['opening'])}" if document["opening"] else "",
        f"{played['episodes']:,} episodes of {document['steps']} steps, mean return {played['mean_return']:.2f}",
    ]
    return "; ".join(filter(None, parts))


def episode_line(episode: dict[str, Any]) -> str:
    """An episode's name and what came of it."""
    kept = f", {episode['violations']} of {episode['judged']} judged repairs out of order" if episode["judged"] else ""
    impacts = f", {episode['impacts']} impacts" if episode["impacts"] else ""
    who = f"episode {episode['number']} against {episode['red_agent']}"
    return f"{episode['label']}: {who}: return {tenths(episode['return10'])}{kept}{impacts}"


def _step_lines(step: dict[str, Any]) -> list[str]:
    verdict = step["verdict"]
    judged = f"   [{verdict['kind']}: {verdict['reason']}]" if verdict else ""
    parts = ", ".join(f"{cost['what']} {tenths(cost['tenths'])}" for cost in step["costs"])
    rows = [
        ("red", step["red"] + outcome(step["red_worked"])),
        ("blue", step["blue"] + outcome(step["blue_worked"]) + judged),
        ("true", _listed(step["access"], "none")),
        ("seen", _seen(step)),
        ("decoys", ", ".join(f"{name} {' '.join(map(str, d))}" for name, d in _by_host(step["decoys"]) if d)),
        ("memory", "; ".join(f"{whom} {what}" for whom, what in step["remembered"].items())),
        ("shield", shield_words(step)),
        ("cost", f"{parts or 'nothing'}; reward {tenths(step['reward10'])}, return {tenths(step['return10'])}"),
    ]
    shown = [(name, words) for name, words in rows if words]
    return [f"{step['step'] if i == 0 else '':>4}  {name:6} {words}" for i, (name, words) in enumerate(shown)]


def shield_words(step: dict[str, Any]) -> str:
    """What the order forbade when blue chose, and why; empty if nothing."""
    if not step["forbidden"]:
        return ""
    return f"suspected {', '.join(step['suspected'])}; forbade repairs of {', '.join(step['forbidden'])}"


def _by_host(values: list[Any]) -> list[tuple[str, Any]]:
    return list(zip(HOST_NAMES, values, strict=True))


def _listed(values: list[str], nothing: str) -> str:
    return ", ".join(f"{name} {value}" for name, value in _by_host(values) if value != nothing)


def _seen(step: dict[str, Any]) -> str:
    words = []
    for name, belief, activity in zip(HOST_NAMES, step["belief"], step["activity"], strict=True):
        if belief != "clean" or activity != "none":
            words.append(f"{name} {belief}" + (f" ({activity} now)" if activity != "none" else ""))
    return ", ".join(words)
