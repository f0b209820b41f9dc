"""The answer of a search: a rule with its price, what does not matter, and how sure that is. Its file, and its words."""

import html
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from fixfirst.base import errors, files, tables
from fixfirst.runs.layout import RunFiles
from fixfirst.stats import pricing
from fixfirst.stats.pricing import Tier

NO_ANSWER = "No answer yet"
LEAST_PART = 0.05  # points: smaller parts of a price are not named
ENOUGH_REPLICATES = 3
MOST_SO_FAR = 3  # prices that are named while there is no answer

TIERS = {Tier.GOOD: "as good as the best", Tier.UNDECIDED: "open", Tier.WORSE: "worse"}
_ORDER_COLUMNS = ("mean", "low", "high", "tier", "tail", "violations", "violations_high", "compliance", "contested")
_SWAP = tables.Column(("first", "second"), "swap of neighbours", "{} before {}".format)


def short_order(workflow: str, idle: Sequence[str]) -> str:
    """Leave the unit types out of an order that red never holds."""
    return " > ".join(unit for unit in workflow.split(" > ") if unit not in idle)


@dataclass(frozen=True)
class Adaptive:
    """The second line of an answer: what orders are worth against attackers who adapt to the defender and its order.

    Prices against the best attackers found, by replicates, in each of which both sides were trained anew."""

    replicates: int
    rounds: int  # how often defenders learned against attackers that answered them; 0: they stayed as the search left them
    swaps: tuple[pricing.Swap, ...]  # history: after each round, the first without any
    orders: tuple[pricing.OrderResult, ...]  # best first
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
        return f"fix {errors.list_words(pairs)}" if pairs else ""

    def swaps_table(self) -> tables.Table:
        """Return a row per swap of neighbours, the dearest first."""
        rows = tuple((s.first, s.second, s.price, s.low, s.high, s.falling, s.history, s.by_replicate) for s in self.swaps)
        columns = ("first", "second", "price", "low", "high", "falling", "after_each_round", "trainings")
        worth = tables.Column("price", "worth", tables.signed)
        shown = (_SWAP, worth, tables.INTERVAL, tables.Column("falling", "over rounds", self._over_rounds))
        lists = (tables.Column(name, name.replace("_", " "), _numbers) for name in columns[-2:])
        return tables.Table(columns, rows, (*shown, *lists), "What fixing the first before the second is worth")

    def orders_table(self, answer: "Answer") -> tables.Table:
        """Return what each order earned in the search, after the rounds if there were any, and under attack."""
        means = {order.workflow: order.mean for order in answer.orders}
        after: list[tuple[float, ...]] = [(mean,) for mean in self.scripted] or [()] * len(self.orders)
        rows = tuple(
            (o.workflow, means[o.workflow], *a, o.mean, o.violations) for o, a in zip(self.orders, after, strict=True)
        )
        rounds = ("after the rounds",) if self.scripted else ()
        columns = ("order", f"against {answer.red_agent}", *rounds, "against the best attacker found", "violations")
        shown = (answer.order_column, *(tables.Column(name, name) for name in columns[1:]))
        return tables.Table(columns, rows, shown, "Returns under each order")

    def _over_rounds(self, falling: bool) -> str:
        """Say what is known of a price."""
        if not self.has_answer:
            return "so far"
        return "at most" if falling else "settled" if self.rounds else "defender as it is"

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
        rest = f" Open: {errors.list_words(open_)}." if open_ else ""
        return f"{self.lead}: {self.rule}; worth {errors.list_words(worth)} points an episode.{rest}"

    def _taken(self) -> str:
        best, worst = self.orders[0], self.orders[-1]
        return (
            f"The best attackers found leave {best.mean:.0f} under the best order and {worst.mean:.0f} under the worst; "
            "better ones may take more."
        )


