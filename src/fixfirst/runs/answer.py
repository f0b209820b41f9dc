"""The answer of a search: a rule with its price, what does not matter, and how sure that is. Its file, and its words."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fixfirst.base import errors, files, tables
from fixfirst.orders.pricing import PricedOrder, Swap
from fixfirst.runs.layout import ANSWER, run_hash_of

ENOUGH_REPLICATES = 3


@dataclass(frozen=True)
class SwapAnswer(Swap):
    """A swap, and how its price settled."""

    falling: bool  # was it still falling when training ended? Then it is at most that
    history: tuple[float, ...]  # after each round


@dataclass(frozen=True)
class OrderAnswer(PricedOrder):
    """A priced order, and how it was kept; it stands for all that differ from it only in unit types red never holds."""

    tail: float  # share of episodes that end in disaster
    violations: float  # true ones per episode
    violations_high: float  # upper bound of 95 %
    compliance: float | None
    contested: float | None
    told: tuple[str, ...]  # what each replicate's policy is best told under this order
    trained: int  # episodes of all replicates, of the rounds it took part in


_ORDER_COLUMNS = (
    "mean",
    "low",
    "high",
    "tier",
    "tail",
    "violations",
    "violations_high",
    "compliance",
    "contested",
    "trained",
)


@dataclass(frozen=True)
class Answer(tables.Tabular):
    """All that a search says."""

    red_agent: str
    variant: str
    memory: str
    units: tuple[str, ...]
    idle: tuple[str, ...]  # unit types red never holds
    replicates: int
    episodes: int  # training, of all replicates
    rounds: tuple[int, ...]  # training episodes after each round, of one replicate
    possible: int  # orders that differ in unit types red holds
    all_orders: int
    margin: float
    spread: float  # between two trainings
    swaps: tuple[SwapAnswer, ...]
    orders: tuple[OrderAnswer, ...]  # best first; those that were tried

    # ---- tables

    def table(self) -> tables.Table:
        """Return a row per order, the best first."""
        facts = (self.red_agent, self.variant)
        rows = tuple((o.workflow, *facts, *(getattr(o, name) for name in _ORDER_COLUMNS)) for o in self.orders)
        shown = ("order", "mean", tables.INTERVAL, "tier", "violations")
        return tables.Table(
            ("order", "red_agent", "variant", *_ORDER_COLUMNS), rows, shown, f"orders against {self.red_agent}"
        )

    def swaps_table(self) -> tables.Table:
        """Return a row per swap of neighbours, the dearest first."""
        rows = tuple((s.first, s.second, self.red_agent, s.price, s.low, s.high, not s.falling) for s in self.swaps)
        columns = ("first", "second", "red_agent", "price", "low", "high", "settled")
        shown = ("first", "second", "price", tables.INTERVAL, "settled")
        return tables.Table(
            columns, rows, shown, f"what fixing the first before the second is worth against {self.red_agent}"
        )

    def tables(self) -> list[tables.Table]:
        """Return both."""
        return [self.swaps_table(), self.table()]

    # ---- words

    @property
    def that_matter(self) -> tuple[SwapAnswer, ...]:
        """Swaps that are shown to be worth something, and not shown to be worth less than the margin."""
        return tuple(swap for swap in self.swaps if swap.is_shown and swap.at_most > self.margin)

    @property
    def rule(self) -> str:
        """The rule in a few words, e.g. "Fix enterprise before user"."""
        pairs = [f"{swap.first} before {swap.second}" for swap in self.that_matter]
        return f"Fix {_listed(pairs)}" if pairs else f"No {self._nothing()}"

    def _nothing(self) -> str:
        """What is said after "no" if no swap matters."""
        tiers = {order.tier for order in self.orders}
        if tiers == {1}:
            return f"order is better than another by more than {self.margin:g}"
        return "swap of neighbours is shown to matter" if 3 in tiers else "order is shown to be better than another"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a person should read, in order."""
        return tuple(text for text in (self._verdict(), self._indifferent(), self._never_held(), self._counts()) if text)

    def _verdict(self) -> str:
        shown = self.that_matter
        if not shown:
            bound = max((swap.at_most for swap in self.swaps), default=None)
            known = "" if bound is None else f" (any swap of neighbours is worth less than {_up(bound)})"
            return f"Against {self.red_agent} no {self._nothing()}{known}{self._but()}."
        worth = [
            f"{'' if len(shown) == 1 else f'{swap.first} before {swap.second} '}"
            f"{'at most ' if swap.falling else ''}{swap.price:.1f} points an episode "
            f"(95 %: {swap.low:.2f} to {swap.high:.2f})"
            f"{', still falling: train longer' if swap.falling else ''}"
            for swap in shown
        ]
        what = "it is worth" if len(shown) == 1 else "this is worth:"
        return f"{self.rule}. Against {self.red_agent} {what} {_listed(worth)}{self._but()}."

    def _but(self) -> str:
        """What takes away from the answer, for the same sentence."""
        doubts = []
        if self.replicates < ENOUGH_REPLICATES:
            doubts.append(f"from {self.replicates} training{'s' if self.replicates > 1 else ''} only")
        if never := self.possible - len(self.orders):
            doubts.append(f"{never:,} of {self.possible:,} orders were never tried")
        return f"; {_listed(doubts)}" if doubts else ""

    def _indifferent(self) -> str:
        """Unit types whose place was compared and is not shown to matter: it makes no difference, or that is open."""
        texts = []
        for unit in self.units:
            of_unit = [swap for swap in self.swaps if unit in (swap.first, swap.second)]
            if of_unit and self.that_matter and not any(swap in self.that_matter for swap in of_unit):
                most = max(swap.at_most for swap in of_unit)
                known = f"where {unit} stands makes no difference (less than {_up(most)})"
                unknown = f"whether it matters where {unit} stands is open (up to {_up(most)})"
                texts.append(known if most <= self.margin else unknown)
        return _sentence(_listed(texts))

    def _never_held(self) -> str:
        stands = "where it stands" if len(self.idle) == 1 else "where they stand"
        return f"Red never holds {_listed(self.idle, 'or')}: {stands} is irrelevant." if self.idle else ""

    def _counts(self) -> str:
        each = self.all_orders // self.possible
        tiers = {tier: [order for order in self.orders if order.tier == tier] for tier in (1, 2, 3)}
        best = max((order.mean for order in self.orders), default=0.0)
        texts = []
        if tiers[1]:
            texts.append(f"{each * len(tiers[1]):,} orders are equally good (within {self.margin:g})")
        if tiers[2]:
            texts.append(f"{each * len(tiers[2]):,} {'more' if tiers[1] else 'orders'} may be equally good")
        if tiers[3]:
            costs = (f"{best - order.mean:.1f}" for order in (tiers[3][0], tiers[3][-1]))
            texts.append(f"{each * len(tiers[3]):,} cost {' to '.join(dict.fromkeys(costs))}")
        return _sentence(_listed(texts))

    # ---- the file

    def write(self, folder: Path) -> None:
        document = {"rule": self.rule, "sentences": self.sentences, **asdict(self)}
        files.write_document(folder / ANSWER, "answer", document, run_hash_of(folder) or "")


