"""Why an episode earned what it did, in one sentence. T steps."""

from collections import Counter
from collections.abc import Sequence

from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.reporter.turn import Turn, tenths
from fixfirst.reporter.verdicts import some

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


def explain_return(label: str, turns: Sequence[Turn], mean: float, episodes: int, scenario: Scenario = CAGE2) -> str:
    """Say what cost most in an episode, since when, and whether blue saw it.

    turns: [T + 1]; mean: return of all `episodes` that were played with it.
    """
    return10 = turns[-1]["return10"]
    gap = return10 / 10 - mean
    lead = _LEADS.get(label, "One of {} episodes").format(f"{episodes:,}")
    if episodes > 1:
        lead += f", {abs(gap):.1f} {'above' if gap >= 0 else 'below'} the mean"
    if not return10:
        return f"{lead}: nothing was lost."
    steps_of: dict[str, list[int]] = {}  # what cost something -> in which steps
    lost: Counter[str] = Counter()
    for turn in turns:
        for cost in turn["costs"]:
            steps_of.setdefault(cost["what"], []).append(turn["step"])
            lost[cost["what"]] += cost["tenths"]
    dearest, *others = sorted(lost, key=lambda what: (lost[what], what))[:_MOST_CAUSES]
    causes = [f"{_cause(dearest, steps_of[dearest], turns, scenario)} ({tenths(lost[dearest])} of {tenths(return10)})"]
    for what in others:
        if lost[what] <= _ENOUGH * return10:
            causes.append(f"{_cause(what, steps_of[what], turns, scenario)} ({tenths(lost[what])})")
    return f"{lead}: {'; and '.join(causes)}."


def _cause(what: str, steps: Sequence[int], turns: Sequence[Turn], scenario: Scenario) -> str:
    if what == "restore":
        targets = Counter(str(turns[step]["blue_target"]) for step in steps)
        ((host, count),) = targets.most_common(1)
        return f"blue spent {some(len(steps), 'Restore')}" + (
            f", {count} of these on {host}" if len(targets) > 1 else f" of {host}"
        )
    if what == "impact":
        since = steps[0]
        while since > 0 and turns[since - 1]["access"][scenario.target_id] != "none":
            since -= 1
        stopped = f"the OT service was stopped for {some(len(steps), 'step')} from step {steps[0]} on"
        return f"{stopped}, red being on {scenario.target} since step {since}"
    first, last = _longest(steps)
    length = last - first + 1
    held = f"red held {what} for {some(len(steps), 'step')}"
    if length < len(steps):
        held += f", the longest time from step {first} to {last}"
    else:
        held += f", from step {first} to {last}" if length > 1 else f", in step {first}"
    unseen = sum(turns[step]["belief"][scenario.host_ids[what]] == "clean" for step in range(first, last + 1))
    if unseen == length:
        return f"{held}, and blue believed it clean all the while"
    return f"{held}, and blue believed it clean in {unseen} of these" if unseen else f"{held}, as blue knew"


def _longest(steps: Sequence[int]) -> tuple[int, int]:
    """Return the first and last of the longest stretch of consecutive steps; of several, the first."""
    best = now = steps[0], steps[0]
    for step in steps[1:]:
        now = (now[0], step) if step == now[1] + 1 else (step, step)
        best = max(best, now, key=lambda stretch: stretch[1] - stretch[0])
    return best
