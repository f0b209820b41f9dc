"""Episodes in words: turn by turn, why each earned what it did, why a repair is in order, and what both sides do habitually.

Single episodes are the first ones that an evaluation of the same seed and purpose plays: what one watches was measured.
Whether a repair is in order, `orders/repairs.py` decides; here are the hosts behind it. T steps, H hosts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from fixfirst.game import parts, red_view, state
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders import repairs
from fixfirst.orders.compliance import DEFAULT_JUDGING, Judging, Rule
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.play.evaluation import EpisodeBatch
from fixfirst.play.rollout import Duel, Rollout
from fixfirst.policy.spec import PLAIN_SPEC, PolicySpec, bits_of
from fixfirst.reporter import drawing

# ---------------------------------------------------------------- why a repair is in order


VerdictKind = Literal["in order", "violation", "not judged"]


@dataclass(frozen=True)
class Reason:
    """What the workflow says of one repair."""

    kind: VerdictKind
    reason: str


def explain_repairs(
    actions: np.ndarray, held: np.ndarray, workflow: Workflow, judging: Judging = DEFAULT_JUDGING
) -> list[Reason | None]:
    """Return a reason per step of one episode, None where nothing was repaired. actions [T]; held [T + 1]: see `judge`."""
    judgement = repairs.judge(actions[:, None], held[:, None], workflow.ranks[None], workflow.scheme, judging)
    found: list[Reason | None] = []
    repaired_before: set[int] = set()  # unit types
    scheme = workflow.scheme
    for t, host in enumerate(scheme.scenario.repaired_hosts[action] for action in actions):
        if not judgement.repair[t, 0]:
            found.append(None)
            continue
        case = _Case(host, needy_hosts(int(held[t]), scheme, judging), workflow, frozenset(repaired_before))
        if not judgement.judged[t, 0]:
            found.append(Reason("not judged", f"fixed {case.target} while nothing needed repair"))
        elif judgement.compliant[t, 0]:
            found.append(Reason("in order", case.why_in_order(judging.rule)))
        else:
            found.append(Reason("violation", case.why_not(judging.rule)))
        repaired_before.add(scheme.host_unit[host])
    return found


def needy_hosts(held: int, scheme: UnitScheme, judging: Judging = DEFAULT_JUDGING) -> list[int]:
    """Return the hosts that need repair, of a set of held ones."""
    needs = held & ~repairs.never_needy(scheme, judging)
    return [host for host in range(len(scheme.host_unit)) if needs >> host & 1]


@dataclass(frozen=True)
class _Case:
    """A repair and what needed repair when blue chose it."""

    host: int
    needy: list[int]
    workflow: Workflow
    repaired_before: frozenset[int]

    @property
    def target(self) -> str:
        if self.host in self.needy:
            return self._list([self.host])
        return self._list([self.host]) + (
            " (the foothold)" if self.host == self.workflow.scheme.scenario.start_id else " (not held)"
        )

    def why_in_order(self, rule: Rule) -> str:
        if rule == "fixed_types":
            return f"fixed {self.target}; every type above it was fixed before"
        waiting = [host for host in self.needy if self._rank(host) > self._rank(self.host)]
        return f"fixed {self.target}" + (f" before {self._list(waiting)}" if waiting else "; nothing more urgent was held")

    def why_not(self, rule: Rule) -> str:
        names, ranks = self.workflow.scheme.names, self.workflow.ranks
        if rule == "fixed_types":
            skipped = [u for u in self.workflow.order if ranks[u] < self._rank(self.host) and u not in self.repaired_before]
            return f"fixed {self.target} before any repair of {', '.join(names[unit] for unit in skipped)}"
        above = [host for host in self.needy if self._rank(host) < self._rank(self.host)]
        if not above:  # rule top: a type that needed nothing was fixed
            top = min(self._rank(host) for host in self.needy)
            above = [host for host in self.needy if self._rank(host) == top]
        return f"fixed {self.target} while {self._list(above)} {'was' if len(above) == 1 else 'were'} held"

    def _rank(self, host: int) -> int:
        return int(self.workflow.ranks[self.workflow.scheme.host_unit[host]])

    def _list(self, hosts: list[int]) -> str:
        """Unit types in their order, each with its hosts."""
        units, known = self.workflow.scheme.host_unit, self.workflow.scheme.scenario.host_names
        by_unit = {unit: [known[host] for host in hosts if units[host] == unit] for unit in self.workflow.order}
        return " and ".join(
            f"{self.workflow.scheme.names[unit]} {', '.join(names)}" for unit, names in by_unit.items() if names
        )


# ---------------------------------------------------------------- turn by turn


@dataclass(frozen=True)
class Step:
    """One turn of an episode; the first of an episode is its start, before anyone acts."""

    moment: drawing.TurnSummary
    reward10: int  # as the world gave it
    needed: tuple[str, ...]  # hosts that needed repair when blue chose its action
    suspected: tuple[str, ...]  # hosts that blue suspected or believed not clean then, where the order is a mask
    forbidden: tuple[str, ...]  # unit types whose repair that mask forbade
    repair: bool  # blue removed or restored something
    contested: bool  # and two or more unit types needed repair
    verdict: Reason | None  # of a repair, where there is a workflow
    impact: bool  # red stopped the OT service in this turn, or kept it stopped
    remembered: dict[str, str]  # what the policy knew of whom before it saw this moment, where it remembers anything


@dataclass(frozen=True)
class Episode:
    """One episode, T + 1 steps."""

    label: str  # worst, median, best
    number: int  # among those played, from 0
    red_agent: str
    return10: int
    steps: tuple[Step, ...]

    @property
    def moments(self) -> list[drawing.TurnSummary]:
        """[T + 1]"""
        return [step.moment for step in self.steps]

    def count(self, kind: VerdictKind) -> int:
        """Return how many repairs got this kind of verdict."""
        return sum(step.verdict is not None and step.verdict.kind == kind for step in self.steps)


def notable(played: EpisodeBatch, beside: EpisodeBatch | None = None) -> dict[str, int]:
    """Return the worst, the median and the best episode by return, as label -> number; fewer where fewer were played.

    beside: of another player; then also the one in which the two are furthest apart.
    """
    returns10 = played.rollout.rewards10.sum(axis=0)
    order = np.argsort(returns10, kind="stable").tolist()
    if len(order) == 1:
        return {"only": 0}
    middle = {"median": order[(len(order) - 1) // 2]} if len(order) > 2 else {}
    chosen = {"worst": order[0], **middle, "best": order[-1]}
    if beside is not None:
        apart = int(np.abs(beside.rollout.rewards10.sum(axis=0) - returns10).argmax())
        if apart not in chosen.values():
            chosen["furthest apart"] = apart
    return chosen


def describe_episode(
    played: EpisodeBatch, label: str, number: int, judging: Judging = DEFAULT_JUDGING, spec: PolicySpec = PLAIN_SPEC
) -> Episode:
    """Return one of the episodes, turn by turn. spec: of the policy that played."""
    assert played.turns is not None, "played without keep_turns"
    scenario, scheme = played.game.scenario, _grouping(played)
    rollout, turns = played.rollout, played.turns[:, number]
    actions, held, rewards10 = rollout.actions[:, number], rollout.held[:, number], rollout.rewards10[:, number]
    judged, remembered = _judged(played, number, judging), _remembered(played, number, spec)
    shielded = _shielded(played, number, spec)
    steps = [
        Step(
            drawing.summarise_turn(turns[0], played.variant, scenario),
            0,
            (),
            (),
            (),
            False,
            False,
            None,
            False,
            remembered[0],
        )
    ]
    for t, turn in enumerate(turns[1:]):
        needy, repair = needy_hosts(int(held[t]), scheme, judging), scenario.repaired_hosts[actions[t]] >= 0
        steps.append(
            Step(
                moment=drawing.summarise_turn(turn, played.variant, scenario),
                reward10=int(rewards10[t]),
                needed=tuple(scenario.host_names[host] for host in needy),
                suspected=shielded[t][0],
                forbidden=shielded[t][1],
                repair=repair,
                contested=repair and len({scheme.host_unit[host] for host in needy}) > 1,
                verdict=judged[t],
                impact=_impact(turn),
                remembered=remembered[t + 1],
            )
        )
    red_agent = played.game.red_name(int(turns[0]["red_agent"]))
    return Episode(label, number, red_agent, int(rewards10.sum()), tuple(steps))


def _grouping(played: EpisodeBatch) -> UnitScheme:
    """Return the unit types of the order that was followed, or those of the scenario."""
    workflows = played.rollout.workflows
    return workflows[0].scheme if workflows else UnitScheme.by_type(played.game.scenario)


def _judged(played: EpisodeBatch, number: int, judging: Judging) -> list[Reason | None]:
    """Return what the workflow in force says of each step [T]."""
    rollout = played.rollout
    actions, held = rollout.actions[:, number], rollout.held[:, number]
    if not rollout.workflows:
        return [None] * len(actions)
    found = explain_repairs(actions, held, rollout.workflows[rollout.assigned[number]], judging)
    for change in played.changes:
        found[change.step - 1 :] = explain_repairs(actions, held, rollout.workflows[change.workflow], judging)[
            change.step - 1 :
        ]
    return found


def _remembered(played: EpisodeBatch, number: int, spec: PolicySpec) -> list[dict[str, str]]:
    """Return what the policy remembered when it read each row [T + 1] of an episode."""
    rows, memory = played.rollout.found[:, number], spec.memory
    if not memory.groups:
        return [{} for _ in rows]
    bits = bits_of(played.rollout.rows[rows], memory.inputs)[:, spec.scenario.observation_bits :]
    return [memory.in_words(row) for row in bits.tolist()]


def _shielded(played: EpisodeBatch, number: int, spec: PolicySpec) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the hosts that blue had reason to repair in each step [T], and the unit types whose repair its mask forbade."""
    found = played.rollout.found[:-1, number]
    if not spec.shield or spec.units is None:
        return [((), ())] * len(found)
    rows = played.rollout.rows[found]
    scenario = spec.scenario
    bits = bits_of(rows, spec.memory.inputs + scenario.num_hosts)
    view = bits[:, : scenario.observation_bits].reshape(len(rows), -1, parts.BITS_PER_HOST)
    suspected = (bits[:, spec.memory.inputs :] > 0) | (view[:, :, 2:].sum(axis=2) > 0)  # [T, H]: suspect, or not clean
    suspected[:, scenario.start_id] = False
    by_unit = _repairs(spec, spec.units)
    allowed = spec.allowed(rows)
    return [
        (
            tuple(scenario.host_names[host] for host in np.flatnonzero(suspected[t])),
            tuple(name for name, choices in by_unit.items() if not allowed[t, choices].any()),
        )
        for t in range(len(rows))
    ]