@dataclass(frozen=True)
class Answer(tables.Tabular):
    """All that a search says."""

    red_agent: str
    variant: str
    memory: str
    units: tuple[str, ...]
    idle: tuple[str, ...]  # unit types red never holds
    replicates: int  # trainings that prices rest on
    episodes: int  # training, of all that began
    rounds: tuple[int, ...]  # training episodes after each round, of one replicate
    possible: int  # orders that differ in unit types red holds
    all_orders: int
    margin: float
    spread: float  # between two trainings
    swaps: tuple[pricing.Swap, ...]
    orders: tuple[pricing.OrderResult, ...]  # best first; those that were tried
    dropped: tuple[float, ...] = ()  # of each training that was dropped: by how many points it lagged behind the best
    long_enough: bool = True  # was there training enough for prices to settle?
    next_episodes: int = 0  # a budget to try next, where there is no answer yet
    adaptive: Adaptive | None = None  # against an attacker who adapts, if that was asked for
    scenario: str = "cage2"  # the name of the network

    @property
    def is_settled(self) -> bool:
        """Is there an answer: training enough, trainings enough, and no price that may still fall?"""
        return self.long_enough and self.replicates >= ENOUGH_REPLICATES and not any(s.falling for s in self.swaps)

    @property
    def num_trainings(self) -> int:
        """How many trainings began."""
        return self.replicates + len(self.dropped)

    # ---- tables

    def table(self) -> tables.Table:
        """Return a row per order, the best first."""
        facts = (self.red_agent, self.variant)
        columns = (*_ORDER_COLUMNS, "restores", "removes", "p_best")
        rows = tuple((o.workflow, *facts, *(getattr(o, name) for name in columns)) for o in self.orders)
        shown = (
            self.order_column,
            tables.Column("mean", "return"),
            tables.INTERVAL,
            tables.Column(
                ("tier", "order"), "tier", lambda tier, order: "excluded" if order in self.excluded else TIERS[tier]
            ),
            tables.Column(("violations", "violations_high"), "violations", "{:.3f}, at most {:.3f}".format),
            tables.Column("restores", "Restores"),
            tables.Column("removes", "Removes"),
            tables.Column("p_best", "P(best)", tables.percent),
            tables.Column("compliance", "compliance", tables.percent),
            tables.Column("contested", "contested", tables.percent),
            tables.Column("tail", "disasters", tables.percent),
        )
        title = f"{len(self.orders):,} of {self.possible:,} orders that differ, against {self.red_agent}"
        return tables.Table(("order", "red_agent", "variant", *columns), rows, shown, title)

    @property
    def order_column(self) -> tables.Column:
        """Orders without the unit types that red never holds."""
        return tables.Column("order", "order", lambda order: short_order(order, self.idle))

    def swaps_table(self) -> tables.Table:
        """Return a row per swap of neighbours, the dearest first."""
        rows = tuple(
            (s.first, s.second, self.red_agent, s.price, s.low, s.high, not s.falling, s.by_replicate) for s in self.swaps
        )
        columns = ("first", "second", "red_agent", "price", "low", "high", "settled", "trainings")
        few = self.long_enough and self.replicates < ENOUGH_REPLICATES
        shown = (
            _SWAP,
            tables.Column("price", "worth", tables.signed),
            tables.INTERVAL,
            tables.Column(
                "settled",
                "over training",
                lambda settled: "settled" if settled else f"so far: {'more trainings' if few else 'train longer'}",
            ),
            tables.Column("trainings", "trainings", _numbers),
        )
        title = f"What fixing the first before the second is worth against {self.red_agent}"
        return tables.Table(columns, rows, shown, title)

    def tables(self) -> list[tables.Table]:
        """Return both."""
        return [self.swaps_table(), self.table()]

    def _repr_html_(self) -> str:
        """Return it as a notebook shows it: the rule, then the tables."""
        return "".join(f"<p>{html.escape(text)}</p>" for text in self.sentences) + super()._repr_html_()

    # ---- attackers who adapt

    def against_adaptive(self) -> "Answer | None":
        """Return what the same search says against attackers that learn, as an answer of its own; None if not asked for.

        Which unit types these never hold is not known: none is idle.
        """
        if self.adaptive is None:
            return None
        return replace(
            self,
            red_agent=f"attackers that learn (defenders of {self.red_agent})",
            idle=(),
            replicates=self.adaptive.replicates,
            dropped=(),
            spread=pricing.LEAST_SPREAD,
            swaps=self.adaptive.swaps,
            orders=self.adaptive.orders,
            long_enough=self.adaptive.long_enough,
            adaptive=None,
        )

    # ---- words

    @property
    def significant_swaps(self) -> tuple[pricing.Swap, ...]:
        """Swaps that are shown to be worth more than the margin."""
        return tuple(s for s in self.swaps if s.interval.exceeds(self.margin) and not s.falling)

    def worth(self, first: str, second: str) -> pricing.Swap | None:
        """Return what fixing one unit type before another is worth, or less than nothing; None if it was not compared."""
        for swap in self.swaps:
            if (swap.first, swap.second) == (first, second):
                return swap
            if (swap.first, swap.second) == (second, first):
                return swap.turned()
        return None

    @property
    def rule(self) -> str:
        """The rule in a few words, e.g. "Fix enterprise before user"."""
        if not self.is_settled:
            return NO_ANSWER
        pairs = [f"{swap.first} before {swap.second}" for swap in self.significant_swaps]
        return f"Fix {errors.list_words(pairs)}" if pairs else f"No {self._no_effect()}"

    def _no_effect(self) -> str:
        """Return what is said after "no" if no swap matters."""
        if all(order.tier == Tier.GOOD for order in self.orders):
            return f"order is better than another by more than {self.margin:g}"
        return no_effect_text([self])

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a person should read, in order."""
        answer = (self._verdict, self._why, self._indifferent, self._never_held, self._counts)
        so_far = (self._no_answer, self._so_far, self._settled_already, self._never_held)
        texts = tuple(text for say in (answer if self.is_settled else so_far) if (text := say()))
        return texts + (() if self.adaptive is None else self.adaptive.sentences)

    @property
    def telling_orders(self) -> tuple[str, str] | None:
        """The best order, and the same but for the swap that matters most; None if none does, or it was not tried."""
        tried = {order.workflow for order in self.orders}
        for swap in self.significant_swaps if self.is_settled else ():
            for order in self.orders:
                if (rank := _neighbours(order, swap.first, swap.second)) is not None:
                    units = order.workflow.split(" > ")
                    other = " > ".join([*units[:rank], swap.second, swap.first, *units[rank + 2 :]])
                    if other in tried:
                        return order.workflow, other
        return None

    @property
    def trainings(self) -> str:
        """How many trainings began, and why some were dropped."""
        if not self.dropped:
            return f"{self.replicates} training{'s' if self.replicates > 1 else ''}, none dropped"
        lag = " to ".join(dict.fromkeys(f"{value:.1f}" for value in (min(self.dropped), max(self.dropped))))
        return (
            f"{self.num_trainings} trainings began, {len(self.dropped)} were dropped early: under some orders they earned "
            f"{lag} points less than the best training"
        )

    def _no_answer(self) -> str:
        """Return why there is no answer yet, and what to try."""
        more = ""
        if not self.long_enough:
            shows = "what it costs to learn an order, not what it costs to keep one"
        elif self.replicates < ENOUGH_REPLICATES:
            shows = "what " + ("one training" if self.replicates == 1 else f"{self.replicates} trainings") + " found"
        else:
            falling = errors.list_words([f"{swap.first} before {swap.second}" for swap in self.swaps if swap.falling])
            shows = f"prices that still fall ({falling})"
        if self.replicates < ENOUGH_REPLICATES:
            more = f" and at least {ENOUGH_REPLICATES} trainings (--replicates)"
        return f"{NO_ANSWER}: this budget shows only {shows}; try {self.next_episodes:,} episodes{more}."

    def _so_far(self) -> str:
        """Return the dearest prices as they stand."""
        prices = [f"{s.first} before {s.second} {s.price:.2f}" for s in self.swaps if s.falling][:MOST_SO_FAR]
        return f"Prices so far, which may be far off: {', '.join(prices)}." if prices else ""

    @cached_property
    def excluded(self) -> frozenset[str]:
        """Orders that are known to be worse though there is no answer yet: they have a settled swap the wrong way round."""
        wrong = [(s.second, s.first) for s in self.significant_swaps] if not self.is_settled else []
        return frozenset(o.workflow for o in self.orders if any(_neighbours(o, *pair) is not None for pair in wrong))

    def _settled_already(self) -> str:
        """Return what is known though other prices still fall."""
        texts = [_worth(swap, named=True) for swap in self.significant_swaps]
        if not texts:
            return ""
        worse = len(self.excluded) * (self.all_orders // self.possible)
        excluded = f"{worse:,} of {self.all_orders:,} orders have them the other way round and are excluded"
        return f"Settled already: {errors.list_words(texts)}; {excluded}."

    def _verdict(self) -> str:
        swaps = self.significant_swaps
        if not swaps:
            bound = max((swap.at_most for swap in self.swaps), default=None)
            at_most = "" if bound is None else f" (any swap of neighbours is worth less than {round_up(bound)})"
            return f"Against {self.red_agent} no {self._no_effect()}{at_most}{self._caveats()}."
        what = "it is worth" if len(swaps) == 1 else "this is worth:"
        worth = [_worth(swap, named=len(swaps) > 1) for swap in swaps]
        return f"{self.rule}. Against {self.red_agent} {what} {errors.list_words(worth)}{self._caveats()}."

    def _why(self) -> str:
        """Return what the price of the dearest swap that matters consists of."""
        if not self.significant_swaps or not self.significant_swaps[0].parts:
            return ""
        swap = self.significant_swaps[0]
        means = {n: part.mean for n, part in swap.parts.items() if part.exceeds() and abs(part.mean) >= LEAST_PART}
        more, less = ([_because(n, price) for n, price in means.items() if (price > 0) == up] for up in (True, False))
        if not more:
            return ""
        reasons = errors.list_words(more)
        if less:
            reasons += f", less {errors.list_words(less)}"
        rest = sum(part.mean for part in swap.parts.values() if not part.exceeds())
        if abs(rest) >= LEAST_PART:
            reasons += f"; parts that are not shown by themselves make {rest:+.1f}"
        return _sentence(f"{swap.second} before {swap.first} costs {swap.price:.1f}: {reasons}")

    def _caveats(self) -> str:
        """Return what takes away from the answer, for the same sentence."""
        never = self.possible - len(self.orders)
        return f"; {never:,} of {self.possible:,} orders were never tried" if never else ""

    def _indifferent(self) -> str:
        """Unit types whose place was compared and is not shown to matter: it makes no difference, or that is open."""
        texts = []
        for unit in self.units:
            of_unit = [swap for swap in self.swaps if unit in (swap.first, swap.second)]
            if of_unit and self.significant_swaps and not any(swap in self.significant_swaps for swap in of_unit):
                most = max(swap.at_most for swap in of_unit)
                alike = f"where {unit} stands makes no difference (less than {round_up(most)})"
                undecided = f"whether it matters where {unit} stands is open (up to {round_up(most)})"
                texts.append(alike if most <= self.margin else undecided)
        return _sentence(errors.list_words(texts))

    def _never_held(self) -> str:
        stands = "where it stands" if len(self.idle) == 1 else "where they stand"
        return f"Red never holds {errors.list_words(self.idle, 'or')}: {stands} is irrelevant." if self.idle else ""

    def _counts(self) -> str:
        each = self.all_orders // self.possible
        good, undecided, worse = ([order for order in self.orders if order.tier == tier] for tier in TIERS)
        texts = [f"{each * len(good):,} orders are equally good (within {self.margin:g})"] if good else []
        if undecided:
            texts.append(f"{each * len(undecided):,} {'more' if good else 'orders'} may be equally good")
        if worse:
            costs = (f"{self.orders[0].mean - order.mean:.1f}" for order in (worse[0], worse[-1]))
            texts.append(f"{each * len(worse):,} cost {' to '.join(dict.fromkeys(costs))}")
        return _sentence(errors.list_words(texts))

    # ---- the file

    def document(self) -> dict[str, Any]:
        """Return all of it as plain values, words first."""
        words = {"rule": self.rule, "sentences": self.sentences, "settled": self.is_settled, "trainings": self.num_trainings}
        facts = {name: value for name, value in asdict(self).items() if name != "adaptive" or value is not None}
        if self.adaptive is not None:
            facts["adaptive"] = {"rule": self.adaptive.rule, **facts["adaptive"]}
        return {**words, **facts}

    def write(self, folder: Path) -> None:
        files.write_document(RunFiles(folder).answer, "answer", self.document())

    @classmethod
    def read(cls, folder: Path) -> "Answer | None":
        """Return the answer of a finished search; None if it has none yet."""
        from pydantic import TypeAdapter, ValidationError  # here, because it takes long to import

        path = RunFiles(folder).answer
        if not path.exists():
            return None
        try:
            document = files.read_document(path, "answer")
            return TypeAdapter(cls).validate_json(json.dumps(document), strict=True)
        except ValidationError as e:
            first = e.errors()[0]
            if first["type"] == "missing":
                raise errors.RunDirError(f"{path}: lacks what this version writes; is it a run of another version?") from e
            raise errors.RunDirError(f"{path}: damaged ({first['loc']}: {first['msg']})") from e
        except (OSError, ValueError) as e:
            raise errors.RunDirError(f"{path}: cannot be read ({e})") from e


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(map(tables.plain, values))


def _neighbours(order: pricing.OrderResult, first: str, second: str) -> int | None:
    """Return the place of one unit type that stands right before another; None if it does not."""
    units = order.workflow.split(" > ")
    rank = units.index(first)
    return rank if units[rank + 1 : rank + 2] == [second] else None


def _worth(swap: pricing.Swap, *, named: bool) -> str:
    """Return what a settled swap is worth."""
    name = f"{swap.first} before {swap.second} " if named else ""
    return f"{name}{swap.price:.1f} points an episode (95 %: {swap.low:.2f} to {swap.high:.2f})"


def _price(swap: pricing.Swap) -> str:
    if swap.low is None or swap.high is None:
        return f"at most {swap.price:.1f}"
    return f"{swap.price:.1f} (95 %: {swap.low:.1f} to {swap.high:.1f})"


def _because(part: str, price: float) -> str:
    """Return how much a part of the cost adds to a price, or takes from it, and why."""
    time = "for longer" if price > 0 else "for less time"
    restores = f"{'more' if price > 0 else 'fewer'} Restores are needed"
    words = {pricing.SERVICE: f"the service is stopped {time}", pricing.OWN_RESTORES: restores}
    return f"{abs(price):.1f} because {words.get(part, f'{part} hosts are held {time}')}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def no_effect_text(answers: Sequence[Answer]) -> str:
    """Return what is said after "no" of answers none of which has a swap that matters."""
    is_shown = any(swap.is_shown for answer in answers for swap in answer.swaps)
    more = f" by more than {max(answer.margin for answer in answers):g}" if is_shown else ""
    worse = any(order.tier == Tier.WORSE for answer in answers for order in answer.orders)
    return ("swap of neighbours is shown to matter" if worse else "order is shown to be better than another") + more


def round_up(bound: float) -> str:
    """Return a bound, rounded up to two digits."""
    return f"{int(bound * 100 + 0.999999) / 100:.2f}"
