"""What several networks say together: how often a rule holds, what it costs where it is wrong, what decides.

A rule names a precedence in every network: the same two unit types everywhere, or the two that a property of the network
ranks, such as their value. In one world (an attacker in a network) it is judged by the prices of the swaps it names:

    it costs something    one of them is shown to cost more than the margin
    open                  else, if what one of them costs is not shown to be within the margin
    worth something       else, if one of them is shown to be worth more than the margin
    harmless              else

It holds in a world where it is worth something or harmless. The share of worlds in which it holds is one of those that are
decided; its interval is that of Clopper and Pearson. What a rule costs where it is wrong is the return under the best order
less that under the best order that follows it, with a t-interval over networks.

What decides is looked for by splits: networks with more of one property than the median are compared with the others. One
split for each property, named before prices are looked at; Welch's t-interval, for all splits of a pair at once
(Bonferroni). Networks that were drawn at random tell what a property does; of others a split says what goes together.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import permutations
from statistics import median
from typing import Any

import numpy as np

from fixfirst.base import distributions, errors, tables
from fixfirst.stats import intervals
from fixfirst.stats.network_facts import NetworkFacts, Pair
from fixfirst.stats.worlds import SearchedWorld, Verdict

_FEWEST_ASIDE = 4  # networks on either side of a split; fewer are not compared
_MOST_NAMED = 4  # networks of one sentence
INDIFFERENT = "no order matters"  # counted like a rule: it is wrong where some order does

_Rule = Callable[[NetworkFacts], list[Pair]]  # the precedences that it names in a network
_GENERAL: dict[str, _Rule] = {
    "the most valuable type first": lambda network: network.ranked(lambda t: -t.value),
    "the type nearest to the target first": lambda network: network.ranked(
        lambda t: math.inf if t.distance is None else t.distance
    ),
}


def _same(pair: Pair) -> _Rule:
    """Return the rule that names the same two unit types everywhere."""
    return lambda network: [pair] if {*pair} <= {*network.units} else []


@dataclass(frozen=True)
class Tally:
    """How often a rule holds against one attacker, and what it costs where it does not."""

    rule: str
    attacker: str
    worth: int  # worlds in which it is worth something
    harmless: int
    wrong: int  # in which it costs something
    open: int
    costs: tuple[float, ...] = ()  # in points an episode, where it is wrong
    wrong_in: tuple[str, ...] = ()  # networks
    worth_in: tuple[str, ...] = ()

    @property
    def holds(self) -> int:
        return self.worth + self.harmless

    @property
    def decided(self) -> int:
        """In how many worlds it holds or is wrong."""
        return self.holds + self.wrong

    @property
    def share(self) -> tuple[float, float] | None:
        """Return between what the share of worlds lies in which it holds, 95 %; None where none is decided."""
        k, n, tail = self.holds, self.decided, (1 - distributions.CONFIDENCE) / 2
        if not n:
            return None
        low = 0.0 if k == 0 else distributions.beta_quantile(k, n - k + 1, tail)
        return low, 1.0 if k == n else distributions.beta_quantile(k + 1, n - k, 1 - tail)

    @property
    def _percent(self) -> str:
        low, high = self.share or (0.0, 1.0)
        return f"{100 * low:.0f} to {100 * high:.0f} %"

    @property
    def counted(self) -> str:
        """Say in how many networks it holds, of those decided, and between what that share lies."""
        return f"{self.holds} of {self.decided} ({self._percent})" if self.decided else f"open in all {self.open}"

    @property
    def cost(self) -> str:
        """Say what it costs where it is wrong: the mean, and the least and the most; empty where it costs nothing."""
        if not self.costs:
            return ""
        low, high = (f"{end:.1f}" for end in (min(self.costs), max(self.costs)))
        return f"{np.mean(self.costs):.1f} points an episode" + (f" ({low} to {high})" if low != high else "")

    def __str__(self) -> str:
        """Say it without the rule: in how many networks it holds against whom, and where it is wrong."""
        if not self.decided:
            return f"is open in all {self.open} networks against {self.attacker}"
        facts, holds = [f"95 %: {self._percent}"], "in"
        if self.rule != INDIFFERENT:
            holds = "holds in"
            facts.append(f"worth something in {self.worth}{_named(self.worth_in)}")
            facts += [f"wrong in {self.wrong}{_named(self.wrong_in)}, at {self.cost}"] if self.costs else []
        facts += [f"open in {self.open}"] if self.open else []
        return f"{holds} {self.holds} of {self.decided} decided networks against {self.attacker} ({'; '.join(facts)})"


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
        return {network.digest: network for network in map(_network, self.worlds)}

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
        votes = Counter(pair for world in self.worlds for pair in world.pairs if world.judge(pair) == Verdict.SHOWN)
        return sorted(votes, key=lambda pair: (-votes[pair], pair))

    @property
    def rules(self) -> dict[str, _Rule]:
        """Return what is asked, by name: two general rules, and each of these pairs."""
        return _GENERAL | {f"{a} before {b}": _same((a, b)) for a, b in self.pairs}

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """Return how often each rule holds against each attacker, rule by rule; last, in how many no order matters."""
        asked = [self._tally(name, rule, attacker) for name, rule in self.rules.items() for attacker in self.attackers]
        return *asked, *map(self._indifferent, self.attackers)

    def _tally(self, name: str, rule: _Rule, attacker: str) -> Tally:
        networks: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
        costs = []
        for world in self.attackers[attacker]:
            if pairs := rule(_network(world)):
                verdict = _together([world.judge(pair) for pair in pairs])
                networks[verdict].append(_network(world).name)
                if verdict == Verdict.AGAINST and (cost := world.cost(pairs)) is not None:
                    costs.append(cost)
        worth, harmless, wrong, open_ = (
            tuple(networks[verdict]) for verdict in (Verdict.SHOWN, Verdict.WITHIN, Verdict.AGAINST, Verdict.OPEN)
        )
        counts = len(worth), len(harmless), len(wrong), len(open_)
        return Tally(name, attacker, *counts, tuple(costs), wrong_in=wrong, worth_in=worth)

    def _indifferent(self, attacker: str) -> Tally:
        worlds = self.attackers[attacker]
        verdicts = [_together([w.judge(pair) for pair in permutations(w.answers[0].units, 2)]) for w in worlds]
        none, open_ = verdicts.count(Verdict.WITHIN), verdicts.count(Verdict.OPEN)
        return Tally(INDIFFERENT, attacker, worth=0, harmless=none, wrong=len(worlds) - none - open_, open=open_)

    @cached_property
    def splits(self) -> tuple[Split, ...]:
        """Return what each property does to the price of every two types that are asked about; the surest first."""
        pairs = [pair for number, pair in enumerate(self.pairs) if pair[::-1] not in self.pairs[:number]]
        splits = [
            split for name, worlds in self.attackers.items() for pair in pairs for split in _splits(pair, name, worlds)
        ]
        return tuple(sorted(splits, key=lambda split: -abs(split.difference) / max(split.high - split.low, 1e-9)))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Say what a person should read, in order."""
        settled = {name for name, worlds in self.attackers.items() if any(world.is_settled for world in worlds)}
        rules: dict[str, list[str]] = {}
        for tally in self.tallies:
            if tally.attacker in settled and (tally.decided or tally.open):
                rules.setdefault(tally.rule, []).append(str(tally))
        texts = (f"{rule[0].upper()}{rule[1:]} {errors.list_words(against)}." for rule, against in rules.items())
        return (*self._limits(), *texts, *self.deciding)

    @property
    def beside_figures(self) -> tuple[str, ...]:
        """Say what a person should read who sees how often rules hold: what wrong ones cost, and what decides."""
        wrong = [
            f"{tally.rule[0].upper()}{tally.rule[1:]} is wrong in {tally.wrong} network{'s' if tally.wrong > 1 else ''} "
            f"against {tally.attacker}{_named(tally.wrong_in)}, at {tally.cost}."
            for tally in self.tallies
            if tally.costs
        ]
        return (*self._limits(), *self._never_wrong(), *wrong, *self.deciding)

    def _never_wrong(self) -> list[str]:
        """Say which rules are worth something somewhere and shown to be wrong nowhere."""
        texts = []
        for rule in self.rules:
            own = [tally for tally in self.tallies if tally.rule == rule and tally.decided]
            if any(tally.worth for tally in own) and not any(tally.wrong for tally in own):
                texts.append(f"{rule} ({errors.list_words([f'{t.counted} against {t.attacker}' for t in own])})")
        many = f"Shown to be wrong in no network: {errors.list_words(texts)}; in brackets, in how many it holds."
        return [many] if texts else []

    def _limits(self) -> list[str]:
        """Say what takes away from all that follows: unit types that are not everywhere, worlds without an answer."""
        texts, count = [], len(self.networks)
        having = Counter(name for network in self.networks.values() for name in network.units)
        if rare := [f"{name} is in {number}" for name, number in having.items() if number < count]:
            differ = f"Unit types differ: of {count} networks, {errors.list_words(rare)}."
            texts.append(f"{differ} Two types are compared where both are.")
        if waiting := sum(not world.is_settled for world in self.worlds):
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

    def document(self) -> dict[str, Any]:
        """Return it as plain values."""
        rules = [tally for tally in self.tallies if tally.rule != INDIFFERENT]
        by_attacker = sorted(rules, key=lambda tally: [*self.attackers].index(tally.attacker))
        return {
            "networks": [asdict(network) for network in self.networks.values()],
            "rules": [asdict(t) | {"holds": t.holds, "told": t.decided, "share": t.share} for t in by_attacker],
            "no_order_matters": {
                tally.attacker: {"networks": tally.holds, "told": tally.decided}
                for tally in self.tallies
                if tally.rule == INDIFFERENT
            },
            "splits": [asdict(s) | {"difference": s.difference, "shown": s.is_shown} for s in self.splits],
        }

    def table(self) -> tables.Table:
        """Return a row per rule and attacker."""
        counted = ("holds", "told", "low", "high", "worth", "harmless", "wrong", "open")
        rows = []
        for t in self.tallies:
            cost, share = float(np.mean(t.costs)) if t.costs else None, t.share or (None, None)
            counts = t.holds, t.decided, *share, t.worth, t.harmless, t.wrong, t.open
            rows += [(t.rule, t.attacker, *counts, cost, t.counted, t.wrong_in)] if t.decided or t.open else []
        columns = ("rule", "attacker", *counted, "cost", "counted", "wrong_in")
        holds, cost_column = tables.Column("counted", "holds"), tables.Column("cost", "cost if wrong")
        shown = ("rule", "attacker", holds, "worth", "harmless", "wrong", "open", cost_column, "wrong_in")
        return tables.Table(columns, tuple(rows), shown, "How often each rule holds")

    def splits_table(self) -> tables.Table:
        """Return a row per split."""
        columns = ("attacker", "trait", "above", "more", "fewer", "mean_more", "mean_fewer", "difference", "low", "high")
        rows = tuple((*split.pair, *(getattr(split, column) for column in columns)) for split in self.splits)
        names = ("first", "second", "attacker", "trait", "above")
        split = tables.Column(names, "pair and property", "{} before {}, {}: {} above {:g}".format)
        there = (tables.Column("more", "networks there"), tables.Column("mean_more", "worth there"))
        elsewhere = (tables.Column("fewer", "networks elsewhere"), tables.Column("mean_fewer", "worth elsewhere"))
        shown = (split, *there, *elsewhere, "difference", tables.INTERVAL)
        title = "What decides what the first before the second is worth"
        return tables.Table(("first", "second", *columns), rows, shown, title)

    def tables(self) -> list[tables.Table]:
        """Return both."""
        return [self.table(), self.splits_table()]


