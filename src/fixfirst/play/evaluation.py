"""Play many episodes of a frozen policy, and judge it on them: means with standard errors, intervals, compliance.

Every purpose has its own stream of seeds (`base/seeds.py: stream_seed`): training, gating and final tests never share
an episode. The first episodes of a longer play are those of a shorter one. T steps, B episodes.

**Two defenders.** What happens by chance is a function of (seed, environment, episode, step, decision): both meet the same
luck while they do the same. The difference of two returns of one episode varies less than either: it is what is averaged.

**The challenge's leaderboard.** Nobody in the game knows when an episode will end, and none ends early: one of 100 steps
begins with the one of 30 and the one of 50. So 100 steps are played once against each red agent, and give three columns.
These go up and down together: the error of the total is that of the episodes' sums of three columns. The red agents are
independent.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import hypot
from typing import NamedTuple

import numpy as np

from fixfirst.base import distributions, errors, seeds, tables
from fixfirst.game import parts
from fixfirst.game.base_world import BaseWorld
from fixfirst.game.game_config import Game
from fixfirst.orders import compliance, repairs
from fixfirst.orders.compliance import DEFAULT_JUDGING, Judging
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.play.rollout import Change, Rollout, collect, join
from fixfirst.play.turns import Player
from fixfirst.play.worlds import make_world
from fixfirst.stats import intervals, pricing
from fixfirst.stats.evaluation import Evaluation, Evaluations

PROTOCOL_STEPS = (30, 50, 100)
PROTOCOL_REDS = ("b_line", "meander", "sleep")
LEADERBOARD_REDS = ("b_line", "meander")  # the third costs a defender nothing that does nothing without cause
PROTOCOL_PURPOSE = "protocol"  # the stream of seeds that `fixfirst evaluate` plays
BATCH = 1_000  # episodes played side by side
SIMULATOR_SHARE = 10  # in a comparison with CybORG, the simulator plays so many times its episodes
CYBORG_BATCH = 100  # CybORG's environments are large
MOST_EPISODES = 100_000_000
MOST_KEPT = 10_000  # episodes whose turns are all kept

# ---------------------------------------------------------------- playing


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
    def turns(self) -> np.ndarray | None:
        """[T + 1, B] of `turn_dtype`, where they were kept."""
        return self.rollout.turns

    @property
    def scheme(self) -> UnitScheme:
        """How hosts are grouped: by the orders that were followed, else by the unit types of the scenario."""
        workflows = self.rollout.workflows
        return workflows[0].scheme if workflows else UnitScheme.by_type(self.game.scenario)

    def count(self, verb: str) -> float:
        """Return how often a verb was chosen, per episode."""
        return float(pricing.count_verb(self.rollout.actions, verb, self.scheme).mean())

    def costs(self, scheme: UnitScheme) -> np.ndarray:
        """[U + 2, B] what each episode cost, part by part: see `stats/pricing.py`."""
        played = self.rollout
        any_session = parts.variant_named(self.variant).any_session_costs
        return pricing.episode_costs(
            played.held if any_session else played.privileged, played.actions, played.rewards10, scheme
        )

    def counts(self, judging: Judging = DEFAULT_JUDGING) -> repairs.Counts | None:
        """Return what was repaired, in order and not; None if they were played without a workflow."""
        assert not self.changes, "episodes whose order changes are judged step by step"
        return count_repairs(self.rollout, judging)


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
    if keep_turns and not 1 <= episodes <= MOST_KEPT:
        raise errors.ConfigError(f"episodes must be in 1..{MOST_KEPT}, got {episodes}")
    batch = min(episodes, CYBORG_BATCH if game.backend == "cyborg" else BATCH)
    with nullcontext(world) if world is not None else make_world(game, batch, autoreset="disabled") as place:
        parts = []
        for number in range(-(-episodes // place.num_envs)):

            def on_step(steps: int, number: int = number) -> None:
                on_pass(min(int((number + steps / place.game.steps) * place.num_envs), episodes))

            parts.append(
                collect(
                    place,
                    player,
                    world_seed=seeds.stream_seed(seed, purpose, "world"),
                    policy_seed=seeds.stream_seed(seed, purpose, "policy"),
                    first_episode=number,
                    workflows=workflows,
                    changes=changes,
                    keep_turns=keep_turns,
                    on_step=on_step,
                )
            )
            on_pass(min((number + 1) * place.num_envs, episodes))
        known = game.model_copy(update={"variant": place.variant})
        return EpisodeBatch(join(parts).first(episodes), known, tuple(changes))


def count_repairs(rollout: Rollout, judging: Judging = DEFAULT_JUDGING) -> repairs.Counts | None:
    """Judge a rollout against its workflows; None if it has none."""
    if not rollout.workflows:
        return None
    return repairs.Counts.of(
        repairs.judge(rollout.actions, rollout.held, rollout.ranks, rollout.workflows[0].scheme, judging)
    )


# ---------------------------------------------------------------- judging


def evaluate(played: EpisodeBatch, judging: Judging = DEFAULT_JUDGING) -> Evaluation:
    """Judge at least two episodes."""
    returns, counts = played.returns, played.counts(judging)
    earned, scheme = intervals.estimate(returns), played.scheme
    return Evaluation(
        red_agent=played.game.attacker,
        steps=len(played.rollout.actions),
        variant=played.variant,
        episodes=len(returns),
        mean=earned.mean,
        standard_error=earned.standard_error,
        low=earned.low,
        high=earned.high,
        compliance=None if counts is None else compliance.summarise(counts),
        restores=played.count("Restore"),
        removes=played.count("Remove"),
        costs=dict(zip(pricing.part_names(scheme), played.costs(scheme).mean(axis=1).tolist(), strict=True)),
    )


def check_enough(episodes: int) -> None:
    """Are there enough to judge by?"""
    if isinstance(episodes, bool) or not isinstance(episodes, int | np.integer) or episodes > MOST_EPISODES:
        raise errors.ConfigError(f"episodes must be a whole number up to {MOST_EPISODES:,}, got {episodes!r}")
    if episodes < 2:
        raise errors.ConfigError(f"episodes must be at least 2 for a standard error, got {episodes}")


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
    gain = intervals.welch(mean, variances, (first.episodes, second.episodes))
    _, error, freedom = gain
    if error == 0:
        p_value = 0.0 if abs(mean) < margin else 1.0
    else:
        p_value = distributions.t_cdf(freedom, (abs(mean) - margin) / error)
    smallest = abs(mean) + distributions.t_quantile(freedom, distributions.CONFIDENCE) * error
    return Difference(mean, gain.low, gain.high, margin, p_value, p_value < 1 - distributions.CONFIDENCE, smallest)


# ---------------------------------------------------------------- two defenders on the same episodes


WORST_SHOWN = 3  # worst episodes of each


@dataclass(frozen=True)
class PairedEpisode:
    """One episode, and what both earned in it."""

    number: int  # among those played, from 0
    first: float
    second: float


@dataclass(frozen=True)
class Paired:
    """Two defenders against one red agent."""

    red_agent: str
    steps: int
    variant: parts.VariantName
    episodes: int
    first: float  # mean return
    second: float
    mean: float  # second less first: above 0, the second is better
    standard_error: float
    low: float  # interval of the mean; those of several red agents hold together, with 95 % confidence
    high: float
    independent_episodes: int | None  # how many of each would be needed without common luck; None if they never differ
    worst_of_first: tuple[PairedEpisode, ...]
    worst_of_second: tuple[PairedEpisode, ...]
    parts: tuple[
        pricing.Part, ...
    ] = ()  # of the mean, by what it costs: hosts by unit type, the service, Restores; the largest first
    restores: tuple[float, float] = (0.0, 0.0)  # of each, per episode
    removes: tuple[float, float] = (0.0, 0.0)

    @property
    def different(self) -> bool:
        """Are they told apart?"""
        return self.low > 0 or self.high < 0


class Comparisons(list[Paired], tables.Tabular):
    """Two defenders against several red agents, as a list and as a table."""

    world = ""  # as of `Evaluations`

    def table(self) -> tables.Table:
        """Return a row per red agent."""
        columns = ("red_agent", "steps", "variant", "episodes", "first", "second", "mean", "standard_error", "low", "high")
        counted = ("first_restores", "second_restores", "first_removes", "second_removes")
        rows = tuple(
            (*(getattr(row, column) for column in columns), row.different, *row.restores, *row.removes) for row in self
        )
        signed = tables.Column("mean", "second - first", tables.signed)
        where = ("red_agent", *(("variant",) if len({row.variant for row in self}) > 1 else ()), "steps")
        shown = (*where, "first", "second", signed, tables.INTERVAL, "different", *counted)
        return tables.Table((*columns, "different", *counted), rows, shown)


def paired(first: EpisodeBatch, second: EpisodeBatch, comparisons: int = 1) -> Paired:
    """Compare two defenders on the same episodes, two at least.

    comparisons: how many are made and have to hold together (Bonferroni).
    """
    a, b = first.returns, second.returns
    gain = intervals.estimate(b - a)
    low, high = gain.interval(comparisons)
    apart = a.var(ddof=1) + b.var(ddof=1)
    return Paired(
        red_agent=first.game.attacker,
        steps=len(first.rollout.actions),
        variant=first.variant,
        episodes=len(a),
        first=float(a.mean()),
        second=float(b.mean()),
        mean=gain.mean,
        standard_error=gain.standard_error,
        low=low,
        high=high,
        independent_episodes=round(apart / gain.standard_error**2) if gain.standard_error > 0 else None,
        worst_of_first=_worst(a, a, b),
        worst_of_second=_worst(b, a, b),
        parts=_parts(first, second),
        restores=(first.count("Restore"), second.count("Restore")),
        removes=(first.count("Remove"), second.count("Remove")),
    )


def _parts(first: EpisodeBatch, second: EpisodeBatch) -> tuple[pricing.Part, ...]:
    """Take the difference apart: how much less the second pays for each part, with intervals that hold for all parts."""
    scheme = UnitScheme.by_type(first.game.scenario)
    gains = first.costs(scheme) - second.costs(scheme)  # [parts, B]
    names = pricing.part_names(scheme)
    there = np.flatnonzero(np.abs(gains).max(axis=1) > 0).tolist()
    found = [(names[part], intervals.estimate(gains[part])) for part in there]
    parts = (pricing.Part(name, gain.mean, *gain.interval(len(there))) for name, gain in found)
    return tuple(sorted(parts, key=lambda part: -abs(part.price)))


def _worst(returns: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[PairedEpisode, ...]:
    """Return the episodes of the lowest returns [B], the worst first."""
    numbers = np.argsort(returns, kind="stable")[:WORST_SHOWN].tolist()
    return tuple(PairedEpisode(number, float(first[number]), float(second[number])) for number in numbers)


# ---------------------------------------------------------------- the challenge's leaderboard


LEADERBOARD_COLUMNS = tuple((red, steps) for steps in PROTOCOL_STEPS for red in LEADERBOARD_REDS)


@dataclass(frozen=True)
class Published:
    """A row of the published table."""

    name: str
    columns: tuple[float, ...]  # mean returns of 1,000 episodes, in the order of LEADERBOARD_COLUMNS
    margin: float  # half of the total's 95 % interval; 0 where none is published

    @property
    def total(self) -> float:
        return round(sum(self.columns), 2)


LEADERBOARD_SOURCE = "the CAGE Challenge 2 leaderboard (github.com/cage-challenge/cage-challenge-2)"
LEADERBOARD = (
    #                                             B30    M30    B50    M50    B100    M100
    Published("CardiffUni, winner",             (-3.47, -5.64, -6.41, -8.69, -13.76, -16.60), margin=0.43),
    Published("best of all entries per column", (-3.47, -5.64, -5.85, -8.69, -11.39, -16.60), margin=0.0),
)  # fmt: skip


class Total(NamedTuple):
    """The sum of the six columns."""

    mean: float
    standard_error: float
    low: float  # 95 % interval
    high: float


class Lead(NamedTuple):
    """A total less a published one: above 0 is better."""

    mean: float
    low: float  # 95 % interval
    high: float


@dataclass(frozen=True)
class LeaderboardScore(tables.Tabular):
    """What a frozen policy earned on the leaderboard."""

    columns: tuple[Evaluation, ...]  # in the order of LEADERBOARD_COLUMNS
    total: Total

    @classmethod
    def of(cls, played: Mapping[str, EpisodeBatch], judging: Judging = DEFAULT_JUDGING) -> "LeaderboardScore":
        """Of the longest episodes of the protocol, by red agent."""
        parts = {
            (red, steps): replace(played[red], rollout=played[red].rollout.until(steps))
            for red, steps in LEADERBOARD_COLUMNS
        }
        columns = tuple(evaluate(part, judging) for part in parts.values())
        sums = [np.sum([parts[red, steps].returns for steps in PROTOCOL_STEPS], axis=0) for red in LEADERBOARD_REDS]
        return cls(columns, _total(sums))

    def lead(self, row: Published) -> Lead:
        """Over a row of the published table."""
        mean, half = self.total.mean - row.total, hypot(self.total.high - self.total.mean, row.margin)
        return Lead(mean, mean - half, mean + half)

    def table(self) -> tables.Table:
        """Return a row per column of the leaderboard, and one for the total."""
        found, total = Evaluations(self.columns).table(), self.total
        names = dict.fromkeys(found.columns) | {"red_agent": "total", "variant": self.columns[0].variant}
        names |= {"episodes": sum(self.columns[place].episodes for place in range(len(LEADERBOARD_REDS)))}
        return tables.Table(found.columns, (*found.rows, tuple((names | total._asdict()).values())), found.shown)

    def tables(self) -> list[tables.Table]:
        """Return the leaderboard as the challenge shows it, with the published rows."""
        columns = ("defender", *(column_name(*column) for column in LEADERBOARD_COLUMNS), "total", "low", "high")
        ours = ("this one", *(cell.mean for cell in self.columns), self.total.mean, self.total.low, self.total.high)
        published = ((row.name, *row.columns, row.total, None, None) for row in LEADERBOARD)
        return [tables.Table(columns, (ours, *published), (*columns[:-2], tables.INTERVAL))]


def column_name(red_agent: str, steps: int) -> str:
    """As in B30, M100."""
    return f"{red_agent[0].upper()}{steps}"


def _total(sums: Sequence[np.ndarray]) -> Total:
    """From the episodes' sums [B], one array for each red agent; Welch's interval."""
    mean = float(sum(each.mean() for each in sums))
    total = intervals.welch(mean, [intervals.mean_variance(each) for each in sums], [len(each) for each in sums])
    return Total(mean, total.standard_error, total.low, total.high)
