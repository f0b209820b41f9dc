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
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base import array_files, seeds
from fixfirst.game import red_view, state
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.learner.ppo import PPO, initial_weights, part_of, scale_logits, widen
from fixfirst.learner.red_training import Opponent, RedTraining, play_red
from fixfirst.orders.order import Workflow
from fixfirst.play import rollout
from fixfirst.play.rollout import Rollout
from fixfirst.play.worlds import make_simulator
from fixfirst.policy.draws import FREE
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.network import Network, Weights
from fixfirst.policy.reds import Reds
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable
from fixfirst.runs import matrix, provenance, rows
from fixfirst.runs.layout import RunFiles
from fixfirst.settings.league import LeagueConfig
from fixfirst.stats import intervals

SHOWN_SCRIPTS = ("b_line", "meander", "sleep")
SCRATCH, PAST = "scratch", "an attacker of the past"  # where attackers begin, beside those that are known
SOFTENED = 0.5  # the factor on the logits of one that goes on
_AWAKE, _ASLEEP = 40, (3, 20)  # a lapse begins before this turn, and has at least and fewer than so many
_AT_ONCE = 2  # responses that learn side by side, and halves of the matrix
ON_HOSTS = (state.RedVerb.SCAN, state.RedVerb.EXPLOIT, state.RedVerb.ESCALATE)


class FrozenRed(NamedTuple):
    """An attacker of the past."""

    weights: Weights
    taken: float  # what blue earned against it when they last met, smoothed
    kind: str  # live or response
    start: str
    round: int  # in which it was frozen
    order: int = 0  # under which they meet, among the league's


class LeagueStep(NamedTuple):
    """What blue earned against whom; and, if a round was closed, against everybody."""

    earned: dict[str, float]
    closed: Sequence[rows.MatrixRow] = ()


def counting(spec: PolicySpec) -> PolicySpec:
    """Return the spec of a defender that also counts; it knows no order, so that these bits are the last."""
    groups = dict.fromkeys((*spec.memory.groups, "breaks", "again"))
    return replace(spec, memory=MemoryScheme(tuple(groups), spec.scenario))


def _finish(training: RedTraining) -> Weights:
    """Train an attacker to its end."""
    while not training.done:
        training.step()
    return training.learner.weights