def _network(world: SearchedWorld) -> NetworkFacts:
    assert world.network is not None  # there is no survey of a single one
    return world.network


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


def _splits(pair: Pair, attacker: str, worlds: Sequence[SearchedWorld]) -> list[Split]:
    """Split the worlds in which a pair has a price by every property that differs enough."""
    (a, b) = pair
    priced = [
        (_network(world), float(np.mean([swap.price for swap in swaps])))
        for world in worlds
        if (swaps := world.swaps(pair)) and {a, b} <= {*_network(world).units}
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
    for trait, measure in traits.items() if priced else ():
        values = [measure(network) for network, _ in priced]
        at = median(values)
        if at == max(values):
            at = max((value for value in values if value < at), default=at)  # most have it: compare them with the rest
        more, fewer = (
            [price for value, (_, price) in zip(values, priced, strict=True) if (value > at) == above]
            for above in (True, False)
        )
        if min(len(more), len(fewer)) >= _FEWEST_ASIDE:
            sides.append((trait, at, more, fewer))
    splits = []
    for trait, at, more, fewer in sides:
        means = float(np.mean(more)), float(np.mean(fewer))
        gap = intervals.welch_of(float(np.mean(more) - np.mean(fewer)), (more, fewer))
        low, high = gap.interval(len(sides))
        splits.append(Split(pair, attacker, trait, at, len(more), len(fewer), *means, low, high))
    return splits
