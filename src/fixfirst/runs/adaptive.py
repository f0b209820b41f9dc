"""The second line of an answer: what orders are worth against an attacker who adapts to the defender and its order."""

from collections.abc import Sequence
from dataclasses import dataclass

from fixfirst.orders import pricing

ENOUGH_REPLICATES = 3


@dataclass(frozen=True)
class Adaptive:
    """Prices against the best attackers found; by replicates, in each of which both sides were trained anew."""

    replicates: int
    rounds: int  # how often defenders learned against attackers that answered them; 0: they stayed as the search left them
    swaps: tuple[pricing.Swap, ...]  # history: after each round, the first without any
    orders: tuple[pricing.PricedOrder, ...]  # best first
    directions: tuple[tuple[str, str], ...] = ()  # swaps whose direction all replicates show, also if the price still falls
    scripted: tuple[float, ...] = ()  # what the same defenders earn under each order against the search's own attacker
    long_enough: bool = True  # did both sides learn for long enough?

    @property
    def has_answer(self) -> bool:
        """Were there enough replicates, and did both sides learn for long enough?"""
        return self.long_enough and self.replicates >= ENOUGH_REPLICATES

    @property
    def lead(self) -> str:
        """Against whom."""
        if self.rounds:
            return "Against an attacker who adapts"
        return "Against an attacker who learns while the defender stays as it is"

    @property
    def rule(self) -> str:
        """The rule in a few words, e.g. "fix op_server first, then enterprise"; empty if none is shown."""
        before: dict[str, set[str]] = {}
        for first, second in self.directions:
            before.setdefault(first, set())
            before.setdefault(second, set()).add(first)
        ranked = sorted(before, key=lambda unit: len(before[unit]))
        units = {unit for swap in self.swaps for unit in (swap.first, swap.second)}
        if before and len(before) == len(units) and [len(before[unit]) for unit in ranked] == list(range(len(ranked))):
            return f"fix {ranked[0]} first" + "".join(f", then {unit}" for unit in ranked[1:-1])
        pairs = [f"{first} before {second}" for first, second in self.directions]
        return f"fix {_and(pairs)}" if pairs else ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a person should read."""
        return self._verdict(), self._taken()

    def _verdict(self) -> str:
        if not self.has_answer:
            few = f"there are {self.replicates} replicates, at least {ENOUGH_REPLICATES} are needed"
            why = few if self.long_enough else "attackers or defenders learned for too short"
            so_far = ", ".join(f"{s.first} before {s.second} {s.price:.1f}" for s in self.swaps)
            return f"{self.lead} there is no answer yet: {why}. Prices so far, which may be far off: {so_far}."
        if not self.rule:
            return f"{self.lead} no rule is shown: replicates do not agree, or prices may still fall to nothing."
        shown = [swap for swap in self.swaps if (swap.first, swap.second) in self.directions]
        worth = [f"{s.first} before {s.second} {_price(s)}" for s in shown]
        open_ = [f"{s.first} before {s.second}" for s in self.swaps if s not in shown]
        rest = f" Open: {_and(open_)}." if open_ else ""
        return f"{self.lead}: {self.rule}; worth {_and(worth)} points an episode.{rest}"

    def _taken(self) -> str:
        best, worst = self.orders[0], self.orders[-1]
        return (
            f"The best attackers found leave {best.mean:.0f} under the best order and {worst.mean:.0f} under the worst; "
            "better ones may take more."
        )


def _price(swap: pricing.Swap) -> str:
    if swap.low is None or swap.high is None:
        return f"at most {swap.price:.1f}"
    return f"{swap.price:.1f} (95 %: {swap.low:.1f} to {swap.high:.1f})"


def _and(texts: Sequence[str]) -> str:
    return ", ".join(texts) if len(texts) < 2 else f"{', '.join(texts[:-1])} and {texts[-1]}"
