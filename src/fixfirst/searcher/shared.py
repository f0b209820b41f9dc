"""The search with one network for all orders: replicates trained side by side, in rounds, then measured by cross-play.

    without an order     all trainings learn to defend; unit types that red never holds come last now
    round after round    the strategy chooses orders from what all known ones earned so far, by GP-UCB: half of the next
                         training episodes are theirs, the other half goes to those trained before, so that nothing is
                         forgotten; then all known orders are played on common episodes. Some trainings get stuck: half
                         as many more begin than go on, and after 40 % of the rounds those that lag most are dropped
    cross-play           under every known order each replicate is told what serves it best there, and measured on fresh
                         episodes of its own
    the answer           `pricing.py` in the room of orders

Like every search it is a generator of jobs, depends on its ledger (rounds.csv) only, and ends the same after any
interruption, with any number of workers.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import permutations
from math import factorial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from fixfirst.base.errors import RunDirError
from fixfirst.base.statistics import stream_seed
from fixfirst.learner.checkpoint import delete_checkpoints
from fixfirst.learner.config import TrainConfig
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.orders.pricing import Prices, Swap, price, price_swaps, standard_errors
from fixfirst.policy.file import copy_policy, load_policy
from fixfirst.runs.answers import Answer, OrderAnswer, SwapAnswer, read_answer
from fixfirst.runs.layout import BEST, CHOICES, ROUNDS, replicate_folder
from fixfirst.runs.lock import Session
from fixfirst.runs.logs import CsvLog, keep_rows, read_rows
from fixfirst.runs.rows import ChoiceRow, ValueRow
from fixfirst.searcher.config import SearchConfig
from fixfirst.searcher.executors.contract import Finished
from fixfirst.searcher.jobs import Job
from fixfirst.searcher.replicate import CrossJob, OrderResult, RoundJob, idle_units, trained_policy
from fixfirst.searcher.search_logs import choice_row
from fixfirst.searcher.strategy import Choice, Outcome, Strategy, StrategyConfig, neighbours
from fixfirst.searcher.trial import Message, WarmupJob, is_warmed_up

MOST_TOLD = 24  # orders that cross-play tries to tell
STILL_FALLING = 0.1  # points
BEYOND_CHANCE = 3  # standard errors, of few trainings
LEAST_TOLD = 0.1  # spread between trainings that the strategy reckons with at least


@dataclass
class SharedSearch:
    """What is known of it; all of it follows from its ledger."""

    config: SearchConfig
    folder: Path
    rows: list[ValueRow] = field(default_factory=list)  # of complete rounds
    idle: tuple[str, ...] = ()
    answer: Answer | None = None

    @property
    def scheme(self) -> UnitScheme:
        return self.config.scheme

    @property
    def idle_ids(self) -> tuple[int, ...]:
        return tuple(self.scheme.names.index(name) for name in self.idle)

    @property
    def rounds(self) -> int:
        """How many are complete."""
        return max((row.round for row in self.rows), default=0)

    @property
    def used(self) -> int:
        """Training episodes so far, of all trainings."""
        return self.used_after(self.rounds) if self.rows else 0

    def used_after(self, rounds: int) -> int:
        """Training episodes of so many rounds and all before them."""
        config = self.config
        played = config.played(rounds, config.contested_rounds)
        return config.beginners * config.base_budget + played * config.round_episodes

    @property
    def is_done(self) -> bool:
        return self.answer is not None

    def known(self) -> list[Workflow]:
        """Orders that were trained, in the order in which they were first chosen."""
        return [Workflow.parse(text, self.scheme) for text in dict.fromkeys(row.workflow for row in self.rows)]

    def beginners(self) -> range:
        """The numbers of all trainings."""
        return range(self.config.beginners)

    def leaders(self) -> list[int]:
        """[R] the trainings that count as replicates: those that lag least behind the best where they lag most, in the
        last contested round: one that is stuck with some orders may be good at the others.
        """
        earned, known = self._earned(min(self.rounds, self.config.contested_rounds)), self.known()
        there = np.flatnonzero(~np.isnan(earned).any(axis=0))
        lag = worst_shortfall(earned[:, there], [known[w].order for w in there])
        return sorted(np.argsort(lag, kind="stable")[: self.config.replicates].tolist())

    def taking_part(self, number: int) -> Sequence[int]:
        """The trainings of a round."""
        return self.beginners() if number <= self.config.contested_rounds else self.leaders()

    def values(self, after: int) -> np.ndarray:
        """[R, W] what every known order earned after a round; NaN where it was not played yet."""
        return self._earned(after)[self.leaders()]

    def _earned(self, after: int) -> np.ndarray:
        """The same of all trainings, [N, W]."""
        number = {text: w for w, text in enumerate(dict.fromkeys(row.workflow for row in self.rows))}
        earned = np.full((len(self.beginners()), len(number)), np.nan)
        for row in self.rows:
            if row.round == after:
                earned[row.replicate, number[row.workflow]] = row.mean
        return earned

    # ---- choosing

    def choose(self) -> list[Choice]:
        """The orders of the next round, from what the last one showed."""
        config, known = self.config, self.known()
        strategy = Strategy(
            StrategyConfig(
                name="exhaustive" if config.strategy == "together" else config.strategy,
                seed=stream_seed(config.seed, "search", self.rounds),
                beta=config.gp_beta,
                beta_schedule=config.gp_beta_schedule,
                initial_orders=1 if known else config.initial_orders,
            ),
            self.scheme,
            self.idle_ids,
        )
        if known:
            values = self.values(self.rounds)
            errors, _ = standard_errors(values - values.mean(axis=1, keepdims=True), LEAST_TOLD)
            for workflow, mean, error in zip(known, values.mean(axis=0), errors, strict=True):
                strategy.tell(workflow, Outcome.compliant(float(mean), float(error)))
        if config.strategy == "together":
            return [Choice(workflow, "together") for workflow in strategy.all_orders()]
        count = min(config.round_orders, strategy.num_orders)
        if not known or strategy.num_orders <= config.num_rounds * config.round_orders:
            return strategy.ask(count)
        choices = strategy.ask(count - count // 2)
        return choices + self._open_swaps([*known, *(choice.workflow for choice in choices)], count // 2)

    def _open_swaps(self, known: Sequence[Workflow], count: int) -> list[Choice]:
        """Never tried orders that differ from the best known ones in two neighbours only, so that swaps get a price.

        Where not all orders can be tried, hardly any two of those that the strategy likes would differ so little.
        """
        earned = self.values(self.rounds).mean(axis=0)
        best = [known[w].order for w in np.argsort(-earned, kind="stable")]
        units = self.scheme.size - len(self.idle)
        near = dict.fromkeys(order for of in best for order in neighbours(of, units))
        tried = {workflow.order for workflow in known}
        new = [order for order in near if order not in tried][:count]
        return [Choice(Workflow(order, self.scheme), "swap") for order in new]

    def turns(self, choices: Sequence[Choice]) -> list[Workflow]:
        """Who takes turns in a round's training: the chosen ones, and as often in all those known before.

        Where all orders are chosen every time, those that cost more than the margin have three turns to two of the others:
        they are the hardest to learn, and until they are learned their prices are too high.
        """
        chosen, known = [choice.workflow for choice in choices], self.known()
        before = [workflow for workflow in known if workflow not in chosen]
        if before:
            times, more = max(len(before) // len(chosen), 1), max(len(chosen) // len(before), 1)
            return chosen * times + before * more
        if not known:
            return chosen
        earned = self.values(self.rounds).mean(axis=0)
        dear = {known[w] for w in np.flatnonzero(earned < earned.max() - self.config.margin)}
        return chosen * 2 + [workflow for workflow in chosen if workflow in dear]

    # ---- jobs

    def base_folder(self, number: int) -> Path:
        return replicate_folder(self.folder, number) / "base"

    def training_config(self, number: int) -> TrainConfig:
        return self.config.orders_config(number, self.idle, self.first_order())

    def first_order(self) -> Workflow:
        return Workflow(tuple(range(self.scheme.size)), self.scheme).with_last(self.idle_ids)

    def round_job(self, number: int, orders: Sequence[Workflow], watched: Sequence[Workflow]) -> RoundJob:
        config = self.config
        return RoundJob(
            number=number,
            round=self.rounds + 1,
            config=self.training_config(number),
            folder=replicate_folder(self.folder, number),
            parent_policy=self.base_folder(number),
            orders=tuple(map(str, orders)),
            watched=tuple(map(str, watched)),
            since=config.round_episodes * self.rounds,
            until=config.round_episodes * (self.rounds + 1),
            episodes=max(min(config.watch_episodes, config.round_episodes) // len(watched), config.selection_episodes),
            seed=config.seed,
        )

    def cross_job(self, number: int) -> CrossJob:
        config, known = self.config, self.known()
        own = self.values(self.rounds).mean(axis=0)
        told = [str(known[w]) for w in np.argsort(-own, kind="stable")[:MOST_TOLD]]
        return CrossJob(
            number=number,
            config=self.training_config(number),
            folder=replicate_folder(self.folder, number),
            trained=config.round_episodes * self.rounds,
            told=tuple(told),
            kept=tuple(map(str, known)),
            selection_episodes=config.selection_episodes,
            episodes=min(config.measure_episodes, max(config.orders_budget, config.selection_episodes)),
            seed=config.seed,
        )

    # ---- the answer

    def conclude(self, measured: Sequence[Sequence[OrderResult]]) -> Answer:
        """From what every replicate earned under every known order, [R][W]."""
        config, known, scheme = self.config, self.known(), self.scheme
        values = np.array([[shown.mean for shown in of_replicate] for of_replicate in measured])
        relevant = [unit for unit in range(scheme.size) if unit not in self.idle_ids]
        prices = price(known, values, relevant, config.margin, stream_seed(config.seed, "answer"))
        histories = self._histories(relevant)
        by_order = {workflow: [of[w] for of in measured] for w, workflow in enumerate(known)}
        game = config.training.game
        return Answer(
            red_agent=game.red_agent,
            variant=str(game.variant),
            memory=config.training.memory,
            units=scheme.names,
            idle=self.idle,
            replicates=config.replicates,
            episodes=self.used,
            rounds=tuple(config.round_episodes * (r + 1) for r in range(self.rounds)),
            possible=factorial(len(relevant)),
            all_orders=scheme.num_orders,
            margin=config.margin,
            spread=prices.spread,
            swaps=tuple(_settled(swap, histories, config.is_long) for swap in prices.swaps),
            orders=tuple(self._order_answers(prices, by_order)),
        )

    def _histories(self, relevant: Sequence[int]) -> list[dict[tuple[str, str], np.ndarray]]:
        """The prices of all swaps after every round in each training, [R], told what it has to keep; both ways round."""
        known, histories = self.known(), []
        for after in range(1, self.rounds + 1):
            values = self.values(after)
            there = ~np.isnan(values).any(axis=0)
            orders = [workflow for workflow, is_there in zip(known, there, strict=True) if is_there]
            swaps = price_swaps(orders, values[:, there], relevant)
            found = {(swap.first, swap.second): np.array(swap.by_replicate) for swap in swaps}
            histories.append(found | {(second, first): -value for (first, second), value in found.items()})
        return histories

    def _order_answers(self, prices: Prices, by_order: dict[Workflow, list[OrderResult]]) -> list[OrderAnswer]:
        rounds = {str(w): len({row.round for row in self.rows if row.workflow == str(w)}) for w in by_order}
        answers = []
        for row in prices.orders:
            shown = by_order[row.workflow]
            kept = [one.compliance for one in shown if one.compliance is not None]
            fought = [one.contested for one in shown if one.contested is not None]
            answers.append(
                OrderAnswer(
                    **vars(row) | {"workflow": str(row.workflow)},
                    tail=float(np.mean([one.tail for one in shown])),
                    violations=float(np.mean([one.violations for one in shown])),
                    violations_high=float(max(one.violations_high for one in shown)),
                    compliance=float(np.mean(kept)) if kept else None,
                    contested=float(np.mean(fought)) if fought else None,
                    told=tuple(one.told for one in shown),
                    trained=rounds[str(row.workflow)] * self.config.round_episodes * self.config.replicates,
                )
            )
        return answers


def _settled(swap: Swap, histories: Sequence[dict[tuple[str, str], np.ndarray]], is_long: bool) -> SwapAnswer:
    """A swap with what became of its price from round to round; it may be known from a later one on."""
    pair = swap.first, swap.second
    history = np.array([prices[pair] for prices in histories if pair in prices])
    means = tuple(round(float(value), 3) for value in history.mean(axis=1))
    return SwapAnswer(**vars(swap), falling=not is_long or is_falling(history), history=means)


def is_falling(history: np.ndarray) -> bool:
    """history [T, R]: a price after each round, in each training. Did it fall in the last third, in which rates stay as
    they are: by more than STILL_FALLING, and by more than trainings that differ show by chance?

    What it fell is that of a straight line through these rounds and the one before them. All trainings are watched on the
    same episodes: single rounds may look dear, or cheap, in all of them.
    """
    if len(history) < 3:
        return True
    rounds = max(len(history) // 3, 2)
    line = np.arange(rounds + 1) - rounds / 2  # its mean is 0
    falls = -rounds * (line[:, None] * history[-rounds - 1 :]).sum(axis=0) / np.square(line).sum()
    error, _ = standard_errors(falls[:, None])
    return float(falls.mean()) > max(STILL_FALLING, BEYOND_CHANCE * float(error[0]))


def worst_shortfall(earned: np.ndarray, orders: Sequence[tuple[int, ...]]) -> np.ndarray:
    """[N] how far trainings lag behind the best, where they lag most; earned [N, W] under these orders.

    Compared are means over all orders with one unit type before another, for every two: a single order is watched for too
    few episodes to tell who lags.
    """
    lag = np.zeros(len(earned))
    for first, second in permutations(sorted(orders[0]) if orders else (), 2):
        group = [w for w, order in enumerate(orders) if order.index(first) < order.index(second)]
        if group:
            mean = earned[:, group].mean(axis=1)
            lag = np.maximum(lag, mean.max() - mean)
    return lag


# ---------------------------------------------------------------- as a generator of jobs


def open_shared(config: SearchConfig, folder: Path) -> SharedSearch:
    """As its run directory has it, up to the last round that is complete."""
    search = SharedSearch(config, folder, answer=read_answer(folder))
    try:
        rows = read_rows(folder / ROUNDS, ValueRow)
    except OSError as e:
        raise RunDirError(f"{folder / ROUNDS}: cannot be read ({e.strerror})") from e
    complete = max((row.round for row in rows if row.last), default=0)
    search.rows = [row for row in rows if row.round <= complete]
    _check_rounds(search)
    return search


def _check_rounds(search: SharedSearch) -> None:
    """Every training that takes part has played every order known by then, once; RunDirError if not."""
    config = search.config
    known: list[str] = []
    for after in range(1, search.rounds + 1):
        rows = [row for row in search.rows if row.round == after]
        known = list(dict.fromkeys([*known, *(row.workflow for row in rows)]))
        played = [(row.replicate, row.workflow) for row in rows]
        if sorted(played) != sorted((number, order) for number in search.taking_part(after) for order in known):
            raise RunDirError(f"{search.folder / ROUNDS}: round {after} is not whole; was it changed?")
    if search.rounds > config.num_rounds:
        raise RunDirError(f"{search.folder / ROUNDS}: has more rounds than the configuration allows; was it changed?")


def find_idle(search: SharedSearch) -> None:
    """Which unit types red never holds; the replicates have learned to defend."""
    config = search.config
    policies = [load_policy(search.base_folder(number)) for number in search.beginners()]
    search.idle = idle_units(policies, config.training.game, search.scheme, config.seed)


class SharedView(Protocol):
    """Whoever shows it to the user."""

    def begin(self, search: SharedSearch) -> None: ...

    def round_begins(self, search: SharedSearch, number: int, choices: Sequence[Choice]) -> None: ...

    def crossing(self, search: SharedSearch) -> None: ...

    def progress(self, search: SharedSearch, number: int, message: Message) -> None: ...


Run = Callable[[dict[int, Job]], Generator[dict[int, Job], Finished, dict[int, Any]]]


def shared_steps(
    search: SharedSearch, view: SharedView, session: Session, files: ExitStack, run: Run
) -> Generator[dict[int, Job], Finished, None]:
    """The search, as far as the ends of its jobs take it. run: yields jobs until all have ended, and gives their results."""
    config = search.config
    if search.is_done:
        session.finished = True
        return
    bases = {
        number: WarmupJob(config.base_config(number), search.base_folder(number), 2, config.seed)
        for number in search.beginners()
    }
    to_do: dict[int, Job] = {number: job for number, job in bases.items() if not is_warmed_up(job)}
    for number in bases.keys() - to_do.keys():
        delete_checkpoints(bases[number].folder)  # a kill may have come between its result and this
    if to_do:
        yield from run(to_do)
    find_idle(search)
    keep_rows(search.folder / ROUNDS, ValueRow, lambda row: row.round <= search.rounds)
    keep_rows(search.folder / CHOICES, ChoiceRow, lambda row: row.round <= search.rounds)
    ledger, choices_log = CsvLog(search.folder / ROUNDS, ValueRow), CsvLog(search.folder / CHOICES, ChoiceRow)
    files.callback(ledger.close)
    files.callback(choices_log.close)
    while search.rounds < config.num_rounds:
        with session.choosing():
            choices = search.choose()
        number = search.rounds + 1
        for place, choice in enumerate(choices):
            choices_log.write(choice_row(place, number, choice))
        choices_log.sync()
        orders = search.turns(choices)
        watched = list(dict.fromkeys([*search.known(), *(choice.workflow for choice in choices)]))
        view.round_begins(search, number, choices)
        trainings = search.taking_part(number)
        results = yield from run({n: search.round_job(n, orders, watched) for n in trainings})
        rows = [
            ValueRow(round=number, replicate=n, workflow=one.workflow, mean=one.mean, standard_error=one.standard_error)
            for n in trainings
            for one in results[n]
        ]
        rows[-1] = replace(rows[-1], last=1)
        for row in rows:
            ledger.write(row)
        ledger.sync()
        search.rows += rows
    view.crossing(search)
    crossing = {number: search.cross_job(number) for number in search.leaders()}
    crossed = yield from run(dict(crossing))
    measured = [crossed[number] for number in crossing]
    answer = search.conclude(measured)
    for job in crossing.values():
        trained_policy(job)  # one of them goes into best/
    keep_best_shared(search, answer, measured)
    answer.write(search.folder)
    search.answer = answer
    session.finished = True


def keep_best_shared(search: SharedSearch, answer: Answer, measured: Sequence[Sequence[OrderResult]]) -> None:
    """Put the policy that earned most under the best order into best/. It follows any order."""
    best = answer.orders[0].workflow
    earned = [next(shown.mean for shown in of if shown.workflow == best) for of in measured]
    source = replicate_folder(search.folder, search.leaders()[int(np.argmax(earned))])
    copy_policy(source, search.folder / BEST, Workflow.parse(best, search.scheme))