def _repairs(spec: PolicySpec, scheme: UnitScheme) -> dict[str, list[int]]:
    """Return the choices that repair a host of each unit type, where there are any."""
    found: dict[str, list[int]] = {}
    for choice, action in enumerate(spec.action_set.actions):
        host = spec.scenario.repaired_hosts[action]
        if host >= 0:
            found.setdefault(scheme.names[scheme.host_unit[host]], []).append(choice)
    return found


def _impact(turn: np.void) -> bool:
    worked = turn["red_verb"] == state.RedVerb.IMPACT and turn["red_success"] == state.Success.TRUE
    return bool(worked and turn["ot"] == state.OTService.STOPPED)  # harmless once the service was restored


# ---------------------------------------------------------------- why it earned what it did

_ENOUGH = 0.2  # of what was lost: less than that is not mentioned
MOST_CAUSES = 2
BESIDE = "beside"  # the label of an episode that was chosen for what another player did
_LEADS = {
    BESIDE: "Here",
    "worst": "The worst of {} episodes",
    "median": "In the middle of {} episodes",
    "best": "The best of {} episodes",
    "furthest apart": "Where the two are furthest apart in {} episodes",
}


def explain_return(
    label: str, moments: Sequence[drawing.TurnSummary], mean: float, episodes: int, scenario: Scenario = CAGE2
) -> str:
    """Say in one sentence why an episode earned what it did: what cost most, since when, and whether blue saw it.

    moments: [T + 1]; mean: return of all `episodes` that were played with it.
    """
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
    named = [what for what in dearest[:MOST_CAUSES] if what == dearest[0] or lost[what] <= _ENOUGH * earned10]
    of_all = f" of {drawing.tenths(earned10)}"
    causes = [
        f"{_cause(what, steps_of[what], moments, scenario)} "
        f"({drawing.tenths(lost[what])}{of_all if what == dearest[0] else ''})"
        for what in named
    ]
    return f"{lead}: {'; and '.join(causes)}."


