"""What both sides do habitually in many episodes, in sentences. T steps, B episodes."""

from collections.abc import Mapping

import numpy as np

from fixfirst.game import red_view, state
from fixfirst.game.scenario import Scenario
from fixfirst.play.rollout import Duel, Rollout

_OFTEN = 0.1  # share of red's turns from which on a choice is named
_HALF = 0.5  # share of repairs of a host that nobody held, likewise
_MANY = 5.0  # repairs of a host per episode, likewise
_DOES = {
    state.RedVerb.DISCOVER: "discovers",
    state.RedVerb.SCAN: "scans",
    state.RedVerb.EXPLOIT: "attacks",
    state.RedVerb.ESCALATE: "escalates on",
    state.RedVerb.IMPACT: "stops the service of",
}


def describe_duel(duel: Duel, spec: red_view.RedSpec) -> tuple[str, ...]:
    """Return sentences on red's most frequent choices, blue's most frequent repairs, and how episodes end."""
    counts = np.bincount(duel.red.choices.ravel(), minlength=spec.actions)
    return _sentences(duel.blue, {spec.choices[n]: int(count) for n, count in enumerate(counts) if count}, spec.scenario)


def describe_turns(blue: Rollout, turns: np.ndarray, scenario: Scenario) -> tuple[str, ...]:
    """Return the same of episodes whose turns [T + 1, B] were kept, whoever attacked."""
    pairs, counts = np.unique(turns[1:][["red_verb", "red_target"]].ravel(), return_counts=True)
    choices = [red_view.RedChoice(state.RedVerb(int(verb)), int(target)) for verb, target in pairs.tolist()]
    return _sentences(blue, dict(zip(choices, counts.tolist(), strict=True)), scenario)


def _sentences(blue: Rollout, counts: Mapping[red_view.RedChoice, int], scenario: Scenario) -> tuple[str, ...]:
    sentences = [_of_red(counts, scenario), *_of_blue(blue, scenario)]
    # The stopped service: nothing else costs as much in one turn.
    stopped = float((blue.rewards10[-1] <= -round(10 * scenario.ot_cost)).mean())
    if stopped >= 0.01:
        sentences.append(f"the OT service ends stopped in {100 * stopped:.0f} % of the episodes")
    return tuple(f"{text[:1].upper()}{text[1:]}." for text in sentences)


def _of_red(counts: Mapping[red_view.RedChoice, int], scenario: Scenario) -> str:
    turns = sum(counts.values())
    often = [n for n in sorted(counts, key=lambda choice: -counts[choice])[:3] if counts[n] >= _OFTEN * turns]
    shares = [f"in {100 * counts[choice] / turns:.0f} % of its turns it {_does(choice, scenario)}" for choice in often]
    return ", ".join(shares) or "it does many things, none of them in a tenth of its turns"


def _does(choice: red_view.RedChoice, scenario: Scenario) -> str:
    if choice.verb == state.RedVerb.SLEEP:
        return "sleeps"
    targets = scenario.subnet_names if choice.verb == state.RedVerb.DISCOVER else scenario.host_names
    weapon = f" by {scenario.exploit_names[choice.wish]}" if choice.wish >= 0 else ""
    return f"{_DOES[choice.verb]} {targets[choice.target]}{weapon}"


def _of_blue(blue: Rollout, scenario: Scenario) -> list[str]:
    """Return a clause for each of the two hosts that are repaired most often, if that is many times an episode."""
    clauses: list[tuple[float, str]] = []
    for number, action in enumerate(scenario.actions):
        if action.verb not in ("Restore", "Remove") or action.host is None:
            continue
        taken = blue.actions == number
        each = float(taken.sum()) / blue.actions.shape[1]
        if each >= _MANY:
            clean = float((blue.held[:-1][taken] >> scenario.host_ids[action.host] & 1 == 0).mean())
            does = "restores" if action.verb == "Restore" else "removes red from"
            empty = ", though nobody holds it" if clean >= 0.9 else ""
            if _HALF <= clean < 0.9:
                empty = f", though in {100 * clean:.0f} % of these nobody holds it"
            clauses.append((each, f"your policy {does} {action.host} {each:.0f} times an episode{empty}"))
    return [text for _, text in sorted(clauses, reverse=True)[:2]]
