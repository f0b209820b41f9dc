"""What several searches say together: whether a rule is good in every world.

Following "a before b" where the opposite is better has a cost. A rule is good in all worlds only if it is shown to be worth
something in one of them, and if in each of the others its cost is shown to be within the margin. What is not shown is open.
Worlds without one of the two unit types have no say.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np

from fixfirst.base import distributions, errors, tables
from fixfirst.stats import intervals
from fixfirst.stats.across_seeds import SearchedWorld, Verdict
from fixfirst.stats.answer import NO_ANSWER, Answer, nothing_shown
from fixfirst.stats.network_facts import NetworkFacts, Pair

# ---------------------------------------------------------------- in several networks
#
# How often a rule holds, what it costs where it is wrong, what decides.
#
# A rule names a precedence in every network: the same two unit types everywhere, or the two that a property of the network
# ranks, such as their value. In one world (an attacker in a network) it is judged by the prices of the swaps it names:
#
#     it costs something    one of them is shown to cost more than the margin
#     open                  else, if what one of them costs is not shown to be within the margin
#     worth something       else, if one of them is shown to be worth more than the margin
#     harmless              else
#
# It holds in a world where it is worth something or harmless. The share of worlds in which it holds is one of
# those that tell; its interval is that of Clopper and Pearson. What a rule costs where it is wrong is the return under the
# best order less that under the best order that follows it, with a t-interval over networks.
#
# What decides is looked for by splits: networks with more of one property than the median are compared with the others. One
# split for each property, named before prices are looked at; Welch's t-interval, for all splits of a pair at once
# (Bonferroni). Networks that were drawn at random tell what a property does; of others a split says what goes together.

_FEWEST_ASIDE = 4  # networks on either side of a split; fewer are not compared
_MOST_NAMED = 4  # networks of one sentence
INDIFFERENT = "no order matters"  # counted like a rule: it is wrong where some order does
_VALUE, _NEAREST = "the most valuable type", "the type nearest to the target"


@dataclass(frozen=True)
class _Rule:
    """A precedence that can be named in every network."""

    name: str  # e.g. "the most valuable type first", "enterprise before user"
    pairs: Callable[[NetworkFacts], list[Pair]]


_GENERAL = (
    _Rule(f"{_VALUE} first", lambda network: network.ranked(lambda traits: -traits.value)),
    _Rule(f"{_NEAREST} first", lambda network: network.ranked(lambda t: math.inf if t.distance is None else t.distance)),
)


def _same(pair: Pair) -> _Rule:
    """Return the rule that names the same two unit types everywhere."""
    return _Rule(f"{pair[0]} before {pair[1]}", lambda network: [pair] if {*pair} <= {*network.units} else [])


@dataclass(frozen=True)
class Tally:
    """How often a rule holds against one attacker, and what it costs where it does not."""

    rule: str
    attacker: str
    worth: int  # worlds in which it is worth something
    harmless: int
    wrong: int  # in which it costs something
    open: int
    costs: tuple[float, ...]  # in points an episode, where it is wrong
    wrong_in: tuple[str, ...] = ()  # networks
    worth_in: tuple[str, ...] = ()

    @property
    def told(self) -> int:
        """In how many worlds one can tell."""
        return self.worth + self.harmless + self.wrong

    @property
    def holds(self) -> int:
        return self.worth + self.harmless

    @property
    def share(self) -> tuple[float, float] | None:
        """Return between what the share of worlds lies in which it holds, 95 %; None where none tells."""
        k, n, tail = self.holds, self.told, (1 - distributions.CONFIDENCE) / 2
        if not n:
            return None
        low = 0.0 if k == 0 else distributions.beta_quantile(k, n - k + 1, tail)
        return low, 1.0 if k == n else distributions.beta_quantile(k + 1, n - k, 1 - tail)

    @property
    def counted(self) -> str:
        """Say in how many networks it holds, of those decided, and between what that share lies."""
        if self.share is None:
            return f"open in all {self.open}"
        low, high = (f"{100 * bound:.0f}" for bound in self.share)
        return f"{self.holds} of {self.told} ({low} to {high} %)"

    @property
    def cost(self) -> str:
        """Say what it costs where it is wrong: the mean, and the least and the most; empty where it costs nothing."""
        if not self.costs:
            return ""
        low, high = (f"{end:.1f}" for end in (min(self.costs), max(self.costs)))
        return f"{np.mean(self.costs):.1f} points an episode" + (f" ({low} to {high})" if low != high else "")

    def __str__(self) -> str:
        """Say it without the rule: in how many networks it holds against whom, and where it is wrong."""
        if self.share is None:
            return f"is open in all {self.open} networks against {self.attacker}"
        low, high = (f"{100 * bound:.0f}" for bound in self.share)
        facts = [f"95 %: {low} to {high} %"]
        if self.rule != INDIFFERENT:
            facts.append(f"worth something in {self.worth}{_named(self.worth_in)}")
            facts += [f"wrong in {self.wrong}{_named(self.wrong_in)}, at {self.cost}"] if self.costs else []
        facts += [f"open in {self.open}"] if self.open else []
        holds = "in" if self.rule == INDIFFERENT else "holds in"
        return f"{holds} {self.holds} of {self.told} decided networks against {self.attacker} ({'; '.join(facts)})"


@dataclass(frozen=True)
class Split:
    """What a pair is worth in networks with more of a property than the median, less what it is worth in the others."""

    pair: Pair
    attacker: str
    trait: str
    above: float  # the median
    more: int  # networks above it
    fewer: int
    mean_more: float
    mean_fewer: float
    low: float  # of the difference, for all splits of the pair at once
    high: float

    @property
    def difference(self) -> float:
        return self.mean_more - self.mean_fewer

    @property
    def is_shown(self) -> bool:
        """Is it more than chance?"""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return (
            f"{self.pair[0]} before {self.pair[1]} is worth {self.mean_more:.1f} where {self.trait} is above "
            f"{self.above:g} ({self.more} networks) and {self.mean_fewer:.1f} elsewhere ({self.fewer}); difference "
            f"{self.difference:+.1f} (95 %: {self.low:.2f} to {self.high:.2f})"
        )


@dataclass(frozen=True)
class Survey(tables.Tabular):
    """Several networks together."""

    worlds: tuple[SearchedWorld, ...]  # each of one network

    @cached_property
    def networks(self) -> dict[str, NetworkFacts]:
        """Return the networks by digest."""
        return {world.network.digest: world.network for world in self.worlds if world.network is not None}

    @cached_property
    def attackers(self) -> dict[str, list[SearchedWorld]]:
        """Return the worlds of each attacker, under its name."""
        groups: dict[str, list[SearchedWorld]] = {}
        for world in self.worlds:
            groups.setdefault(world.attacker, []).append(world)
        return groups

    @cached_property
    def pairs(self) -> list[Pair]:
        """Return the precedences that are worth something in some world; those of most worlds first."""
        votes: Counter[Pair] = Counter()
        for world in self.worlds:
            votes.update(pair for pair in world.pairs if world.judge(pair) == Verdict.SHOWN)
        return sorted(votes, key=lambda pair: (-votes[pair], pair))

    @property
    def rules(self) -> tuple[_Rule, ...]:
        """Return what is asked: two general rules, and each of these pairs."""
        return *_GENERAL, *map(_same, self.pairs)

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """Return how often each rule holds, against each attacker."""
        return tuple(self._tally(rule, name, worlds) for name, worlds in self.attackers.items() for rule in self.rules)

    def _tally(self, rule: _Rule, attacker: str, worlds: Sequence[SearchedWorld]) -> Tally:
        found: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
        costs = []
        for world in worlds:
            pairs = [] if world.network is None else rule.pairs(world.network)
            if world.network is None or not pairs:
                continue
            verdict = _together([world.judge(pair) for pair in pairs])
            found[verdict].append(world.network.name)
            if verdict == Verdict.AGAINST and (cost := world.cost(pairs)) is not None:
                costs.append(cost)
        return Tally(
            rule.name,
            attacker,
            worth=len(found[Verdict.SHOWN]),
            harmless=len(found[Verdict.WITHIN]),
            wrong=len(found[Verdict.AGAINST]),
            open=len(found[Verdict.OPEN]),
            costs=tuple(costs),
            wrong_in=tuple(found[Verdict.AGAINST]),
            worth_in=tuple(found[Verdict.SHOWN]),
        )

    @cached_property
    def indifferent(self) -> dict[str, tuple[int, int]]:
        """Return in how many worlds no order matters, against each attacker; and in how many one can tell."""
        found = {}
        for name, worlds in self.attackers.items():
            verdicts = [_together([w.judge(p) for p in _all_pairs(w)]) for w in worlds]
            found[name] = verdicts.count(Verdict.WITHIN), sum(verdict != Verdict.OPEN for verdict in verdicts)
        return found

    @property
    def all_tallies(self) -> tuple[Tally, ...]:
        """Return the tallies rule by rule, and in how many networks no order matters: it does in the others told."""
        rules = [rule.name for rule in self.rules]
        ranked = sorted(self.tallies, key=lambda tally: rules.index(tally.rule))  # attackers keep their places
        none = []
        for name, (count, told) in self.indifferent.items():
            open_ = len(self.attackers[name]) - told
            none.append(Tally(INDIFFERENT, name, worth=0, harmless=count, wrong=told - count, open=open_, costs=()))
        return (*ranked, *none)

    @cached_property
    def splits(self) -> tuple[Split, ...]:
        """Return what each property does to the price of every two types that are asked about; the surest first."""
        pairs = [pair for place, pair in enumerate(self.pairs) if pair[::-1] not in self.pairs[:place]]
        found = [split for name, worlds in self.attackers.items() for pair in pairs for split in _splits(pair, name, worlds)]
        return tuple(sorted(found, key=lambda split: -abs(split.difference) / max(split.high - split.low, 1e-9)))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say what a person should read, in order."""
        settled = {name for name, worlds in self.attackers.items() if any(world.is_settled for world in worlds)}
        told = [tally for tally in self.all_tallies if tally.attacker in settled and (tally.told or tally.open)]
        texts = []
        for rule in dict.fromkeys(tally.rule for tally in told):
            said = [str(tally) for tally in told if tally.rule == rule]
            texts.append(f"{rule[0].upper()}{rule[1:]} {errors.list_words(said)}.")
        return (*self._limits(), *texts, *self.deciding)

    @property
    def beside_figures(self) -> tuple[str, ...]:
        """Say what a person should read who sees how often rules hold: what wrong ones cost, and what decides."""
        wrong = [
            f"{tally.rule[0].upper()}{tally.rule[1:]} is wrong in {_some(tally.wrong)} against {tally.attacker}"
            f"{_named(tally.wrong_in)}, at {tally.cost}."
            for tally in self.all_tallies
            if tally.costs
        ]
        return (*self._limits(), *self._never_wrong(), *wrong, *self.deciding)

    def _never_wrong(self) -> list[str]:
        """Say which rules are worth something somewhere and shown to be wrong nowhere."""
        texts = []
        for rule in self.rules:
            own = [tally for tally in self.tallies if tally.rule == rule.name and tally.told]
            if any(tally.worth for tally in own) and not any(tally.wrong for tally in own):
                texts.append(f"{rule.name} ({errors.list_words([f'{t.counted} against {t.attacker}' for t in own])})")
        return (
            [f"Shown to be wrong in no network: {errors.list_words(texts)}; in brackets, in how many it holds."]
            if texts
            else []
        )

    def _limits(self) -> list[str]:
        """Say what takes away from all that follows."""
        texts = [self._mixed()] if self._mixed() else []
        waiting = sum(not world.is_settled for world in self.worlds)
        if waiting:
            texts.append(f"There is no answer yet in {waiting} of {len(self.worlds)} worlds; they count as open.")
        return texts

    @property
    def deciding(self) -> tuple[str, ...]:
        """Say which property decides what a pair is worth, as far as that is more than chance."""
        shown = [split for split in self.splits if split.is_shown]
        if self.splits and not shown:
            return ("No property that was tried divides the networks by more than chance.",)
        if self.pairs and not self.splits:
            return (f"What decides is not known: that needs a price in {2 * _FEWEST_ASIDE} networks against one attacker.",)
        return tuple(f"Against {split.attacker}, {split}." for split in shown)

    def _mixed(self) -> str:
        """Say which unit types are not everywhere."""
        names = dict.fromkeys(name for network in self.networks.values() for name in network.units)
        counts = {name: sum(name in network.units for network in self.networks.values()) for name in names}
        rare = [f"{name} is in {count}" for name, count in counts.items() if count < len(self.networks)]
        if not rare:
            return ""
        where = f"of {len(self.networks)} networks"
        return f"Unit types differ: {where}, {errors.list_words(rare)}. Two types are compared where both are."

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        networks = [asdict(network) for network in self.networks.values()]
        tallies = [
            asdict(tally) | {"holds": tally.holds, "told": tally.told, "share": tally.share} for tally in self.tallies
        ]
        splits = [asdict(split) | {"difference": split.difference, "shown": split.is_shown} for split in self.splits]
        indifferent = {name: {"networks": count, "told": told} for name, (count, told) in self.indifferent.items()}
        return {"networks": networks, "rules": tallies, "no_order_matters": indifferent, "splits": splits}

    # ---- tables

    def table(self) -> tables.Table:
        """Return a row per rule and attacker."""
        counted = ("holds", "told", "low", "high", "worth", "harmless", "wrong", "open")
        columns = ("rule", "attacker", *counted, "cost", "counted", "wrong_in")
        rows = []
        for tally in self.all_tallies:
            low, high = tally.share or (None, None)
            counts = tally.worth, tally.harmless, tally.wrong, tally.open
            cost = float(np.mean(tally.costs)) if tally.costs else None
            line = (
                tally.rule,
                tally.attacker,
                tally.holds,
                tally.told,
                low,
                high,
                *counts,
                cost,
                tally.counted,
                tally.wrong_in,
            )
            rows += [line] if tally.told or tally.open else []
        holds, cost_column = tables.Column("counted", "holds"), tables.Column("cost", "cost if wrong")
        shown = ("rule", "attacker", holds, "worth", "harmless", "wrong", "open", cost_column, "wrong_in")
        return tables.Table(columns, tuple(rows), shown, "How often each rule holds")

    def splits_table(self) -> tables.Table:
        """Return a row per split."""
        columns = ("first", "second", "attacker", "trait", "above", "more", "fewer", "mean_more", "mean_fewer", "difference")
        rows = tuple(
            (*s.pair, s.attacker, s.trait, s.above, s.more, s.fewer, s.mean_more, s.mean_fewer, s.difference, s.low, s.high)
            for s in self.splits
        )
        names = ("first", "second", "attacker", "trait", "above")
        split = tables.Column(names, "pair and property", "{} before {}, {}: {} above {:g}".format)
        there = (tables.Column("more", "networks there"), tables.Column("mean_more", "worth there"))
        elsewhere = (tables.Column("fewer", "networks elsewhere"), tables.Column("mean_fewer", "worth elsewhere"))
        shown = (split, *there, *elsewhere, "difference", tables.INTERVAL)
        return tables.Table((*columns, "low", "high"), rows, shown, "What decides what the first before the second is worth")

    def tables(self) -> list[tables.Table]:
        """Return both."""
        return [self.table(), self.splits_table()]


