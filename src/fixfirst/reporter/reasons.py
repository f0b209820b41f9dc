"""Why, in words: why a repair is in order or not, why an episode earned what it did, what both sides do habitually.

T steps, B episodes. `orders/repairs.py` decides whether a repair is in order; here are the hosts behind it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Literal, TypedDict

import numpy as np

from fixfirst.game import red_view, state
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders import repairs
from fixfirst.orders.compliance import DEFAULT_JUDGING, Judging
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.play.rollout import Duel, Rollout
from fixfirst.reporter.texts import some
from fixfirst.reporter.turn import Turn, tenths

_ENOUGH = 0.2  # of what was lost: less than that is not mentioned
_MOST_CAUSES = 2
BESIDE = "beside"  # the label of an episode that was chosen for what another player did
_LEADS = {
    BESIDE: "Here",
    "worst": "The worst of {} episodes",
    "median": "In the middle of {} episodes",
    "best": "The best of {} episodes",
    "furthest apart": "Where the two are furthest apart in {} episodes",
}
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


class Verdict(TypedDict):
    """What the workflow says of one repair."""

    kind: Literal["in order", "violation", "not judged"]
    reason: str


def explain_repairs(
    actions: np.ndarray, held: np.ndarray, workflow: Workflow, judging: Judging = DEFAULT_JUDGING
) -> list[Verdict | None]:
    """Return a verdict per step of one episode, None where nothing was repaired. actions [T]; held [T + 1]: see `judge`."""
    judgement = repairs.judge(actions[:, None], held[:, None], workflow.ranks[None], workflow.scheme, judging)
    scheme, scenario = workflow.scheme, workflow.scheme.scenario
    ranks = [int(workflow.ranks[unit]) for unit in scheme.host_unit]  # of each host: 0 is to be fixed first

    def listed(hosts: Iterable[int]) -> str:
        by_unit = groupby(sorted(hosts, key=ranks.__getitem__), key=lambda host: scheme.host_unit[host])
        return " and ".join(f"{scheme.names[u]} {', '.join(scenario.host_names[h] for h in own)}" for u, own in by_unit)

    verdicts: list[Verdict | None] = []
    repaired: set[int] = set()  # ranks, so far
    for t, host in enumerate(scenario.repaired_hosts[action] for action in actions):
        if not judgement.repair[t, 0]:
            verdicts.append(None)
            continue
        needy, compliant = needy_hosts(int(held[t]), scheme, judging), bool(judgement.compliant[t, 0])
        above, below = ([h for h in needy if sign * ranks[h] > sign * ranks[host]] for sign in (-1, 1))
        if not judgement.judged[t, 0]:
            why = " while nothing needed repair"
        elif judging.rule == "fixed_types":
            skipped = [scheme.names[workflow.order[rank]] for rank in range(ranks[host]) if rank not in repaired]
            why = f" before any repair of {', '.join(skipped)}" if skipped else "; every type above it was fixed before"
        elif compliant:
            why = f" before {listed(below)}" if below else "; nothing more urgent was held"
        else:
            # Rule top: a type that needed nothing was fixed.
            above = above or [h for h in needy if ranks[h] == min(ranks[other] for other in needy)]
            why = f" while {listed(above)} {'was' if len(above) == 1 else 'were'} held"
        held_now = "" if host in needy else " (the foothold)" if host == scenario.start_id else " (not held)"
        kind: Literal["in order", "violation"] = "in order" if compliant else "violation"
        reason = f"fixed {listed([host])}{held_now}{why}"
        verdicts.append({"kind": kind if judgement.judged[t, 0] else "not judged", "reason": reason})
        repaired.add(ranks[host])
    return verdicts


def needy_hosts(held: int, scheme: UnitScheme, judging: Judging = DEFAULT_JUDGING) -> list[int]:
    """Return the hosts that need repair, of a set of held ones."""
    needs = held & ~judging.never_needy(scheme)
    return [host for host in range(len(scheme.host_unit)) if needs >> host & 1]


def explain_return(label: str, turns: Sequence[Turn], mean: float, episodes: int, scenario: Scenario = CAGE2) -> str:
    """Say what cost most in an episode, since when, and whether blue saw it.

    turns: [T + 1]; mean: return of all `episodes` that were played with it.
    """
    return10 = turns[-1]["return10"]
    gap = return10 / 10 - mean
    lead = _LEADS.get(label, "One of {} episodes").format(f"{episodes:,}")
    if episodes > 1:
        lead += f", {abs(gap):.1f} {'above' if gap >= 0 else 'below'} the mean"
    steps_of: dict[str, list[int]] = {}  # what cost something -> in which steps
    lost: Counter[str] = Counter()
    for turn in turns:
        for cost in turn["costs"]:
            steps_of.setdefault(cost["what"], []).append(turn["step"])
            lost[cost["what"]] += cost["tenths"]
    causes: list[str] = []
    for what in sorted(lost, key=lambda what: (lost[what], what))[:_MOST_CAUSES]:
        if lost[what] and (not causes or lost[what] <= _ENOUGH * return10):
            of = "" if causes else f" of {tenths(return10)}"
            causes.append(f"{_cause(what, steps_of[what], turns, scenario)} ({tenths(lost[what])}{of})")
    return f"{lead}: {'; and '.join(causes) or 'nothing was lost'}."


def _cause(what: str, steps: Sequence[int], turns: Sequence[Turn], scenario: Scenario) -> str:
    if what == "restore":
        targets = Counter(str(turns[step]["blue_target"]) for step in steps)
        ((host, count),) = targets.most_common(1)
        where = f", {count} of these on {host}" if len(targets) > 1 else f" of {host}"
        return f"blue spent {some(len(steps), 'Restore')}{where}"
    if what == "impact":
        since = steps[0]
        while since > 0 and turns[since - 1]["access"][scenario.target_id] != "none":
            since -= 1
        stopped = f"the OT service was stopped for {some(len(steps), 'step')} from step {steps[0]} on"
        return f"{stopped}, red being on {scenario.target} since step {since}"
    stretches = ([step for _, step in own] for _, own in groupby(enumerate(steps), lambda entry: entry[1] - entry[0]))
    longest = max(stretches, key=len)
    since_when = f"from step {longest[0]} to {longest[-1]}" if len(longest) > 1 else f"in step {longest[0]}"
    if len(longest) < len(steps):
        since_when = f"the longest time from step {longest[0]} to {longest[-1]}"
    unseen = sum(turns[step]["belief"][scenario.host_ids[what]] == "clean" for step in longest)
    how_long = "all the while" if unseen == len(longest) else f"in {unseen} of these"
    seen = f"and blue believed it clean {how_long}" if unseen else "as blue knew"
    return f"red held {what} for {some(len(steps), 'step')}, {since_when}, {seen}"


def describe_duel(duel: Duel, spec: red_view.RedSpec) -> tuple[str, ...]:
    """Return sentences on red's most frequent choices, blue's most frequent repairs, and how episodes end."""
    counts = np.bincount(duel.red.choices.ravel(), minlength=spec.actions)
    return _habits(duel.blue, {spec.choices[n]: int(count) for n, count in enumerate(counts) if count}, spec.scenario)


def describe_turns(blue: Rollout, turns: np.ndarray, scenario: Scenario) -> tuple[str, ...]:
    """Return the same of episodes whose turns [T + 1, B] were kept, whoever attacked."""
    pairs, counts = np.unique(turns[1:][["red_verb", "red_target"]].ravel(), return_counts=True)
    choices = [red_view.RedChoice(state.RedVerb(int(verb)), int(target)) for verb, target in pairs.tolist()]
    return _habits(blue, dict(zip(choices, counts.tolist(), strict=True)), scenario)


def _habits(blue: Rollout, counts: Mapping[red_view.RedChoice, int], scenario: Scenario) -> tuple[str, ...]:
    turns = sum(counts.values())
    often = [n for n in sorted(counts, key=lambda choice: -counts[choice])[:3] if counts[n] >= _OFTEN * turns]
    shares = [f"in {100 * counts[choice] / turns:.0f} % of its turns it {_does(choice, scenario)}" for choice in often]
    sentences = [", ".join(shares) or "it does many things, none of them in a tenth of its turns", *_of_blue(blue, scenario)]
    # The stopped service: nothing else costs as much in one turn.
    stopped = float((blue.rewards10[-1] <= -round(10 * scenario.ot_cost)).mean())
    if stopped >= 0.01:
        sentences.append(f"the OT service ends stopped in {100 * stopped:.0f} % of the episodes")
    return tuple(f"{text[:1].upper()}{text[1:]}." for text in sentences)


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
            where = "though" if clean >= 0.9 else f"though in {100 * clean:.0f} % of these"
            empty = f", {where} nobody holds it" if clean >= _HALF else ""
            clauses.append((each, f"your policy {does} {action.host} {each:.0f} times an episode{empty}"))
    return [text for _, text in sorted(clauses, reverse=True)[:2]]
