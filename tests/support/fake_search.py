"""As much of a search as is shown, without starting one."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from fixfirst.game.game_config import Game
from fixfirst.orders.order import FIVE_TYPES, all_workflows
from fixfirst.runs.rows import Status, Trial
from fixfirst.stats.across_seeds import RankedTrials, SeedResult, ranking_table

ORDERS = list(all_workflows())


def trial(number, mean, *, status=Status.ACCEPTED):
    return Trial(
        id=number,
        workflow=str(ORDERS[number]),
        status=status,
        return_mean=mean,
        return_se=None if mean is None else 0.1,
        compliance=0.98,
        contested_compliance=0.9,
        episodes=10,
    )


@dataclass
class FakeSearch:
    """A search with a training per order."""

    trials: list
    seed: int = 0
    folder: Path = Path("runs/mine")
    scheme = FIVE_TYPES

    @property
    def config(self):
        training = SimpleNamespace(game=Game(red_agent="b_line"))
        return SimpleNamespace(total_episodes=1000, seed=self.seed, separate=True, test_episodes=1000, training=training)

    @property
    def used(self):
        return 100 + sum(trial.episodes for trial in self.trials)

    @property
    def in_words(self):
        return f"best {self.standings.best.workflow}"

    @property
    def standings(self):
        return RankedTrials.of(self.trials, self.scheme, 1000)

    def table(self):
        return ranking_table(self.standings, self.trials)

    @property
    def result(self):
        return SeedResult("b_line", self.seed, self.scheme, self.trials, self.standings)


def shared_search(**facts):
    """A search with one network for all orders."""
    config = SimpleNamespace(total_episodes=100_000, separate=False)
    config.budget = SimpleNamespace(base=0, num_rounds=10, can_settle=True)
    config.scheme, config.training = FIVE_TYPES, SimpleNamespace(game=Game(red_agent="b_line"))
    empty = {"folder": Path("runs/mine"), "used": 0, "rounds": 0, "idle": False, "in_words": ""}
    return SimpleNamespace(config=config, **empty | facts)