def read_answer(folder: Path) -> Answer | None:
    """The answer of a finished search; None if it has none yet."""
    from pydantic import TypeAdapter, ValidationError  # here, because it takes long to import

    path = folder / ANSWER
    if not path.exists():
        return None
    try:
        document = files.read_document(path, "answer", run_hash_of(folder) or "")
        answer = TypeAdapter(Answer).validate_json(json.dumps(_printable(document)), strict=True)
    except ValidationError as e:
        raise errors.RunDirError(f"{path}: damaged ({e.errors()[0]['loc']}: {e.errors()[0]['msg']})") from e
    except (OSError, ValueError) as e:
        raise errors.RunDirError(f"{path}: cannot be read ({e})") from e
    if not answer.orders or min(answer.possible, answer.all_orders) < 1:
        raise errors.RunDirError(f"{path}: damaged, it has no orders")
    return answer


def _printable(document: Any) -> Any:
    """Its texts go to terminals."""
    if isinstance(document, dict):
        return {name: _printable(value) for name, value in document.items()}
    if isinstance(document, list):
        return [_printable(value) for value in document]
    return errors.printable(document) if isinstance(document, str) else document


def _listed(texts: Sequence[str], word: str = "and") -> str:
    return ", ".join(texts) if len(texts) < 2 else f"{', '.join(texts[:-1])} {word} {texts[-1]}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _up(bound: float) -> str:
    """A bound, rounded up to two digits."""
    return f"{int(bound * 100 + 0.999999) / 100:.2f}"