class League:
    """The state of a league; it goes on by `step`.

    known: attackers from which some begin, by name. orders: those that the defender follows, in turns against scripts.
    game: what is played, with its scripts. pool: attackers of the past that it begins with.
    """

    def __init__(
        self,
        config: LeagueConfig,
        spec: PolicySpec,
        start: Weights,
        known: Mapping[str, Weights],
        *,
        orders: Sequence[Workflow] = (),
        game: Game | None = None,
        pool: Sequence[FrozenRed] = (),
    ):
        spec = counting(spec) if config.counts else spec
        self.config, self.spec, self._known, self.orders = config, spec, known, tuple(orders)
        self.red_spec, self.updates, self.rounds, self.answered = red_view.RedSpec(spec.scenario, config.picky), 0, 0, 0
        self.learner = PPO(config.blue_ppo, spec, 0)
        self.learner.start_from(scale_logits(widen(start, spec.inputs), config.initial_logit_scale))
        self.player = PolicyTable(self.learner.policy, self.orders, spec=spec)
        self.average = {name: array.copy() for name, array in self.learner.weights.items()}  # the defender that is kept
        self._game = game or Game(scenario=spec.scenario, variant=config.variant, red_agent=config.scripts)
        self.steps = self._game.steps  # of an episode
        self._scripts = make_simulator(self._game, config.script_envs, autoreset="disabled")
        self._world = World(self._game, config.frozen_envs, autoreset="disabled")
        self.pool: list[FrozenRed] = list(pool)
        repaired = {spec.scenario.repaired_hosts[action] for action in spec.action_set.actions}
        self._targets = sorted(repaired - {-1, spec.scenario.start_id})  # what attackers prefer, by turns
        self.born = 0
        self.starts: list[str] = []  # of the live attackers
        count = config.live * self._fronts
        self.live = [self._new_live(place) for place in range(count)]
        self.ages = [place * config.life // count for place in range(count)]  # they do not end together

    @property
    def _fronts(self) -> int:
        """How many orders attackers differ by."""
        return max(len(self.orders), 1)

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
        """Update everybody; at the end of a round, train a response; after the last of those, close the round."""
        config = self.config
        if self.updates < min((self.rounds + 1) * config.life, config.updates):
            return LeagueStep(self._update())
        if self.answered < config.responses:
            return LeagueStep(self._respond())
        rows = self._close_round()
        return LeagueStep({row.attacker: row.mean for row in rows}, rows)

    def _close_round(self) -> list[rows.MatrixRow]:
        """Let all attackers play the defender as it is; return a row of the matrix. Who takes most is met more often."""
        self.rounds, self.answered = self.rounds + 1, 0
        rows = [self._cell(name, matrix.SCRIPT, None, 0, self._play_script(name)) for name in SHOWN_SCRIPTS]
        halves = [range(first, len(self.pool), _AT_ONCE) for first in range(_AT_ONCE)]
        with ThreadPoolExecutor(_AT_ONCE) as beside:
            found = {place: played for half in beside.map(self._play_some, halves) for place, played in half.items()}
        for place, red in enumerate(self.pool):
            rows.append(self._cell(f"{place:03d}", red.kind, red.start, red.round, found[place]))
            if self.config.matrix_episodes >= self.config.envs:  # fewer say less than when they last met
                self.pool[place] = red._replace(taken=float(found[place].mean()))
        return rows

    def _play_some(self, places: Sequence[int]) -> dict[int, np.ndarray]:
        """Return what the defender that is kept earns against frozen attackers, [matrix episodes] each."""
        defender = self._defender()
        return {place: self._play_red(self.pool[place].weights, self.pool[place].order, defender) for place in places}

    def _cell(self, name: str, kind: str, start: str | None, born: int, returns: np.ndarray) -> rows.MatrixRow:
        return rows.MatrixRow(
            round=self.rounds,
            updates=self.updates,
            attacker=name,
            kind=kind,
            start=start,
            born=born,
            mean=float(returns.mean()),
            standard_error=intervals.standard_error(returns),
        )

    def _play_script(self, name: str) -> np.ndarray:
        game = self._game.against(name)
        world = make_simulator(game, self.config.matrix_episodes, autoreset="disabled")
        seed = seeds.stream_seed(self.config.seed, "matrix")
        options: dict[str, Any] = {"world_seed": seed, "policy_seed": seed, "first_episode": 0}
        return rollout.collect(world, self._defender(), workflows=self.orders, **options).returns

    def _play_red(self, weights: Weights, order: int, defender: PolicyTable | None = None) -> np.ndarray:
        opponent, episodes = Opponent(defender or self._defender(), self._only(order)), self.config.matrix_episodes
        seed = seeds.stream_seed(self.config.seed, "matrix")
        duel = play_red(opponent, weights, self.red_spec, self._game, episodes=episodes, seed=seed, purpose="matrix")
        return duel.blue.returns

    def _defender(self) -> PolicyTable:
        """Return the defender that is kept, ready to play."""
        return PolicyTable(Network.of(self.average), self.orders, spec=self.spec)

    # ---- attackers

    def _new_live(self, place: int) -> RedTraining:
        name, weights = self._start(self.born, knowing=self._is_lapsing(place))
        self.starts.append(name)
        return self._new_red(Opponent(self.player), weights, self.config.life * self.config.envs)

    def _is_lapsing(self, place: int) -> bool:
        """Does this live attacker meet a defender with lapses?"""
        return place // self._fronts < self.config.lapsing

    def _new_red(self, opponent: Opponent, start: Weights, episodes: int) -> RedTraining:
        seed = seeds.stream_seed(self.config.seed, "red", self.born)
        self.born += 1
        return RedTraining(
            [opponent],
            self._game,
            self.red_spec,
            episodes=episodes,
            seed=seed,
            start=start,
            ppo=self.config.red_ppo,
        )

    def _start(self, number: int, *, knowing: bool = False) -> tuple[str, Weights]:
        """Return where an attacker begins: every other one from one of the past, the rest from scratch and known ones.

        One of the past goes on; the others begin with a preference for one host. knowing: it begins as the first known one,
        if there is any.
        """
        if knowing and self._known:
            name = next(iter(self._known))
            return name, scale_logits(self._known[name], SOFTENED)
        rng = np.random.default_rng([self.config.seed, number])
        others, turn = (SCRATCH, *self._known), number // self._fronts  # attackers of all orders begin alike
        if turn % 2 and self.pool:
            return PAST, scale_logits(self.pool[self._draw(rng, 1)[0]].weights, SOFTENED)
        name = others[turn // 2 % len(others)]
        if name == SCRATCH:
            inputs, actions = self.red_spec.inputs, self.red_spec.actions
            seed = seeds.stream_seed(self.config.seed, "start", number)
            weights = initial_weights(inputs, seed, actions, self.config.red_ppo.last_layer)
        else:
            weights = scale_logits(self._known[name], SOFTENED)
        bias = weights["actor.4.bias"].copy()
        target = self._targets[(turn // 2 + turn // 2 // len(others)) % len(self._targets)]  # all hosts with all starts
        for place, choice in enumerate(self.red_spec.choices):
            if choice.verb in ON_HOSTS and choice.target == target:
                bias[place] += np.float32(self.config.preference)
        return name, {**weights, "actor.4.bias": bias}

    def _draw(self, rng: np.random.Generator, count: int) -> list[int]:
        """Return frozen attackers, drawn without repetition; one that takes twice as much eight times as often."""
        weights = np.array([max(-red.taken, 1.0) ** 3 for red in self.pool])
        return sorted(rng.choice(len(self.pool), count, replace=False, p=weights / weights.sum()).tolist())

    def _respond(self) -> dict[str, float]:
        """Train attackers against the defender as it is, some side by side."""
        numbers = range(self.answered, min(self.answered + _AT_ONCE, self.config.responses))
        starts, trainings = [], []
        for number in numbers:
            name, start = self._start(self.born)
            opponent = Opponent(self._defender(), self._only(number % self._fronts))
            starts.append(name)
            trainings.append(self._new_red(opponent, start, self.config.response_episodes))
        with ThreadPoolExecutor(_AT_ONCE) as beside:
            found = list(beside.map(_finish, trainings))
        earned = {}
        for number, name, weights in zip(numbers, starts, found, strict=True):
            order = number % self._fronts
            mean = float(self._play_red(weights, order).mean())
            self.pool.append(FrozenRed(weights, mean, matrix.RESPONSE, name, self.rounds + 1, order))
            earned[f"response {number + 1}"] = mean
        self.answered += len(found)
        return earned

    # ---- updates

    def _update(self) -> dict[str, float]:
        """Update the defender and all live attackers."""
        config = self.config
        seed = seeds.stream_seed(config.seed, "league")
        options: dict[str, Any] = {
            "world_seed": seed,
            "policy_seed": seeds.stream_seed(seed, "policy"),
            "first_episode": self.updates,
        }
        parts = {"scripts": rollout.collect(self._scripts, self.player, workflows=self.orders, **options)}
        parts |= {f"frozen {place}": self._meet_frozen(place, options) for place in self._met()}
        duels = [self._meet_live(place) for place in range(len(self.live))]
        parts |= {f"live {place}": duel.blue for place, duel in enumerate(duels)}
        with ThreadPoolExecutor(1) as beside:
            reds = beside.map(self._teach_live, range(len(duels)), duels)
            self._learn(list(parts.values()), beside)
            list(reds)  # what went wrong there is raised here
        earned = {name: float(part.returns.mean()) for name, part in parts.items()}
        for place in range(len(duels)):
            mean = earned[f"live {place}"]
            if self._is_lapsing(place):
                del earned[f"live {place}"]  # not of the defender as it is
            self._grow_older(place, mean)
        return earned

    def _meet_live(self, place: int) -> rollout.Duel:
        """Play a live attacker; where the defender lapses, for so much longer."""
        red, opening, world = self.live[place], self.spec.opening, self.live[place].world
        if self._is_lapsing(place):
            lapse = self._lapse(place)
            self.player.begin_with([lapse])
            steps = self._game.steps + len(lapse) - len(opening)
            world = World(self._game.model_copy(update={"max_steps": steps}), self.config.envs, autoreset="disabled")
        world.meet(red.reds, [1.0])
        duel = rollout.collect_duel(
            world,
            self.player,
            red.reds,
            world_seed=seeds.stream_seed(red.seed, "world"),
            policy_seed=seeds.stream_seed(red.seed, "policy"),
            first_episode=self.ages[place],
            workflows=self._only(place % self._fronts),
        )
        self.player.begin_with([opening])
        return duel

    def _lapse(self, place: int) -> tuple[int, ...]:
        """Return how episodes of this update begin against an attacker: some turns as ever, then some asleep."""
        rng = np.random.default_rng([self.config.seed, self.updates, place])
        awake, asleep, choices = rng.integers(_AWAKE), rng.integers(*_ASLEEP), self.spec.action_set.actions
        sleep = choices.index(self.spec.scenario.sleep_id) if self.spec.scenario.sleep_id in choices else 0
        opening = self.spec.opening[:awake]
        return (*opening, *[FREE] * (awake - len(opening)), *[sleep] * asleep)

    def _teach_live(self, place: int, duel: rollout.Duel) -> None:
        self.live[place].learn(duel, self.ages[place] / self.config.life)

    def _met(self) -> list[int]:
        """Return which frozen attackers are met."""
        count = min(self.config.frozen, len(self.pool))
        return self._draw(np.random.default_rng([self.config.seed, self.updates]), count) if count else []

    def _meet_frozen(self, place: int, options: Mapping[str, Any]) -> Rollout:
        red = self.pool[place]
        reds = Reds([Network.of(red.weights)], [self.red_spec])
        self._world.meet(reds, [1.0])
        played = rollout.collect_duel(self._world, self.player, reds, workflows=self._only(red.order), **options).blue
        self.pool[place] = red._replace(taken=0.7 * red.taken + 0.3 * float(played.returns.mean()))
        return played

    def _grow_older(self, place: int, mean: float) -> None:
        self.ages[place] += 1
        if self.ages[place] >= self.config.life:
            frozen = self.live[place].learner.weights
            if self._is_lapsing(place):
                mean = float(self._play_red(frozen, place % self._fronts).mean())
            facts = matrix.LIVE, self.starts[place], self.rounds + 1, place % self._fronts
            self.pool.append(FrozenRed(frozen, mean, *facts))
            self.live[place], self.ages[place] = self._new_live(place), 0
            self.starts[place] = self.starts.pop()

    def _learn(self, parts: list[Rollout], beside: Executor) -> None:
        """Improve on all that was played, but for how episodes begin: nothing was chosen there.

        What happens against one opponent is compared with that only: attackers take ten times as much as scripts, and would
        else drown what a point against B_line teaches.
        """
        steps = self._game.steps - len(self.spec.opening)
        played = rollout.join([part._replace(workflows=()).after(len(part.actions) - steps) for part in parts])
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

    # ---- saving

    def numbers(self) -> dict[str, Any]:
        """Return the state outside the learners, JSON-ready."""
        return {
            "updates": self.updates,
            "rounds": self.rounds,
            "answered": self.answered,
            "born": self.born,
            "ages": list(self.ages),
            "starts": list(self.starts),
            "live": [{"seed": red.seed, **red.numbers()} for red in self.live],
            "pool": [{name: value for name, value in red._asdict().items() if name != "weights"} for red in self.pool],
        }

    def tensors(self) -> dict[str, np.ndarray]:
        """Return all weights and moments, by name."""
        found = {f"blue.{name}": array for name, array in self.learner.tensors().items()}
        found |= {f"average.{name}": array for name, array in self.average.items()}
        for place, red in enumerate(self.live):
            found |= {f"live.{place}.{name}": array for name, array in red.tensors().items()}
        for place, frozen in enumerate(self.pool):
            found |= {f"pool.{place}.{name}": array for name, array in frozen.weights.items()}
        return found

    def restore(self, tensors: Weights, numbers: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        self.learner.restore(part_of(tensors, "blue."))
        self.average = {name: tensors[f"average.{name}"].copy() for name in self.average}
        self.player.forget()
        for place, (red, saved) in enumerate(zip(self.live, numbers["live"], strict=True)):
            red.restore(part_of(tensors, f"live.{place}."), saved)
            red.seed = saved["seed"]
        self.pool = [FrozenRed(part_of(tensors, f"pool.{i}."), **facts) for i, facts in enumerate(numbers["pool"])]
        self.updates, self.rounds, self.answered = numbers["updates"], numbers["rounds"], numbers["answered"]
        self.born, self.ages, self.starts = numbers["born"], list(numbers["ages"]), list(numbers["starts"])

    def save_policy(self, folder: Path, document: Mapping[str, Any]) -> None:
        """Write the defender that is kept, like any policy. document: what all its numbers follow from."""
        facts = {
            "workflow": None,
            **self.spec.as_dict(),
            "inputs": self.spec.inputs,
            "actions": self.spec.actions,
            "updates": self.updates,
            "versions": provenance.versions(),
            "config": {"variant": self.config.variant, "seed": self.config.seed, **document},
            "notes": {"league": True},
        }
        array_files.write_pair(RunFiles(folder).policy_json, "policy", facts, self.average)
