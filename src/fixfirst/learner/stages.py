"""The stages of a training: one, or a tournament of starts of which the best go on, and an opening with training from there.

    starts x start_episodes      from scratch, each with weights and episodes of its own; the best are kept: as many lines
    lines x the rest             they go on where they were
    lines x seek_episodes        if an opening is to be found: every episode begins with two decoys, out of ever fewer pairs
    (finals + 1) x final_episodes   the best openings, and none, go on by themselves
    ends x opening_episodes      the best of these, or what has the opening that was given, are trained on; the best is kept

Those that compete in a stage know nothing of each other: they may be trained side by side (`tournament.py`).
Schedules (learning rate, entropy, size of updates, price of Restore) follow the *plan*: that of a start and of what goes
on from it is one, that of every later stage its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from fixfirst.base import errors
from fixfirst.game.game import Game
from fixfirst.learner.config import PPOConfig, TrainConfig
from fixfirst.play import evaluation
from fixfirst.policy.network import Network
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable

Opening = tuple[int, ...]  # the first choices of every episode


class StageKind(Enum):
    """How a stage begins."""

    SCRATCH = "scratch"
    BEST_START = "best start"
    SEEK = "seek"
    FINAL = "final"
    OPENING = "opening"


@dataclass(frozen=True)
class Stage:
    """Some updates under one plan, of each that competes in it."""

    begin: StageKind
    episodes: int  # of each
    behind: int  # episodes of its plan that are behind it when it begins
    plan: int  # episodes of its plan
    ppo: PPOConfig
    entrants: int = 1
    advance: int = 1  # how many of them go on, or are kept
    judged_on: int = 0  # fresh episodes by which they are compared

    def progress(self, updates: int) -> float:
        """Share of the plan's updates that are done after so many of this stage."""
        return (self.ppo.updates_in(self.behind) + updates) / self.ppo.updates_in(self.plan)

    def is_over(self, episodes: int) -> bool:
        """Is there no room for another update after so many episodes?"""
        return episodes + self.ppo.batch_at(self.behind + episodes) > self.episodes

    @property
    def share(self) -> tuple[int, int]:
        """Updates and episodes of each that competes."""
        updates = episodes = 0
        while not self.is_over(episodes):
            updates, episodes = updates + 1, episodes + self.ppo.batch_at(self.behind + episodes)
        return updates, episodes


def stages_of(config: TrainConfig) -> tuple[Stage, ...]:
    """The stages of a training, in the order they run."""
    ppo, course, lines = config.ppo, config.course, config.course.lines
    plain = (config.total_episodes - course.aside) // lines  # episodes of one that goes on, without an opening
    first, plan = course.start_episodes if course.starts > 1 else plain, plain + course.seeking
    stages = [Stage(StageKind.SCRATCH, first, 0, plan, ppo, course.starts, lines, 2_000)]
    if plain > first:
        stages.append(Stage(StageKind.BEST_START, plain - first, first, plan, ppo, lines, lines))
    if not course.after:
        return tuple(stages)
    changed = {
        "growth": (),
        "episodes_per_update": ppo.batch_at(plan),
        "learning_rate": course.opening_rate,
        "free_restores": 0,
    }
    later = ppo.model_copy(update=changed)
    if course.seeking:
        seek, final, finals = course.seek_episodes, course.final_episodes, course.finals
        # In the middle third of a plan: with 0.01 of entropy all openings look the same, at the end nothing is learned.
        seeking = later.model_copy(update={"learning_rate": ppo.learning_rate})
        steady = later.model_copy(update={"lr_schedule": "constant", "entropy_schedule": "constant"})
        stages.append(Stage(StageKind.SEEK, seek, seek, 3 * seek, seeking, lines, finals, 4_000))
        stages.append(Stage(StageKind.FINAL, final, 0, final, steady, finals + 1, course.last, 8_000))
    last = course.opening_episodes
    stages.append(Stage(StageKind.OPENING, last, 0, last, later, course.last, 1, 10_000))
    return tuple(stages)


@dataclass(frozen=True)
class Entrant:
    """One that competes in a stage, or all of a training in which nothing competes."""

    stage: Stage
    number: int = 0  # among all of the tournament: names its streams of chance
    opening: Opening = ()
    updates: int = 0  # of all before it
    episodes: int = 0  # of all before it


def first_entrant(config: TrainConfig) -> Entrant:
    """Return the one that a training begins with."""
    return Entrant(stages_of(config)[0], opening=config.spec.opening)


# ---------------------------------------------------------------- which first two decoys help?
# A policy that was never made to begin with a decoy does not know what to do after it, and every opening looks bad. So
# one policy learns what to do after each of them: every episode begins with one of the openings that are left, single
# decoys at first. Now and then all of these are tried by simulation, on the same episodes, and the worse half is dropped:
# the fewer are left, the better each is known. The last two are followed by every decoy, and these pairs are halved in
# turn. The best go on by themselves, beside one without an opening.


LENGTH = 2
FOLLOWED = 2  # openings that are made longer
LOOK = 30_000  # episodes in which all that are still thought of are tried


def first_openings(spec: PolicySpec) -> tuple[Opening, ...]:
    """All openings of one decoy."""
    macros = range(len(spec.action_set.actions), spec.actions)
    if not macros:
        raise errors.ConfigError(
            f"openings are made of decoy macros, and the action set {spec.action_set} has none; use macros"
        )
    return tuple((macro,) for macro in macros)


def extend_openings(spec: PolicySpec, openings: Sequence[Opening]) -> tuple[Opening, ...]:
    """Each with every decoy that can follow; of two that place the same decoys, one."""
    longer = [(*opening, *last) for opening in openings for last in first_openings(spec)]
    each_once = {tuple(sorted(opening)): opening for opening in reversed(longer)}.values()
    return tuple(opening for opening in reversed(each_once) if spec.action_set.first_masked(opening) is None)


def evaluate_openings(
    network: Network, spec: PolicySpec, openings: Sequence[Opening], game: Game, seed: int, purpose: str, episodes: int
) -> list[float]:
    """What a policy earns with each of these openings, all on the same episodes."""
    games = game.model_copy(update={"backend": "simulator"})  # thousands of episodes
    players = (PolicyTable(network, spec=spec, openings=(opening,)) for opening in openings)
    played = (evaluation.play(player, games, episodes=episodes, seed=seed, purpose=purpose) for player in players)
    return [float(batch.returns.mean()) for batch in played]


def better_half(
    network: Network, spec: PolicySpec, openings: Sequence[Opening], game: Game, seed: int
) -> tuple[Opening, ...]:
    """Those with which the policy earns most as it is, the best first."""
    earned = evaluate_openings(network, spec, openings, game, seed, "opening", LOOK // len(openings))
    ranked = np.argsort(-np.array(earned), kind="stable")
    return tuple(openings[number] for number in ranked[: -(-len(openings) // 2)])


def next_openings(
    network: Network, spec: PolicySpec, openings: Sequence[Opening], game: Game, seed: int
) -> tuple[Opening, ...]:
    """What is thought of after these: the better half, or what can follow it."""
    kept = better_half(network, spec, openings, game, seed)
    return extend_openings(spec, kept) if len(kept) <= FOLLOWED and len(kept[0]) < LENGTH else kept
