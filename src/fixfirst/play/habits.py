"""What an attacker does and how a defender answers, in words: counted over the episodes of a duel."""

from collections.abc import Mapping

import numpy as np

from fixfirst.game import red_view
from fixfirst.game.scenario import Scenario
from fixfirst.game.state import RedVerb
from fixfirst.play.rollout import Duel, Rollout

OFTEN = 0.1  # share of red's turns from which on a choice is told
HALF = 0.5  # share of repairs of a host that nobody held, likewise
MANY = 5.0  # repairs of a host per episode, likewise
_DOES = {
    RedVerb.DISCOVER: "discovers",
    RedVerb.SCAN: "scans",
    RedVerb.EXPLOIT: "attacks",
    RedVerb.ESCALATE: "escalates on",
    RedVerb.IMPACT: "stops the service of",
}


def describe(duel: Duel, spec: red_view.RedSpec) -> tuple[str, ...]:
    """Return sentences on red's most frequent choices, blue's most frequent repairs, and how episodes end."""
    counts = np.bincount(duel.red.choices.ravel(), minlength=spec.actions)
    return _sentences(duel.blue, {spec.choices[n]: int(count) for n, count in enumerate(counts) if count}, spec.scenario)


def describe_turns(blue: Rollout, turns: np.ndarray, scenario: Scenario) -> tuple[str, ...]:
    """Return the same of episodes whose turns [T + 1, B] were kept, whoever attacked."""
    done, counts = np.unique(turns[1:][["red_verb", "red_target"]].ravel(), return_counts=True)
    choices = [red_view.RedChoice(RedVerb(int(verb)), int(target)) for verb, target in done.tolist()]
    return _sentences(blue, dict(zip(choices, counts.tolist(), strict=True)), scenario)


def _sentences(blue: Rollout, done: Mapping[red_view.RedChoice, int], scenario: Scenario) -> tuple[str, ...]:
    return (_red(done, scenario), *_blue(blue, scenario), *_end(blue, scenario))


def _red(done: Mapping[red_view.RedChoice, int], scenario: Scenario) -> str:
    turns = sum(done.values())
    often = [choice for choice in sorted(done, key=lambda choice: -done[choice])[:3] if done[choice] >= OFTEN * turns]
    if not often:
        return "It does many things, none of them in a tenth of its turns."
    told = [f"in {100 * done[choice] / turns:.0f} % of its turns it {_does(choice, scenario)}" for choice in often]
    return _sentence(", ".join(told))


def _does(choice: red_view.RedChoice, scenario: Scenario) -> str:
    if choice.verb == RedVerb.SLEEP:
        return "sleeps"
    places = scenario.subnet_names if choice.verb == RedVerb.DISCOVER else scenario.host_names
    weapon = f" by {scenario.exploit_names[choice.wish]}" if choice.wish >= 0 else ""
    return f"{_DOES[choice.verb]} {places[choice.target]}{weapon}"


def _blue(blue: Rollout, scenario: Scenario) -> list[str]:
    """Return a sentence per host that is repaired many times an episode."""
    actions, held = blue.actions, blue.held
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
            if HALF <= clean < 0.9:
                empty = f", though in {100 * clean:.0f} % of these nobody holds it"
            found.append((each, f"your policy {does} {action.host} {each:.0f} times an episode{empty}"))
    return [_sentence(text) for _, text in sorted(found, reverse=True)[:2]]


def _end(blue: Rollout, scenario: Scenario) -> list[str]:
    """Return a sentence if the OT service ends stopped; nothing else costs as much in one turn."""
    stopped = float((blue.rewards10[-1] <= -round(10 * scenario.ot_cost)).mean())
    return [f"The OT service ends stopped in {100 * stopped:.0f} % of the episodes."] if stopped >= 0.01 else []


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
