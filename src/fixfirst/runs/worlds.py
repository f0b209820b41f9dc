"""What searches in one world say together: whether its seeds agree, and what they say of fixing one type before another.

A world is an attacker in a network and a variant, met with some memory; searches in one world differ in their seeds.
"""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from fixfirst.orders import network_facts
from fixfirst.runs.answer import NO_ANSWER, Answer, list_words, nothing_shown, round_up
from fixfirst.runs.seeds import mean_interval

FEW_SEEDS = 3  # fewer give no interval


class Verdict(StrEnum):
    """What one search, or one world, says of fixing one unit type before another."""

    SHOWN = "shown"  # it is worth more than the margin
    WITHIN = "within"  # it costs nothing, or no more than the margin
    AGAINST = "against"  # it costs more than the margin
    DIVIDED = "divided"  # seeds contradict each other
    OPEN = "open"


def _judge(answer: Answer, pair: network_facts.Pair) -> Verdict:
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
    network: network_facts.NetworkFacts | None = None  # where worlds of several networks are compared

    @property
    def name(self) -> str:
        return self.attacker if self.network is None else f"{self.attacker} in {self.network.name}"

    def has(self, pair: network_facts.Pair) -> bool:
        """Are there both unit types?"""
        return {*pair} <= {*self.answers[0].units}

    @property
    def is_settled(self) -> bool:
        """Have more than half of the seeds an answer?"""
        return 2 * sum(answer.is_settled for answer in self.answers) > len(self.answers)

    @cached_property
    def pairs(self) -> list[network_facts.Pair]:
        """All precedences that some seed shows to matter; the dearest first."""
        prices: dict[network_facts.Pair, float] = {}
        for answer in self.answers:
            for swap in answer.that_matter if answer.is_settled else ():
                prices.setdefault((swap.first, swap.second), swap.price)
        return sorted(prices, key=lambda pair: (-prices[pair], pair))

    def seeds(self, pair: network_facts.Pair) -> Counter[Verdict]:
        """How many seeds say what of a pair."""
        return Counter(_judge(answer, pair) for answer in self.answers)

    def judge(self, pair: network_facts.Pair) -> Verdict:
        """Say what its seeds say of a pair: what more than half of them do, and none contradicts."""
        seen = self.seeds(pair)
        if seen[Verdict.AGAINST]:
            return Verdict.DIVIDED if seen[Verdict.SHOWN] else Verdict.AGAINST
        for verdict, votes in (
            (Verdict.SHOWN, seen[Verdict.SHOWN]),
            (Verdict.WITHIN, seen[Verdict.SHOWN] + seen[Verdict.WITHIN]),
        ):
            if 2 * votes > len(self.answers):
                return verdict
        return Verdict.OPEN

    def price(self, pair: network_facts.Pair) -> float | None:
        """What a pair is worth here, over all seeds that have an answer; None where it was not compared."""
        found = [swap.price for a in self.answers if a.is_settled and (swap := a.worth(*pair)) is not None]
        return float(np.mean(found)) if found else None

    def cost(self, pairs: list[network_facts.Pair]) -> float | None:
        """How much less the best order earns that has all of these the right way round; None if there is none."""
        costs = []
        for answer in self.answers if self.is_settled else ():
            held = [(a, b) for a, b in pairs if not {a, b} & {*answer.idle}]
            places = [(order.mean, order.workflow.split(" > ")) for order in answer.orders]
            following = [mean for mean, units in places if all(units.index(a) < units.index(b) for a, b in held)]
            if following:
                costs.append(max(mean for mean, _ in places) - max(following))
        return float(np.mean(costs)) if costs else None

    def worth(self, pair: network_facts.Pair) -> str:
        """What a pair is worth here, over all seeds that have an answer."""
        swaps = [swap for a in self.answers if a.is_settled and (swap := a.worth(*pair)) is not None]
        if len(swaps) == 1:
            return f"{swaps[0].price:.2f} (95 %: {swaps[0].low:.2f} to {swaps[0].high:.2f})"
        mean, low, high = mean_interval([swap.price for swap in swaps])
        if len(swaps) < FEW_SEEDS or low is None or high is None:
            return f"{mean:.2f} (too few seeds for an interval over seeds)"
        return f"{mean:.2f} (95 % over seeds: {low:.2f} to {high:.2f})"

    def doubt(self, pair: network_facts.Pair) -> str:
        """Why a pair is not shown to be good here."""
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
        count = len(self.answers)
        if count == 1:
            return (self.answers[0].sentences[0],)
        waiting = sum(not answer.is_settled for answer in self.answers)
        texts = [f"{NO_ANSWER} in {waiting} of {count} seeds: {self._next()}."] if waiting else []
        for pair in self.pairs:
            (a, b), seen = pair, self.seeds(pair)
            if self.judge(pair) == Verdict.SHOWN:
                texts.append(
                    f"Fix {a} before {b}, worth {self.worth(pair)}; {seen[Verdict.SHOWN]} of {count} seeds show it."
                )
            if (
                (b, a) not in self.pairs[: self.pairs.index(pair)]
                and len(seen) > 1
                and seen.keys() - {Verdict.OPEN} != {Verdict.SHOWN}
            ):
                words = {
                    Verdict.SHOWN: "show it",
                    Verdict.WITHIN: "show that it makes no difference",
                    Verdict.AGAINST: "show the opposite",
                    Verdict.OPEN: "leave it open",
                }
                said = [f"{seen[verdict]} {text}" for verdict, text in words.items() if seen[verdict]]
                texts.append(f"Seeds disagree about {a} before {b}: of {count}, {list_words(said)}.")
        if not self.pairs and waiting < count:
            known = [answer for answer in self.answers if answer.is_settled]
            bound = round_up(max((s.at_most for answer in known for s in answer.swaps), default=0.0))
            texts.append(f"No {nothing_shown(known)} (less than {bound} in every seed).")
        return tuple(texts)

    def _next(self) -> str:
        return f"try {max(answer.next_episodes for answer in self.answers):,} episodes"
