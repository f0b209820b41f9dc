"""How the training episodes of a search are divided, if one network learns all orders."""

from dataclasses import dataclass

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
    """Training episodes of a search, as they are divided (`divide`): all in whole updates."""

    trainings: int  # that begin
    replicates: int  # that go on
    base: int  # episodes of a training before there are orders
    num_rounds: int  # as many as were asked for, if there is an update for each
    drop_round: int  # after this round some trainings are dropped; 0 if all go on
    update: int  # episodes of an update without orders
    times: int  # how many times as many one with orders has, in the middle
    faster: float  # and how many times the learning rate
    largest_update: int  # episodes of the last updates with orders
    round_episodes: int  # of one network in one round
    is_long: bool  # is there enough training with orders for prices to settle?

    @property
    def can_settle(self) -> bool:
        """Can there be an answer: is training long enough, and are there trainings enough to tell them apart?"""
        return self.is_long and self.replicates >= FEWEST_REPLICATES

    @property
    def orders(self) -> int:
        """Training episodes with orders of the one that goes on to the end."""
        return self.round_episodes * self.num_rounds

    def used(self, rounds: int) -> int:
        """Return the training episodes of all trainings in the first rounds, and before them."""
        of_all = min(rounds, self.drop_round)
        single = self.trainings * of_all + self.replicates * (rounds - of_all)
        return self.trainings * self.base + single * self.round_episodes

    def update_sizes(self, learning_rate: float) -> dict[str, object]:
        """Return the settings of updates with orders, given the usual learning rate."""
        last = self.largest_update
        begins = [int(share * self.orders) // last * last for share in _GROWTH] if self.times > 1 else []
        return {
            "episodes_per_update": max(self.times // 2, 1) * self.update,
            "growth": tuple(zip(begins, (2, 4), strict=False)),
            "learning_rate": learning_rate * self.faster,
        }


def divide(total: int, update: int, base_episodes: int, rounds: int, replicates: int, trainings: int) -> Budget:
    """Divide the episodes of all trainings. base_episodes: wanted before there are orders; rounds: wanted with orders."""
    drops_some = trainings > replicates
    wanted = base_episodes // 2 if drops_some else base_episodes
    base = max(min(wanted, int(total // trainings * _BASE_SHARE)) // update, 1) * update
    with_orders = total - trainings * base

    def drop_round(rounds: int) -> int:
        return min(rounds, max(int(DROP_SHARE * rounds), 1)) if drops_some else 0

    def single(rounds: int) -> int:  # of single trainings
        return trainings * drop_round(rounds) + replicates * (rounds - drop_round(rounds))

    longest = with_orders * rounds // single(rounds)  # episodes of one that goes on to the end, about
    enough = (pair for pair in _ORDERS_UPDATES if longest >= _ENOUGH * pair[0] * update)
    times, faster = next(enough, (1, 1.0))
    largest = (2 * times if times > 1 else 1) * update  # a round is a multiple, so that it ends with an update
    updates = max(with_orders // largest, 0)
    num_rounds = next(n for n in range(min(rounds, updates), -1, -1) if single(n) <= updates)
    return Budget(
        trainings=trainings,
        replicates=replicates,
        base=base,
        num_rounds=num_rounds,
        drop_round=drop_round(num_rounds),
        update=update,
        times=times,
        faster=faster,
        largest_update=largest,
        round_episodes=with_orders // single(num_rounds) // largest * largest if num_rounds else 0,
        is_long=longest >= max(_LONG_ENOUGH, _ENOUGH * times * update),
    )
