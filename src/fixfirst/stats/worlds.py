"""What the searches in one world say together: whether fixing one unit type before another is shown to be good there.

A world is an attacker in a network and a variant, met with some memory; searches in one world differ in their seeds.
Following "a before b" where the opposite is better has a cost.
"""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from fixfirst.base import errors
from fixfirst.stats.answer import NO_ANSWER, Answer, no_effect_text, round_up
from fixfirst.stats.intervals import mean_interval
from fixfirst.stats.network_facts import NetworkFacts, Pair
from fixfirst.stats.pricing import Swap

FEW_SEEDS = 3  # fewer give no interval


class Verdict(StrEnum):
    """What one search, or one world, says of fixing one unit type before another."""

    SHOWN = "shown"  # it is worth more than the margin
    WITHIN = "within"  # it costs nothing, or no more than the margin
    AGAINST = "against"  # it costs more than the margin
    DIVIDED = "divided"  # seeds contradict each other
    OPEN = "open"


_OF_SEEDS = {
    Verdict.SHOWN: "show it",
    Verdict.WITHIN: "show that it makes no difference",
    Verdict.AGAINST: "show the opposite",
    Verdict.OPEN: "leave it open",
}


def _judge(answer: Answer, pair: Pair) -> Verdict:
    """Say what one search says of a pair."""
    if not answer.is_settled:
        return Verdict.OPEN
    if set(pair) & set(answer.idle):
        return Verdict.WITHIN  # red never holds one of them: their order is all the same
    swap = answer.worth(*pair)
    if swap is None or swap.low is None or swap.high is None:
        return Verdict.OPEN
    if swap.low > answer.margin:
        return Verdict.SHOWN
    if swap.low >= -answer.margin:
        return Verdict.WITHIN
    return Verdict.AGAINST if swap.high < -answer.margin else Verdict.OPEN


@dataclass(frozen=True)
class SearchedWorld:
    """The searches in one world."""

    attacker: str  # and what else differs between the worlds of a study but the network
    answers: tuple[Answer, ...]
    network: NetworkFacts | None = None  # where worlds of several networks are compared

    @property
    def name(self) -> str:
        return self.attacker if self.network is None else f"{self.attacker} in {self.network.name}"

    def has(self, pair: Pair) -> bool:
        """Are there both unit types?"""
        return {*pair} <= {*self.answers[0].units}

    @cached_property
    def settled(self) -> tuple[Answer, ...]:
        """The searches that have an answer."""
        return tuple(answer for answer in self.answers if answer.is_settled)

    @property
    def is_settled(self) -> bool:
        """Have more than half of the seeds an answer?"""
        return 2 * len(self.settled) > len(self.answers)

    @cached_property
    def pairs(self) -> list[Pair]:
        """All precedences that some seed shows to matter; the dearest first."""
        prices: dict[Pair, float] = {}
        for answer in self.settled:
            for swap in answer.significant_swaps:
                prices.setdefault((swap.first, swap.second), swap.price)
        return sorted(prices, key=lambda pair: (-prices[pair], pair))

    def seeds(self, pair: Pair) -> Counter[Verdict]:
        """Return how many seeds say what of a pair."""
        return Counter(_judge(answer, pair) for answer in self.answers)

    def judge(self, pair: Pair) -> Verdict:
        """Say what its seeds say of a pair: what more than half of them do, and none contradicts."""
        votes, half = self.seeds(pair), len(self.answers) / 2
        if votes[Verdict.AGAINST]:
            return Verdict.DIVIDED if votes[Verdict.SHOWN] else Verdict.AGAINST
        if votes[Verdict.SHOWN] > half:
            return Verdict.SHOWN
        return Verdict.WITHIN if votes[Verdict.SHOWN] + votes[Verdict.WITHIN] > half else Verdict.OPEN

    def swaps(self, pair: Pair) -> list[Swap]:
        """Return what the seeds that have an answer, and compared a pair, say it is worth."""
        return [swap for answer in self.settled if (swap := answer.worth(*pair)) is not None]

    def cost(self, pairs: list[Pair]) -> float | None:
        """Return how much less the best order earns that has all of these the right way round; None if there is none."""
        costs = []
        for answer in self.settled if self.is_settled else ():
            asked = [(a, b) for a, b in pairs if not {a, b} & {*answer.idle}]
            means = [(order.mean, order.workflow.split(" > ")) for order in answer.orders]
            following = [mean for mean, units in means if all(units.index(a) < units.index(b) for a, b in asked)]
            if following:
                costs.append(max(mean for mean, _ in means) - max(following))
        return float(np.mean(costs)) if costs else None

    def worth(self, pair: Pair) -> str:
        """Say what a pair is worth here, over all seeds that have an answer."""
        swaps = self.swaps(pair)
        if len(swaps) == 1:
            return f"{swaps[0].price:.2f} (95 %: {swaps[0].low:.2f} to {swaps[0].high:.2f})"
        mean, low, high = mean_interval([swap.price for swap in swaps])
        if len(swaps) < FEW_SEEDS:
            return f"{mean:.2f} (too few seeds for an interval over seeds)"
        return f"{mean:.2f} (95 % over seeds: {low:.2f} to {high:.2f})"

    def doubt(self, pair: Pair) -> str:
        """Say why a pair is not shown to be good here."""
        verdict, (a, b) = self.judge(pair), pair
        if not self.is_settled:
            return "there is no answer yet"
        if verdict == Verdict.AGAINST:
            return f"{b} before {a} is worth {self.worth((b, a))}"
        if verdict == Verdict.DIVIDED:
            return "seeds contradict each other"
        lows = [swap.low for answer in self.answers if (swap := answer.worth(a, b)) is not None and swap.low is not None]
        return f"it may cost up to {round_up(-min(lows))}" if lows else "it is open"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is shown here, and what its seeds do not agree on."""
        count, waiting = len(self.answers), len(self.answers) - len(self.settled)
        if count == 1:
            return (self.answers[0].sentences[0],)
        following = max(answer.next_episodes for answer in self.answers)
        texts = [f"{NO_ANSWER} in {waiting} of {count} seeds: try {following:,} episodes."] if waiting else []
        for number, pair in enumerate(self.pairs):
            (a, b), votes = pair, self.seeds(pair)
            if self.judge(pair) == Verdict.SHOWN:
                shown = f"{votes[Verdict.SHOWN]} of {count} seeds show it"
                texts.append(f"Fix {a} before {b}, worth {self.worth(pair)}; {shown}.")
            is_first = (b, a) not in self.pairs[:number]
            if is_first and len(votes) > 1 and votes.keys() - {Verdict.OPEN} != {Verdict.SHOWN}:
                votes_in_words = [f"{votes[verdict]} {text}" for verdict, text in _OF_SEEDS.items() if votes[verdict]]
                texts.append(f"Seeds disagree about {a} before {b}: of {count}, {errors.list_words(votes_in_words)}.")
        if not self.pairs and self.settled:
            bound = round_up(max((s.at_most for answer in self.settled for s in answer.swaps), default=0.0))
            texts.append(f"No {no_effect_text(self.settled)} (less than {bound} in every seed).")
        return tuple(texts)
