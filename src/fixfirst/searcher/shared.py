"""The search with one network for all orders: replicates trained side by side, in rounds, then measured by cross-play.

    without an order     all trainings learn to defend; unit types that red never holds come last from then on
    round after round    the strategy chooses orders from what all tried ones earned so far, by GP-UCB: half of the next
                         training episodes are theirs, the other half goes to those trained before, so that nothing is
                         forgotten; then all tried orders are played on common episodes. About 1 training in 12 gets
                         stuck: 1.5 times as many start as are needed, and the worst are dropped after 40 % of the rounds
    cross-play           under every tried order each replicate is told what serves it best there, and measured on fresh
                         episodes of its own; where training was too short for an answer, it is told the order itself
    the answer           `stats/pricing.py`; with --exploit also against attackers that adapt (`exploiting.py`)

Like every search it is a plan of jobs, depends on its ledger (rounds.csv) only, and ends the same after any interruption,
with any number of workers.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import permutations
from math import factorial
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.base import errors, plans, seeds
from fixfirst.game.game_config import Game
from fixfirst.orders.network_facts import NetworkFacts
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.play import baselines, evaluation
from fixfirst.play.turns import Player
from fixfirst.policy import policy_file
from fixfirst.policy.policy_file import load_policy
from fixfirst.policy.trained import Policy
from fixfirst.runs import manifest, rows
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.rows import Trial
from fixfirst.searcher.jobs import CLOSER, BaseJob, CrossJob, RoundJob, restore_policy, run_base, run_cross, run_round
from fixfirst.searcher.published import choice_row
from fixfirst.searcher.strategy import Choice, Strategy, StrategyConfig, TrialOutcome, neighbours
from fixfirst.settings.search import SearchConfig
from fixfirst.settings.training import TrainConfig
from fixfirst.stats import pricing
from fixfirst.stats.answer import Adaptive, Answer

MOST_PROMPTS = 24  # orders that cross-play tries to tell
STILL_FALLING = 0.1  # points
BEYOND_CHANCE = 3  # standard errors, of few trainings
_LEAST_SPREAD = 0.1  # between trainings, that the strategy reckons with at least
HELD_EPISODES = 1_000  # to find out which unit types red ever holds


@dataclass
class SharedSearch:
    """What is known of it; all of it follows from its ledger."""

    config: SearchConfig
    folder: Path
    ledger: list[rows.ValueRow] = field(default_factory=list)  # of complete rounds
    idle: tuple[str, ...] = ()
    answer: Answer | None = None
    trials: tuple[Trial, ...] = ()  # what the published search ends with

    def __post_init__(self) -> None:
        self.add_rows(())

    def add_rows(self, values: Sequence[rows.ValueRow]) -> None:
        """Add the ledger's rows of complete rounds."""
        self.ledger = [*self.ledger, *values]
        index = {text: w for w, text in enumerate(dict.fromkeys(row.workflow for row in self.ledger))}
        before = {str(order): order for order in getattr(self, "orders", ())}
        # Orders that were trained, in the order in which they were first chosen.
        self.orders = [before.get(text) or Workflow.parse(text, self.scheme) for text in index]
        self.rounds = max((row.round for row in self.ledger), default=0)  # how many are complete
        # [N, W] what every order earned after a round in each training; NaN where it was not played.
        self._earned = np.full((self.rounds + 1, self.config.trainings, len(index)), np.nan)
        for row in self.ledger:
            self._earned[row.round, row.replicate, index[row.workflow]] = row.mean

    def reload(self) -> None:
        """Go to the last complete round of the ledger, or to the answer."""
        self.answer = Answer.read(self.folder)
        values = rows.read_rows(RunFiles(self.folder).rounds, rows.ValueRow)
        complete = max((row.round for row in values if row.last), default=0)
        trainings, rounds = range(self.config.trainings), range(1, self.config.num_rounds + 1)
        if not all(row.replicate in trainings and row.round in rounds for row in values):
            raise errors.RunDirError(
                f"{RunFiles(self.folder).rounds}: has more rounds than the configuration allows; was it changed?"
            )
        self.ledger = []
        self.add_rows([row for row in values if row.round <= complete])

    @property
    def scheme(self) -> UnitScheme:
        return self.config.scheme

    @property
    def idle_ids(self) -> tuple[int, ...]:
        return tuple(self.scheme.names.index(name) for name in self.idle)

    @property
    def used(self) -> int:
        """Training episodes so far, of all trainings."""
        return self.used_after(self.rounds) if self.ledger else 0

    def used_after(self, rounds: int) -> int:
        """Training episodes of so many rounds and all before them."""
        config = self.config
        played = config.played(rounds, config.drop_round)
        return config.trainings * config.base_budget + played * config.round_episodes

    @property
    def is_done(self) -> bool:
        return self.answer is not None

    def standings(self) -> None:
        """What the published search has: there is no ranking of single trials."""

    def _shortfalls(self) -> np.ndarray:
        """[N] the largest shortfall of each training that began to the best one, over all groups "a before b", after the
        round in which some are dropped.
        """
        earned = self._earned[min(self.rounds, self.config.drop_round)]
        played = np.flatnonzero(~np.isnan(earned).any(axis=0))
        return worst_shortfall(earned[:, played], [self.orders[w].order for w in played])

    def kept_trainings(self) -> list[int]:
        """Trainings that go on as replicates: those with the smallest shortfalls."""
        return sorted(np.argsort(self._shortfalls(), kind="stable")[: self.config.replicates].tolist())

    def trainings_of(self, number: int) -> Sequence[int]:
        """Return the trainings that take part in a round."""
        before_drop = number <= self.config.drop_round
        return range(self.config.trainings) if before_drop else self.kept_trainings()

    def values(self, after: int) -> np.ndarray:
        """[R, W] what every order earned after a round, in each replicate; NaN where it was not played."""
        return self._earned[after][self.kept_trainings()]

    # ---- choosing

    def choose(self) -> list[Choice]:
        """Return the orders of the next round, from what the last one showed."""
        config, tried = self.config, self.orders
        strategy = Strategy(
            StrategyConfig(
                name="exhaustive" if config.strategy == "together" else config.strategy,
                seed=seeds.stream_seed(config.seed, "search", self.rounds),
                beta=config.gp_beta,
                beta_schedule=config.gp_beta_schedule,
                initial_orders=1 if tried else config.initial_orders,
            ),
            self.scheme,
            self.idle_ids,
        )
        if tried:
            values = self.values(self.rounds)
            ses, _ = pricing.standard_errors(values - values.mean(axis=1, keepdims=True), _LEAST_SPREAD)
            for workflow, mean, error in zip(tried, values.mean(axis=0), ses, strict=True):
                strategy.tell(workflow, TrialOutcome.compliant(float(mean), float(error)))
        if config.strategy == "together":
            return [Choice(workflow, "together") for workflow in strategy.all_orders()]
        count = min(config.round_orders, strategy.num_orders)
        if not tried or strategy.num_orders <= config.num_rounds * config.round_orders:
            return strategy.ask(count)
        choices = strategy.ask(count - count // 2)
        return choices + self._neighbour_orders([*tried, *(choice.workflow for choice in choices)], count // 2)

    def _neighbour_orders(self, tried: Sequence[Workflow], count: int) -> list[Choice]:
        """Never tried orders that differ from the best tried ones in two neighbours only, so that swaps get a price.

        Where not all orders can be tried, hardly any two of those that the strategy likes would differ so little.
        """
        earned = self.values(self.rounds).mean(axis=0)
        best = [tried[w].order for w in np.argsort(-earned, kind="stable")]
        units = self.scheme.size - len(self.idle)
        near = dict.fromkeys(order for of in best for order in neighbours(of, units))
        known = {workflow.order for workflow in tried}
        new = [order for order in near if order not in known][:count]
        return [Choice(Workflow(order, self.scheme), "swap") for order in new]

    def turns(self, choices: Sequence[Choice]) -> list[Workflow]:
        """Return the orders that take turns in a round's training: the chosen ones, and as often in all those tried before.

        Where all orders are chosen every time, those that cost more than the margin have three turns to two of the others:
        they are the hardest to learn, and until they are learned their prices are too high.
        """
        chosen, tried = [choice.workflow for choice in choices], self.orders
        before = [workflow for workflow in tried if workflow not in chosen]
        if before:
            times, more = max(len(before) // len(chosen), 1), max(len(chosen) // len(before), 1)
            return chosen * times + before * more
        if not tried:
            return chosen
        earned = self.values(self.rounds).mean(axis=0)
        dear = {tried[w] for w in np.flatnonzero(earned < earned.max() - self.config.margin)}
        return chosen * 2 + [workflow for workflow in chosen if workflow in dear]

    @property
    def network(self) -> NetworkFacts:
        """What can be compared of its network."""
        return NetworkFacts.of(self.scheme)

    # ---- jobs

    def base_job(self, number: int) -> BaseJob:
        folder = RunFiles(self.folder).replicate(number) / "base"
        return BaseJob(self.config.base_config(number), folder, 2, self.config.seed)

    def training_config(self, number: int) -> TrainConfig:
        """Return how a training goes on with orders."""
        any_order = " > ".join(sorted(self.scheme.names, key=self.idle.__contains__))  # idle ones come last
        return self.config.orders_config(number, self.idle, any_order)

    def round_job(self, number: int, orders: Sequence[Workflow], played_orders: Sequence[Workflow]) -> RoundJob:
        config = self.config
        episodes = min(config.watch_episodes, config.round_episodes) // len(played_orders)
        return RoundJob(
            number=number,
            round=self.rounds + 1,
            config=self.training_config(number),
            folder=RunFiles(self.folder).replicate(number),
            parent_policy=self.base_job(number).folder,
            orders=tuple(orders),
            played_orders=tuple(played_orders),
            since=config.round_episodes * self.rounds,
            until=config.round_episodes * (self.rounds + 1),
            episodes=max(episodes, config.selection_episodes),
            seed=config.seed,
        )

    def cross_job(self, number: int) -> CrossJob:
        config = self.config
        earned, most = self.values(self.rounds).mean(axis=0), config.measure_episodes
        best_first = [self.orders[w] for w in np.argsort(-earned, kind="stable")]
        if not config.can_settle:  # what was seen so far is worth no more
            most = min(most, CLOSER * config.selection_episodes)
        return CrossJob(
            number=number,
            config=self.training_config(number),
            folder=RunFiles(self.folder).replicate(number),
            trained=config.round_episodes * self.rounds,
            prompts=tuple(best_first[:MOST_PROMPTS]) if config.can_settle else (),
            enforced_orders=tuple(self.orders),
            selection_episodes=config.selection_episodes,
            episodes=min(most, max(config.orders_budget, config.selection_episodes)),
            seed=config.seed,
        )

    def plan(self, view: Any, session: manifest.Session, files: ExitStack) -> plans.Plan[None]:
        """Bases without an order, rounds with orders, cross-play, the answer."""
        if self.is_done:
            session.finished = True
            return
        bases = [self.base_job(number) for number in range(self.config.trainings)]
        yield from plans.gather(
            {n: plans.Task(run_base, job, f"replicate {n}") for n, job in enumerate(bases) if not job.is_done()}
        )
        policies = [load_policy(job.folder) for job in bases]
        self.idle = idle_units(policies, self.config.training.game, self.scheme, self.config.seed)
        yield from self._rounds(view, session, files)
        view.crossing(self)
        crosses = {number: self.cross_job(number) for number in self.kept_trainings()}
        results = yield from plans.gather({n: plans.Task(run_cross, job, f"replicate {n}") for n, job in crosses.items()})
        measured = [results[number] for number in crosses]
        answer = self.conclude(measured)
        if self.config.exploit:
            answer = replace(answer, adaptive=(yield from self._exploit(view)))
        best = Workflow.parse(answer.orders[0].workflow, self.scheme)
        earned = [next(result.mean for result in replicate if result.order == best) for replicate in measured]
        for job in crosses.values():
            restore_policy(job)  # whoever read its result only has not looked at it
        policy_file.copy_policy(list(crosses.values())[int(np.argmax(earned))].folder, RunFiles(self.folder).best, best)
        answer.write(self.folder)
        self.answer = answer
        session.finished = True

    def _exploit(self, view: Any) -> plans.Plan[Adaptive]:
        """Let attackers learn against replicates, and price orders anew."""
        config = self.config
        trainings = {n: self.training_config(n) for n in self.kept_trainings()[: config.exploit_replicates]}
        from fixfirst.searcher import exploiting  # attackers that learn: only they need it

        plan = exploiting.Exploiting(config, self.folder, trainings, tuple(self.orders))
        measured, scripted = yield from plan.plan(self, view)
        seed = seeds.stream_seed(config.seed, "adaptive")
        return exploiting.price_adaptive(
            measured, scripted, self._relevant, config.margin, seed, long_enough=config.exploits_long
        )

    @property
    def _relevant(self) -> list[int]:
        """Unit types that red ever holds."""
        return [unit for unit in range(self.scheme.size) if unit not in self.idle_ids]

    def _rounds(self, view: Any, session: manifest.Session, files: ExitStack) -> plans.Plan[None]:
        ledger = rows.CsvLog(RunFiles(self.folder).rounds, rows.ValueRow, lambda row: row.round <= self.rounds)
        files.callback(ledger.close)
        choices_log = rows.CsvLog(RunFiles(self.folder).choices, rows.ChoiceRow, lambda row: row.round <= self.rounds)
        files.callback(choices_log.close)
        while self.rounds < self.config.num_rounds:
            with session.choosing():
                choices = self.choose()
            number = self.rounds + 1
            for place, choice in enumerate(choices):
                choices_log.write(choice_row(place, number, choice))
            choices_log.sync()
            view.round_begins(self, number, choices)
            orders, played = self.turns(choices), dict.fromkeys([*self.orders, *(choice.workflow for choice in choices)])
            rounds = {n: self.round_job(n, orders, list(played)) for n in self.trainings_of(number)}
            results = yield from plans.gather({n: plans.Task(run_round, job, f"replicate {n}") for n, job in rounds.items()})
            values = [
                rows.ValueRow(
                    round=number,
                    replicate=n,
                    workflow=str(one.order),
                    mean=one.mean,
                    standard_error=one.standard_error,
                )
                for n in rounds
                for one in results[n]
            ]
            values[-1] = replace(values[-1], last=1)
            for row in values:
                ledger.write(row)
            ledger.sync()
            self.add_rows(values)

    # ---- the answer

    def conclude(self, measured: Sequence[Sequence[pricing.OrderResult]]) -> Answer:
        """Return the answer, from what every replicate earned under every order, [R][W]."""
        config, scheme = self.config, self.scheme
        relevant = self._relevant
        seed = seeds.stream_seed(config.seed, "answer")
        prices = pricing.price(measured, relevant, config.margin, seed, sure=config.can_settle)
        histories, game = self._histories(relevant), config.training.game
        swaps = tuple(_with_history(swap, histories, config.margin) for swap in prices.swaps)
        if any(swap.falling for swap in swaps):
            prices = pricing.price(measured, relevant, config.margin, seed, sure=False)
        kept, shortfalls = self.kept_trainings(), self._shortfalls()
        return Answer(
            red_agent=game.attacker,
            variant=str(game.variant),
            memory=config.training.memory,
            units=scheme.names,
            idle=self.idle,
            replicates=config.replicates,
            dropped=tuple(float(shortfalls[n]) for n in range(config.trainings) if n not in kept),
            episodes=self.used,
            rounds=tuple(config.round_episodes * (r + 1) for r in range(self.rounds)),
            possible=factorial(len(relevant)),
            all_orders=scheme.num_orders,
            margin=config.margin,
            spread=prices.spread,
            swaps=swaps,
            orders=prices.orders,
            long_enough=config.is_long,
            next_episodes=config.next_budget,
            scenario=game.scenario.name,
        )

    def _histories(self, relevant: Sequence[int]) -> list[dict[tuple[str, str], np.ndarray]]:
        """The prices of all swaps after every round in each replicate, [R], each told the order it has to keep; both ways
        round.
        """
        histories = []
        for after in range(1, self.rounds + 1):
            values = self.values(after)
            played = np.flatnonzero(~np.isnan(values).any(axis=0))
            swaps = pricing.price_swaps([self.orders[w] for w in played], values[:, played], relevant, sure=False)
            prices = {(swap.first, swap.second): np.array(swap.by_replicate) for swap in swaps}
            histories.append(prices | {(second, first): -value for (first, second), value in prices.items()})
        return histories


def _with_history(swap: pricing.Swap, histories: Sequence[dict[tuple[str, str], np.ndarray]], margin: float) -> pricing.Swap:
    """Add the price from round to round; the first rounds may lack it. One that may still fall has no interval.

    What is shown to be worth less than the margin is none the more if it falls.
    """
    pair = swap.first, swap.second
    history = np.array([prices[pair] for prices in histories if pair in prices])
    means = tuple(round(float(value), 3) for value in history.mean(axis=1))
    if swap.low is not None and (swap.at_most <= margin or not is_falling(history)):
        return replace(swap, history=means)
    parts = tuple(replace(part, low=None, high=None) for part in swap.parts)
    return replace(swap, low=None, high=None, parts=parts, falling=True, history=means)


def is_falling(history: np.ndarray) -> bool:
    """Did a price fall in the last third of the rounds, in which rates stay as they are: by more than STILL_FALLING, and by
    more than trainings that differ show by chance? history [T, R]: the price after each round, in each training.

    What it fell is that of a straight line through these rounds and the one before them. All trainings play the same
    episodes: single rounds may look dear, or cheap, in all of them.
    """
    if len(history) < 3:
        return True
    rounds = max(len(history) // 3, 2)
    line = np.arange(rounds + 1) - rounds / 2  # its mean is 0
    falls = -rounds * (line[:, None] * history[-rounds - 1 :]).sum(axis=0) / np.square(line).sum()
    error, _ = pricing.standard_errors(falls[:, None])
    return float(falls.mean()) > max(STILL_FALLING, BEYOND_CHANCE * float(error[0]))


def worst_shortfall(earned: np.ndarray, orders: Sequence[tuple[int, ...]]) -> np.ndarray:
    """[N] largest shortfall of each training to the best one, over all ordered pairs of unit types.

    earned [N, W] under these orders. Compared are means over all orders with one unit type before another: a single order
    is played on too few episodes to tell which training is behind.
    """
    shortfall = np.zeros(len(earned))
    for first, second in permutations(sorted(orders[0]) if orders else (), 2):
        group = [w for w, order in enumerate(orders) if order.index(first) < order.index(second)]
        if group:
            mean = earned[:, group].mean(axis=1)
            shortfall = np.maximum(shortfall, mean.max() - mean)
    return shortfall


def idle_units(policies: Sequence[Policy], game: Game, scheme: UnitScheme, seed: int) -> tuple[str, ...]:
    """Unit types that red never holds: neither against these policies nor against defenders who do nothing, or anything.

    Against Meander the latter finds operational hosts, which red turns to once it is driven out of the server. Red's
    foothold apart: it is held from the beginning.
    """
    game = game.model_copy(update={"backend": "simulator"})
    players: list[Player] = [baselines.make_baseline(name, scenario=game.scenario) for name in ("sleep", "random")]
    players += [policy.player() for policy in policies]
    held = 0
    for player in players:
        rollout = evaluation.play(player, game, episodes=HELD_EPISODES, seed=seed, purpose="held").rollout
        held |= int(np.bitwise_or.reduce(rollout.held, axis=None))
    return scheme.untouched(held)
