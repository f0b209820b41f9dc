"""A league: one defender learns against scripts, attackers of the past, and attackers that learn against it meanwhile.

In every update blue meets the scripts, some frozen attackers (those that take most more often) and all live ones. A live
attacker that has had its updates is frozen, joins the others, and begins anew: from scratch, or from the base attacker.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from fixfirst.base.checks import Settings
from fixfirst.base.statistics import stream_seed
from fixfirst.game.game import Game
from fixfirst.game.red_view import RedSpec
from fixfirst.game.scenario import VariantName
from fixfirst.game.world import World
from fixfirst.learner.config import PPOConfig
from fixfirst.learner.ppo import PPO, part_of
from fixfirst.learner.red_training import RED_PPO, Opponent, RedTraining
from fixfirst.play.duel import collect_duel
from fixfirst.play.rollout import Rollout, collect, join
from fixfirst.policy.network import Network, Weights
from fixfirst.policy.reds import Reds
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable

SCRIPTS = "b_line:0.45,meander:0.45,sleep:0.1"


class LeagueConfig(Settings):
    """How a defender is trained against a population of attackers."""

    variant: VariantName = Field("current", description="Which release of the challenge is played.")
    updates: int = Field(400, ge=1, description="Updates of the defender.")
    live: int = Field(3, ge=1, description="Attackers that learn at the same time.")
    life: int = Field(60, ge=1, description="Updates after which a live attacker is frozen and another begins.")
    frozen: int = Field(4, ge=0, description="Frozen attackers that are met in every update.")
    envs: int = Field(50, ge=1, description="Episodes against each attacker in every update.")
    script_envs: int = Field(120, ge=1, description="Episodes against the scripts in every update.")
    learning_rate: float = Field(0.002, gt=0, description="The defender's, falling to a twentieth.")
    entropy: float = Field(0.01, ge=0, description="The defender's entropy bonus, falling to 0.")
    picky: bool = Field(False, description="Attackers name their exploit.")
    seed: int = Field(0, ge=0, description="The same seed gives the same files, byte for byte.")

    @property
    def episodes(self) -> int:
        """Of one update, once there are enough frozen attackers."""
        return self.script_envs + (self.live + self.frozen) * self.envs

    @property
    def blue_ppo(self) -> PPOConfig:
        """How the defender learns."""
        return PPOConfig(
            epochs=4,
            row_parts=2,
            learning_rate=self.learning_rate,
            lr_schedule="linear",
            lr_final=0.05,
            entropy=self.entropy,
            entropy_schedule="linear",
            norms_apart=True,
        )

    @property
    def red_ppo(self) -> PPOConfig:
        """How an attacker learns in its life."""
        return RED_PPO.model_copy(update={"n_envs": self.envs, "episodes_per_update": self.envs, "growth": ()})


class FrozenRed(NamedTuple):
    """An attacker of the past."""

    weights: Weights
    taken: float  # what blue earned against it when they last met, smoothed


class League:
    """The state of a league. `step` is one update of the defender and of every live attacker."""

    def __init__(self, config: LeagueConfig, spec: PolicySpec, start: Weights, base: Weights):
        self.config, self.spec, self._base = config, spec, base
        self.red_spec, self.updates = RedSpec(spec.scenario, config.picky), 0
        self.learner = PPO(config.blue_ppo, spec, 0)
        self.learner.start_from(start)
        self.player = PolicyTable(self.learner.policy, spec=spec)
        self._game = Game(scenario=spec.scenario, variant=config.variant, red_agent=SCRIPTS)
        self._scripts = World(self._game, config.script_envs, autoreset="disabled")
        self._world = World(self._game, config.envs, autoreset="disabled")
        self.pool: list[FrozenRed] = []
        self.born = 0
        self.live = [self._new_red() for _ in range(config.live)]
        self.ages = [place * config.life // config.live for place in range(config.live)]  # they do not end together

    def _new_red(self) -> RedTraining:
        config, number = self.config, self.born
        self.born += 1
        return RedTraining(
            [Opponent(self.player)],
            self._game,
            self.red_spec,
            episodes=config.life * config.envs,
            seed=stream_seed(config.seed, "red", number),
            start=self._base if number % 2 else None,
            ppo=config.red_ppo,
        )

    @property
    def done(self) -> bool:
        """Are all updates done?"""
        return self.updates >= self.config.updates

    def step(self) -> dict[str, float]:
        """Update the defender and all live attackers; return what blue earned against whom."""
        config, earned = self.config, {}
        seed, number = stream_seed(config.seed, "league"), self.updates
        options: dict[str, Any] = {"world_seed": seed, "policy_seed": stream_seed(seed, "policy"), "first_episode": number}
        parts = [collect(self._scripts, self.player, **options)]
        earned["scripts"] = float(parts[0].returns.mean())
        for place in self._met():
            parts.append(self._meet_frozen(place, options))
            earned[f"frozen {place}"] = float(parts[-1].returns.mean())
        for place, red in enumerate(self.live):
            red.world.meet(red.reds, [1.0])
            duel = collect_duel(
                red.world,
                self.player,
                red.reds,
                world_seed=stream_seed(red.seed, "world"),
                policy_seed=stream_seed(red.seed, "policy"),
                first_episode=self.ages[place],
            )
            red.learn(duel, self.ages[place] / config.life)
            parts.append(duel.blue)
            earned[f"live {place}"] = float(duel.blue.returns.mean())
            self._grow_older(place, earned[f"live {place}"])
        self._learn(parts)
        return earned

    def _met(self) -> list[int]:
        """Return which frozen attackers are met: drawn without repetition, those that take most more often."""
        count = min(self.config.frozen, len(self.pool))
        if not count:
            return []
        weights = np.array([max(-red.taken, 1.0) for red in self.pool])
        rng = np.random.default_rng([self.config.seed, self.updates])
        return sorted(rng.choice(len(self.pool), count, replace=False, p=weights / weights.sum()).tolist())

    def _meet_frozen(self, place: int, options: Mapping[str, Any]) -> Rollout:
        red = self.pool[place]
        reds = Reds([Network.of(red.weights)], [self.red_spec])
        self._world.meet(reds, [1.0])
        rollout = collect_duel(self._world, self.player, reds, **options).blue
        self.pool[place] = red._replace(taken=0.7 * red.taken + 0.3 * float(rollout.returns.mean()))
        return rollout

    def _grow_older(self, place: int, mean: float) -> None:
        self.ages[place] += 1
        if self.ages[place] >= self.config.life:
            self.pool.append(FrozenRed(self.live[place].learner.weights, mean))
            self.live[place], self.ages[place] = self._new_red(), 0

    def _learn(self, parts: list[Rollout]) -> None:
        rollout, opening = join(parts), len(self.spec.opening)
        progress = self.updates / self.config.updates
        self.learner.update(
            rollout.after(opening),  # nothing was chosen there
            (rollout.rewards10 / 10)[opening:],
            entropy=self.learner.config.entropy_at(progress),
            progress=progress,
            seed=stream_seed(self.config.seed, "batch", self.updates),
        )
        self.player.forget()
        self.updates += 1

    # ---- saving

    def numbers(self) -> dict[str, Any]:
        """Return the state outside the learners, JSON-ready."""
        return {
            "updates": self.updates,
            "born": self.born,
            "ages": list(self.ages),
            "live": [{"seed": red.seed, **red.numbers()} for red in self.live],
            "taken": [red.taken for red in self.pool],
        }

    def tensors(self) -> dict[str, np.ndarray]:
        """Return all weights and moments, by name."""
        found = {f"blue.{name}": array for name, array in self.learner.tensors().items()}
        for place, red in enumerate(self.live):
            found |= {f"live.{place}.{name}": array for name, array in red.tensors().items()}
        for place, frozen in enumerate(self.pool):
            found |= {f"pool.{place}.{name}": array for name, array in frozen.weights.items()}
        return found

    def restore(self, tensors: Weights, numbers: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.learner.restore(part_of(tensors, "blue."))
        self.player.forget()
        for place, (red, saved) in enumerate(zip(self.live, numbers["live"], strict=True)):
            red.restore(part_of(tensors, f"live.{place}."), saved)
            red.seed = saved["seed"]
        self.pool = [FrozenRed(part_of(tensors, f"pool.{i}."), taken) for i, taken in enumerate(numbers["taken"])]
        self.updates, self.born, self.ages = numbers["updates"], numbers["born"], list(numbers["ages"])
