"""How the training episodes of a search are divided, if one network learns all orders."""

from dataclasses import dataclass, replace
from functools import cached_property

# Of trainings with orders about one in twelve gets stuck, most often where user comes first: so half as many more begin than
# go on, and those that lag most are dropped. Replicates of fewer episodes have no time for it.
PER_REPLICATE, FEWEST_REPLICATES, MOST_REPLICATES = 140_000, 3, 8
DROP_SHARE = 0.4  # share of the rounds after which some are dropped
_BASE_SHARE = 0.5  # of a training's episodes, at most, are without an order
# With orders, an update learns from so many times the episodes, at so many times the rate, if there are ENOUGH updates of
# this size; at first from half as many, in the end from twice as many, from these shares of the training on. With fewer
# updates, or fewer than LONG_ENOUGH episodes, prices are those of learning an order, even where they seem to settle.
_ORDERS_UPDATES: tuple[tuple[int, float], ...] = ((4, 1.5), (2, 1.0))
_ENOUGH, _LONG_ENOUGH = 500, 60_000
_GROWTH = (0.2, 0.6)


@dataclass(frozen=True)
class Budget:
    """What a search is given: episodes of all trainings, those of an update, and how many rounds and trainings there are."""

    total_episodes: int
    update: int
    base_episodes: int
    rounds: int
    replicates: int
    trainings: int

    @property
    def _drops_some(self) -> bool:
        """Do more trainings begin than go on?"""
        return self.trainings > self.replicates

    @cached_property
    def base(self) -> int:
        """Training episodes of one that begins before there are orders."""
        share = int(self.total_episodes // self.trainings * _BASE_SHARE)
        each = self.base_episodes // 2 if self._drops_some else self.base_episodes
        return max(min(each, share) // self.update, 1) * self.update

    @cached_property
    def num_rounds(self) -> int:
        """As many as were asked for, if there is an update for each."""
        updates = max(self._with_orders // self.largest_update, 0)
        rounds = range(min(self.rounds, updates), -1, -1)
        return next(n for n in rounds if self.played(n, self._drop_round(n)) <= updates)

    @property
    def drop_round(self) -> int:
        """After this round some trainings are dropped; 0 if all go on."""
        return self._drop_round(self.num_rounds)

    def _drop_round(self, rounds: int) -> int:
        return min(rounds, max(int(DROP_SHARE * rounds), 1)) if self._drops_some else 0

    def played(self, rounds: int, drop_round: int) -> int:
        """Return how many rounds of single trainings there are in so many rounds, if some are dropped after `drop_round`."""
        of_all = min(rounds, drop_round)
        return self.trainings * of_all + self.replicates * (rounds - of_all)

    @property
    def _with_orders(self) -> int:
        """Training episodes with orders, of all trainings."""
        return self.total_episodes - self.trainings * self.base

    @property
    def _longest(self) -> int:
        """Training episodes with orders of one that goes on to the end, about."""
        return self._with_orders * self.rounds // self.played(self.rounds, self._drop_round(self.rounds))

    @cached_property
    def _larger(self) -> tuple[int, float]:
        """How many times the episodes an update with orders has, and the rate."""
        enough = (pair for pair in _ORDERS_UPDATES if self._longest >= _ENOUGH * pair[0] * self.update)
        return next(enough, (1, 1.0))

    @property
    def is_long(self) -> bool:
        """Is there enough training with orders for prices to settle?"""
        return self._longest >= max(_LONG_ENOUGH, _ENOUGH * self._larger[0] * self.update)

    @property
    def can_settle(self) -> bool:
        """Can there be an answer: is training long enough, and are there trainings enough to tell them apart?"""
        return self.is_long and self.replicates >= FEWEST_REPLICATES

    def enough(self, usual: int) -> int:
        """Return how many to try where these did not settle, with as many trainings as are needed; at least the usual."""
        if self.can_settle:
            return 2 * self.total_episodes
        replicates = max(self.replicates, FEWEST_REPLICATES)
        longer = replace(self, replicates=replicates, trainings=max(self.trainings, replicates))
        budget = max(self.total_episodes, usual)
        while not replace(longer, total_episodes=budget).is_long:
            budget *= 2
        return budget

    @property
    def largest_update(self) -> int:
        """Episodes of the last updates with orders; those of a round are a multiple, so that it ends with an update."""
        times = self._larger[0]
        return (2 * times if times > 1 else 1) * self.update

    @cached_property
    def round_episodes(self) -> int:
        """Training episodes of one network in one round, in whole updates."""
        played = self.played(self.num_rounds, self.drop_round)
        return self._with_orders // played // self.largest_update * self.largest_update

    @property
    def orders(self) -> int:
        """Training episodes with orders of the one that goes on to the end."""
        return self.round_episodes * self.num_rounds

    def update_sizes(self, learning_rate: float) -> dict[str, object]:
        """Return the settings of updates with orders, given the usual learning rate."""
        (times, faster), last = self._larger, self.largest_update
        begins = [int(share * self.orders) // last * last for share in _GROWTH] if times > 1 else []
        return {
            "episodes_per_update": max(times // 2, 1) * self.update,
            "growth": tuple(zip(begins, (2, 4), strict=False)),
            "learning_rate": learning_rate * faster,
        }
