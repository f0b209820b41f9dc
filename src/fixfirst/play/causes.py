"""Why an episode earned what it did, in one sentence: what cost most, since when, and whether blue saw it."""

from collections.abc import Sequence

from fixfirst.game.drawing import tenths
from fixfirst.game.moment import Moment
from fixfirst.game.network import HOST_NAMES, OT_SERVER

ENOUGH = 0.2  # of what was lost: less than that is not mentioned
MOST_TOLD = 2
BESIDE = "beside"  # the label of an episode that was chosen for what another player did
_LEADS = {
    BESIDE: "Here",
    "worst": "The worst of {} episodes",
    "median": "In the middle of {} episodes",
    "best": "The best of {} episodes",
    "furthest apart": "Where the two are furthest apart in {} episodes",
}


def why(label: str, moments: Sequence[Moment], mean: float, episodes: int) -> str:
    """moments [T + 1] of an episode; mean: return of all `episodes` that were played with it."""
    earned10 = moments[-1].return10
    gap = earned10 / 10 - mean
    lead = _LEADS.get(label, "One of {} episodes").format(f"{episodes:,}")
    if episodes > 1:
        lead += f", {abs(gap):.1f} {'above' if gap >= 0 else 'below'} the mean"
    if not earned10:
        return f"{lead}: nothing was lost."
    steps_of: dict[str, list[int]] = {}  # what cost something -> in which steps
    lost: dict[str, int] = {}
    for moment in moments:
        for cost in moment.costs:
            steps_of.setdefault(cost.what, []).append(moment.step)
            lost[cost.what] = lost.get(cost.what, 0) + cost.tenths
    dearest = sorted(lost, key=lambda what: (lost[what], what))
    told = [what for what in dearest[:MOST_TOLD] if what == dearest[0] or lost[what] <= ENOUGH * earned10]
    causes = [
        f"{_cause(what, steps_of[what], moments)} ({tenths(lost[what])} of {tenths(earned10)})"
        if i == 0
        else f"{_cause(what, steps_of[what], moments)} ({tenths(lost[what])})"
        for i, what in enumerate(told)
    ]
    return f"{lead}: {'; and '.join(causes)}."


def _cause(what: str, steps: Sequence[int], moments: Sequence[Moment]) -> str:
    if what == "restore":
        targets = [str(moments[step].blue_target) for step in steps]
        most = max(dict.fromkeys(targets), key=targets.count)
        often = f", {targets.count(most)} of these on {most}" if len(set(targets)) > 1 else f" of {most}"
        return f"blue spent {_some(len(steps), 'Restore')}{often}"
    if what == "impact":
        server = HOST_NAMES[OT_SERVER]
        since = _held_since(OT_SERVER, steps[0], moments)
        stopped = f"the OT service stood still for {_some(len(steps), 'step')} from step {steps[0]} on"
        return f"{stopped}, red being on {server} since step {since}"
    begins, ends = _longest(steps)
    held = f"red held {what} for {_some(len(steps), 'step')}"
    if ends - begins + 1 < len(steps):
        held += f", the longest time from step {begins} to {ends}"
    elif len(steps) > 1:
        held += f", from step {begins} to {ends}"
    else:
        held += f", in step {begins}"
    host = HOST_NAMES.index(what)
    unseen = sum(moments[step].belief[host] == "clean" for step in range(begins, ends + 1))
    if unseen == ends - begins + 1:
        return f"{held}, and blue believed it clean all the while"
    return f"{held}, and blue believed it clean in {unseen} of these" if unseen else f"{held}, as blue knew"


def _longest(steps: Sequence[int]) -> tuple[int, int]:
    """The first and last of the longest stretch of consecutive steps; of several, the first."""
    best = begins = steps[0], steps[0]
    for step in steps[1:]:
        begins = (begins[0], step) if step == begins[1] + 1 else (step, step)
        if begins[1] - begins[0] > best[1] - best[0]:
            best = begins
    return best


def _held_since(host: int, step: int, moments: Sequence[Moment]) -> int:
    """The step in which red came to a host that it holds in this one."""
    while step > 0 and moments[step - 1].access[host] != "none":
        step -= 1
    return step


def _some(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
