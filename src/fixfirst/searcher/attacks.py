"""The jobs of a search with `--exploit`: attackers learn against a replicate, then it learns against them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixfirst.base import errors
from fixfirst.game import attacker_files, red_view
from fixfirst.game.game_config import Game
from fixfirst.learner import driver, red_training
from fixfirst.learner.league import FrozenRed, League
from fixfirst.orders.order import Workflow
from fixfirst.play.evaluation import EpisodeBatch
from fixfirst.policy import red_file
from fixfirst.policy.network import Weights
from fixfirst.policy.policy_file import load_policy, rewrite_policy
from fixfirst.policy.table import PolicyTable
from fixfirst.runs import layout, matrix
from fixfirst.searcher import order_results
from fixfirst.searcher.jobs import JobProgress, SearchJob, TellJob
from fixfirst.searcher.order_results import judge_order, play_under
from fixfirst.settings.league import LeagueConfig
from fixfirst.settings.training import TrainConfig
from fixfirst.stats.pricing import OrderResult

_CHECKPOINT_EVERY = 10  # updates of a defender
_SCRIPT_EPISODES = 1_000  # on which adapted defenders are played against the search's own attacker, under each order
_LONGER = 1  # how often the best attacker goes on, in the end


@dataclass(frozen=True)
class AttackJob(SearchJob[OrderResult]):
    """A best response to one replicate's defender under one order; the attacker's files stay in the folder."""

    number: int  # of the replicate
    round: int
    last: bool  # those found under other orders are tried, too
    config: TrainConfig
    parent_policy: Path  # the defender
    order: Workflow
    attackers: tuple[Path, ...]  # to begin from, or, of the last, to go on with
    train_episodes: int  # of each start
    episodes: int  # fresh ones
    seed: int

    @property
    def budget(self) -> int:
        """Training episodes, about."""
        starts = 0 if self.last else len(self.attackers) + 1 + (not self.round)
        return (starts + _LONGER * red_training.LONGER * self.last) * self.train_episodes

    def work(self, tell: TellJob, interrupt: object) -> tuple[OrderResult, dict[str, Any]] | None:
        """Return what the defender earns under the order against the best attacker that is found."""
        game, spec = _game(self.config), _red_spec(self.config)
        policy = load_policy(self.parent_policy)
        opponent = red_training.Opponent(PolicyTable(policy.network, (self.order,), spec=policy.spec), (self.order,))
        others = {f"attacker {n}": red_file.load_red(path, spec.scenario).weights for n, path in enumerate(self.attackers)}
        starts: dict[str, Weights | None] = {} if self.last else {**_shipped((red_file.BASE,), spec), **others}
        if not self.last and not (self.round and starts):
            starts["scratch"] = None
        attempts = red_training.best_response(
            opponent,
            game,
            spec,
            starts,
            known={**others, **_shipped(red_file.KNOWN, spec)} if self.last else {},
            longer=_LONGER if self.last else 0,
            episodes=self.train_episodes,
            seed=self.seed,
            tell=lambda episodes, mean: tell(JobProgress(0, mean, None, done=max(episodes, 1))),
            interrupt=interrupt,
        )
        if interrupt:
            return None
        best = attempts[0].weights
        duel = red_training.play_red(opponent, best, spec, game, episodes=self.episodes, seed=self.seed, purpose="exploit")
        result = judge_order(EpisodeBatch(duel.blue, game), self.order, self.config)
        tried = [[attempt.start, round(attempt.mean, 2)] for attempt in attempts]
        facts = {"order": str(self.order), "tried": tried, "mean": result.mean, "seed": self.seed}
        red_file.save_red(self.folder, best, spec, facts)
        return result, order_results.as_document([result])

    def read(self, document: dict[str, Any]) -> OrderResult:
        """Return what the defender earned; the attacker must be there, too."""
        red_file.load_red(self.folder / attacker_files.RED_JSON, self.config.game.scenario)
        return order_results.from_document(document, (self.order,))[0]


@dataclass(frozen=True)
class AdaptJob(SearchJob[list[float]]):
    """A round in which one replicate's defender learns against attackers."""

    number: int  # of the replicate
    round: int
    config: TrainConfig
    parent_policy: Path  # what it begins as
    orders: tuple[Workflow, ...]
    attackers: tuple[Path, ...]  # those found before: all orders of the first round, then of the next
    taken: tuple[float, ...]  # what the defender earned against each
    updates: int
    seed: int

    @property
    def league(self) -> LeagueConfig:
        return LeagueConfig(
            updates=self.updates,
            live=1,
            lapsing=0,
            responses=0,  # what follows the round has its own
            matrix_episodes=2,
            life=max(self.updates // 2, 1),
            frozen=max(len(self.orders) // 2, 1),
            frozen_envs=40,
            counts=False,
            ent_coef=0.02,  # it has few updates: as sure of itself as it can be and still learn
            initial_logit_scale=0.5,
            average=0.0,
            script_envs=100,
            seed=self.seed,
            **({"variant": self.config.game.variant} if self.config.game.variant else {}),
        )

    @property
    def budget(self) -> int:
        """Training episodes."""
        config = self.league
        return config.updates * (config.script_envs + len(self.orders) * config.envs + config.frozen * config.frozen_envs)

    def live_folder(self, order: int) -> Path:
        """Return where the attacker is that learned under this order in the end."""
        return self.folder / layout.ATTACKERS / f"{order:03d}"

    def work(self, tell: TellJob, interrupt: object) -> tuple[list[float], dict[str, Any]] | None:
        """Train the defender for a round; return what it then earns against the search's attacker under each order."""
        policy, spec, training = load_policy(self.parent_policy), _red_spec(self.config), self._begin()
        each = self.budget // self.updates
        with driver.Driver(self.folder, training, {"job": self.digest}, _CHECKPOINT_EVERY) as run:
            for complaint in run.complaints:
                tell(complaint)
            for step in run.steps(interrupt):
                tell(JobProgress(0, step.earned.get("scripts", 0.0), None, done=each * training.updates))
            if run.interrupted:
                return None
        latest = {red.order: red.weights for red in training.pool}
        for order, weights in latest.items():
            red_file.save_red(self.live_folder(order), weights, spec, {"order": str(self.orders[order])})
        rewrite_policy(self.parent_policy, self.folder, {"notes": {"league": True}}, training.average)
        network, purpose = load_policy(self.folder).network, f"adapted/{self.round}"
        played = (
            play_under(network, policy.spec, self.config, order, order, purpose, _SCRIPT_EPISODES, self.seed)
            for order in self.orders
        )
        means = [float(batch.returns.mean()) for batch in played]
        return means, {"means": means}

    def read(self, document: dict[str, Any]) -> list[float]:
        """Return what it earned under each order; its policy and its attackers must be there, too."""
        load_policy(self.folder)
        for number in range(len(self.orders)):
            red_file.load_red(self.live_folder(number), self.config.game.scenario)
        return [float(document["means"][number]) for number in range(len(self.orders))]

    def _begin(self) -> League:
        """Return the league of this round as it begins, with the attackers that were found before."""
        policy, spec, game = load_policy(self.parent_policy), _red_spec(self.config), _game(self.config)
        known = [red_file.load_red(path, spec.scenario).weights for path in self.attackers]
        pool = [
            FrozenRed(weights, taken, matrix.RESPONSE, "", self.round, number % len(self.orders))
            for number, (weights, taken) in enumerate(zip(known, self.taken, strict=True))
        ]
        base = _shipped((red_file.BASE,), spec)
        return League(self.league, policy.spec, policy.weights, base, orders=self.orders, game=game, pool=pool)


def _game(config: TrainConfig) -> Game:
    return config.game.model_copy(update={"variant": config.game.variant or "current"})


def _red_spec(config: TrainConfig) -> red_view.RedSpec:
    return red_view.RedSpec(config.game.scenario)


def _shipped(names: Sequence[str], spec: red_view.RedSpec) -> dict[str, Weights]:
    """Return attackers that come with fixfirst, if they attack this scenario."""
    found: dict[str, Weights] = {}
    for name in names:
        try:
            found[name] = red_file.load_red(name, spec.scenario).weights
        except errors.PolicyError:
            continue
    return found