def _cause(what: str, steps: Sequence[int], moments: Sequence[drawing.TurnSummary], scenario: Scenario) -> str:
    if what == "restore":
        targets = [str(moments[step].blue_target) for step in steps]
        most = max(dict.fromkeys(targets), key=targets.count)
        often = f", {targets.count(most)} of these on {most}" if len(set(targets)) > 1 else f" of {most}"
        return f"blue spent {_some(len(steps), 'Restore')}{often}"
    if what == "impact":
        since = _held_since(scenario.target_id, steps[0], moments)
        stopped = f"the OT service was stopped for {_some(len(steps), 'step')} from step {steps[0]} on"
        return f"{stopped}, red being on {scenario.target} since step {since}"
    begins, ends = _longest(steps)
    held = f"red held {what} for {_some(len(steps), 'step')}"
    if ends - begins + 1 < len(steps):
        held += f", the longest time from step {begins} to {ends}"
    elif len(steps) > 1:
        held += f", from step {begins} to {ends}"
    else:
        held += f", in step {begins}"
    host = scenario.host_ids[what]
    unseen = sum(moments[step].belief[host] == "clean" for step in range(begins, ends + 1))
    if unseen == ends - begins + 1:
        return f"{held}, and blue believed it clean all the while"
    return f"{held}, and blue believed it clean in {unseen} of these" if unseen else f"{held}, as blue knew"


