"""One training, update by update: play whole episodes, judge them, learn from them.

`Training` holds all that changes; `step()` is one update. Everything else follows from the config, so that a training put
back from its checkpoint goes on with the same bytes.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base import errors, seeds
from fixfirst.game.base_world import BaseWorld
from fixfirst.learner.openings import first_openings, next_openings
from fixfirst.learner.ppo import PPO, part_of, scale_logits, widen
from fixfirst.learner.stages import Entrant, StageKind, stages_of
from fixfirst.orders import repairs
from fixfirst.orders.order import Workflow
from fixfirst.play import evaluation
from fixfirst.play.rollout import Rollout, collect, make_world
from fixfirst.policy.network import Weights
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.trained import Policy
from fixfirst.runs import rows
from fixfirst.settings.training import TrainConfig
from fixfirst.stats.evaluation import Evaluation


class GateCheck(NamedTuple):
    """The gate's last look at a training."""

    updates: int = -1  # after so many
    confirmations: int = 0  # so far, this one included
    accepted: bool = False


@dataclass(frozen=True)
class Update:
    """What one update did: its row of the training log (rewards are means over its episodes), and its episodes, all [B]."""

    row: rows.UpdateRow
    env_reward: np.ndarray
    alignment: np.ndarray
    counts: repairs.Counts | None  # None without a workflow

    def episode_rows(self) -> list[rows.EpisodeRow]:
        """Return its episodes as rows of the episode log, which only trials have."""
        row, n, counts = self.row, len(self.env_reward), self.counts
        assert counts is not None, "every trial has an order"
        return [
            rows.EpisodeRow(
                trial=row.trial,
                workflow=row.workflow,
                update=row.update,
                episode=row.episodes - n + 1 + i,
                env_reward=round(env, 1),
                alignment=bonus,
                total_reward=env + bonus,
                compliance=float(counts.compliant[i] / counts.judged[i]) if counts.judged[i] else None,
                repairs=int(counts.repairs[i]),
            )
            for i, (env, bonus) in enumerate(zip(self.env_reward.tolist(), self.alignment.tolist(), strict=True))
        ]


def identity_of(config: TrainConfig, entrant: Entrant) -> dict[str, Any]:
    """Return what all numbers of a training follow from, JSON-ready."""
    return {"config": config.model_dump(mode="json"), "entrant": entrant.number, "opening": list(entrant.opening)}


