"""Judging: a frozen policy on episodes it never trained on, with standard errors and intervals.

Seeds: every purpose has its own stream (`seeds.py`), so that training, gating and final tests never share an episode.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from fixfirst.cage2.world import World
from fixfirst.compliance import CONFIDENCE, Compliance, Counts, Rule, judge, summarise
from fixfirst.network import VariantName
from fixfirst.rollout import Player, Rollout, WorldLike, collect
from fixfirst.seeds import derive
from fixfirst.workflow import Workflow

PROTOCOL_STEPS = (30, 50, 100)
PROTOCOL_REDS = ("b_line", "meander", "sleep")
BATCH = 1_000  # episodes played side by side


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
    make_world: Callable[..., WorldLike] = World,
) -> Episodes:
    """Play `episodes` whole episodes of the stream (seed, purpose)."""
    num_envs = min(episodes, BATCH)
    world = make_world(num_envs, red_agent=red_agent, variant=variant, green=green, max_steps=steps, autoreset="disabled")
    rollout = collect(
        world,
        player,
        world_seed=derive(seed, purpose, "world"),
        policy_seed=derive(seed, purpose, "policy"),
        first_episode=0,
        passes=-(-episodes // num_envs),
        workflows=workflows,
    )
    counts = count_repairs(rollout, rule, count_foothold)
    first = slice(0, episodes)
    return Episodes(rollout.returns[first], None if counts is None else Counts(*(column[first] for column in counts)))


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
    margin = float(student_t.ppf(0.5 + CONFIDENCE / 2, n - 1)) * error if n > 1 else float("nan")
    compliance = None if played.counts is None else summarise(played.counts)
    return Evaluation(red_agent, steps, variant, n, mean, error, mean - margin, mean + margin, compliance)
