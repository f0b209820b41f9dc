"""The jobs of a search that trains one network for all orders, wherever they run: a round of training, and cross-play.

Each replicate is a training of its own: first without an order (`WarmupJob`), then with orders that change from round to
round. What it has learned lies in its folder as a checkpoint. *Cross-play*: the policy that is told order A may keep order B
better than the one that is told B; so under every order, on episodes for selection, the best thing to tell it is looked for,
and what it then earns is measured on fresh episodes.
"""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.base.errors import PolicyError, RunDirError
from fixfirst.base.statistics import normal_quantile
from fixfirst.game.game import Game
from fixfirst.learner.checkpoint import restore_checkpoint, save_checkpoint, save_policy
from fixfirst.learner.config import TrainConfig
from fixfirst.learner.training import Training
from fixfirst.orders.compliance import CONFIDENCE
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.play.baselines import make_baseline
from fixfirst.play.evaluation import play
from fixfirst.play.rollout import Player
from fixfirst.policy.file import Policy, load_policy
from fixfirst.policy.table import PolicyTable
from fixfirst.runs.files import read_own_json, sha256, with_checksum, write_json
from fixfirst.runs.layout import RESULT
from fixfirst.runs.lock import locked
from fixfirst.runs.rows import number
from fixfirst.searcher.trial import ORPHAN_WAIT_S, JobProgress, Tell

TAIL = -60.0  # episodes that earn less are disasters
HELD_EPISODES = 1_000  # to find out which unit types red ever holds
FINALISTS, CLOSER = 2, 5  # so many of what might be told are looked at again, on so many times the episodes


@dataclass(frozen=True)
class RoundJob:
    """One round of one replicate: train on some orders, then play all known ones."""

    number: int  # of the replicate
    round: int
    config: TrainConfig  # of the whole training with orders
    folder: Path
    parent_policy: Path  # what it starts from in the first round
    orders: tuple[str, ...]  # they take turns
    watched: tuple[str, ...]  # orders whose returns are asked for
    since: int  # training episodes before this round
    until: int  # and after it
    episodes: int  # that each watched order is played
    seed: int  # of these

    @property
    def digest(self) -> str:
        """Names the job: a result in its folder counts only if it is of this job."""
        facts = asdict(self) | {"config": self.config.model_dump(mode="json"), "folder": None, "parent_policy": None}
        return sha256(json.dumps(facts).encode())


@dataclass(frozen=True)
class OrderResult:
    """What one replicate earned under one order."""

    workflow: str
    told: str  # the order the policy was told
    mean: float
    standard_error: float
    tail: float  # share of episodes below TAIL
    violations: float  # repairs per episode that truly broke the order
    violations_high: float  # upper bound of 95 %
    compliance: float | None
    contested: float | None


def run_round(job: RoundJob, tell: Tell, interrupt: object) -> list[OrderResult] | None:
    """What each watched order earned; None if interrupted. A finished round is read from its folder."""
    job.folder.mkdir(parents=True, exist_ok=True)
    with locked(job.folder, wait_s=ORPHAN_WAIT_S):
        done = _result(job.folder, job.digest)
        if done is not None:
            return done
        with closing(Training(job.config, job.number)) as training:
            return _train_and_play(job, training, tell, interrupt)


def _train_and_play(job: RoundJob, training: Training, tell: Tell, interrupt: object) -> list[OrderResult] | None:
    for complaint in restore_checkpoint(job.folder, training):
        tell(complaint)
    if not job.since and not training.updates:
        training.inherit(load_policy(job.parent_policy).weights)
    if training.episodes not in (job.since, job.until):  # the latter if only the playing was cut short
        raise RunDirError(
            f"{job.folder}: the checkpoint of {job.since:,} episodes is damaged or gone, and round {job.round} goes on from "
            "it; begin a new run"
        )
    scheme = training.config.scheme
    training.play_orders([Workflow.parse(order, scheme) for order in job.orders])
    while training.episodes < job.until:
        if interrupt:
            return None
        row = training.step().row
        tell(JobProgress(row.episodes, row.env_reward, row.compliance))
    save_checkpoint(job.folder, training)
    save_policy(job.folder, training, accepted=False)
    policy = load_policy(job.folder)
    shown = [_show(policy, job.config, order, order, "round", job.episodes, job.seed) for order in job.watched]
    _write(job.folder, job.digest, shown)
    return shown


@dataclass(frozen=True)
class CrossJob:
    """Cross-play of one replicate's policy."""

    number: int
    config: TrainConfig
    folder: Path
    trained: int  # episodes, after all rounds
    told: tuple[str, ...]  # what it may be told
    kept: tuple[str, ...]  # orders to keep
    selection_episodes: int
    episodes: int  # to measure on, others than those
    seed: int

    @property
    def digest(self) -> str:
        """See `RoundJob`."""
        facts = asdict(self) | {"config": self.config.model_dump(mode="json"), "folder": None}
        return sha256(json.dumps(facts).encode())


