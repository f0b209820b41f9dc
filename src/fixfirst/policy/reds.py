"""Learned attackers in their two files, red.json and red.safetensors, and as players, step by step and compiled.

R of them share one table, and the last byte of a row says whose it is. N environments, T steps, A choices of red. Red's
chance is keyed like the world's, by (the environment's key, episode, step): an attacker that is named in a mixture plays
the same game as one that is trained or evaluated.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import uint64

from fixfirst.base import array_files, errors
from fixfirst.base.compile import called, compiled
from fixfirst.game import attacker_files, chance as dice, red_view, state
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.simulator import World
from fixfirst.policy.network import Layers, Network, Weights, load_output_layer, shapes
from fixfirst.policy.table import (
    Answers,
    ForwardScratch,
    RowTable,
    answer_row,
    draw_action,
    enter_odds,
    find_row,
)
from fixfirst.runs import manifest

BASE = "base-attacker"  # knows the way to the target: where trainings against a defender begin
KNOWN = ("noise", "two-fronts")  # that found holes in our defenders
RED_STREAM = 0x7265642D706C6179  # of an environment's key: red's draws are others than the world's


@dataclass(frozen=True, eq=False)  # arrays have no single answer to ==
class RedPolicy:
    """A learned attacker, ready to play.

    For example:

        red = ff.load_red("base-attacker")
        red.spec.picky, red.spec.names, red.facts["against"]
    """

    weights: Weights = field(repr=False)
    spec: red_view.RedSpec
    facts: dict[str, Any] = field(repr=False)  # versions, hash, against whom it was trained, what its starts reached

    @property
    def seal(self) -> str:
        """The beginning of its hash, by which runs know it again."""
        return attacker_files.seal(self.facts)

    @property
    def network(self) -> Network:
        """Its weights as the compiled code reads them: without checks, so they must be those of its spec."""
        array_files.check_tensors("the weights of this attacker", self.weights, shapes(self.spec.inputs, self.spec.actions))
        return Network.of(self.weights)

    def save(self, folder: Path) -> None:
        """Write red.safetensors and red.json, which says what the attacker reads and chooses, and its facts."""
        document = {"scenario": self.spec.scenario.name, **self.spec.as_dict(), "versions": manifest.versions()}
        folder.mkdir(parents=True, exist_ok=True)
        array_files.write_pair(folder / attacker_files.RED_JSON, attacker_files.KIND, document | self.facts, self.weights)


def load_red(path: str | Path, scenario: Scenario = CAGE2) -> RedPolicy:
    """Return an attacker: from its folder (or a run's exploit/), from the file itself, or one that comes with fixfirst.

    After @ may stand the beginning of its hash, as runs note it; another attacker is refused then. For example:

        red = ff.load_red("base-attacker")
    """
    facts, tensors, spec = attacker_files.read_attacker(path, scenario)
    array_files.check_tensors(f"{path}: {attacker_files.RED_TENSORS}", tensors, shapes(spec.inputs, spec.actions))
    return RedPolicy(tensors, spec, facts)


def shipped_reds(names: Sequence[str], spec: red_view.RedSpec) -> dict[str, Weights]:
    """Return those of these attackers, which come with fixfirst, that attack the scenario as the spec says."""
    shipped: dict[str, Weights] = {}
    for name in names:
        with suppress(errors.PolicyError):
            red = load_red(name, spec.scenario)
            shipped |= {name: red.weights} if red.spec == spec else {}
    return shipped


class RedTrack(NamedTuple):
    """What red did in T steps of N environments, where an attacker of `Reds` played."""

    row_ids: np.ndarray  # [T + 1, N] int32 numbers of the rows it read; the last row is what came after the last action
    choices: np.ndarray  # [T, N] int16


class RedNetworks(NamedTuple):
    """R attackers for compiled functions."""

    actors: Layers  # each array with a first axis of R
    picky: np.ndarray  # [R] bool
    greedy: np.ndarray  # [R] bool


class RedSide(NamedTuple):
    """Learned attackers for a compiled loop."""

    networks: RedNetworks
    arrays: red_view.RedArrays
    scratch: ForwardScratch
    table: RowTable
    track: RedTrack


class Reds(Answers):
    """Learned attackers as players, numbered from LEARNED on.

    One alone follows its network's weights when they change: `forget` then. Of several, copies are kept.
    """

    def __init__(
        self, networks: Sequence[Network], specs: Sequence[red_view.RedSpec], greedy: Sequence[bool] | bool = False
    ):
        self.spec = next((spec for spec in specs if spec.picky), specs[0])
        actors = _stacked([network.actor for network in networks], self.spec.actions)
        modes = np.array(np.broadcast_to(greedy, len(networks)), np.bool_)
        self.networks = RedNetworks(actors, np.array([spec.picky for spec in specs], np.bool_), modes)
        self.view = self.spec.arrays
        self.scratch = ForwardScratch.make(Network.zeros(self.spec.inputs, self.spec.actions))
        self.table = RowTable.empty(256, self.spec.row_words, self.spec.actions)
        self._turns: list[tuple[np.ndarray, np.ndarray]] | None = None  # None: nobody asks what they did
        self._track: RedTrack | None = None

    @classmethod
    def of(cls, game: Game) -> "Reds":
        """Load the learned attackers that a game names, in the order of their numbers. They draw their actions."""
        loaded = [load_red(name, game.scenario) for name in game.learned]
        return cls([red.network for red in loaded], [red.spec for red in loaded])

    def decide(self, states: np.ndarray, chances: np.ndarray) -> None:
        """Write what these attackers do next into the states [N] they play in."""
        self.make_room(len(states))
        row_ids, choices = np.zeros(len(states), np.int32), np.zeros(len(states), np.int16)
        decide_compiled(states, chances, self.networks, self.view, self.scratch, self.table, row_ids, choices)
        if self._turns is not None:
            self._turns.append((row_ids, choices))

    def conclude(self, states: np.ndarray) -> None:
        """Let them draw their conclusions from the turn that has just been played."""
        self.spec.conclude(states)

    def start_recording(self) -> None:
        """Keep what they do from now on."""
        self._turns, self._track = [], None

    def for_kernel(self, steps: int, num_envs: int) -> RedSide:
        """Return them for a compiled loop of so many steps, which tells what they do in it."""
        if self._track is None or self._track.choices.shape != (steps, num_envs):
            self._track = RedTrack(np.zeros((steps + 1, num_envs), np.int32), np.zeros((steps, num_envs), np.int16))
        return RedSide(self.networks, self.view, self.scratch, self.table, self._track)

    def stop_recording(self, world: World) -> RedTrack:
        """Return what they did since, and what they read now."""
        turns, self._turns = self._turns or [], None
        if self._track is not None:
            return self._track
        now = world.get_state()
        now["ended"] = False
        self._turns = turns
        self.decide(now, world.inside().chances)
        self._turns = None
        return RedTrack(np.array([row_ids for row_ids, _ in turns]), np.array([choices for _, choices in turns[:-1]]))


def _stacked(actors: Sequence[Layers], choices: int) -> Layers:
    """Return networks as one, with a first axis; those with fewer choices get more, which their rows mask."""
    if len(actors) == 1:
        return Layers(*(array[None] for array in actors[0]))
    missing = [choices - len(actor.bias3) for actor in actors]
    last = [(np.pad(a.matrix3, ((0, 0), (0, m))), np.pad(a.bias3, (0, m))) for a, m in zip(actors, missing, strict=True)]
    whole = [(*actor[:4], *end) for actor, end in zip(actors, last, strict=True)]
    return Layers(*(np.stack(arrays) for arrays in zip(*whole, strict=True)))


@called
def red_key(key, episode):
    """Return the key of red's draws in an episode of an environment."""
    return dice.environment_key(dice.environment_key(key, RED_STREAM), episode)


@called
def answer_red(networks, rows, number, words, scratch, cumulative, likely, loaded):
    """Answer a row that is new. loaded: whose last layer is in place. Return whose is now."""
    owner = np.int64(rows[number, rows.shape[1] - 1] >> uint64(64 - red_view.OWNER_BITS))
    actors = networks.actors
    actor = Layers(
        actors.matrix1[owner],
        actors.bias1[owner],
        actors.matrix2[owner],
        actors.bias2[owner],
        actors.matrix3[owner],
        actors.bias3[owner],
    )
    if owner != loaded:
        load_output_layer(actor, scratch.work)
    answer_row(actor, rows, number, words, scratch)
    enter_odds(scratch.work.outputs, cumulative, likely, number, networks.greedy[owner])
    return owner


@compiled
def decide_compiled(states, chances, networks, view, scratch, table, row_ids, choices):
    """See `Reds.decide`."""
    read, loaded = np.empty((1, table.rows.shape[1]), np.uint64), -1
    for i in range(len(states)):
        env = states[i]
        if env.red_agent < state.LEARNED or env.ended:
            continue
        owner = env.red_agent - state.LEARNED
        picky, words = networks.picky[owner], view.words
        red_view.read_red(env, view.starts, view.ports, view.pairs, view.hosts, view.target, words, owner, picky, read, 0)
        count = table.filled[0]
        number = find_row(table.slots, table.rows, table.filled, read, 0)
        if number == count:
            loaded = answer_red(networks, table.rows, number, words, scratch, table.cumulative, table.likely, loaded)
        choice = draw_action(table.cumulative, table.likely, number, red_key(chances[i].key, env.episode), env.step)
        env.red_verb = view.verbs[choice]
        env.red_target = view.targets[choice]
        env.red_wish = view.wishes[choice]
        row_ids[i] = number
        choices[i] = choice
