"""A league: one defender learns against scripts, attackers of the past, and attackers that learn against it meanwhile.

In every update blue meets the scripts, some frozen attackers (those that take most more often) and all live ones. A live
attacker that has had its updates is frozen, joins the others, and another begins. A round is as long as such a life. It ends
with *responses*: attackers that learn against the defender as it is then. What the best of them takes says how far the
league has come; all of them join the others. Then everybody plays the defender, a row of the league's matrix.

Two things keep attackers from using what the defender does. It draws its actions, always: its most probable ones can be
foreseen. And the defender that is kept, attacked by responses and played in the matrix is the average of the last updates: a
single one has just answered the attackers it met, and others take more from it (docs/attackers.md).

A training of red stays at the first thing that pays, nearly always one host that is attacked again and again. So that many
are found, attackers begin with a preference for one host: every host has its turn. Others go on where one of the past ended,
which finds what takes longer.

A defender that keeps attackers away from the target never learns what to do once they are there, and whoever gets there
takes everything. So some live attackers meet a defender with *lapses*: it sleeps for some turns, then plays on, and learns
from what comes after.

A defender that follows orders has attackers for each of them, which meet it under that order only.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base import seeds
from fixfirst.game import red_view
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.learner.population import FrozenRed, Starts, draw
from fixfirst.learner.ppo import PPO, part_of, scale_logits, widen
from fixfirst.learner.red_training import Opponent, RedTraining, play_red
from fixfirst.orders.order import Workflow
from fixfirst.play import rollout
from fixfirst.play.rollout import Rollout, make_world
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.network import Network, Weights
from fixfirst.policy.reds import Reds
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import FREE, PolicyTable
from fixfirst.policy.trained import Policy
from fixfirst.runs import rows
from fixfirst.settings.league import LeagueConfig
from fixfirst.stats import intervals

MATRIX_SCRIPTS = ("b_line", "meander", "sleep")
_AWAKE, _ASLEEP = 40, (3, 20)  # a lapse begins before this turn, and has at least and fewer than so many
_AT_ONCE = 2  # responses that learn side by side, and halves of the matrix


@dataclass
class _LiveRed:
    """An attacker that learns beside the defender."""

    training: RedTraining
    start: str
    age: int  # updates


class LeagueStep(NamedTuple):
    """What blue earned against whom; and, if a round was closed, against everybody."""

    returns: dict[str, float]
    closed: Sequence[rows.MatrixRow] = ()


class League:
    """The state of a league; it goes on by `step`.

    shipped: attackers from which some begin, by name. orders: those that the defender follows, in turns against scripts.
    game: what is played, with its scripts. pool: attackers of the past that it begins with.
    """

    def __init__(
        self,
        config: LeagueConfig,
        spec: PolicySpec,
        start: Weights,
        shipped: Mapping[str, Weights],
        *,
        orders: Sequence[Workflow] = (),
        game: Game | None = None,
        pool: Sequence[FrozenRed] = (),
    ):
        if config.counts:  # it knows no order, so that these bits are the last
            groups = dict.fromkeys((*spec.memory.groups, "breaks", "again"))
            spec = replace(spec, memory=MemoryScheme(tuple(groups), spec.scenario))
        self.config, self.spec, self.orders = config, spec, tuple(orders)
        self.red_spec, self.updates, self.rounds, self.answered = red_view.RedSpec(spec.scenario, config.picky), 0, 0, 0
        self.learner = PPO(config.blue_ppo, spec, 0)
        self.learner.start_from(scale_logits(widen(start, spec.inputs), config.initial_logit_scale))
        self.player = PolicyTable(self.learner.policy, self.orders, spec=spec)
        self.average = {name: array.copy() for name, array in self.learner.weights.items()}  # of the last updates
        self._game = game or Game(scenario=spec.scenario, variant=config.variant, red_agent=config.scripts)
        self.steps = self._game.steps  # of an episode
        self._scripts = make_world(self._game, config.script_envs, autoreset="disabled")
        self._world = World(self._game, config.frozen_envs, autoreset="disabled")
        self._fronts = max(len(self.orders), 1)  # how many orders attackers differ by
        repaired = {spec.scenario.repaired_hosts[action] for action in spec.action_set.actions}
        targets = sorted(repaired - {-1, spec.scenario.start_id})
        self.pool, self.born = list(pool), 0
        self.starts = Starts(config, self.red_spec, shipped, self._fronts, targets)
        count = config.live * self._fronts
        self.live = [self._new_live(i, i * config.life // count) for i in range(count)]  # they do not end together

    def _only(self, number: int) -> tuple[Workflow, ...]:
        """Return an order by its number, alone; of a league without orders, none."""
        return self.orders[number : number + 1]

    @property
    def done(self) -> bool:
        """Are all updates done, and is the last round closed?"""
        return self.rounds >= self.config.rounds

    @property
    def episodes(self) -> int:
        """Behind it, as far as progress goes."""
        config = self.config
        return self.updates * config.episodes + (self.rounds * config.responses + self.answered) * config.response_episodes

    def step(self) -> LeagueStep:
        """Update everybody; at the end of a round, train responses; after the last of those, close the round."""
        config = self.config
        if self.updates < min((self.rounds + 1) * config.life, config.updates):
            return LeagueStep(self._update())
        if self.answered < config.responses:
            return LeagueStep(self._respond())
        closed = self._close_round()
        return LeagueStep({row.attacker: row.mean for row in closed}, closed)

    def _close_round(self) -> list[rows.MatrixRow]:
        """Let all attackers play the defender as it is; return a row of the matrix. Who takes most is met more often."""
        self.rounds, self.answered = self.rounds + 1, 0
        closed = [self._cell(name, rows.AttackerKind.SCRIPT, None, 0, self._play_script(name)) for name in MATRIX_SCRIPTS]
        for number, (red, returns) in enumerate(zip(self.pool, self._play_pool(), strict=True)):
            closed.append(self._cell(f"{number:03d}", red.kind, red.start, red.round, returns))
            if self.config.matrix_episodes >= self.config.envs:  # fewer say less than when they last met
                self.pool[number] = red._replace(taken=float(returns.mean()))
        return closed

    def _cell(self, name: str, kind: rows.AttackerKind, start: str | None, born: int, returns: np.ndarray) -> rows.MatrixRow:
        return rows.MatrixRow(
            round=self.rounds,
            updates=self.updates,
            attacker=name,
            kind=kind,
            start=start,
            born=born,
            mean=float(returns.mean()),
            standard_error=intervals.estimate(returns).standard_error,
        )

    def _play_script(self, name: str) -> np.ndarray:
        """Return what the averaged defender earns against a script, [matrix episodes]."""
        world = make_world(self._game.against(name), self.config.matrix_episodes, autoreset="disabled")
        seed, defender = seeds.stream_seed(self.config.seed, "matrix"), self._defender()
        played = rollout.collect(world, defender, world_seed=seed, policy_seed=seed, first_episode=0, workflows=self.orders)
        return played.returns

    def _play_pool(self) -> list[np.ndarray]:
        """Return what it earns against every frozen attacker, [matrix episodes] each."""

        def play_some(first: int) -> list[np.ndarray]:
            defender = self._defender()  # one per thread: its table grows
            return [self._play_red(red.weights, red.order, defender) for red in self.pool[first::_AT_ONCE]]

        with ThreadPoolExecutor(_AT_ONCE) as beside:
            parts = list(beside.map(play_some, range(_AT_ONCE)))
        return [parts[number % _AT_ONCE][number // _AT_ONCE] for number in range(len(self.pool))]

    def _play_red(self, weights: Weights, order: int, defender: PolicyTable) -> np.ndarray:
        opponent, episodes = Opponent(defender, self._only(order)), self.config.matrix_episodes
        seed = seeds.stream_seed(self.config.seed, "matrix")
        duel = play_red(opponent, weights, self.red_spec, self._game, episodes=episodes, seed=seed, purpose="matrix")
        return duel.blue.returns

    def _defender(self) -> PolicyTable:
        """Return the averaged defender, ready to play."""
        return PolicyTable(Network.of(self.average), self.orders, spec=self.spec)

    def _new_live(self, number: int, age: int = 0) -> _LiveRed:
        name, weights = self.starts.choose(self.born, self.pool, as_shipped=self._is_lapsing(number))
        episodes = self.config.life * self.config.envs
        return _LiveRed(self._new_red(Opponent(self.player), weights, episodes), name, age)

    def _is_lapsing(self, number: int) -> bool:
        """Does this live attacker meet a defender with lapses?"""
        return number // self._fronts < self.config.lapsing

    def _new_red(self, opponent: Opponent, start: Weights, episodes: int) -> RedTraining:
        seed, ppo = seeds.stream_seed(self.config.seed, "red", self.born), self.config.red_ppo
        self.born += 1
        return RedTraining([opponent], self._game, self.red_spec, episodes=episodes, seed=seed, start=start, ppo=ppo)

    def _respond(self) -> dict[str, float]:
        """Train attackers against the defender as it is, some side by side."""
        numbers = range(self.answered, min(self.answered + _AT_ONCE, self.config.responses))
        begun = []
        for number in numbers:
            name, start = self.starts.choose(self.born, self.pool)
            opponent = Opponent(self._defender(), self._only(number % self._fronts))
            begun.append((name, self._new_red(opponent, start, self.config.response_episodes)))

        def finish(training: RedTraining) -> None:
            while not training.done:
                training.step()

        with ThreadPoolExecutor(_AT_ONCE) as beside:
            list(beside.map(finish, [training for _, training in begun]))
        returns = {}
        for number, (name, training) in zip(numbers, begun, strict=True):
            weights, order = training.learner.weights, number % self._fronts
            mean = float(self._play_red(weights, order, self._defender()).mean())
            self.pool.append(FrozenRed(weights, mean, rows.AttackerKind.RESPONSE, name, self.rounds + 1, order))
            returns[f"response {number + 1}"] = mean
        self.answered += len(begun)
        return returns

    def _update(self) -> dict[str, float]:
        """Update the defender and all live attackers."""
        seed = seeds.stream_seed(self.config.seed, "league")
        streams: dict[str, Any] = {
            "world_seed": seed,
            "policy_seed": seeds.stream_seed(seed, "policy"),
            "first_episode": self.updates,
        }
        parts = {"scripts": rollout.collect(self._scripts, self.player, workflows=self.orders, **streams)}
        count, rng = min(self.config.frozen, len(self.pool)), np.random.default_rng([self.config.seed, self.updates])
        met = draw(self.pool, rng, count) if count else []
        parts |= {f"frozen {number}": self._play_frozen(number, streams) for number in met}
        duels = [self._play_live(number) for number in range(len(self.live))]
        parts |= {f"live {number}": duel.blue for number, duel in enumerate(duels)}
        with ThreadPoolExecutor(1) as beside:
            reds = beside.map(lambda live, duel: live.training.learn(duel, live.age / self.config.life), self.live, duels)
            self._learn(list(parts.values()), beside)
            list(reds)  # what went wrong there is raised here
        returns = {name: float(part.returns.mean()) for name, part in parts.items()}
        for number in range(len(duels)):
            mean = returns[f"live {number}"]
            if self._is_lapsing(number):
                del returns[f"live {number}"]  # not of the defender as it is
            self._grow_older(number, mean)
        return returns

    def _play_live(self, number: int) -> rollout.Duel:
        """Play a live attacker; where the defender lapses, for so much longer."""
        live, opening = self.live[number], self.spec.opening
        world, reds, seed = live.training.world, live.training.reds, live.training.seed
        if self._is_lapsing(number):
            lapse = self._lapse(number)
            self.player.begin_with([lapse])
            game = self._game.model_copy(update={"max_steps": self.steps + len(lapse) - len(opening)})
            world = World(game, self.config.envs, autoreset="disabled")
        world.meet(reds, [1.0])
        duel = rollout.collect_duel(
            world,
            self.player,
            reds,
            world_seed=seeds.stream_seed(seed, "world"),
            policy_seed=seeds.stream_seed(seed, "policy"),
            first_episode=live.age,
            workflows=self._only(number % self._fronts),
        )
        self.player.begin_with([opening])
        return duel

    def _lapse(self, number: int) -> tuple[int, ...]:
        """Return how episodes of this update begin against an attacker: some turns as ever, then some asleep."""
        rng = np.random.default_rng([self.config.seed, self.updates, number])
        awake, asleep, choices = rng.integers(_AWAKE), rng.integers(*_ASLEEP), self.spec.action_set.actions
        sleep_id = self.spec.scenario.sleep_id
        sleep = choices.index(sleep_id) if sleep_id in choices else 0
        opening = self.spec.opening[:awake]
        return (*opening, *[FREE] * (awake - len(opening)), *[sleep] * asleep)

    def _play_frozen(self, number: int, streams: Mapping[str, Any]) -> Rollout:
        red = self.pool[number]
        reds = Reds([Network.of(red.weights)], [self.red_spec])
        self._world.meet(reds, [1.0])
        played = rollout.collect_duel(self._world, self.player, reds, workflows=self._only(red.order), **streams).blue
        self.pool[number] = red._replace(taken=0.7 * red.taken + 0.3 * float(played.returns.mean()))
        return played

    def _grow_older(self, number: int, mean: float) -> None:
        live, order = self.live[number], number % self._fronts
        live.age += 1
        if live.age >= self.config.life:
            weights = live.training.learner.weights
            if self._is_lapsing(number):
                mean = float(self._play_red(weights, order, self._defender()).mean())
            self.pool.append(FrozenRed(weights, mean, rows.AttackerKind.LIVE, live.start, self.rounds + 1, order))
            self.live[number] = self._new_live(number)

    def _learn(self, parts: list[Rollout], beside: Executor) -> None:
        """Improve on all that was played, but for how episodes begin: nothing was chosen there.

        What happens against one opponent is compared with that only: attackers take ten times as much as scripts, and would
        else drown what a point against B_line teaches.
        """
        steps = self.steps - len(self.spec.opening)
        played = Rollout.join([part._replace(workflows=()).after(len(part.actions) - steps) for part in parts])
        progress = self.updates / self.config.updates
        self.learner.update(
            played,
            played.rewards10 / 10,
            entropy=self.learner.config.entropy_at(progress),
            progress=progress,
            seed=seeds.stream_seed(self.config.seed, "batch", self.updates),
            groups=[len(part.assigned) for part in parts],
            beside=beside,
        )
        self.player.forget()
        share = max(1 - self.config.average, 9 / (10 + self.updates))  # the first updates are soon forgotten
        for name, array in self.learner.weights.items():
            self.average[name] += np.float32(share) * (array - self.average[name])
        self.updates += 1

    def numbers(self) -> dict[str, Any]:
        return {
            "updates": self.updates,
            "rounds": self.rounds,
            "answered": self.answered,
            "born": self.born,
            "live": [
                {"start": live.start, "age": live.age, "seed": live.training.seed, **live.training.numbers()}
                for live in self.live
            ],
            "pool": [{name: value for name, value in red._asdict().items() if name != "weights"} for red in self.pool],
        }

    def tensors(self) -> dict[str, np.ndarray]:
        parts = {"blue": self.learner.tensors(), "average": self.average}
        parts |= {f"live.{number}": live.training.tensors() for number, live in enumerate(self.live)}
        parts |= {f"pool.{number}": dict(red.weights) for number, red in enumerate(self.pool)}
        return {f"{part}.{name}": array for part, tensors in parts.items() for name, array in tensors.items()}

    def restore(self, tensors: Weights, numbers: Mapping[str, Any]) -> None:
        self.learner.restore(part_of(tensors, "blue."))
        self.average = {name: tensors[f"average.{name}"].copy() for name in self.average}
        self.player.forget()
        for number, (live, saved) in enumerate(zip(self.live, numbers["live"], strict=True)):
            live.start, live.age, live.training.seed = saved["start"], saved["age"], saved["seed"]
            live.training.restore(part_of(tensors, f"live.{number}."), saved)
        self.pool = [FrozenRed(part_of(tensors, f"pool.{i}."), **facts) for i, facts in enumerate(numbers["pool"])]
        self.updates, self.rounds = numbers["updates"], numbers["rounds"]
        self.answered, self.born = numbers["answered"], numbers["born"]

    def save_policy(self, folder: Path, document: Mapping[str, Any]) -> None:
        """Write the averaged defender, like any policy. document: what all its numbers follow from."""
        config = {"variant": self.config.variant, "seed": self.config.seed, **document}
        facts = {"updates": self.updates, "config": config, "notes": {"league": True}}
        Policy(self.average, None, self.spec, {}, facts).save(folder)