class Training:
    """The state of one training. The optimiser always starts fresh.

    number: of its trial, in the logs. entrant: which one of a tournament it is; without it, the first, and the only one
    where nothing competes. num_workers: processes of CybORG.
    """

    def __init__(self, config: TrainConfig, number: int = 0, entrant: Entrant | None = None, num_workers: int | None = None):
        self.config, self.number, self._num_workers = config, number, num_workers
        self.entrant = entrant or Entrant(stages_of(config)[0], opening=config.spec.opening)
        self.stage = self.entrant.stage
        self.workflows = config.workflows
        self.updates, self.episodes = self.entrant.updates, self.entrant.episodes
        self.latest: repairs.Counts | None = None  # of the last update's episodes
        self.multiplier = config.alignment_lambda
        self.spec = replace(config.spec, opening=self.entrant.opening)
        self.openings = first_openings(self.spec) if self.stage.begin == StageKind.SEEK else ()  # that are still tried
        self._gate_check = GateCheck()
        self._began = time.perf_counter()
        self.seconds_before = 0.0  # of sessions before this one
        self._world: BaseWorld | None = None
        names = (self.entrant.number,) if self.entrant.number else ()  # each has episodes and weights of its own
        self._seeds = {name: seeds.stream_seed(config.seed, name, *names) for name in ("world", "policy", "weights")}
        self.learner = PPO(self.stage.ppo, self.spec, self._seeds["weights"])
        self._rebuild_player()

    def _rebuild_player(self) -> None:
        """Make the player of the learner's policy, in the present spec."""
        openings = self.openings or (self.spec.opening,)
        self._player = PolicyTable(self.learner.policy, self.workflows, spec=self.spec, openings=openings)

    def load_parent(self, tensors: Weights) -> None:
        """Begin where another training ended; once an opening is there, with a fresh optimiser."""
        if self.stage.begin == StageKind.OPENING:
            self.learner.start_from(part_of(tensors, "net."))
        else:
            self.learner.restore(tensors)
        self._rebuild_player()

    def _halve_openings(self) -> None:
        """At each checkpoint keep the better half of the openings, or extend the last two by one decoy."""
        parts, stage, played = self.config.halving_rounds + 1, self.stage, self._stage_episodes
        before = played - stage.ppo.batch_at(played)
        if played * parts // stage.episodes == before * parts // stage.episodes or played >= stage.episodes:
            return
        self.openings = next_openings(self.learner.policy, self.spec, self.openings, self.config.game, self.config.seed)
        self._rebuild_player()

    @property
    def _stage_episodes(self) -> int:
        return self.episodes - self.entrant.episodes

    @property
    def world(self) -> BaseWorld:
        """Where it plays; made when it is first needed."""
        if self._world is None:
            config, workers = self.config, self._num_workers
            self._world = make_world(config.game, config.n_envs, num_workers=workers, autoreset="disabled")
        return self._world

    @property
    def seconds(self) -> float:
        """How long it has taken so far, sessions before this one included."""
        return self.seconds_before + time.perf_counter() - self._began

    def close(self) -> None:
        """Give back the world's processes, if it has any."""
        if self._world is not None:
            self._world.close()
        self._world = None

    @property
    def done(self) -> bool:
        """Is there no budget left for another update, or is the gate passed that ends it?"""
        return self.stage.is_over(self._stage_episodes) or (self.config.stop_when_compliant and self.passes_gate())

    @property
    def identity(self) -> dict[str, Any]:
        """What all its numbers follow from."""
        return identity_of(self.config, self.entrant)

    @property
    def order(self) -> Workflow | None:
        """The order that it keeps, if there is exactly one."""
        return self.workflows[0] if len(self.workflows) == 1 else None

    def step(self) -> Update:
        """Play, judge and learn, once."""
        config, started = self.config, time.perf_counter()
        rollout, opening = self._play(), self._player.openings.shape[1]
        if self.workflows:
            judgement = repairs.judge(rollout.actions, rollout.held, rollout.ranks, config.scheme, config)
            alignment, counts = judgement.reward(config.keep, self.multiplier), repairs.Counts.of(judgement)
        else:
            alignment, counts = np.zeros(rollout.actions.shape), None
        collected, share = time.perf_counter(), None if counts is None else share_of(counts.compliant, counts.judged)
        progress = self.stage.progress(self.updates - self.entrant.updates)

        stats = self.learner.update(
            rollout.after(opening),  # nothing was chosen there
            (self._rewards(rollout) + alignment)[opening:],
            entropy=self._entropy(share, progress),
            progress=progress,
            seed=seeds.stream_seed(config.seed, "batch", self.updates),
        )
        if not np.isfinite(self.learner.policy.vector).all():
            raise errors.ConfigError(
                f"training diverged in update {self.updates + 1}; try a learning rate below {config.ppo.learning_rate}"
            )
        self._player.forget()
        self.updates += 1
        self.episodes += len(rollout.assigned)
        self.latest = counts
        multiplier, self.multiplier = self.multiplier, config.next_multiplier(self.multiplier, share)
        if self.openings:
            self._halve_openings()
        mean, bonus = float(rollout.returns.mean()), float(alignment.sum(axis=0).mean())
        row = rows.UpdateRow(
            trial=self.number,
            workflow=str(self.order or config.workflow),
            update=self.updates,
            episodes=self.episodes,
            sampled=self.episodes,
            env_reward=mean,
            alignment=bonus,
            total_reward=mean + bonus,
            compliance=share,
            repairs=None if counts is None else float(counts.repairs.mean()),
            collection_s=collected - started,
            update_s=time.perf_counter() - collected,
            contested_share=None if counts is None else share_of(counts.contested, counts.judged),
            multiplier=multiplier,
            approx_kl=stats.approx_kl,
            entropy=stats.entropy,
            policy_loss=stats.policy_loss,
            value_loss=stats.value_loss,
            clip_fraction=stats.clip_fraction,
            distinct_rows=stats.rows,
        )
        return Update(row, rollout.returns, alignment.sum(axis=0), counts)

    def _rewards(self, rollout: Rollout) -> np.ndarray:
        """[T, B] the world's rewards as the learner sees them: Restore may be cheaper at first."""
        warmup, played = self.stage.ppo.restore_cost_warmup_episodes, self.stage.behind + self._stage_episodes
        free = max(1.0 - played / warmup, 0.0) if warmup else 0.0
        scenario = self.spec.scenario
        restores = np.array([action.verb == "Restore" for action in scenario.actions])
        return rollout.rewards10 / 10 + free * scenario.restore_cost * restores[rollout.actions]

    def _entropy(self, compliance: float | None, progress: float) -> float:
        """Return the entropy bonus of this update: larger while the order is not kept. progress: share of the plan."""
        config, bonus = self.config, self.stage.ppo.entropy_at(progress)
        if config.keep != "penalty" or compliance is None or compliance >= config.alignment_target:
            return bonus
        return max(bonus, config.alignment_explore)

    def play_orders(self, workflows: Sequence[Workflow]) -> None:
        """Train on these orders from now on; they take turns."""
        self.workflows = tuple(workflows)
        self._rebuild_player()

    def _play(self) -> Rollout:
        ppo, stage = self.stage.ppo, self.stage
        return collect(
            self.world,
            self._player,
            world_seed=self._seeds["world"],
            policy_seed=self._seeds["policy"],
            first_episode=self._stage_episodes // ppo.n_envs,
            passes=ppo.batch_at(stage.behind + self._stage_episodes) // ppo.n_envs,
            workflows=self.workflows,
        )

    def inherit(self, weights: Weights) -> None:
        """Start from another policy's weights; it may be of a policy that knows no order.

        A policy that is sure of itself and breaks the new order hardly ever tries what the order asks for, and PPO cannot
        learn from what is never tried; so its preferences are softened first. One that keeps to the order already stays as
        it is.
        """
        config = self.config
        wide = widen(weights, self.spec.inputs)
        self.learner.start_from(wide)
        self._player.forget()
        if self.order is None or config.initial_logit_scale == 1:
            return
        compliance = self.evaluate("inherit", config.gate_episodes).compliance
        if compliance is None or not config.accepts(compliance):
            self.learner.start_from(scale_logits(wide, config.initial_logit_scale))
            self._player.forget()

    def passes_gate(self) -> bool:
        """Does the policy keep to its order? This is what `accepted` means, everywhere.

        By the rule `bound`: a cheap look at the training episodes first, then frozen on episodes drawn for this check alone,
        and if these accept it, once more on others that confirm it.
        """
        config, latest = self.config, self.latest
        if self.order is None or self.episodes < config.min_episodes or latest is None:
            return False
        if config.gate_rule == "latest":
            return config.accepts_latest(repairs.Counts(*(column[-config.n_envs :] for column in latest)))
        share = share_of(latest.compliant, latest.judged)
        if share is None or share < config.compliance_threshold:
            return False
        if self._gate_check.updates != self.updates:
            self._gate_check = self._check_gate()
        return self._gate_check.accepted

    def _check_gate(self) -> GateCheck:
        config, number = self.config, self._gate_check.confirmations + 1
        compliance = self.evaluate(f"gate/{self.updates}", config.gate_episodes).compliance
        if compliance is None or not config.accepts(compliance):
            return GateCheck(self.updates, number - 1, False)
        counts = self._play_frozen(f"confirm/{self.updates}", config.gate_episodes).counts(config)
        return GateCheck(self.updates, number, counts is not None and config.confirms(counts, number))

    def evaluate(self, purpose: str, episodes: int, **options: Any) -> Evaluation:
        """Play the frozen policy in its own game, on episodes of the stream `purpose`. options: seed, on_pass of `play`."""
        return evaluation.evaluate(self._play_frozen(purpose, episodes, **options), self.config)

    def _play_frozen(self, purpose: str, episodes: int, **options: Any) -> evaluation.EpisodeBatch:
        game = self.config.game
        options = {"seed": self.config.seed, "workflows": self.workflows, **options}
        world = self.world if game.backend == "cyborg" else None  # CybORG takes long to start
        return evaluation.play(self._player, game, episodes=episodes, purpose=purpose, world=world, **options)

    def numbers(self) -> dict[str, Any]:
        return {
            "updates": self.updates,
            "episodes": self.episodes,
            "multiplier": self.multiplier,
            "latest": None if self.latest is None else [column.tolist() for column in self.latest],
            "openings": [list(opening) for opening in self.openings],
            "look": list(self._gate_check),
            "seconds": round(self.seconds, 3),
        }

    def tensors(self) -> dict[str, np.ndarray]:
        return self.learner.tensors()

    def restore(self, tensors: Weights, numbers: Mapping[str, Any]) -> None:
        openings = tuple(tuple(opening) for opening in numbers["openings"])
        if not all(0 <= choice < self.spec.actions for opening in openings for choice in opening):  # compiled code indexes
            raise errors.PolicyError(f"an opening of the checkpoint names a choice beyond 0..{self.spec.actions - 1}")
        self.learner.restore(tensors)
        self.openings = openings
        self._rebuild_player()
        self.updates, self.episodes = numbers["updates"], numbers["episodes"]
        self.multiplier, self.seconds_before = numbers["multiplier"], numbers.get("seconds", 0.0)
        self._gate_check = GateCheck(*numbers["look"])
        latest = numbers["latest"]
        self.latest = None if latest is None else repairs.Counts(*(np.array(column) for column in latest))

    def save_policy(self, folder: Path) -> None:
        """Write the policy; its file says whether it passes the gate."""
        facts = {
            "episodes": self.episodes,
            "updates": self.updates,
            "config": self.config.model_dump(mode="json"),
            "notes": {"accepted": self.passes_gate()},
        }
        Policy(self.learner.weights, self.order, self.spec, {}, facts).save(folder)


def share_of(hits: np.ndarray, trials: np.ndarray) -> float | None:
    """Return the share of hits in all episodes together; None without a trial."""
    total = int(trials.sum())
    return int(hits.sum()) / total if total else None
