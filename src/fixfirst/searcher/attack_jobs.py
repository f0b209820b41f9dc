"""The jobs of a search with `--exploit`: attackers learn against a defender under one order, and defenders learn back."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fixfirst.base import files
from fixfirst.game import red_view
from fixfirst.learner import driver, league, red_training
from fixfirst.learner.population import FrozenRed
from fixfirst.orders.order import Workflow
from fixfirst.play import evaluation
from fixfirst.policy import reds
from fixfirst.policy.network import Weights
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.trained import load_policy
from fixfirst.runs import rows, sessions
from fixfirst.runs.layout import RunFiles
from fixfirst.searcher.jobs import Measured, OrdersJob, TellJob, judge_order, play_under, read_results, write_results
from fixfirst.settings.league import LeagueConfig
from fixfirst.settings.training import TrainConfig
from fixfirst.stats.pricing import OrderResult

_CHECKPOINT_EVERY = 10  # updates of a defender
_SCRIPT_EPISODES = 1_000  # on which adapted defenders are played against the search's own attacker, under each order
_REFINEMENTS = 1  # how often the best attacker goes on, in the end


@dataclass(frozen=True)
class AttackJob(OrdersJob):
    """A best response to one replicate's defender under one order."""

    number: int  # of the replicate
    round: int
    last: bool  # those found under other orders are tried, too
    config: TrainConfig
    folder: Path
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
        return red_training.episodes_of(starts, self.train_episodes, _REFINEMENTS * self.last)


def run_attack(job: AttackJob, tell: TellJob, interrupt: object) -> list[OrderResult] | None:
    """Return what the defender earns under the order against the best attacker; its files stay in the folder."""
    with sessions.job_folder(job.folder):
        if (done := read_results(job)) is not None:
            return done
        game, policy = job.config.game, load_policy(job.parent_policy)
        spec = red_view.RedSpec(game.scenario)
        opponent = red_training.Opponent(PolicyTable(policy.network, (job.order,), spec=policy.spec), (job.order,))
        others = {f"attacker {number}": weights for number, weights in enumerate(_weights(job.attackers, spec))}
        starts: dict[str, Weights | None] = {} if job.last else {**reds.shipped_reds((reds.BASE,), spec), **others}
        if not job.last and not (job.round and starts):
            starts["scratch"] = None
        attempts = red_training.best_response(
            opponent,
            game,
            spec,
            starts,
            others={**others, **reds.shipped_reds(reds.KNOWN, spec)} if job.last else {},
            refinements=_REFINEMENTS if job.last else 0,
            episodes=job.train_episodes,
            seed=job.seed,
            tell=lambda episodes, mean: tell(Measured(episodes)),
            interrupt=interrupt,
        )
        if interrupt:
            return None
        best = attempts[0].weights
        duel = red_training.play_red(opponent, best, spec, game, episodes=job.episodes, seed=job.seed, purpose="exploit")
        result = judge_order(evaluation.EpisodeBatch(duel.blue, game), job.order, job.config)
        tried = [[attempt.start, round(attempt.mean, 2)] for attempt in attempts]
        facts = {"order": str(job.order), "tried": tried, "mean": result.mean, "seed": job.seed}
        reds.RedPolicy(best, spec, facts).save(job.folder)
        write_results(job, [result])
        return [result]


@dataclass(frozen=True)
class AdaptJob(OrdersJob):
    """A round in which one replicate's defender learns against attackers."""

    number: int  # of the replicate
    round: int
    config: TrainConfig
    folder: Path
    parent_policy: Path  # what it begins as
    orders: tuple[Workflow, ...]
    attackers: tuple[Path, ...]  # of all rounds before: all orders of the first round, then of the next
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
            variant=self.config.game.variant or "current",
        )

    @property
    def budget(self) -> int:
        """Training episodes."""
        config = self.league
        return config.updates * (config.script_envs + len(self.orders) * config.envs + config.frozen * config.frozen_envs)


def run_adapt(job: AdaptJob, tell: TellJob, interrupt: object) -> list[float] | None:
    """Train the defender for a round; return what it then earns against the search's attacker under each order."""
    with sessions.job_folder(job.folder):
        if (done := job.result()) is not None:
            driver.delete_checkpoints(job.folder)  # a kill may have come between its result and this
            return [float(mean) for mean in done["means"]]
        training, spec = _begin_league(job), red_view.RedSpec(job.config.game.scenario)
        each = job.budget // job.updates
        with driver.Driver(job.folder, training, {"job": job.digest}, tell, _CHECKPOINT_EVERY) as run:
            for _ in run.steps(interrupt):
                tell(Measured(each * training.updates))
            if run.interrupted:
                return None
        latest = {red.order: red.weights for red in training.pool}
        for number, weights in latest.items():
            reds.RedPolicy(weights, spec, {"order": str(job.orders[number])}).save(RunFiles(job.folder).attacker(number))
        replace(load_policy(job.parent_policy), weights=training.average).save(job.folder, notes={"league": True})
        policy, means = load_policy(job.folder), []
        network = policy.network
        for order in job.orders:
            played = play_under(job, network, policy.spec, order, order, f"adapted/{job.round}", _SCRIPT_EPISODES)
            means.append(float(played.returns.mean()))
        files.write_document(RunFiles(job.folder).result, "result", {"job": job.digest, "means": means})
        driver.delete_checkpoints(job.folder)
        return means


def _begin_league(job: AdaptJob) -> league.League:
    """Return the league of a round as it begins, with the attackers of the rounds before."""
    policy, spec = load_policy(job.parent_policy), red_view.RedSpec(job.config.game.scenario)
    pool = [
        FrozenRed(weights, taken, rows.AttackerKind.RESPONSE, "", job.round, number % len(job.orders))
        for number, (weights, taken) in enumerate(zip(_weights(job.attackers, spec), job.taken, strict=True))
    ]
    base = reds.shipped_reds((reds.BASE,), spec)
    return league.League(job.league, policy.spec, policy.weights, base, orders=job.orders, game=job.config.game, pool=pool)


def _weights(folders: Sequence[Path], spec: red_view.RedSpec) -> list[Weights]:
    """Read attackers of other jobs."""
    return [reds.load_red(folder, spec.scenario).weights for folder in folders]
