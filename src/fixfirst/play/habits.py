"""What an attacker does and how a defender answers, in words: counted over the episodes of a duel."""

import numpy as np

from fixfirst.game.red_view import RedSpec
from fixfirst.game.state import RedVerb
from fixfirst.play.duel import Duel

OFTEN = 0.1  # share of red's turns from which on a choice is told
MANY = 5.0  # repairs of a host per episode, likewise
_DOES = {
    RedVerb.DISCOVER: "discovers",
    RedVerb.SCAN: "scans",
    RedVerb.EXPLOIT: "attacks",
    RedVerb.ESCALATE: "escalates on",
    RedVerb.IMPACT: "stops the service of",
}


def describe(duel: Duel, spec: RedSpec) -> tuple[str, ...]:
    """Return sentences on red's most frequent choices, blue's most frequent repairs, and how episodes end."""
    return (_red(duel, spec), *_blue(duel, spec), *_end(duel, spec))


def _red(duel: Duel, spec: RedSpec) -> str:
    counts = np.bincount(duel.red.choices.ravel(), minlength=spec.actions) / duel.red.choices.size
    often = [choice for choice in np.argsort(-counts, kind="stable")[:3] if counts[choice] >= OFTEN]
    if not often:
        return "It does many things, none of them in a tenth of its turns."
    told = [f"in {100 * counts[choice]:.0f} % of its turns it {_does(spec, int(choice))}" for choice in often]
    return _sentence(", ".join(told))


def _does(spec: RedSpec, number: int) -> str:
    choice = spec.choices[number]
    if choice.verb == RedVerb.SLEEP:
        return "sleeps"
    places = spec.scenario.subnet_names if choice.verb == RedVerb.DISCOVER else spec.scenario.host_names
    weapon = f" by {spec.scenario.exploit_names[choice.wish]}" if choice.wish >= 0 else ""
    return f"{_DOES[choice.verb]} {places[choice.target]}{weapon}"


def _blue(duel: Duel, spec: RedSpec) -> list[str]:
    """Return a sentence per host that is repaired many times an episode."""
    scenario, actions, held = spec.scenario, duel.blue.actions, duel.blue.held
    found: list[tuple[float, str]] = []
    for number, action in enumerate(scenario.actions):
        if action.verb not in ("Restore", "Remove") or action.host is None:
            continue
        taken = actions == number
        each = float(taken.sum()) / actions.shape[1]
        if each >= MANY:
            clean = float((held[:-1][taken] >> scenario.host_ids[action.host] & 1 == 0).mean())
            does = "restores" if action.verb == "Restore" else "removes red from"
            empty = ", though nobody holds it" if clean >= 0.9 else ""
            found.append((each, f"your policy {does} {action.host} {each:.0f} times an episode{empty}"))
    return [_sentence(text) for _, text in sorted(found, reverse=True)[:2]]


def _end(duel: Duel, spec: RedSpec) -> list[str]:
    """Return a sentence if the OT service ends stopped; nothing else costs as much in one turn."""
    stopped = float((duel.blue.rewards10[-1] <= -round(10 * spec.scenario.ot_cost)).mean())
    return [f"The OT service ends stopped in {100 * stopped:.0f} % of the episodes."] if stopped >= 0.01 else []


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
