"""The course of a training: one stage, or several starts of which the best goes on, and an opening with training from there.

    starts x start_episodes      from scratch, each with weights and episodes of its own; the best of them is kept
    the rest of the plan         the best start goes on where it was; if an opening is to be found, every episode begins
                                 with two random decoys from here on
    tries x try_episodes         some promising openings, and none, are trained on with, each by itself
    3 x final_episodes           the best three of them go on for longer, and the best is kept
    opening_episodes             the policy is trained on with the opening that was found or given

Schedules (learning rate, entropy, size of updates, price of Restore) follow the *plan*: that of a start and of what goes
on from it is one, that of a try and of the opening each its own.
"""

from dataclasses import dataclass
from enum import Enum

from fixfirst.learner.config import FINALISTS, PPOConfig, TrainConfig


class Begin(Enum):
    """How a stage begins."""

    SCRATCH = "scratch"
    BEST_START = "best start"
    TRY = "try"
    FINAL = "final"
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
    plan = config.total_episodes - course.before - course.finding - course.after
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
        trying = later.model_copy(update={"lr_schedule": "constant", "entropy_schedule": "constant"})
        stages += [Stage(Begin.TRY, course.try_episodes, 0, course.try_episodes, trying)] * course.tried
        if course.tried:
            stages += [Stage(Begin.FINAL, course.final_episodes, 0, course.final_episodes, trying)] * FINALISTS
        stages.append(Stage(Begin.OPENING, course.after, 0, course.after, later))
    return tuple(stages)