def _some(count: int) -> str:
    """Write a count of networks."""
    return "1 network" if count == 1 else f"{count} networks"


def _named(networks: Sequence[str]) -> str:
    """Name some networks, in brackets; those of many are in the table."""
    return f" ({', '.join(networks)})" if 0 < len(networks) <= _MOST_NAMED else ""


def _together(verdicts: Sequence[Verdict]) -> Verdict:
    """Say of several precedences what is said of a rule that names them all."""
    if Verdict.AGAINST in verdicts:
        return Verdict.AGAINST
    if {Verdict.OPEN, Verdict.DIVIDED} & {*verdicts}:
        return Verdict.OPEN
    return Verdict.SHOWN if Verdict.SHOWN in verdicts else Verdict.WITHIN


def _all_pairs(world: SearchedWorld) -> list[Pair]:
    units = world.answers[0].units
    return [(a, b) for a in units for b in units if a != b]


def _splits(pair: Pair, attacker: str, worlds: Sequence[SearchedWorld]) -> list[Split]:
    """Split the worlds in which a pair has a price by every property that differs enough."""
    (a, b), known = pair, [(w.network, w.price(pair)) for w in worlds]
    priced = [
        (network, price)
        for network, price in known
        if network is not None and price is not None and {a, b} <= {*network.units}
    ]
    traits: dict[str, Callable[[NetworkFacts], float]] = {
        f"the value of {a} less that of {b}": lambda n: round(n.units[a].value - n.units[b].value, 1),
        f"the number of {a} hosts": lambda n: n.units[a].hosts,
        f"the number of {b} hosts": lambda n: n.units[b].hosts,
        f"the number of exploits of a host of {a}": lambda n: n.units[a].exploits,
        f"the number of exploits of a host of {b}": lambda n: n.units[b].exploits,
        f"the number of hosts that lead to {a}": lambda n: n.units[a].links,
        f"the number of hosts that lead to {b}": lambda n: n.units[b].links,
        "the number of gates before the target": lambda n: float(n.gated),
    }
    sides = []
    for trait, measure in traits.items():
        values = [measure(network) for network, _ in priced]
        at = median(values) if values else 0.0
        if values and at == max(values):
            at = max((value for value in values if value < at), default=at)  # most have it: compare them with the rest
        more = [price for value, (_, price) in zip(values, priced, strict=True) if value > at]
        fewer = [price for value, (_, price) in zip(values, priced, strict=True) if value <= at]
        if min(len(more), len(fewer)) >= _FEWEST_ASIDE:
            sides.append((trait, at, more, fewer))
    return [
        Split(
            pair,
            attacker,
            trait,
            at,
            len(more),
            len(fewer),
            float(np.mean(more)),
            float(np.mean(fewer)),
            *_difference(more, fewer).interval(len(sides)),
        )
        for trait, at, more, fewer in sides
    ]


