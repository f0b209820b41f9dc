"""One defender for any network: trained on many networks that are drawn, with and without orders."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base.seeds import stream_seed
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import SHIPPED_SCENARIOS, Scenario
from fixfirst.game.simulator import World
from fixfirst.learner.host_ppo import HostPPO, Lesson, ValueScale
from fixfirst.learner.ppo import UpdateStats
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.play.rollout import Rollout
from fixfirst.policy.host_player import HostPlayer, universal_spec
from fixfirst.policy.network import Weights
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.turns import play_on
from fixfirst.settings.universal import UniversalConfig

# Orders of these three types differ most, and enterprise before user is easy: harder orders are drawn more often.
_CORE = ("enterprise", "user", "op_server")
_CORE_ALONE, _USER_FIRST = 0.6, 0.62


# Fewest and most hosts of a kind of network, and its share of all; of small ones more are without a Defender.
_SIZES = ((7, 10, 0.44, 0.4), (11, 14, 0.39, 0.1), (15, 20, 0.11, 0.1), (21, 30, 0.06, 0.1))
_FLAT, _MISINFORM = 0.15, 0.15


def draw_networks(first: int, count: int) -> list[Scenario]:
    """Draw networks to train on, each once; those that come with fixfirst are never among them."""
    seen = {Scenario.load(name).digest for name in SHIPPED_SCENARIOS}
    networks: list[Scenario] = []
    for seed in itertools.count(first):
        rng = np.random.default_rng(stream_seed(seed, "network"))
        few, most, _, bare = _SIZES[rng.choice(len(_SIZES), p=[share for _, _, share, _ in _SIZES])]
        flat, misinform, open_ = (rng.random() < share for share in (_FLAT, _MISINFORM, bare))
        drawn = Scenario.generate(
            seed,
            (few, most),
            1 if flat else (2, 4),
            values=("usual", "any")[seed % 2],
            misinform=bool(misinform),
            defender=not open_,
        )
        if drawn.digest not in seen:
            seen.add(drawn.digest)
            networks.append(drawn)
        if len(networks) == count:
            return networks
    raise AssertionError("seeds do not end")


class Lessons(NamedTuple):
    """What came of an update: the mean return, and how it went."""

    mean_return: float
    stats: UpdateStats


@dataclass
class _Place:
    """A network, where it is played, and the scale of its returns."""

    spec: PolicySpec
    world: World
    scale: ValueScale = field(default_factory=ValueScale)
    episodes: int = 0  # passes


class UniversalTraining:
    """The state of a training on many networks; it goes on by `step`."""

    def __init__(self, config: UniversalConfig, networks: Sequence[Scenario]):
        self.config, self.updates, self.episodes = config, 0, 0
        self.learner = HostPPO(config.ppo, stream_seed(config.seed, "weights"))
        self._places = [
            _Place(
                universal_spec(UnitScheme.by_type(scenario)),
                World(Game(scenario=scenario, variant=config.variant, red_agent=config.red_agent), config.envs),
            )
            for scenario in networks
        ]

    @property
    def done(self) -> bool:
        return self.episodes >= self.config.total_episodes

    @property
    def progress(self) -> float:
        """Share of the episodes that are behind it."""
        return min(self.episodes / self.config.total_episodes, 1.0)

    def step(self) -> Lessons:
        """Play on some of the networks, drawn anew, and improve on that."""
        config, progress = self.config, self.progress
        rng = np.random.default_rng(stream_seed(config.seed, "update", self.updates))
        growth = config.growth_at(progress)
        count = min(len(self._places), config.side_by_side * growth)
        chosen = rng.choice(len(self._places), count, replace=False).tolist()
        lessons = [self._play(number, rng) for number in chosen]
        seed = stream_seed(config.seed, "rows", self.updates)
        stats = self.learner.update(
            lessons, entropy=config.entropy_at(progress), progress=progress, seed=seed, parts=config.row_parts * growth
        )
        self.updates, self.episodes = self.updates + 1, self.episodes + count * config.envs
        returns = np.concatenate([lesson.rollout.returns for lesson in lessons])
        return Lessons(float(returns.mean()), stats)

    def _play(self, number: int, rng: np.random.Generator) -> Lesson:
        """Play one pass on a network, each episode with an order of its own or without."""
        config, place = self.config, self._places[number]
        scheme, share = place.spec.units, config.ordered if self.progress >= config.ordered_from else 0.0
        assert scheme is not None
        drawn = [draw_order(scheme, rng) if rng.random() < share else None for _ in range(config.envs)]
        player = HostPlayer(
            self.learner.policy, tuple(dict.fromkeys(order for order in drawn if order is not None)), spec=place.spec
        )
        world_seed, policy_seed = (stream_seed(config.seed, stream, number) for stream in ("world", "policy"))
        place.world.reset(world_seed, episode=place.episodes)
        assigned = np.array([player.number_of(order) for order in drawn])
        track = play_on(place.world, player, assigned, policy_seed, place.world.game.steps, episode=place.episodes)
        rollout = Rollout.of(track, player, assigned)
        place.episodes += 1
        rewards, scenario = rollout.rewards10 / 10, place.spec.scenario
        if self.progress < config.free_restores:
            restores = np.array([action.verb == "Restore" for action in scenario.actions])
            rewards = rewards + scenario.restore_cost * restores[rollout.actions]
        return Lesson(player, rollout, rewards, place.scale)

    def numbers(self) -> dict[str, Any]:
        places = [[place.scale.mean, place.scale.deviation, place.episodes] for place in self._places]
        return {"updates": self.updates, "episodes": self.episodes, "places": places}

    def tensors(self) -> dict[str, np.ndarray]:
        return self.learner.tensors()

    def restore(self, tensors: Weights, numbers: Mapping[str, Any]) -> None:
        self.learner.restore(tensors)
        self.updates, self.episodes = numbers["updates"], numbers["episodes"]
        for place, (mean, deviation, episodes) in zip(self._places, numbers["places"], strict=True):
            place.scale, place.episodes = ValueScale(mean, deviation), episodes


def draw_order(scheme: UnitScheme, rng: np.random.Generator) -> Workflow:
    """Draw an order: often of enterprise, user and op_server alone, the others behind, and with user before enterprise."""
    order = [int(unit) for unit in rng.permutation(scheme.size)]
    core = [scheme.names.index(name) for name in _CORE if name in scheme.names]
    if rng.random() < _CORE_ALONE:
        order = [core[place] for place in rng.permutation(len(core))] + [u for u in range(scheme.size) if u not in core]
    if {"enterprise", "user"} <= {*scheme.names}:
        first, second = order.index(scheme.names.index("user")), order.index(scheme.names.index("enterprise"))
        if (rng.random() < _USER_FIRST) != (first < second):
            order[first], order[second] = order[second], order[first]
    return scheme.order_of(tuple(order))
