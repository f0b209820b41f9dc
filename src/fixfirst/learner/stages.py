"""The stages of a training: one, or a tournament of starts of which the best go on, and an opening with training from there.

  entrants x start_episodes           from scratch, each with weights and episodes of its own; the best survive
  survivors x the rest                they go on where they were
  survivors x seek_episodes           if an opening is to be found: every episode begins with decoys, out of ever fewer pairs
  (finalists + 1) x final_episodes    the best openings, and none, go on by themselves
  finalists_kept x opening_episodes   the best of these, or what has the opening that was given; the best is kept

Those that compete in a stage know nothing of each other: they may be trained side by side (`tournament.py`).
Schedules (learning rate, entropy, size of updates, price of Restore) follow the *plan*: that of a start and of what goes
on from it is one, that of every later stage its own.
"""

from dataclasses import dataclass
from enum import Enum

from fixfirst.settings.ppo import PPOConfig
from fixfirst.settings.training import TrainConfig

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
    """Return the stages of a training, in the order they run."""
    ppo, survivors = config.ppo, config.survivors
    plain = (config.total_episodes - config.extra_episodes) // survivors  # episodes of one that goes on, without an opening
    first, plan = config.start_episodes if config.entrants > 1 else plain, plain + config.seeking_episodes
    stages = [Stage(StageKind.SCRATCH, first, 0, plan, ppo, config.entrants, survivors, 2_000)]
    if plain > first:
        stages.append(Stage(StageKind.BEST_START, plain - first, first, plan, ppo, survivors, survivors))
    if not config.finishing_episodes:
        return tuple(stages)
    changed = {
        "growth": (),
        "episodes_per_update": ppo.batch_at(plan),
        "learning_rate": config.opening_rate,
        "restore_cost_warmup_episodes": 0,
    }
    later = ppo.model_copy(update=changed)
    if config.finds_opening:
        seek, final, finalists = config.seek_episodes, config.final_episodes, config.finalists
        # In the middle third of a plan: with 0.01 of entropy all openings look the same, at the end nothing is learned.
        seeking = later.model_copy(update={"learning_rate": ppo.learning_rate})
        steady = later.model_copy(update={"lr_schedule": "constant", "entropy_schedule": "constant"})
        stages.append(Stage(StageKind.SEEK, seek, seek, 3 * seek, seeking, survivors, finalists, 4_000))
        stages.append(Stage(StageKind.FINAL, final, 0, final, steady, finalists + 1, config.finishing, 8_000))
    last = config.opening_episodes
    stages.append(Stage(StageKind.OPENING, last, 0, last, later, config.finishing, 1, 10_000))
    return tuple(stages)


@dataclass(frozen=True)
class Entrant:
    """One training of a stage. A plain training is the only one."""

    stage: Stage
    number: int = 0  # among all of the tournament: names its streams of chance
    opening: Opening = ()
    updates: int = 0  # of all before it
    episodes: int = 0  # of all before it

    @property
    def end(self) -> tuple[int, int]:
        """Updates and episodes of all before it and of itself."""
        updates, episodes = self.stage.share
        return self.updates + updates, self.episodes + episodes
