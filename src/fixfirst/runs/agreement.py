"""What several searches say together: whether seeds agree, and whether a rule is good in every world.

A world is an attacker in a variant, met with some memory; searches in one world differ in their seeds. Following "a before
b" where the opposite is better has a cost. A rule is good in all worlds only if it is shown to be worth something in one of
them, and if in each of the others its cost is shown to be within the margin. What is not shown is open.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from fixfirst.runs.answer import NO_ANSWER, Answer, list_words
from fixfirst.runs.seeds import mean_interval

FEW_SEEDS = 3  # fewer give no interval
Pair = tuple[str, str]


class Verdict(StrEnum):
    """What one search, or one world, says of fixing one unit type before another."""

    SHOWN = "shown"  # it is worth something
    WITHIN = "within"  # it costs nothing, or no more than the margin
    AGAINST = "against"  # it costs something
    DIVIDED = "divided"  # seeds contradict each other
    OPEN = "open"


def _judge(answer: Answer, pair: Pair) -> Verdict:
    """Say what one search says of a pair."""
    if not answer.is_settled:
        return Verdict.OPEN
    if set(pair) & set(answer.idle):
        return Verdict.WITHIN  # red never holds one of them: their order is all the same
    swap = answer.worth(*pair)
    if swap is None or swap.low is None or swap.high is None:
        return Verdict.OPEN
    if swap.low > 0 and swap.high > answer.margin:
        return Verdict.SHOWN
    if swap.low >= -answer.margin:
        return Verdict.WITHIN
    return Verdict.AGAINST if swap.high < 0 else Verdict.OPEN


@dataclass(frozen=True)
class _World:
    """The searches in one world."""

    name: str
    answers: tuple[Answer, ...]

    @property
    def is_settled(self) -> bool:
        """Have more than half of the seeds an answer?"""
        return 2 * sum(answer.is_settled for answer in self.answers) > len(self.answers)

    @cached_property
    def pairs(self) -> list[Pair]:
        """All precedences that some seed shows to matter; the dearest first."""
        prices: dict[Pair, float] = {}
        for answer in self.answers:
            for swap in answer.that_matter if answer.is_settled else ():
                prices.setdefault((swap.first, swap.second), swap.price)
        return sorted(prices, key=lambda pair: (-prices[pair], pair))

    def seeds(self, pair: Pair) -> Counter[Verdict]:
        """How many seeds say what of a pair."""
        return Counter(_judge(answer, pair) for answer in self.answers)

    def judge(self, pair: Pair) -> Verdict:
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

    def worth(self, pair: Pair) -> str:
        """What a pair is worth here, over all seeds that have an answer."""
        swaps = [swap for a in self.answers if a.is_settled and (swap := a.worth(*pair)) is not None]
        if len(swaps) == 1:
            return f"{swaps[0].price:.2f} (95 %: {swaps[0].low:.2f} to {swaps[0].high:.2f})"
        mean, low, high = mean_interval([swap.price for swap in swaps])
        if len(swaps) < FEW_SEEDS or low is None or high is None:
            return f"{mean:.2f} (too few seeds for an interval over seeds)"
        return f"{mean:.2f} (95 % over seeds: {low:.2f} to {high:.2f})"

    def doubt(self, pair: Pair) -> str:
        """Why a pair is not shown to be good here."""
        verdict, (a, b) = self.judge(pair), pair
        if not self.is_settled:
            return "there is no answer yet"
        if verdict == Verdict.AGAINST:
            return f"{b} before {a} is worth {self.worth((b, a))}"
        if verdict == Verdict.DIVIDED:
            return "seeds contradict each other"
        swaps = [swap for answer in self.answers if (swap := answer.worth(a, b)) is not None and swap.low is not None]
        return f"it may cost up to {max(-swap.low for swap in swaps if swap.low is not None):.2f}" if swaps else "it is open"

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
            bounds = [max((s.at_most for s in answer.swaps), default=0.0) for answer in self.answers if answer.is_settled]
            texts.append(f"No order is shown to be better than another (less than {max(bounds):.2f} in every seed).")
        return tuple(texts)

    def _next(self) -> str:
        return f"try {max(answer.next_episodes for answer in self.answers):,} episodes"


@dataclass(frozen=True)
class Agreement:
    """What the searches of a study say together.

    For example:

        study = ff.search(red_agent="b_line,meander", total_episodes=2_000, out="runs/both", quiet=True)
        print(study.agreement.rule, *study.agreement.sentences, sep="\\n")
    """

    worlds: tuple[_World, ...]

    @classmethod
    def of(cls, answers: Sequence[Answer]) -> "Agreement":
        """Group answers by their worlds."""
        groups: dict[tuple[str, str, str], list[Answer]] = {}
        for answer in answers:
            groups.setdefault((answer.red_agent, answer.variant, answer.memory), []).append(answer)
        differing = [place for place in (1, 2) if len({key[place] for key in groups}) > 1]
        words = ("", "variant ", "memory ")
        names = (", ".join([key[0], *(f"{words[place]}{key[place]}" for place in differing)]) for key in groups)
        return cls(tuple(_World(name, tuple(of)) for name, of in zip(names, groups.values(), strict=True)))

    @cached_property
    def shown(self) -> list[Pair]:
        """Precedences that are shown to matter in some world."""
        found = (pair for world in self.worlds for pair in world.pairs if world.judge(pair) == Verdict.SHOWN)
        return list(dict.fromkeys(found))

    def is_good(self, pair: Pair) -> bool:
        """Is it shown in every world that following it costs no more than the margin?"""
        return all(world.judge(pair) in (Verdict.SHOWN, Verdict.WITHIN) for world in self.worlds)

    @property
    def rule(self) -> str:
        """The rule that is good in all worlds, in a few words."""
        good = [f"{a} before {b}" for a, b in self.shown if self.is_good((a, b))]
        if good:
            return f"Fix {list_words(good)}"
        if self.shown:
            return "No rule is shown to be good against all of them"
        settled = all(world.is_settled for world in self.worlds)
        return "No order is shown to be better than another" if settled else NO_ANSWER

    @property
    def sentences(self) -> tuple[str, ...]:
        """Why a rule that holds somewhere is not good everywhere; then what each world says."""
        texts = []
        for a, b in self.shown:
            there = [world.name for world in self.worlds if world.judge((a, b)) == Verdict.SHOWN]
            bad = [world for world in self.worlds if world.judge((a, b)) not in (Verdict.SHOWN, Verdict.WITHIN)]
            if bad:
                doubts = list_words([f"against {world.name} {world.doubt((a, b))}" for world in bad])
                texts.append(f"{a.capitalize()} before {b} is shown against {list_words(there)}, but {doubts}.")
        return (*texts, *(f"Against {world.name}: {' '.join(world.sentences)}" for world in self.worlds))
