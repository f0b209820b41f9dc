"""The course of a training: one stage, or several starts of which the best goes on, and an opening with training from there.

    starts x start_episodes      from scratch, each with weights and episodes of its own; the best of them is kept
    the rest of the plan         the best start goes on where it was
    opening_episodes             the opening is found or given, and the policy trained on from it

Schedules (learning rate, entropy, size of updates, price of Restore) follow the *plan*: that of a start and of what goes
on from it is one, the opening's is its own.
"""

from dataclasses import dataclass
from enum import Enum

from fixfirst.learner.config import PPOConfig, TrainConfig


class Begin(Enum):
    """How a stage begins."""

    SCRATCH = "scratch"
    BEST_START = "best start"
    OPENING = "opening"


@dataclass(frozen=True)
class Stage:
    """Some updates under one plan."""

    begin: Begin
    episodes: int
    behind: int  # episodes of its plan that are behind it when it begins
    plan: int  # episodes of its plan
    ppo: PPOConfig

    def progress(self, updates: int) -> float:
        """Share of the plan's updates that are done after so many of this stage."""
        return (self.ppo.updates_in(self.behind) + updates) / self.ppo.updates_in(self.plan)


def stages_of(config: TrainConfig) -> tuple[Stage, ...]:
    """In order."""
    ppo, course = config.ppo, config.course
    plan = config.total_episodes - course.before - course.after
    first = plan if course.starts == 1 else course.start_episodes
    stages = [Stage(Begin.SCRATCH, first, 0, plan, ppo)] * course.starts
    if course.starts > 1:
        stages.append(Stage(Begin.BEST_START, plan - first, first, plan, ppo))
    if course.after:
        changed = {
            "growth": (),
            "episodes_per_update": ppo.batch_at(plan),
            "learning_rate": course.opening_rate,
            "free_restores": 0,
        }
        later = ppo.model_copy(update=changed)
        stages.append(Stage(Begin.OPENING, course.after, 0, course.after, later))
    return tuple(stages)
