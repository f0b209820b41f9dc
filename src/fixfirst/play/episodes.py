"""Looking at single episodes: played with their turns kept (`play` in `evaluation.py`), told in plain values.

They are the first ones that an evaluation of the same seed and purpose plays: what one watches is part of what was measured.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fixfirst.game import (
    HOST_NAMES,
    HOSTS,
    OBSERVATION_BITS,
    SUBNETS,
    MemoryScheme,
    Moment,
    OTService,
    RedVerb,
    Success,
    moment_of,
    red_agent_names,
)
from fixfirst.orders import DEFAULT_JUDGING, FIVE_TYPES, Judging, Kind, Reason, needy_hosts, reasons
from fixfirst.play.evaluation import Played
from fixfirst.play.role import bits_of


@dataclass(frozen=True)
class Step:
    """One turn of an episode; the first of an episode is its start, before anyone acts."""

    moment: Moment
    reward10: int  # as the world gave it
    needed: tuple[str, ...]  # hosts that needed repair when blue chose its action
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

    def count(self, kind: Kind) -> int:
        """How many repairs got this kind of verdict."""
        return sum(step.verdict is not None and step.verdict.kind == kind for step in self.steps)


def notable(played: Played) -> dict[str, int]:
    """The worst, the median and the best episode by return, as label -> number; fewer where fewer were played."""
    returns10 = played.rollout.rewards10.sum(axis=0)
    order = np.argsort(returns10, kind="stable").tolist()
    if len(order) == 1:
        return {"only": 0}
    middle = {"median": order[(len(order) - 1) // 2]} if len(order) > 2 else {}
    return {"worst": order[0], **middle, "best": order[-1]}


def tell(
    played: Played, label: str, number: int, judging: Judging = DEFAULT_JUDGING, memory: MemoryScheme | None = None
) -> Episode:
    """One of the episodes, turn by turn. memory: of the policy that played."""
    assert played.turns is not None, "played without keep_turns"
    rollout, turns = played.rollout, played.turns[:, number]
    actions, held, rewards10 = rollout.actions[:, number], rollout.held[:, number], rollout.rewards10[:, number]
    judged: list[Reason | None] = [None] * len(actions)
    if rollout.workflows:
        judged = reasons(actions, held, rollout.workflows[rollout.assigned[number]], judging)
    remembered = _remembered(played, number, memory)
    steps = [Step(moment_of(turns[0], played.variant), 0, (), None, False, remembered[0])]
    for t, turn in enumerate(turns[1:]):
        steps.append(
            Step(
                moment=moment_of(turn, played.variant),
                reward10=int(rewards10[t]),
                needed=tuple(HOST_NAMES[host] for host in needy_hosts(int(held[t]), judging)),
                verdict=judged[t],
                impact=_impact(turn),
                remembered=remembered[t + 1],
            )
        )
    red_agent = red_agent_names()[turns[0]["red_agent"]]
    return Episode(label, number, red_agent, int(rewards10.sum()), tuple(steps))


def _remembered(played: Played, number: int, memory: MemoryScheme | None) -> list[dict[str, str]]:
    """[T + 1] what the policy remembered when it read each row of an episode."""
    rows = played.rollout.found[:, number]
    if memory is None or not memory.groups:
        return [{} for _ in rows]
    bits = bits_of(played.rollout.rows[rows], memory.inputs)[:, OBSERVATION_BITS:]
    return [memory.in_words(row) for row in bits.tolist()]


def _impact(turn: np.void) -> bool:
    worked = turn["red_verb"] == RedVerb.IMPACT and turn["red_success"] == Success.TRUE
    return bool(worked and turn["ot"] == OTService.STOPPED)  # harmless once the service was restored


# ---------------------------------------------------------------- as one plain document


def document(played: Played, episodes: Sequence[Episode], facts: dict[str, Any]) -> dict[str, Any]:
    """Everything a page or a text needs, as JSON values. facts: what the reader should know about the policy."""
    workflows = played.rollout.workflows
    scheme = workflows[0].scheme if workflows else FIVE_TYPES
    returns = played.returns
    return {
        **facts,
        "variant": played.variant,
        "workflow": [scheme.names[unit] for unit in workflows[0].order] if workflows else None,
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
                "steps": [_plain(step) for step in episode.steps],
            }
            for episode in episodes
        ],
    }


def _plain(step: Step) -> dict[str, Any]:
    told = asdict(step)
    return told.pop("moment") | told
