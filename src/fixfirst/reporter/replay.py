"""Episodes as one self-contained page (`replay.html`), and as text. They are known only as the document of `episodes.py`.

The page loads nothing: style, script and data are in it, and its policy forbids everything else. Data stand in a JSON block
in which `<` is escaped, and reach the reader as text, never as markup.
"""

from pathlib import Path
from typing import Any

from fixfirst.base import errors, files
from fixfirst.reporter.page import as_data, fill, read_part
from fixfirst.reporter.picture import map_of, scenario_of
from fixfirst.reporter.turn import outcome, tenths


def replay_page(document: dict[str, Any]) -> str:
    """Build the replay page. The same document gives the same bytes."""
    style, player, script = map(read_part, ("replay.css", "replay_player.js", "replay.js"))
    scenario = scenario_of(document)
    drawn = {**vars(map_of(scenario)), "foothold": scenario.start, "ot_server": scenario.target}
    return fill("replay.html", style=style, player=player, script=script, data=as_data(document | {"map": drawn}))


def write_replay(path: Path, document: dict[str, Any]) -> None:
    """Write the page; its folder is made if need be."""
    with errors.writing(path, "; choose another place with --out", errors.ConfigError):
        path.parent.mkdir(exist_ok=True)
        files.write_atomically(path, replay_page(document).encode())


def replay_lines(document: dict[str, Any], *, turns: bool) -> list[str]:
    """Return what is replayed, every episode and why it earned what it did; turns: a few lines for each turn, too."""
    lines, hosts = [_headline(document)], [host["name"] for host in document["hosts"]]
    for episode in document["episodes"]:
        lines += ["", _episode_line(episode), episode["why"]] if turns else [_episode_line(episode), f"  {episode['why']}"]
        for step in episode["steps"][1:] if turns else ():
            changed = [change["workflow"] for change in document["changes"] if change["step"] == step["step"]]
            lines += [f"from here on the order is {' > '.join(order)}" for order in changed]
            lines += _step_lines(step, hosts)
    if "beside" in document:
        first, *others = replay_lines(document["beside"], turns=turns)
        lines += [*([""] if turns else []), f"beside: {first}", *others]
    return lines


def _headline(document: dict[str, Any]) -> str:
    """Say what is replayed, in one line."""
    order, played = document["workflow"], document["played"]
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


def _episode_line(episode: dict[str, Any]) -> str:
    """Say an episode's name and what came of it."""
    repairs = f", {episode['violations']} of {episode['judged']} judged repairs out of order" if episode["judged"] else ""
    impacts = f", {episode['impacts']} impacts" if episode["impacts"] else ""
    who = f"episode {episode['number']} against {episode['red_agent']}"
    return f"{episode['label']}: {who}: return {tenths(episode['return10'])}{repairs}{impacts}"


def _step_lines(step: dict[str, Any], hosts: list[str]) -> list[str]:
    """Return what red and blue did, and what is to be said of the hosts: nothing of those that are clean and quiet."""

    def listed(words: list[str]) -> str:
        return ", ".join(f"{name} {word}" for name, word in zip(hosts, words, strict=False) if word not in ("", "none"))

    verdict = step["verdict"]
    judged = f"   [{verdict['kind']}: {verdict['reason']}]" if verdict else ""
    costs = ", ".join(f"{cost['what']} {tenths(cost['tenths'])}" for cost in step["costs"]) or "nothing"
    believed = [
        ("" if belief == "clean" and activity == "none" else belief) + ("" if activity == "none" else f" ({activity} now)")
        for belief, activity in zip(step["belief"], step["activity"], strict=True)
    ]
    by_red = listed(step["red_belief"])
    shield = f"suspected {', '.join(step['suspected'])}; forbade repairs of {', '.join(step['forbidden'])}"
    rows = [
        ("red", step["red"] + outcome(step["red_worked"])),
        ("blue", step["blue"] + outcome(step["blue_worked"]) + judged),
        ("true", listed(step["access"])),
        ("thinks", f"red: {by_red}" if by_red else ""),
        ("seen", listed(believed)),
        ("decoys", listed([" ".join(map(str, ports)) for ports in step["decoys"]])),
        ("memory", "; ".join(f"{whom} {what}" for whom, what in step["remembered"].items())),
        ("shield", shield if step["forbidden"] else ""),
        ("cost", f"{costs}; reward {tenths(step['reward10'])}, return {tenths(step['return10'])}"),
    ]
    rows = [(name, words) for name, words in rows if words]
    return [f"{step['step'] if i == 0 else '':>4}  {name:6} {words}" for i, (name, words) in enumerate(rows)]
