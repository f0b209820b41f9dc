"""Looking at single episodes: played with their turns kept (`play` in `evaluation.py`), told in plain values.

They are the first ones that an evaluation of the same seed and purpose plays: what one watches is part of what was measured.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fixfirst.game.actions import ACTIONS, REPAIR_VERBS
from fixfirst.game.moment import Moment, moment_of
from fixfirst.game.network import FOOTHOLD, HOST_NAMES, HOSTS, NUM_HOSTS, SUBNETS
from fixfirst.game.settings import red_agent_names
from fixfirst.game.state import OBSERVATION_BITS, OTService, RedVerb, Success
from fixfirst.orders.compliance import DEFAULT_JUDGING, Judging
from fixfirst.orders.reasoning import Kind, Reason, needy_hosts, reasons
from fixfirst.orders.workflow import FIVE_TYPES, UnitScheme
from fixfirst.play.causes import BESIDE, why
from fixfirst.play.evaluation import Played
from fixfirst.play.role import PLAIN_ROLE, Role, bits_of


@dataclass(frozen=True)
class Step:
    """One turn of an episode; the first of an episode is its start, before anyone acts."""

    moment: Moment
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
    def moments(self) -> list[Moment]:
        """[T + 1]"""
        return [step.moment for step in self.steps]

    def count(self, kind: Kind) -> int:
        """How many repairs got this kind of verdict."""
        return sum(step.verdict is not None and step.verdict.kind == kind for step in self.steps)


def notable(played: Played, beside: Played | None = None) -> dict[str, int]:
    """The worst, the median and the best episode by return, as label -> number; fewer where fewer were played.

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


def tell(played: Played, label: str, number: int, judging: Judging = DEFAULT_JUDGING, role: Role = PLAIN_ROLE) -> Episode:
    """One of the episodes, turn by turn. role: of the policy that played."""
    assert played.turns is not None, "played without keep_turns"
    rollout, turns = played.rollout, played.turns[:, number]
    actions, held, rewards10 = rollout.actions[:, number], rollout.held[:, number], rollout.rewards10[:, number]
    scheme = rollout.workflows[0].scheme if rollout.workflows else FIVE_TYPES
    judged, remembered = _judged(played, number, judging), _remembered(played, number, role)
    shielded = _shielded(played, number, role)
    steps = [Step(moment_of(turns[0], played.variant), 0, (), (), (), False, False, None, False, remembered[0])]
    for t, turn in enumerate(turns[1:]):
        needy, repair = needy_hosts(int(held[t]), judging), ACTIONS[actions[t]].verb in REPAIR_VERBS
        steps.append(
            Step(
                moment=moment_of(turn, played.variant),
                reward10=int(rewards10[t]),
                needed=tuple(HOST_NAMES[host] for host in needy),
                suspected=shielded[t][0],
                forbidden=shielded[t][1],
                repair=repair,
                contested=repair and len({scheme.host_unit[host] for host in needy}) > 1,
                verdict=judged[t],
                impact=_impact(turn),
                remembered=remembered[t + 1],
            )
        )
    red_agent = red_agent_names()[turns[0]["red_agent"]]
    return Episode(label, number, red_agent, int(rewards10.sum()), tuple(steps))


def _judged(played: Played, number: int, judging: Judging) -> list[Reason | None]:
    """[T] what the workflow in force says of each step."""
    rollout = played.rollout
    actions, held = rollout.actions[:, number], rollout.held[:, number]
    if not rollout.workflows:
        return [None] * len(actions)
    found = reasons(actions, held, rollout.workflows[rollout.assigned[number]], judging)
    for change in played.changes:
        found[change.step - 1 :] = reasons(actions, held, rollout.workflows[change.workflow], judging)[change.step - 1 :]
    return found


def _remembered(played: Played, number: int, role: Role) -> list[dict[str, str]]:
    """[T + 1] what the policy remembered when it read each row of an episode."""
    rows, memory = played.rollout.found[:, number], role.memory
    if not memory.groups:
        return [{} for _ in rows]
    bits = bits_of(played.rollout.rows[rows], memory.inputs)[:, OBSERVATION_BITS:]
    return [memory.in_words(row) for row in bits.tolist()]


def _shielded(played: Played, number: int, role: Role) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """[T] hosts that blue had reason to repair when it chose, and the unit types whose repair its mask forbade."""
    found = played.rollout.found[:-1, number]
    if not role.shield or role.units is None:
        return [((), ())] * len(found)
    rows = played.rollout.rows[found]
    bits = bits_of(rows, role.memory.inputs + NUM_HOSTS)
    view = bits[:, :OBSERVATION_BITS].reshape(len(rows), NUM_HOSTS, -1)
    suspected = (bits[:, role.memory.inputs :] > 0) | (view[:, :, 2:].sum(axis=2) > 0)  # [T, H]: suspect, or not clean
    suspected[:, FOOTHOLD] = False
    by_unit = _repairs(role, role.units)
    allowed = role.allowed(rows)
    return [
        (
            tuple(HOST_NAMES[host] for host in np.flatnonzero(suspected[t])),
            tuple(name for name, choices in by_unit.items() if not allowed[t, choices].any()),
        )
        for t in range(len(rows))
    ]


def _repairs(role: Role, scheme: UnitScheme) -> dict[str, list[int]]:
    """The choices that repair a host of each unit type, where there are any."""
    found: dict[str, list[int]] = {}
    for choice, action in enumerate(role.action_set.actions):
        known = ACTIONS[action]
        if known.verb in REPAIR_VERBS and known.host is not None:
            found.setdefault(scheme.names[scheme.host_unit[HOST_NAMES.index(known.host)]], []).append(choice)
    return found


def _impact(turn: np.void) -> bool:
    worked = turn["red_verb"] == RedVerb.IMPACT and turn["red_success"] == Success.TRUE
    return bool(worked and turn["ot"] == OTService.STOPPED)  # harmless once the service was restored


# ---------------------------------------------------------------- as one plain document


def document(played: Played, episodes: Sequence[Episode], facts: dict[str, Any], beside: bool = False) -> dict[str, Any]:
    """Everything a page or a text needs, as JSON values.

    facts: what the reader should know about the policy. beside: the episodes were chosen for what another player did.
    """
    workflows = played.rollout.workflows
    scheme = workflows[0].scheme if workflows else FIVE_TYPES
    returns = played.returns
    return {
        **facts,
        "variant": played.variant,
        "workflow": [scheme.names[unit] for unit in workflows[0].order] if workflows else None,
        "changes": [
            {"step": change.step, "workflow": [scheme.names[unit] for unit in workflows[change.workflow].order]}
            for change in played.changes
        ],
        "played": {"episodes": len(returns), "mean_return": float(returns.mean())},
        "hosts": [
            {"name": host.name, "subnet": SUBNETS[host.subnet], "unit": scheme.names[unit], "value": host.value}
            for host, unit in zip(HOSTS, scheme.host_unit, strict=True)
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
                "why": why(BESIDE if beside else episode.label, episode.moments, float(returns.mean()), len(returns)),
                "steps": [_plain(step) for step in episode.steps],
            }
            for episode in episodes
        ],
    }


def _plain(step: Step) -> dict[str, Any]:
    told, moment = dict(vars(step)), step.moment  # `asdict` would copy every value, which takes longer than to play it
    del told["moment"]
    told["verdict"] = None if step.verdict is None else asdict(step.verdict)
    return vars(moment) | {"costs": tuple(map(asdict, moment.costs))} | told
