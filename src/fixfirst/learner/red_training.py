"""Attackers that learn: red's side of a training, and best responses to a defender that stays as it is.

The learner is blue's: it needs of a side only how many inputs and choices it has and which choices a row masks. Red earns
what blue loses. Trainings of red stop at the first thing that pays, so a best response is the best of several, from
different starts: what it takes is a lower bound of what can be taken.
"""

from collections.abc import Callable, Mapping, Sequence
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
from fixfirst.policy.network import Network, Weights
from fixfirst.policy.reds import Reds
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.turns import Player
from fixfirst.settings.league import RED_PPO
from fixfirst.settings.ppo import PPOConfig

_MOST_ROWS = 150_000  # answers that a defender's table keeps from update to update: some 100 MB
_REFINE_BUDGET = 2  # the best goes on for so many times the episodes of a start, in these ways:
_REFINEMENTS = (  # name, factor on the logits (one that is sure of what it does finds nothing else), entropy bonus
    ("longer", 0.25, RED_PPO.ent_coef),
    ("refined", 1.0, 0.01),  # a plan of many steps does not survive the first way
)
_JUDGE_EPISODES = 300  # on which starts are compared

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
        self.world = World(game, ppo.n_envs, autoreset="disabled")
        self.world.meet(self.reds, [1.0])
        self.updates = self.episodes = 0
        self._planned_updates = max(ppo.updates_in(episodes), 1)

    @property
    def done(self) -> bool:
        """Is there no budget left for another update?"""
        return self.episodes + self.ppo.batch_at(self.episodes) > self.total

    def step(self) -> float:
        """Play and learn once; return what blue earned on the way."""
        size, envs = self.ppo.batch_at(self.episodes), self.ppo.n_envs
        duel = _play(self.opponents, self.world, self.reds, self.seed, self.episodes // envs, size // envs)
        self.learn(duel, self.updates / self._planned_updates)
        self.episodes += size
        return float(duel.blue.returns.mean())

    def learn(self, duel: rollout.Duel, progress: float) -> None:
        """Improve on episodes in which it played. progress in [0, 1]: share of its updates that are behind it."""
        entropy, seed = self.ppo.entropy_at(progress), seeds.stream_seed(self.seed, "batch", self.updates)
        self.learner.update(duel.red, -duel.red.rewards10 / 10, entropy=entropy, progress=progress, seed=seed)
        self.reds.forget()
        self.updates += 1

    def numbers(self) -> dict[str, Any]:
        return {"updates": self.updates, "episodes": self.episodes}

    def tensors(self) -> dict[str, np.ndarray]:
        return self.learner.tensors()

    def restore(self, tensors: Weights, numbers: Mapping[str, Any]) -> None:
        self.learner.restore(tensors)
        self.updates, self.episodes = numbers["updates"], numbers["episodes"]
        self.reds.forget()


def _play(opponents: Sequence[Opponent], world: World, reds: Reds, seed: int, first: int, passes: int) -> rollout.Duel:
    """Play passes of a world, whose numbers decide their episodes, against defenders that take turns."""
    streams = {f"{name}_seed": seeds.stream_seed(seed, name) for name in ("world", "policy")}
    parts = []
    for number in range(first, first + passes):
        player, orders = opponents[number % len(opponents)]
        if isinstance(player, PolicyTable) and player.table.filled[0] > _MOST_ROWS:
            player.forget()
        parts.append(rollout.collect_duel(world, player, reds, first_episode=number, workflows=orders, **streams))
    return rollout.Duel.join(parts)


def play_red(
    opponent: Opponent, weights: Weights, spec: red_view.RedSpec, game: Game, *, episodes: int, seed: int, purpose: str
) -> rollout.Duel:
    """Play an attacker against a defender, both as they are, on episodes of the stream (seed, purpose)."""
    reds = Reds([Network.of(weights)], [spec])
    world = World(game, min(episodes, 500), autoreset="disabled")
    world.meet(reds, [1.0])
    duel = _play([opponent], world, reds, seeds.stream_seed(seed, purpose), 0, -(-episodes // world.num_envs))
    return rollout.Duel(duel.blue.first(episodes), duel.red.first(episodes))


class Attempt(NamedTuple):
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
    others: Mapping[str, Weights] = MappingProxyType({}),
    refinements: int = len(_REFINEMENTS),
    episodes: int,
    seed: int,
    tell: _Tell = lambda episodes, mean: None,
    interrupt: object = False,
) -> list[Attempt]:
    """Train an attacker from every start (None: from scratch), then go on with the best; return all, the best first.

    Starts also count as they are. others: that do, too, and that it may go on with. refinements: how often the best goes on.
    If interrupted, those that have ended; at least one.
    """
    attempts: list[Attempt] = []
    behind = 0

    def attempt(name: str, start: Weights | None, budget: int, ent_coef: float = RED_PPO.ent_coef) -> None:
        nonlocal behind
        ppo = RED_PPO.model_copy(update={"ent_coef": ent_coef})
        number = seeds.stream_seed(seed, "red", len(attempts))
        training = RedTraining([opponent], game, spec, episodes=budget, seed=number, start=start, ppo=ppo)
        while not training.done and not (interrupt and attempts):
            mean = training.step()
            tell(behind + training.episodes, mean)
        behind += budget
        enter(name, training.learner.weights)

    def enter(name: str, weights: Weights) -> None:
        judged = play_red(opponent, weights, spec, game, episodes=_JUDGE_EPISODES, seed=seed, purpose="judge")
        attempts.append(Attempt(name, float(judged.blue.returns.mean()), weights))

    for name, start in {**starts, **others}.items():
        if start is not None:
            enter(f"{name}, as it is", start)
    for name, start in starts.items():
        if not interrupt or not attempts:
            attempt(name, start, episodes)
    for how, factor, ent_coef in _REFINEMENTS[:refinements]:
        best = min(attempts, key=lambda each: each.mean)
        if not interrupt:
            attempt(f"{best.start}, {how}", scale_logits(best.weights, factor), _REFINE_BUDGET * episodes, ent_coef)
    return sorted(attempts, key=lambda each: each.mean)


def episodes_of(starts: int, episodes: int, refinements: int = len(_REFINEMENTS)) -> int:
    """Return how many episodes `best_response` trains on."""
    return (starts + refinements * _REFINE_BUDGET) * episodes