def run_cross(job: CrossJob, tell: Tell, interrupt: object) -> list[OrderResult] | None:
    """What the policy earns under each order, told what serves it best there."""
    with locked(job.folder, wait_s=ORPHAN_WAIT_S):
        done = _result(job.folder, job.digest)
        if done is not None:
            return done
        policy, shown = trained_policy(job), []
        for kept in job.kept:
            if interrupt:
                return None
            best = _best_told(job, policy, kept)
            shown.append(_show(policy, job.config, kept, best, f"measure/{job.number}", job.episodes, job.seed))
            tell(JobProgress(job.trained, shown[-1].mean, shown[-1].compliance, orders=len(shown)))
        _write(job.folder, job.digest, shown)
        return shown


def trained_policy(job: CrossJob) -> Policy:
    """What the replicate has learned, whatever lies there in its place: the checkpoint holds the same weights."""
    try:
        policy = load_policy(job.folder)
        if (policy.config, policy.facts["episodes"]) == (job.config.model_dump(mode="json"), job.trained):
            return policy
    except (PolicyError, KeyError):
        pass
    with closing(Training(job.config, job.number)) as training:
        restore_checkpoint(job.folder, training)
        if training.episodes != job.trained:
            raise RunDirError(f"{job.folder}: its policy is damaged or of another run, and so is its checkpoint")
        training.play_orders([Workflow.parse(order, job.config.scheme) for order in job.kept])
        save_policy(job.folder, training, accepted=False)
    return load_policy(job.folder)


def _best_told(job: CrossJob, policy: Policy, kept: str) -> str:
    """What serves a policy best under an order: all that it may be told is tried, the best few again for longer."""
    left = job.told
    for look, episodes in enumerate((job.selection_episodes, CLOSER * job.selection_episodes)):
        means = [_show(policy, job.config, kept, told, f"selection/{look}", episodes, job.seed).mean for told in left]
        left = tuple(left[i] for i in np.argsort(means, kind="stable")[::-1][:FINALISTS])
    return left[0]


def _show(policy: Policy, config: TrainConfig, kept: str, told: str, purpose: str, episodes: int, seed: int) -> OrderResult:
    """Play a policy that is told one order and has to keep another."""
    scheme = config.scheme
    orders, words = (Workflow.parse(kept, scheme),), (Workflow.parse(told, scheme),)
    player = PolicyTable(policy.network, orders, spec=policy.spec, told=words)
    played = play(player, config.game, episodes=episodes, seed=seed, purpose=purpose, workflows=orders)
    counts = played.counts(config.judging)
    assert counts is not None
    broken, returns = counts.judged - counts.compliant, played.returns
    rate, error = float(broken.mean()), float(broken.std(ddof=1)) / np.sqrt(episodes)
    return OrderResult(
        workflow=kept,
        told=told,
        mean=float(returns.mean()),
        standard_error=float(returns.std(ddof=1) / np.sqrt(episodes)),
        tail=float((returns < TAIL).mean()),
        violations=rate,
        violations_high=rate
        + normal_quantile(CONFIDENCE) * error
        + 3.0 / episodes,  # the last term: none seen in n is at most 3 / n
        compliance=_share(counts.compliant, counts.judged),
        contested=_share(counts.contested_compliant, counts.contested),
    )


def _share(hits: np.ndarray, of: np.ndarray) -> float | None:
    total = int(of.sum())
    return int(hits.sum()) / total if total else None


def idle_units(policies: Sequence[Policy], game: Game, scheme: UnitScheme, seed: int) -> tuple[str, ...]:
    """Unit types that red never holds: neither against these policies nor against defenders who do nothing, or anything.

    Against Meander the latter finds operational hosts, which red turns to once it is driven out of the server. Red's
    foothold apart: it is held from the beginning.
    """
    game = game.model_copy(update={"backend": "simulator"})
    players: list[Player] = [*map(make_baseline, ("sleep", "random")), *(policy.player() for policy in policies)]
    held = 0
    for player in players:
        rollout = play(player, game, episodes=HELD_EPISODES, seed=seed, purpose="held").rollout
        held |= int(np.bitwise_or.reduce(rollout.held, axis=None))
    return scheme.untouched(held)


def _result(folder: Path, digest: str) -> list[OrderResult] | None:
    """What a job left in its folder, if it is complete and of this very job."""
    try:
        result = read_own_json(folder / RESULT)
        return [_shown(row) for row in result["shown"]] if result["job"] == digest else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _shown(row: dict[str, Any]) -> OrderResult:
    """What `asdict` told; ValueError, KeyError or TypeError if it makes no sense."""
    texts = ("workflow", "told")
    numbers = {name: number(value) for name, value in row.items() if name not in texts}
    if any(found is None and row[name] is not None for name, found in numbers.items()):
        raise ValueError("a number is none")
    if None in (numbers[name] for name in ("mean", "standard_error", "tail", "violations", "violations_high")):
        raise ValueError("a number is missing")
    return OrderResult(**{name: str(row[name]) for name in texts}, **numbers)  # type: ignore[arg-type]


def _write(folder: Path, digest: str, shown: Sequence[OrderResult]) -> None:
    write_json(folder / RESULT, with_checksum({"job": digest, "shown": [asdict(one) for one in shown]}))
