"""The search with one network for all orders: replicates trained side by side, in rounds, then measured by cross-play.

    without an order     all trainings learn to defend; unit types that red never holds come last from then on
    round after round    the strategy chooses orders from what all tried ones earned so far, by GP-UCB: half of the next
                         training episodes are theirs, the other half goes to those trained before, so that nothing is
                         forgotten; then all tried orders are played on common episodes. About 1 training in 12 gets
                         stuck: 1.5 times as many start as are needed, and the worst are dropped after 40 % of the rounds
    cross-play           under every tried order each replicate is told what serves it best there, and measured on fresh
                         episodes of its own; where training was too short for an answer, it is told the order itself
    the answer           `stats/pricing.py`; with --exploit also against attackers that adapt (`exploiting.py`)

Its ledger is rounds.csv: what every replicate earned under every tried order after each round.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import groupby, permutations
from math import factorial
from pathlib import Path

import numpy as np

from fixfirst.base import plans, seeds
from fixfirst.game.game_config import Game
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.play import evaluation
from fixfirst.policy import scripts
from fixfirst.policy.trained import Policy, load_policy
from fixfirst.policy.turns import Player
from fixfirst.runs import csv_logs, rows
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.sessions import Session
from fixfirst.searcher.choosing import choice_row, choose_round, turns
from fixfirst.searcher.jobs import CLOSER, BaseJob, CrossJob, RoundJob, run_base, run_cross, run_round
from fixfirst.searcher.search import View, gather
from fixfirst.settings.search import SearchConfig
from fixfirst.settings.training import TrainConfig
from fixfirst.stats import pricing
from fixfirst.stats.answer import Adaptive, Answer

MOST_PROMPTS = 24  # orders that cross-play tries to tell
HELD_EPISODES = 1_000  # to find out which unit types red ever holds
STILL_FALLING = 0.1  # points
_LOGGED = ("workflow", "mean", "standard_error")  # of a result, after each round
BEYOND_CHANCE = 3  # standard errors, of few trainings


class SharedSearch:
    """A search whose trainings each learn all orders."""

    def __init__(self, config: SearchConfig, folder: Path):
        self.config, self.folder = config, folder
        self.idle: tuple[str, ...] = ()  # unit types that red never holds, once that is known
        self.answer: Answer | None = None
        self.orders: list[Workflow] = []  # that were trained, in the order in which they were first chosen
        # [N, W] after each round: what every order so far earned in each training; NaN of those that were dropped.
        self._earned: list[np.ndarray] = []

    def reload(self) -> None:
        """Go to the last complete round of the ledger, or to the answer."""
        self.answer = Answer.read(self.folder)
        ledger = list(csv_logs.read_rows(RunFiles(self.folder).rounds, rows.ValueRow))
        complete = max((row.round for row in ledger if row.last), default=0)
        self.orders, self._earned = [], []
        self.add_rounds([row for row in ledger if row.round <= complete])

    def add_rounds(self, ledger: Sequence[rows.ValueRow]) -> None:
        """Add the ledger's rows of complete rounds."""
        number = {str(order): w for w, order in enumerate(self.orders)}
        for _, group in groupby(ledger, key=lambda row: row.round):
            returns = {(row.workflow, row.replicate): row.mean for row in group}
            for text in dict.fromkeys(text for text, _ in returns):
                if text not in number:
                    number[text] = len(number)
                    self.orders.append(Workflow.parse(text, self.config.scheme))
            earned = np.full((self.config.trainings, len(number)), np.nan)
            for (text, training), mean in returns.items():
                earned[training, number[text]] = mean
            self._earned.append(earned)

    @property
    def rounds(self) -> int:
        """How many are complete."""
        return len(self._earned)

    @property
    def used(self) -> int:
        """Training episodes so far, of all trainings."""
        return self.config.budget.used(self.rounds) if self.rounds else 0

    @property
    def is_done(self) -> bool:
        return self.answer is not None

    @property
    def in_words(self) -> str:
        return "" if self.answer is None else self.answer.rule

    def _shortfalls(self) -> np.ndarray:
        """[N] how far each training that began is behind, after the round in which some are dropped."""
        after = min(self.rounds, self.config.budget.drop_round)
        earned = self._earned[after - 1] if after else np.zeros((self.config.trainings, 0))
        return worst_shortfall(earned, [workflow.order for workflow in self.orders[: earned.shape[1]]])

    def kept_trainings(self) -> list[int]:
        """Return the trainings that go on as replicates: those with the smallest shortfalls."""
        return sorted(np.argsort(self._shortfalls(), kind="stable")[: self.config.replicates].tolist())

    def values(self) -> np.ndarray:
        """[R, W] what every order earned after the last round, in each replicate."""
        return self._earned[-1][self.kept_trainings()] if self._earned else np.empty((self.config.replicates, 0))

    # ---- jobs

    def round_job(
        self, number: int, training: TrainConfig, orders: Sequence[Workflow], played_orders: Sequence[Workflow]
    ) -> RoundJob:
        """Return how a training goes on in the next round."""
        config, folder = self.config, RunFiles(self.folder).replicate(number)
        episodes = min(config.watch_episodes, config.budget.round_episodes) // len(played_orders)
        return RoundJob(
            number=number,
            round=self.rounds + 1,
            config=training,
            folder=folder,
            parent_policy=folder / "base",
            orders=tuple(orders),
            played_orders=tuple(played_orders),
            since=config.budget.round_episodes * self.rounds,
            until=config.budget.round_episodes * (self.rounds + 1),
            episodes=max(episodes, config.selection_episodes),
            seed=config.seed,
        )

    def cross_job(self, number: int, training: TrainConfig) -> CrossJob:
        """Return how a replicate is measured in the end."""
        config = self.config
        earned, most = self.values().mean(axis=0), config.measure_episodes
        best_first = [self.orders[w] for w in np.argsort(-earned, kind="stable")]
        if not config.budget.can_settle:  # what was seen so far is worth no more
            most = min(most, CLOSER * config.selection_episodes)
        return CrossJob(
            number=number,
            config=training,
            folder=RunFiles(self.folder).replicate(number),
            trained=config.budget.round_episodes * self.rounds,
            prompts=tuple(best_first[:MOST_PROMPTS]) if config.budget.can_settle else (),
            enforced_orders=tuple(self.orders),
            selection_episodes=config.selection_episodes,
            episodes=min(most, max(config.budget.orders, config.selection_episodes)),
            seed=config.seed,
        )

    # ---- the plan

    def plan(self, view: View, session: Session) -> plans.Plan[None]:
        """Bases without an order, rounds with orders, cross-play, the answer."""
        if self.is_done:
            return
        config = self.config
        folders = [RunFiles(self.folder).replicate(n) / "base" for n in range(config.trainings)]
        bases = {n: BaseJob(config.base_configs[n], folder, 2, config.seed) for n, folder in enumerate(folders)}
        yield from gather({n: plans.Task(run_base, job, f"replicate {n}") for n, job in bases.items()})
        policies = [load_policy(folder) for folder in folders]
        self.idle = idle_units(policies, config.training.game, config.scheme, config.seed)
        trainings = self.config.orders_configs(self.idle)
        yield from self._rounds(view, session, trainings)
        how = " by cross-play" if config.budget.can_settle else ""
        view.measuring(self, f"measuring {len(self.orders)} orders{how}", len(self.orders) * config.replicates)
        crosses = {n: self.cross_job(n, trainings[n]) for n in self.kept_trainings()}
        results = yield from gather({n: plans.Task(run_cross, job, f"replicate {n}") for n, job in crosses.items()})
        measured = [results[number] for number in crosses]
        answer = self.conclude(measured)
        if config.exploit:
            answer = replace(answer, adaptive=(yield from self._exploit(view, trainings)))
        best = Workflow.parse(answer.orders[0].workflow, config.scheme)
        earned = [replicate[self.orders.index(best)].mean for replicate in measured]
        earner = load_policy(list(crosses.values())[int(np.argmax(earned))].folder)
        earner.with_favourite(best).save(RunFiles(self.folder).best)
        answer.write(self.folder)
        self.answer = answer

    def _rounds(self, view: View, session: Session, trainings: Sequence[TrainConfig]) -> plans.Plan[None]:
        config, done = self.config, self.rounds
        here = RunFiles(self.folder)
        with (
            closing(csv_logs.CsvLog(here.rounds, rows.ValueRow, lambda row: row.round <= done)) as ledger,
            closing(csv_logs.CsvLog(here.choices, rows.ChoiceRow, lambda row: row.round <= done)) as choices_log,
        ):
            while self.rounds < config.budget.num_rounds:
                number = self.rounds + 1
                with session.choosing():
                    choices = choose_round(config, self.rounds, self.orders, self.values(), self._units(idle=True))
                for index, choice in enumerate(choices):
                    choices_log.write(choice_row(index, number, choice))
                choices_log.sync()
                view.round_begins(self, number, choices)
                chosen = [choice.workflow for choice in choices]
                orders = turns(chosen, self.orders, self.values(), config.margin)
                played = list(dict.fromkeys([*self.orders, *chosen]))
                playing = range(config.trainings) if number <= config.budget.drop_round else self.kept_trainings()
                jobs = {n: self.round_job(n, trainings[n], orders, played) for n in playing}
                results = yield from gather({n: plans.Task(run_round, job, f"replicate {n}") for n, job in jobs.items()})
                earned = [
                    rows.ValueRow(
                        round=number, replicate=n, workflow=r.workflow, mean=r.mean, standard_error=r.standard_error
                    )
                    for n in jobs
                    for r in results[n]
                ]
                earned[-1] = replace(earned[-1], last=1)
                for row in earned:
                    ledger.write(row)
                ledger.sync()
                self.add_rounds(earned)

    def _exploit(self, view: View, trainings: Sequence[TrainConfig]) -> plans.Plan[Adaptive]:
        """Let attackers learn against replicates, and price orders anew."""
        from fixfirst.searcher import exploiting  # attackers that learn: only they need it

        config = self.config
        replicates = {n: trainings[n] for n in self.kept_trainings()[: config.exploit_replicates]}
        plan = exploiting.Exploiting(config, self.folder, replicates, tuple(self.orders))
        measured, scripted = yield from plan.plan(self, view)
        seed, long_enough = seeds.stream_seed(config.seed, "adaptive"), config.budget.is_long and config.adapts_long
        units = self._units(idle=False)
        return exploiting.price_adaptive(
            self.orders, measured, scripted, units, config.margin, seed, long_enough=long_enough
        )

    def _units(self, *, idle: bool) -> tuple[int, ...]:
        """Return the unit types that red never holds, or those that it does."""
        return tuple(unit for unit, name in enumerate(self.config.scheme.names) if (name in self.idle) == idle)

    def conclude(self, measured: Sequence[Sequence[pricing.OrderResult]]) -> Answer:
        """Return the answer, from what every replicate earned under every order, [R][W]."""
        config, scheme, game = self.config, self.config.scheme, self.config.training.game
        relevant, margin, kept = self._units(idle=False), config.margin, self.kept_trainings()
        seed = seeds.stream_seed(config.seed, "answer")
        prices = pricing.price(self.orders, measured, relevant, margin, seed, sure=config.budget.can_settle)
        returns = [earned[kept] for earned in self._earned]
        histories = pricing.price_histories(prices.swaps, self.orders, returns, relevant)
        settled = [  # what is shown to be worth less than the margin is none the more if it falls
            swap.low is not None and (swap.at_most <= margin or not is_falling(history))
            for swap, history in zip(prices.swaps, histories, strict=True)
        ]
        prices = prices.with_histories(histories, settled, digits=3)
        return Answer(
            red_agent=game.attacker,
            variant=str(game.variant),
            memory=config.training.memory,
            units=scheme.names,
            idle=self.idle,
            replicates=config.replicates,
            dropped=tuple(float(shortfall) for n, shortfall in enumerate(self._shortfalls()) if n not in kept),
            episodes=self.used,
            rounds=tuple(config.budget.round_episodes * (r + 1) for r in range(self.rounds)),
            possible=factorial(len(relevant)),
            all_orders=scheme.num_orders,
            margin=margin,
            spread=prices.spread,
            swaps=prices.swaps,
            orders=prices.orders,
            long_enough=config.budget.is_long,
            next_episodes=config.next_budget,
            scenario=game.scenario.name,
        )


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


def is_falling(history: np.ndarray) -> bool:
    """Did a price fall in the last third of the rounds, in which rates stay as they are: by more than STILL_FALLING, and by
    more than trainings that differ show by chance? history [T, R].

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


def idle_units(policies: Sequence[Policy], game: Game, scheme: UnitScheme, seed: int) -> tuple[str, ...]:
    """Unit types that red never holds: neither against these policies nor against defenders who do nothing, or anything.

    Against Meander the latter finds operational hosts, which red turns to once it is driven out of the server. Red's
    foothold apart: it is held from the beginning.
    """
    game = game if game.backend == "simulator" else game.model_copy(update={"backend": "simulator"})
    players: list[Player] = [scripts.make_baseline(name, scenario=game.scenario) for name in ("sleep", "random")]
    players += [policy.player() for policy in policies]
    held = 0
    for player in players:
        rollout = evaluation.play(player, game, episodes=HELD_EPISODES, seed=seed, purpose="held").rollout
        held |= int(np.bitwise_or.reduce(rollout.held, axis=None))
    return scheme.untouched(held)