def _difference(more: Sequence[float], fewer: Sequence[float]) -> intervals.Estimate:
    """Estimate how much more the mean of one side is than that of the other."""
    mean = float(np.mean(more) - np.mean(fewer))
    return intervals.welch(mean, [intervals.mean_variance(side) for side in (more, fewer)], [len(more), len(fewer)])


# ---------------------------------------------------------------- in every world

MOST_WORLDS = 12  # of more, only what they say together is put into sentences


@dataclass(frozen=True)
class Agreement:
    """What the searches of a study say together.

    For example:

        study = ff.search(red_agent="b_line,meander", total_episodes=2_000, out="runs/both", quiet=True)
        print(study.agreement.rule, *study.agreement.sentences, sep="\\n")
    """

    worlds: tuple[SearchedWorld, ...]

    @classmethod
    def of(cls, answers: Sequence[Answer], networks: Sequence[NetworkFacts] = ()) -> "Agreement":
        """Group answers by their worlds. networks: of each answer; needed only if they differ.

        What an answer says against attackers that learn is a world of its own.
        """
        places = [None] * len(answers) if len({network.digest for network in networks}) < 2 else networks
        groups: dict[tuple[str, str, str, str], list[tuple[Answer, NetworkFacts | None]]] = {}
        found = list(zip(answers, places, strict=True))
        adaptive = [(also, place) for answer, place in found if (also := answer.against_adaptive()) is not None]
        for answer, network in found + adaptive:
            key = answer.red_agent, answer.variant, answer.memory, "" if network is None else network.digest
            groups.setdefault(key, []).append((answer, network))
        differing = [place for place in (1, 2) if len({key[place] for key in groups}) > 1]
        words = ("", "variant ", "memory ")
        names = (", ".join([key[0], *(f"{words[place]}{key[place]}" for place in differing)]) for key in groups)
        return cls(
            tuple(
                SearchedWorld(name, tuple(answer for answer, _ in of), of[0][1])
                for name, of in zip(names, groups.values(), strict=True)
            )
        )

    @cached_property
    def survey(self) -> Survey | None:
        """What several networks say together; None if there is one."""
        return None if self.worlds[0].network is None else Survey(self.worlds)

    @cached_property
    def shown(self) -> list[Pair]:
        """Precedences that are shown to matter in some world."""
        found = (pair for world in self.worlds for pair in world.pairs if world.judge(pair) == Verdict.SHOWN)
        return list(dict.fromkeys(found))

    def is_good(self, pair: Pair) -> bool:
        """Is it shown in every world that has both types that following it costs no more than the margin?"""
        return all(world.judge(pair) in (Verdict.SHOWN, Verdict.WITHIN) for world in self.worlds if world.has(pair))

    @property
    def rule(self) -> str:
        """The rule that is good in all worlds, in a few words."""
        good = [f"{a} before {b}{self._where((a, b))}" for a, b in self.shown if self.is_good((a, b))]
        if good:
            return f"Fix {errors.list_words(good)}"
        if self.shown:
            return f"No rule is shown to be good {'against' if self.survey is None else 'in'} all of them"
        if not all(world.is_settled for world in self.worlds):
            return NO_ANSWER
        if any(world.pairs for world in self.worlds):
            return "No order is shown to be better than another: seeds disagree"
        return f"No {nothing_shown([answer for world in self.worlds for answer in world.answers if answer.is_settled])}"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Why a rule that holds somewhere is not good everywhere; then what each world says.

        Of many worlds, what they say together.
        """
        if self.survey is not None and len(self.worlds) > MOST_WORLDS:
            return self.survey.sentences
        texts = []
        for a, b in self.shown:
            there = [world.name for world in self.worlds if world.judge((a, b)) == Verdict.SHOWN]
            others = [world for world in self.worlds if world.has((a, b))]
            bad = [world for world in others if world.judge((a, b)) not in (Verdict.SHOWN, Verdict.WITHIN)]
            if bad:
                doubts = errors.list_words([f"against {world.name} {world.doubt((a, b))}" for world in bad])
                texts.append(f"{a.capitalize()} before {b} is shown against {errors.list_words(there)}, but {doubts}.")
        each = (f"Against {world.name}: {' '.join(world.sentences)}" for world in self.worlds)
        return (*texts, *each, *(() if self.survey is None else self.survey.sentences))

    def _where(self, pair: Pair) -> str:
        """Say in how many worlds a rule can be followed, if not in all."""
        count = sum(world.has(pair) for world in self.worlds)
        return "" if count == len(self.worlds) else f" (in the {count} of {len(self.worlds)} worlds that have both)"