def _longest(steps: Sequence[int]) -> tuple[int, int]:
    """Return the first and last of the longest stretch of consecutive steps; of several, the first."""
    best = begins = steps[0], steps[0]
    for step in steps[1:]:
        begins = (begins[0], step) if step == begins[1] + 1 else (step, step)
        if begins[1] - begins[0] > best[1] - best[0]:
            best = begins
    return best


def _held_since(host: int, step: int, moments: Sequence[drawing.TurnSummary]) -> int:
    """Return the step in which red came to a host that it holds in this one."""
    while step > 0 and moments[step - 1].access[host] != "none":
        step -= 1
    return step


def _some(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


# ---------------------------------------------------------------- as one plain document


def document(
    played: EpisodeBatch, episodes: Sequence[Episode], facts: dict[str, Any], beside: bool = False
) -> dict[str, Any]:
    """Return everything a page or a text needs, as JSON values.

    facts: what the reader should know about the policy. beside: the episodes were chosen for what another player did.
    """
    workflows = played.rollout.workflows
    scheme, scenario, returns = _grouping(played), played.game.scenario, played.returns
    return {
        **facts,
        **({} if scenario == CAGE2 else {"scenario": scenario.as_dict()}),
        **({"reward": scenario.stakes} if scenario.own_reward else {}),
        "variant": played.variant,
        "workflow": [scheme.names[unit] for unit in workflows[0].order] if workflows else None,
        "changes": [
            {"step": change.step, "workflow": [scheme.names[unit] for unit in workflows[change.workflow].order]}
            for change in played.changes
        ],
        "played": {"episodes": len(returns), "mean_return": float(returns.mean())},
        "hosts": [
            {
                "name": host.name,
                "subnet": scenario.subnet_names[host.subnet],
                "unit": scheme.names[unit],
                "value": host.value,
            }
            for host, unit in zip(scenario.hosts, scheme.host_unit, strict=True)
        ],
        "episodes": [
            {
                "label": episode.label,
                "number": episode.number,
                "red_agent": episode.red_agent,
                "return10": episode.return10,
                "violations": episode.count("violation"),
                "judged": episode.count("violation") + episode.count("in order"),
                "impacts": sum(step.impact for step in episode.steps),
                "why": explain_return(
                    BESIDE if beside else episode.label, episode.moments, float(returns.mean()), len(returns), scenario
                ),
                "steps": [_plain(step) for step in episode.steps],
            }
            for episode in episodes
        ],
    }


def _plain(step: Step) -> dict[str, Any]:
    values, moment = dict(vars(step)), step.moment  # `asdict` would copy every value, which takes longer than to play it
    del values["moment"]
    values["verdict"] = None if step.verdict is None else asdict(step.verdict)
    return vars(moment) | {"costs": tuple(map(asdict, moment.costs))} | values


# ---------------------------------------------------------------- habits of both sides


OFTEN = 0.1  # share of red's turns from which on a choice is told
HALF = 0.5  # share of repairs of a host that nobody held, likewise
MANY = 5.0  # repairs of a host per episode, likewise
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
    done, counts = np.unique(turns[1:][["red_verb", "red_target"]].ravel(), return_counts=True)
    choices = [red_view.RedChoice(state.RedVerb(int(verb)), int(target)) for verb, target in done.tolist()]
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
    if choice.verb == state.RedVerb.SLEEP:
        return "sleeps"
    places = scenario.subnet_names if choice.verb == state.RedVerb.DISCOVER else scenario.host_names
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
