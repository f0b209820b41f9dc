"""Play many episodes of a frozen policy, and judge it on them: means with standard errors, intervals, compliance.

Every purpose has its own stream of seeds (`base/seeds.py: stream_seed`): training, gating and final tests never share
an episode. The first episodes of a longer play are those of a shorter one. T steps, B episodes.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from fixfirst.base import seeds
from fixfirst.game import parts
from fixfirst.game.base_world import BaseWorld
from fixfirst.game.game_config import Game
from fixfirst.orders import compliance, repairs
from fixfirst.orders.compliance import DEFAULT_JUDGING, Judging
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.play.rollout import Change, Rollout, collect, make_world
from fixfirst.policy.turns import Player
from fixfirst.stats import intervals, pricing
from fixfirst.stats.evaluation import Evaluation

PROTOCOL_STEPS = (30, 50, 100)
PROTOCOL_REDS = ("b_line", "meander", "sleep")
BATCH = 1_000  # episodes played side by side
CYBORG_BATCH = 100  # CybORG's environments are large


@dataclass(frozen=True)
class EpisodeBatch:
    """B whole episodes."""

    rollout: Rollout
    game: Game  # that was played, with its variant: on CybORG, what it is
    changes: tuple[Change, ...] = ()  # of the workflow, on the way

    @property
    def variant(self) -> parts.VariantName:
        assert self.game.variant is not None, "of a game that was played, the variant is known"
        return self.game.variant

    @property
    def returns(self) -> np.ndarray:
        """[B] the world's return of each episode."""
        return self.rollout.returns

    @property
    def scheme(self) -> UnitScheme:
        """How hosts are grouped: by the orders that were followed, else by the unit types of the scenario."""
        workflows = self.rollout.workflows
        return workflows[0].scheme if workflows else UnitScheme.by_type(self.game.scenario)

    def count(self, verb: str) -> float:
        """Return how often a verb was chosen, per episode."""
        return float(count_verb(self.rollout.actions, verb, self.scheme).mean())

    def costs(self, scheme: UnitScheme) -> np.ndarray:
        """[U + 2, B] what each episode cost, in points: see `episode_costs`."""
        played = self.rollout
        any_session = parts.VARIANTS[self.variant].any_session_costs
        charged = played.held if any_session else played.privileged
        return episode_costs(charged, played.actions, played.rewards10, scheme)

    def counts(self, judging: Judging = DEFAULT_JUDGING) -> repairs.Counts | None:
        """Return what was repaired, in order and not; None if they were played without a workflow."""
        assert not self.changes, "episodes whose order changes are judged step by step"
        played = self.rollout
        if not played.workflows:
            return None
        return repairs.Counts.of(repairs.judge(played.actions, played.held, played.ranks, self.scheme, judging))


def play(
    player: Player,
    game: Game,
    *,
    episodes: int,
    seed: int,
    purpose: str,
    workflows: Sequence[Workflow] = (),
    world: BaseWorld | None = None,
    keep_turns: bool = False,
    changes: Sequence[Change] = (),
    on_pass: Callable[[int], None] = lambda episodes: None,
) -> EpisodeBatch:
    """Play `episodes` whole episodes of the stream (seed, purpose), in a world of their own unless one is given.

    keep_turns: for whoever looks at single episodes. changes: of the workflow, on the way. on_pass is told how many
    episodes are done, now and then.
    """
    batch = min(episodes, CYBORG_BATCH if game.backend == "cyborg" else BATCH)
    chances = {f"{who}_seed": seeds.stream_seed(seed, purpose, who) for who in ("world", "policy")}
    options: dict[str, Any] = {"workflows": workflows, "changes": changes, "keep_turns": keep_turns, **chances}
    with nullcontext(world) if world is not None else make_world(game, batch, autoreset="disabled") as played_in:
        n, rollouts = played_in.num_envs, []
        for number in range(-(-episodes // n)):

            def on_step(steps: int, number: int = number) -> None:
                on_pass(min(int((number + steps / played_in.game.steps) * n), episodes))

            rollouts.append(collect(played_in, player, first_episode=number, on_step=on_step, **options))
            on_pass(min((number + 1) * n, episodes))
        if played_in.variant != game.variant:
            game = game.model_copy(update={"variant": played_in.variant})
        return EpisodeBatch(Rollout.join(rollouts).first(episodes), game, tuple(changes))


def count_verb(actions: np.ndarray, verb: str, scheme: UnitScheme) -> np.ndarray:
    """[B] how often a verb was chosen in each episode. actions [T, B]."""
    of_verb = np.array([action.verb == verb for action in scheme.scenario.actions])
    return np.asarray(of_verb[actions].sum(axis=0))


def episode_costs(charged: np.ndarray, actions: np.ndarray, rewards10: np.ndarray, scheme: UnitScheme) -> np.ndarray:
    """[U + 2, B] what each part cost in each episode, in points: hosts that red held, by unit type; the stopped service;
    blue's own Restores (`stats/pricing.py: part_names`). Their sum is minus the return, to the last tenth.

    charged [T + 1, B]: sets of hosts whose value is charged, before each action and after the last; actions, rewards10
    [T, B]. What neither hosts nor Restores explain is the service.
    """
    tenths = np.zeros((scheme.size + 2, actions.shape[1]), np.int64)
    after = charged[1:]
    for host, unit in enumerate(scheme.host_unit):
        value = round(10 * scheme.scenario.hosts[host].value)
        if value:
            tenths[unit] += value * (after >> host & 1).sum(axis=0, dtype=np.int64)
    tenths[-1] = round(10 * scheme.scenario.restore_cost) * count_verb(actions, "Restore", scheme)
    tenths[-2] = -rewards10.sum(axis=0, dtype=np.int64) - tenths.sum(axis=0)
    return tenths / 10


def evaluate(played: EpisodeBatch, judging: Judging = DEFAULT_JUDGING) -> Evaluation:
    """Judge at least two episodes."""
    returns, counts = played.returns, played.counts(judging)
    estimate, scheme = intervals.estimate(returns), played.scheme
    return Evaluation(
        red_agent=played.game.attacker,
        steps=len(played.rollout.actions),
        variant=played.variant,
        episodes=len(returns),
        mean=estimate.mean,
        standard_error=estimate.standard_error,
        low=estimate.low,
        high=estimate.high,
        compliance=None if counts is None else compliance.Compliance.of(counts),
        restores=played.count("Restore"),
        removes=played.count("Remove"),
        costs=dict(zip(pricing.part_names(scheme), played.costs(scheme).mean(axis=1).tolist(), strict=True)),
    )
