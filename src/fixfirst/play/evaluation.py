"""Judging: a frozen policy on episodes it never trained on, with standard errors and intervals.

Seeds: every purpose has its own stream (`seeds.py`), so that training, gating and final tests never share an episode.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from fixfirst.cyborg.backends import Backend, make_world
from fixfirst.game.network import VariantName
from fixfirst.game.world import WorldSettings
from fixfirst.orders.compliance import CONFIDENCE, Compliance, Counts, Rule, judge, summarise
from fixfirst.orders.workflow import Workflow
from fixfirst.play.rollout import Player, Rollout, WorldLike, collect, join
from fixfirst.play.seeds import derive

PROTOCOL_STEPS = (30, 50, 100)
PROTOCOL_REDS = ("b_line", "meander", "sleep")
PROTOCOL_PURPOSE = "protocol"  # the stream of seeds that `fixfirst evaluate` plays
BATCH = 1_000  # episodes played side by side
SIMULATOR_SHARE = 10  # in a comparison with CybORG, the simulator plays so many times its episodes
CYBORG_BATCH = 100  # CybORG's environments are large


@dataclass(frozen=True)
class Evaluation:
    """What a frozen policy earned, and how it kept to its order (None without one)."""

    red_agent: str
    steps: int
    variant: VariantName
    episodes: int
    mean: float
    standard_error: float
    low: float
    high: float
    compliance: Compliance | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Episodes:
    """Many episodes, all [B]: returns, and counts of judged repairs."""

    returns: np.ndarray
    counts: Counts | None


def play_episodes(
    player: Player,
    *,
    red_agent: str,
    steps: int,
    episodes: int,
    seed: int,
    purpose: str,
    workflows: Sequence[Workflow] = (),
    rule: Rule = "no_higher",
    count_foothold: bool = False,
    variant: VariantName = "current",
    green: bool = False,
    backend: Backend = "simulator",
    cyborg: str | None = None,
    world: WorldLike | None = None,
    on_pass: Callable[[int], None] = lambda episodes: None,
) -> Episodes:
    """Play `episodes` whole episodes of the stream (seed, purpose), in a world of their own unless one is given.

    on_pass is told how many episodes are done, now and then.
    """
    num_envs = min(episodes, CYBORG_BATCH if backend == "cyborg" else BATCH) if world is None else world.num_envs
    game: WorldSettings = {
        "red_agent": red_agent,
        "variant": variant,
        "green": green,
        "max_steps": steps,
        "autoreset": "disabled",
    }
    with nullcontext(world) if world is not None else make_world(num_envs, backend=backend, cyborg=cyborg, **game) as place:
        parts = []
        for number in range(-(-episodes // num_envs)):
            parts.append(
                collect(
                    place,
                    player,
                    world_seed=derive(seed, purpose, "world"),
                    policy_seed=derive(seed, purpose, "policy"),
                    first_episode=number,
                    workflows=workflows,
                )
            )
            on_pass(min((number + 1) * num_envs, episodes))
    rollout = join(parts)
    counts = count_repairs(rollout, rule, count_foothold)
    first = slice(0, episodes)
    return Episodes(rollout.returns[first], None if counts is None else Counts(*(column[first] for column in counts)))


@dataclass(frozen=True)
class Difference:
    """How far two evaluations of one policy lie apart, and whether that is less than a margin (two one-sided tests)."""

    mean: float  # second minus first
    low: float  # 95 % interval
    high: float
    margin: float
    p_value: float  # of "the true difference is at least the margin"
    equivalent: bool
    smallest_margin: float  # at which these episodes would show equivalence


def difference(first: Evaluation, second: Evaluation, margin: float) -> Difference:
    """Welch's interval of the difference of mean returns, and TOST against +-margin at 5 %."""
    mean = second.mean - first.mean
    variances = first.standard_error**2, second.standard_error**2
    error = sum(variances) ** 0.5
    if error == 0:
        inside = abs(mean) < margin
        return Difference(mean, mean, mean, margin, 0.0 if inside else 1.0, inside, abs(mean))
    freedom = error**4 / (variances[0] ** 2 / (first.episodes - 1) + variances[1] ** 2 / (second.episodes - 1))
    half = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * error
    p_value = float(stdtr(freedom, (abs(mean) - margin) / error))
    smallest = abs(mean) + float(stdtrit(freedom, CONFIDENCE)) * error
    return Difference(mean, mean - half, mean + half, margin, p_value, p_value < 1 - CONFIDENCE, smallest)


def count_repairs(rollout: Rollout, rule: Rule = "no_higher", count_foothold: bool = False) -> Counts | None:
    """Judge a rollout against its workflows; None if it has none."""
    if not rollout.workflows:
        return None
    scheme = rollout.workflows[0].scheme
    return Counts.of(judge(rollout.actions, rollout.held, rollout.ranks, scheme, rule, count_foothold))


def evaluate(
    player: Player, *, red_agent: str, steps: int = 100, variant: VariantName = "current", **options: Any
) -> Evaluation:
    """Mean return with its standard error and 95 % interval, and compliance. Options as in `play_episodes`."""
    played = play_episodes(player, red_agent=red_agent, steps=steps, variant=variant, **options)
    return summary(played, red_agent=red_agent, steps=steps, variant=variant)


def summary(played: Episodes, *, red_agent: str, steps: int, variant: VariantName) -> Evaluation:
    """The statistics of played episodes."""
    n, mean = len(played.returns), float(played.returns.mean())
    error = float(played.returns.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    margin = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2)) * error if n > 1 else float("nan")
    compliance = None if played.counts is None else summarise(played.counts)
    return Evaluation(red_agent, steps, variant, n, mean, error, mean - margin, mean + margin, compliance)
