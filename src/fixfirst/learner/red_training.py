"""Attackers that learn: red's side of a training, and best responses to a defender that stays as it is.

The learner is blue's: it needs of a side only how many inputs and choices it has and which choices a row masks. Red earns
what blue loses. Trainings of red stop at the first thing that pays, so a best response is the best of several, from
different starts: what it takes is a lower bound of what can be taken.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base import seeds
from fixfirst.game import red_view
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.learner.ppo import PPO, scale_logits
from fixfirst.orders.order import Workflow
from fixfirst.play import rollout
from fixfirst.play.turns import Player
from fixfirst.policy.network import Network, Weights
from fixfirst.policy.reds import Reds
from fixfirst.policy.table import PolicyTable
from fixfirst.settings.league import RED_PPO
from fixfirst.settings.ppo import PPOConfig

MOST_ROWS = 150_000  # answers that a defender's table keeps from update to update: some 100 MB
LONGER = 2  # the best goes on for so many times the episodes of a start, in these ways:
_SOFTER = 0.25  # the factor on its logits: one that is sure of what it does finds nothing else
_WAYS_ON = (
    ("longer", _SOFTER, RED_PPO),
    ("refined", 1.0, RED_PPO.model_copy(update={"ent_coef": 0.01})),  # a plan of many steps does not survive the first way
)
JUDGED = 300  # episodes on which starts are compared

_Tell = Callable[[int, float], None]  # is given the episodes behind it, and what blue earned in the last update


class Opponent(NamedTuple):
    """A defender, ready to play, and the orders it follows."""

    player: Player
    orders: tuple[Workflow, ...] = ()


class RedTraining:
    """One attacker that learns against defenders that stay as they are; several of them take turns.

    `step` is one update. All that changes is in `tensors` and `numbers`, so that a training put back goes on with the same
    bytes.
    """

    def __init__(
        self,
        opponents: Sequence[Opponent],
        game: Game,
        spec: red_view.RedSpec,
        *,
        episodes: int,
        seed: int,
        start: Weights | None = None,
        ppo: PPOConfig = RED_PPO,
    ):
        self.opponents, self.spec, self.ppo, self.seed, self.total = tuple(opponents), spec, ppo, seed, episodes
        self.learner = PPO(ppo, spec, seeds.stream_seed(seed, "weights"))
        if start is not None:
            self.learner.start_from(start)
        self.reds = Reds([self.learner.policy], [spec])
        self.world = World(game, ppo.num_envs, autoreset="disabled")
        self.world.meet(self.reds, [1.0])
        self.updates = self.episodes = 0

    @property
    def done(self) -> bool:
        """Is there no budget left for another update?"""
        return self.episodes + self.ppo.batch_at(self.episodes) > self.total

    def step(self) -> float:
        """Play and learn once; return what blue earned on the way."""
        duel = self._play(self.ppo.batch_at(self.episodes) // self.ppo.num_envs)
        self.learn(duel, self.updates / max(self.ppo.updates_in(self.total), 1))
        self.episodes += len(duel.red.assigned)
        return float(duel.blue.returns.mean())

    def learn(self, duel: rollout.Duel, progress: float) -> None:
        """Improve on episodes in which it played. progress in [0, 1]: share of its updates that are behind it."""
        entropy, seed = self.ppo.entropy_at(progress), seeds.stream_seed(self.seed, "batch", self.updates)
        self.learner.update(duel.red, -duel.red.rewards10 / 10, entropy=entropy, progress=progress, seed=seed)
        self.reds.forget()
        self.updates += 1

    def _play(self, passes: int) -> rollout.Duel:
        parts, behind = [], self.episodes // self.ppo.num_envs
        for number in range(behind, behind + passes):
            opponent = self.opponents[number % len(self.opponents)]
            parts.append(play_against(opponent, self.world, self.reds, self.seed, number))
        red = [part.red._replace(workflows=()) for part in parts]
        return rollout.Duel(rollout.join([part.blue._replace(workflows=()) for part in parts]), rollout.join(red))

    # ---- saving

    def numbers(self) -> dict[str, Any]:
        """Return the state outside the learner, JSON-ready."""
        return {"updates": self.updates, "episodes": self.episodes}

    def tensors(self) -> dict[str, np.ndarray]:
        """Return weights and the optimiser's moments, by name."""
        return self.learner.tensors()

    def restore(self, tensors: Weights, numbers: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.learner.restore(tensors)
        self.updates, self.episodes = numbers["updates"], numbers["episodes"]
        self.reds.forget()


def play_against(opponent: Opponent, world: World, reds: Reds, seed: int, number: int) -> rollout.Duel:
    """Play one pass of a world, whose number decides its episodes, against a defender."""
    player = opponent.player
    if isinstance(player, PolicyTable) and player.table.filled[0] > MOST_ROWS:
        player.forget()
    return rollout.collect_duel(
        world,
        player,
        reds,
        world_seed=seeds.stream_seed(seed, "world"),
        policy_seed=seeds.stream_seed(seed, "policy"),
        first_episode=number,
        workflows=opponent.orders,
    )


def play_red(
    opponent: Opponent, weights: Weights, spec: red_view.RedSpec, game: Game, *, episodes: int, seed: int, purpose: str
) -> rollout.Duel:
    """Play an attacker against a defender, both as they are, on episodes of the stream (seed, purpose)."""
    reds = Reds([Network.of(weights)], [spec])
    world = World(game, min(episodes, 500), autoreset="disabled")
    world.meet(reds, [1.0])
    parts = []
    for number in range(-(-episodes // world.num_envs)):
        parts.append(play_against(opponent, world, reds, seeds.stream_seed(seed, purpose), number))
    return rollout.Duel(
        rollout.join([part.blue for part in parts]).first(episodes),
        rollout.join([part.red for part in parts]).first(episodes),
    )


@dataclass(frozen=True)
class Attempt:
    """One training of red: where it began, and what blue earns against what came out."""

    start: str
    mean: float
    weights: Weights


def best_response(
    opponent: Opponent,
    game: Game,
    spec: red_view.RedSpec,
    starts: Mapping[str, Weights | None],
    *,
    known: Mapping[str, Weights] = MappingProxyType({}),
    longer: int = len(_WAYS_ON),
    episodes: int,
    seed: int,
    tell: _Tell = lambda episodes, mean: None,
    interrupt: object = False,
) -> list[Attempt]:
    """Train an attacker from every start (None: from scratch), then go on with the best; return all, the best first.

    Starts also count as they are. known: others that do, which it may go on with. longer: how often the best goes on. If
    interrupted, those that have ended; at least one.
    """
    attempts: list[Attempt] = []
    behind = 0

    def attempt(name: str, start: Weights | None, budget: int, ppo: PPOConfig = RED_PPO) -> None:
        nonlocal behind
        number = seeds.stream_seed(seed, "red", len(attempts))
        training = RedTraining([opponent], game, spec, episodes=budget, seed=number, start=start, ppo=ppo)
        while not training.done and not (interrupt and attempts):
            mean = training.step()
            tell(behind + training.episodes, mean)
        behind += budget
        enter(name, training.learner.weights)

    def enter(name: str, weights: Weights) -> None:
        judged = play_red(opponent, weights, spec, game, episodes=JUDGED, seed=seed, purpose="judge")
        attempts.append(Attempt(name, float(judged.blue.returns.mean()), weights))

    for name, start in {**starts, **known}.items():
        if start is not None:
            enter(f"{name}, as it is", start)
    for name, start in starts.items():
        if not interrupt or not attempts:
            attempt(name, start, episodes)
    for how, softer, ppo in _WAYS_ON[:longer]:
        best = min(attempts, key=lambda one: one.mean)
        if not interrupt:
            attempt(f"{best.start}, {how}", scale_logits(best.weights, softer), LONGER * episodes, ppo)
    return sorted(attempts, key=lambda one: one.mean)


def episodes_of(starts: int, episodes: int) -> int:
    """Return how many episodes `best_response` trains on."""
    return (starts + len(_WAYS_ON) * LONGER) * episodes
