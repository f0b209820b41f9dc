"""Looking at single episodes: played like those of an evaluation, kept turn by turn, told in plain values.

The episodes are the first ones that `evaluate` plays for the same seed, so what one watches is part of what was measured.
T steps, N environments side by side, B episodes.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fixfirst.cyborg.backends import Backend, make_world
from fixfirst.errors import ConfigError
from fixfirst.game.drawing import Snapshot
from fixfirst.game.moment import snapshot
from fixfirst.game.network import HOST_NAMES, HOSTS, SUBNETS, VariantName
from fixfirst.game.state import OTService, RedAgent, RedVerb, Success
from fixfirst.game.world import BaseWorld, WorldSettings
from fixfirst.orders.compliance import Rule
from fixfirst.orders.reasons import Verdict, needy_hosts, verdicts
from fixfirst.orders.workflow import FIVE_TYPES, Workflow
from fixfirst.play.evaluation import BATCH, CYBORG_BATCH, PROTOCOL_PURPOSE
from fixfirst.play.rollout import Player, Rollout, collect
from fixfirst.play.seeds import derive

MOST_EPISODES = 10_000  # all their turns are kept until the interesting ones are chosen


@dataclass(frozen=True)
class Step:
    """One turn of an episode; the first of an episode is its start, before anyone acts."""

    moment: Snapshot
    reward10: int  # as the world gave it
    needed: tuple[str, ...]  # hosts that needed repair when blue chose its action
    verdict: Verdict | None  # of a repair, where there is a workflow
    impact: bool  # red stopped the OT service in this turn, or kept it stopped


@dataclass(frozen=True)
class Episode:
    """One episode, T + 1 steps."""

    label: str  # worst, median, best
    number: int  # among those played, from 0
    red_agent: str
    return10: int
    steps: tuple[Step, ...]

    def count(self, kind: str) -> int:
        """How many repairs got this kind of verdict."""
        return sum(step.verdict is not None and step.verdict.kind == kind for step in self.steps)


@dataclass(frozen=True)
class Played:
    """B episodes with all their turns."""

    rollout: Rollout
    turns: np.ndarray  # [T + 1, B] of TURN_DTYPE
    variant: VariantName


def play(
    player: Player,
    *,
    episodes: int,
    steps: int = 100,
    red_agent: str = "b_line",
    variant: VariantName | None = None,
    seed: int = 0,
    workflows: Sequence[Workflow] = (),
    backend: Backend = "simulator",
    cyborg: str | None = None,
) -> Played:
    """Play the first `episodes` episodes of an evaluation. No variant: that of the CybORG found, or `current`."""
    if not 1 <= episodes <= MOST_EPISODES:
        raise ConfigError(f"episodes must be in 1..{MOST_EPISODES}, got {episodes}")
    num_envs = min(episodes, CYBORG_BATCH if backend == "cyborg" else BATCH)
    game: WorldSettings = {"red_agent": red_agent, "max_steps": steps, "autoreset": "disabled"}
    if variant is not None:
        game["variant"] = variant
    with make_world(num_envs, backend=backend, cyborg=cyborg, **game) as world:
        witness = _Witness(world)
        rollout = collect(
            witness,
            player,
            world_seed=derive(seed, PROTOCOL_PURPOSE, "world"),
            policy_seed=derive(seed, PROTOCOL_PURPOSE, "policy"),
            first_episode=0,
            passes=-(-episodes // num_envs),
            workflows=workflows,
        )
        turns = np.array(witness.turns).reshape(-1, steps + 1, num_envs).swapaxes(0, 1).reshape(steps + 1, -1)
        first = slice(0, episodes)
        columns = {name: getattr(rollout, name)[:, first] for name in ("words", "held", "actions", "rewards10")}
        return Played(rollout._replace(assigned=rollout.assigned[first], **columns), turns[:, first], world.variant)


class _Witness:
    """A world that has all its turns written down."""

    def __init__(self, world: BaseWorld):
        self._world = world
        self.num_envs, self.max_steps = world.num_envs, world.max_steps
        self.words, self.access, self.rewards10 = world.words, world.access, world.rewards10
        self.turns: list[np.ndarray] = []

    def reset(self, seed: int, mask: np.ndarray | None = None, *, episode: int = 0) -> None:
        self._world.reset(seed, mask, episode=episode)
        self.turns.append(self._world.turns())

    def step(self, actions: np.ndarray) -> int:
        ended = self._world.step(actions)
        self.turns.append(self._world.turns())
        return ended


def notable(played: Played) -> dict[str, int]:
    """The worst, the median and the best episode by return, as label -> number; fewer where fewer were played."""
    returns10 = played.rollout.rewards10.sum(axis=0)
    order = np.argsort(returns10, kind="stable").tolist()
    if len(order) == 1:
        return {"only": 0}
    ends = {"worst": order[0], "best": order[-1]}
    return (
        ends if len(order) == 2 else {"worst": ends["worst"], "median": order[(len(order) - 1) // 2], "best": ends["best"]}
    )


def tell(played: Played, label: str, number: int, rule: Rule = "no_higher", count_foothold: bool = False) -> Episode:
    """One of the episodes, turn by turn."""
    rollout, turns = played.rollout, played.turns[:, number]
    actions, held, rewards10 = rollout.actions[:, number], rollout.held[:, number], rollout.rewards10[:, number]
    judged: list[Verdict | None] = [None] * len(actions)
    if rollout.workflows:
        judged = verdicts(actions, held, rollout.workflows[rollout.assigned[number]], rule, count_foothold)
    steps = [Step(snapshot(turns[0], played.variant), 0, (), None, False)]
    for t, turn in enumerate(turns[1:]):
        steps.append(
            Step(
                moment=snapshot(turn, played.variant),
                reward10=int(rewards10[t]),
                needed=tuple(HOST_NAMES[host] for host in needy_hosts(int(held[t]), count_foothold)),
                verdict=judged[t],
                impact=_impact(turn),
            )
        )
    red_agent = RedAgent(turns[0]["red_agent"]).name.lower()
    return Episode(label, number, red_agent, int(rewards10.sum()), tuple(steps))


def _impact(turn: np.void) -> bool:
    worked = turn["red_verb"] == RedVerb.IMPACT and turn["red_success"] == Success.TRUE
    return bool(worked and turn["ot"] == OTService.STOPPED)  # harmless once the service was restored


# ---------------------------------------------------------------- as one plain document


def document(played: Played, episodes: Sequence[Episode], facts: dict[str, Any]) -> dict[str, Any]:
    """Everything a page or a text needs, as JSON values. facts: what the reader should know about the policy."""
    workflows = played.rollout.workflows
    scheme = workflows[0].scheme if workflows else FIVE_TYPES
    returns = played.rollout.returns
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
