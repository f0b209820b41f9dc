"""One training, update by update: play whole episodes, judge them, learn from them.

`Training` holds all that changes; `step()` is one update. Everything else follows from the config, so that a training put
back from its checkpoint goes on with the same bytes.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fixfirst.cyborg.backends import make_world as make_any_world
from fixfirst.errors import ConfigError
from fixfirst.game.world import BaseWorld
from fixfirst.learner.config import TrainConfig
from fixfirst.learner.networks import ActorCritic, num_inputs, probabilities, weights_of
from fixfirst.learner.ppo import UpdateStats, make_optimiser, set_learning_rate, update
from fixfirst.orders.compliance import Counts, Judgement, SeedGate, delta_reward, judge, penalty_reward
from fixfirst.play.rollout import PlainPolicy, PolicyTable, Rollout, WorldLike, collect
from fixfirst.play.seeds import derive


@dataclass(frozen=True)
class UpdateRow:
    """What one update did, for the log. Rewards are means over its episodes."""

    update: int  # from 1
    episodes: int  # trained on so far
    env_reward: float
    alignment: float
    compliance: float | None
    contested_share: float | None  # of the judged repairs
    repairs: float  # per episode
    multiplier: float
    stats: UpdateStats
    collect_s: float
    update_s: float
    episode_rows: "EpisodeRows"

    @property
    def total_reward(self) -> float:
        return self.env_reward + self.alignment


@dataclass(frozen=True)
class EpisodeRows:
    """The episodes of one update, all [B]."""

    env_reward: np.ndarray
    alignment: np.ndarray
    counts: Counts | None  # None without a workflow
    workflow: np.ndarray  # index into the config's workflows


class Training:
    """The state of one training. start: weights to inherit (name -> array); the optimiser always starts fresh."""

    def __init__(self, config: TrainConfig, start: dict[str, np.ndarray] | None = None, world: WorldLike | None = None):
        self.config = config
        self.workflows = config.workflows
        torch.set_num_threads(1)  # spinning thread pools lose at these sizes
        self.net = ActorCritic(num_inputs(config.scheme), derive(config.seed, "weights"))
        if start is not None:
            self.start_from(start)
        self.optimiser = make_optimiser(self.net, config.ppo)
        self.updates = 0
        self.episodes = 0
        self.multiplier = config.alignment.weight
        self.latest: Counts | None = None  # of the last update's episodes
        self._world = world
        self._seeds = {name: derive(config.seed, name) for name in ("world", "policy")}
        self._repeats = True  # did rows repeat in the last rollout?

    def start_from(self, weights: dict[str, np.ndarray]) -> None:
        """Take over another policy's weights."""
        self.net.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in weights.items()})

    @property
    def world(self) -> WorldLike:
        """Where it plays; made when it is first needed."""
        if self._world is None:
            self._world = make_world(self.config)
        return self._world

    def close(self) -> None:
        """Give back the world's processes, if it has any."""
        if isinstance(self._world, BaseWorld):
            self._world.close()
        self._world = None

    @property
    def done(self) -> bool:
        """Is there no budget left for another update?"""
        return self.episodes + self.config.ppo.episodes_per_update > self.config.total_episodes

    def step(self) -> UpdateRow:
        """One update."""
        config, started = self.config, time.perf_counter()
        rollout = self._play()
        judgement = self._judge(rollout)
        alignment = self._alignment(judgement, rollout.rewards10.shape)
        counts = Counts.of(judgement) if judgement is not None else None
        collected = time.perf_counter()

        set_learning_rate(self.optimiser, config.ppo, self.episodes / config.total_episodes)
        rewards = rollout.rewards10 / 10 + alignment
        stats = update(
            self.net,
            self.optimiser,
            config.ppo,
            rollout,
            rewards,
            entropy=self._entropy(counts),
            seed=derive(config.seed, "batch", self.updates),
        )
        if not all(np.isfinite(array).all() for array in weights_of(self.net).values()):
            raise ConfigError(
                f"training diverged in update {self.updates + 1}; try a learning rate below {config.ppo.learning_rate}"
            )
        self._repeats = 2 * stats.rows <= stats.transitions
        self.updates += 1
        self.episodes += config.ppo.episodes_per_update
        self.latest = counts
        multiplier, share = self.multiplier, _pooled(counts)
        self.multiplier = config.alignment.adapted(multiplier, share)
        return UpdateRow(
            update=self.updates,
            episodes=self.episodes,
            env_reward=float(rollout.returns.mean()),
            alignment=float(alignment.sum(axis=0).mean()),
            compliance=share,
            contested_share=_share(counts.contested, counts.judged) if counts is not None else None,
            repairs=float(counts.repairs.mean()) if counts is not None else float("nan"),
            multiplier=multiplier,
            stats=stats,
            collect_s=collected - started,
            update_s=time.perf_counter() - collected,
            episode_rows=EpisodeRows(rollout.returns, alignment.sum(axis=0), counts, rollout.assigned),
        )

    def _entropy(self, counts: Counts | None) -> float:
        """The entropy bonus of this update: larger while the order is not kept."""
        config, share = self.config, _pooled(counts)
        if config.alignment.kind != "penalty" or share is None or share >= config.alignment.target:
            return config.ppo.entropy
        return max(config.ppo.entropy, config.alignment.explore)

    def _play(self) -> Rollout:
        ppo = self.config.ppo
        plain = ppo.engine == "plain" or (ppo.engine == "auto" and not self._repeats)
        return collect(
            self.world,
            (PlainPolicy if plain else PolicyTable)(probabilities(weights_of(self.net)), self.workflows),
            world_seed=self._seeds["world"],
            policy_seed=self._seeds["policy"],
            first_episode=self.updates * ppo.passes,
            passes=ppo.passes,
            workflows=self.workflows,
        )

    def _judge(self, rollout: Rollout) -> Judgement | None:
        scheme = self.config.scheme
        if scheme is None:
            return None
        return judge(rollout.actions, rollout.held, rollout.ranks, scheme, self.config.rule, self.config.count_foothold)

    def _alignment(self, judgement: Judgement | None, shape: tuple[int, ...]) -> np.ndarray:
        kind = self.config.alignment.kind
        if judgement is None or kind == "none":
            return np.zeros(shape)
        if kind == "delta":
            return delta_reward(judgement, self.config.alignment.weight)
        return penalty_reward(judgement, self.multiplier)

    def looks_compliant(self) -> bool:
        """The cheap check after an update, on its own training episodes: is the real one worth the time?"""
        if self.latest is None:
            return False
        share = _pooled(self.latest)
        return share is not None and share >= self.config.compliance_threshold

    def passes_seed_gate(self) -> bool:
        """The published presets' own rule, on the latest training episode of every environment."""
        if self.latest is None:
            return False
        latest = Counts(*(column[-self.config.ppo.num_envs :] for column in self.latest))
        gate = SeedGate(self.config.compliance_threshold, min_episodes=SEED_MIN_EPISODES.get(self.config.preset, 0))
        return gate.accepts(latest, self.episodes)

    # ---- saving: all that changes, as arrays and numbers

    def tensors(self) -> dict[str, np.ndarray]:
        """Weights and the optimiser's moments, by name."""
        arrays = {f"net.{name}": array for name, array in weights_of(self.net).items()}
        for name, parameter in self.net.named_parameters():
            for moment, tensor in self.optimiser.state[parameter].items():
                arrays[f"adam.{moment}.{name}"] = tensor.detach().numpy()
        return arrays

    def numbers(self) -> dict[str, Any]:
        """The rest of the state, JSON-ready."""
        return {
            "updates": self.updates,
            "episodes": self.episodes,
            "multiplier": self.multiplier,
            "repeats": self._repeats,
            "latest": None if self.latest is None else [column.tolist() for column in self.latest],
        }

    def restore(self, tensors: dict[str, np.ndarray], numbers: dict[str, Any]) -> None:
        """Go on from a saved state."""
        net = {
            name.removeprefix("net."): torch.from_numpy(a.copy()) for name, a in tensors.items() if name.startswith("net.")
        }
        self.net.load_state_dict(net)
        for name, parameter in self.net.named_parameters():
            moments = ("step", "exp_avg", "exp_avg_sq")
            self.optimiser.state[parameter] = {m: torch.from_numpy(tensors[f"adam.{m}.{name}"].copy()) for m in moments}
        self.updates, self.episodes = numbers["updates"], numbers["episodes"]
        self.multiplier, self._repeats = numbers["multiplier"], numbers["repeats"]
        latest = numbers["latest"]
        self.latest = None if latest is None else Counts(*(np.array(column) for column in latest))


SEED_MIN_EPISODES = {"parallel-25": 10 * 25}  # ten per environment before the published rule may stop it


def make_world(config: TrainConfig) -> BaseWorld:
    """The world a config trains in."""
    return make_any_world(
        config.ppo.num_envs,
        backend=config.backend,
        cyborg=config.cyborg,
        red_agent=config.red_agent,
        variant=config.variant,
        green=config.green,
        max_steps=config.max_steps,
        autoreset="disabled",
    )


def _pooled(counts: Counts | None) -> float | None:
    return None if counts is None else _share(counts.compliant, counts.judged)


def _share(hits: np.ndarray, trials: np.ndarray) -> float | None:
    total = trials.sum()
    return float(hits.sum() / total) if total else None
