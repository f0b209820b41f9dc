"""Two policies meet: blue's and red's, each with a table of its own, in one compiled loop; scripts may play beside them.

R attackers share one table: the last byte of a row says whose it is. N environments, T steps, A choices of red.
Red's chance is keyed like the world's, by (the environment's key, episode, step): an attacker that is named in a mixture
plays the same game as one that is trained or evaluated.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import uint64

from fixfirst.base.compile import called, compiled
from fixfirst.game.attackers import decide_red
from fixfirst.game.chance import begin_turn, environment_key
from fixfirst.game.red_view import OWNER_BITS, RedSpec, conclude_reds, digest, read_red
from fixfirst.game.rules import NEXT_STEP, SAME_STEP, held, next_episode, step_one
from fixfirst.game.state import LEARNED
from fixfirst.game.world import World
from fixfirst.play.rollout import GROUP, Player, Rollout, Trajectory, collect, join
from fixfirst.policy.network import Layers, Network, load_output_layer
from fixfirst.policy.remembering import forget_one, remember_one, resolve_choice, suspect_one
from fixfirst.policy.table import (
    ForwardScratch,
    PolicyTable,
    RowTable,
    answer_row,
    draw_action,
    enter_odds,
    find_row,
    opening_choice,
    read_row,
)

RED_STREAM = 0x7265642D706C6179  # of an environment's key: red's draws are others than the world's


class RedTrack(NamedTuple):
    """What red did in T steps of N environments, where an attacker of `Reds` played."""

    found: np.ndarray  # [T + 1, N] int32 numbers of the rows it read; the last row is what came after the last action
    choices: np.ndarray  # [T, N] int16

    @classmethod
    def empty(cls, steps: int, num_envs: int) -> "RedTrack":
        return cls(np.zeros((steps + 1, num_envs), np.int32), np.zeros((steps, num_envs), np.int16))


class RedNetworks(NamedTuple):
    """R attackers for compiled functions."""

    actors: Layers  # each array with a first axis of R
    picky: np.ndarray  # [R] bool
    greedy: np.ndarray  # [R] bool


class Reds:
    """Learned attackers as players, numbered from LEARNED on: asked once per distinct row, their answers remembered.

    One alone follows its network's weights when they change: `forget` then. Of several, copies are kept.
    """

    def __init__(self, networks: Sequence[Network], specs: Sequence[RedSpec], greedy: Sequence[bool] | bool = False):
        self.spec = next((spec for spec in specs if spec.picky), specs[0])
        actors = _stacked([network.actor for network in networks], self.spec.actions)
        modes = np.array(np.broadcast_to(greedy, len(networks)), np.bool_)
        self.networks = RedNetworks(actors, np.array([spec.picky for spec in specs], np.bool_), modes)
        self.view = self.spec.arrays()
        self.scratch = ForwardScratch.make(Network.zeros(self.spec.inputs, self.spec.actions))
        self.table = RowTable.empty(256, self.spec.row_words, self.spec.actions)
        self._turns: list[tuple[np.ndarray, np.ndarray]] | None = None  # None: nobody asks what they did
        self._track: RedTrack | None = None

    @property
    def rows(self) -> np.ndarray:
        """[M, row words] all that were met since it was told to forget."""
        return self.table.rows[: self.table.filled[0]]

    def make_room(self, more: int) -> None:
        """Let the table hold so many rows more."""
        self.table = self.table.with_room(more)

    def forget(self) -> None:
        """For networks that have changed."""
        self.table.clear()

    # ---- step by step

    def decide(self, states: np.ndarray, chances: np.ndarray) -> None:
        """Write what these attackers do next into the states [N] they play in."""
        self.make_room(len(states))
        found, choices = np.zeros(len(states), np.int32), np.zeros(len(states), np.int16)
        decide_compiled(states, chances, self.networks, self.view, self.scratch, self.table, found, choices)
        if self._turns is not None:
            self._turns.append((found, choices))

    def conclude(self, states: np.ndarray) -> None:
        """Let them draw their conclusions from the turn that has just been played."""
        conclude_reds(states, self.view)

    # ---- many steps at once

    def play(
        self,
        world: World,
        player: PolicyTable,
        assigned: np.ndarray,
        memories: np.ndarray,
        policy_seed: int,
        track: Trajectory,
    ) -> None:
        """Play on as `play_steps` does, with these attackers where an environment's attacker is a learned one."""
        assert player.network is not None, "a function cannot be asked in compiled code"
        first, more = 0, min(GROUP, world.num_envs) * len(track.packed_obs)
        self._track = RedTrack.empty(len(track.actions), world.num_envs)
        while first < world.num_envs:
            player.make_room(more)
            self.make_room(more)
            first = duel_compiled(
                world.inside(),
                player.network.actor,
                player.scratch,
                player.table,
                player.greedy,
                player.arrays,
                player.orders,
                player.shields,
                assigned,
                memories,
                policy_seed,
                self.networks,
                self.view,
                self.scratch,
                self.table,
                first,
                track,
                self._track,
            )
        world.show()

    # ---- what they did

    def begin_track(self) -> None:
        """Keep what they do from now on."""
        self._turns, self._track = [], None

    def end_track(self, world: World) -> RedTrack:
        """Return what they did since, and what they read now."""
        turns, self._turns = self._turns or [], None
        if self._track is not None:
            return self._track
        now = world.get_state()
        now["ended"] = False
        self._turns = turns
        self.decide(now, world.inside().chances)
        self._turns = None
        return RedTrack(np.array([found for found, _ in turns]), np.array([choices for _, choices in turns[:-1]]))


def _stacked(actors: Sequence[Layers], choices: int) -> Layers:
    """Return networks as one, with a first axis; those with fewer choices get more, which their rows mask."""
    if len(actors) == 1:
        return Layers(*(array[None] for array in actors[0]))
    missing = [choices - len(actor.bias3) for actor in actors]
    last = [(np.pad(a.matrix3, ((0, 0), (0, m))), np.pad(a.bias3, (0, m))) for a, m in zip(actors, missing, strict=True)]
    whole = [(*actor[:4], *end) for actor, end in zip(actors, last, strict=True)]
    return Layers(*(np.stack(arrays) for arrays in zip(*whole, strict=True)))


class Duel(NamedTuple):
    """The same B episodes from both sides. Red's choices and rows are in a rollout like blue's, for the same learner."""

    blue: Rollout
    red: Rollout


def collect_duel(world: World, player: Player, reds: Reds, *, first_episode: int, passes: int = 1, **options: Any) -> Duel:
    """Play as `collect` does, where one of these attackers plays in every episode."""
    parts, tracks = [], []
    for number in range(passes):
        reds.begin_track()
        parts.append(collect(world, player, first_episode=first_episode + number, **options))
        tracks.append(reds.end_track(world))
    blue = join(parts)
    found, choices = (np.concatenate(columns, axis=1) for columns in zip(*tracks, strict=True))
    return Duel(blue, blue._replace(found=found, choices=choices, rows=reds.rows, turns=None))


# ---------------------------------------------------------------- one attacker's turn, compiled


@called
def red_key(key, episode):
    """Return the key of red's draws in an episode of an environment."""
    return environment_key(environment_key(key, RED_STREAM), episode)


@called
def answer_red(networks, rows, number, words, scratch, cumulative, likely, loaded):
    """Answer a row that is new. loaded: whose last layer is in place. Return whose is now."""
    owner = np.int64(rows[number, rows.shape[1] - 1] >> uint64(64 - OWNER_BITS))
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
def decide_compiled(states, chances, networks, view, scratch, table, found, choices):
    """See `Reds.decide`."""
    read, loaded = np.empty((1, table.rows.shape[1]), np.uint64), -1
    for i in range(len(states)):
        env = states[i]
        if env.red_agent < LEARNED or env.ended:
            continue
        owner = env.red_agent - LEARNED
        picky, words = networks.picky[owner], view.words
        read_red(
            env, view.starts, view.ports, view.pairs, view.hosts, view.foothold, view.target, words, owner, picky, read, 0
        )
        known = table.filled[0]
        number = find_row(table.slots, table.rows, table.filled, read, 0)
        if number == known:
            loaded = answer_red(networks, table.rows, number, words, scratch, table.cumulative, table.likely, loaded)
        choice = draw_action(table.cumulative, table.likely, number, red_key(chances[i].key, env.episode), env.step)
        env.red_verb = view.verbs[choice]
        env.red_target = view.targets[choice]
        env.red_wish = view.wishes[choice]
        found[i] = number
        choices[i] = choice


# ---------------------------------------------------------------- many turns of both, compiled


@compiled
def duel_compiled(
    inside,
    actor,
    scratch,
    table,
    greedy,
    spec,
    orders,
    shields,
    assigned,
    memories,
    seed,
    networks,
    view,
    red_scratch,
    red_table,
    first,
    track,
    red_track,
):
    """See `play_duel`. Plays from environment `first` on. Returns the next one to play: below N if a table is full."""
    steps, n = track.actions.shape
    load_output_layer(actor, scratch.work)
    keys, read = np.empty(GROUP, np.uint64), np.empty((GROUP, orders.shape[1]), np.uint64)
    red_keys, red_read, loaded = np.empty(GROUP, np.uint64), np.empty((GROUP, red_table.rows.shape[1]), np.uint64), -1
    filled, rows, table_slots, cumulative, likely = table.filled, table.rows, table.slots, table.cumulative, table.likely
    starts, meanings, shifts, slots, openings = spec.starts, spec.meanings, spec.shifts, spec.slots, spec.openings
    suspicion, first_macro, ranked, forbidden = spec.suspicion, spec.first_macro, shields.ranked, shields.forbidden
    effects, host_slots, host_scans, listed = spec.effects, spec.host_slots, spec.host_scans, spec.listed
    states, tables, chances, red_odds = inside.states, inside.tables[0], inside.chances, inside.red_odds
    remembers = spec.remembers
    views, hosts, rooted, found, choices = track.packed_obs, track.held, track.privileged, track.found, track.choices
    actions, rewards10, ends = track.actions, track.rewards10, track.ended
    red_filled, red_rows, red_slots = red_table.filled, red_table.rows, red_table.slots
    red_cumulative, red_likely, picky = red_table.cumulative, red_table.likely, networks.picky
    red_starts, ports, pairs, gates, subnets = view.starts, view.ports, view.pairs, view.gates, view.subnets
    verbs, targets, wishes, red_found, red_choices = (
        view.verbs,
        view.targets,
        view.wishes,
        red_track.found,
        red_track.choices,
    )
    num_hosts, foothold, goal, words = view.hosts, view.foothold, view.target, view.words
    for start in range(first, n, GROUP):
        stop = min(start + GROUP, n)
        more = (stop - start) * (steps + 1)
        if filled[0] + more > len(rows) or red_filled[0] + more > len(red_rows):
            return start
        for i in range(start, stop):
            keys[i - start] = environment_key(environment_key(seed, i), states[i].episode)
            red_keys[i - start] = red_key(chances[i].key, states[i].episode)
        for t in range(steps + 1):
            for i in range(start, stop):
                env, chance, memory, g = states[i], chances[i], memories[i], i - start
                order, seen = assigned[i], env.observation
                for k in range(read.shape[1]):
                    read[g, k] = orders[order, k]
                read_row(
                    memory, starts, listed, suspicion, first_macro, slots, remembers, ranked, forbidden, order, seen, read, g
                )
                known = filled[0]
                number = find_row(table_slots, rows, filled, read, g)
                if number == known:
                    answer_row(actor, rows, number, spec.words, scratch)
                    enter_odds(scratch.work.outputs, cumulative, likely, number, greedy)
                for k in range(views.shape[2]):
                    views[t, i, k] = seen[k]
                hosts[t, i] = held(env)
                rooted[t, i] = env.privileged
                found[t, i] = number
                is_learned, red_number = env.red_agent >= LEARNED, 0
                if is_learned:
                    owner = env.red_agent - LEARNED
                    read_red(
                        env, red_starts, ports, pairs, num_hosts, foothold, goal, words, owner, picky[owner], red_read, g
                    )
                    red_known = red_filled[0]
                    red_number = find_row(red_slots, red_rows, red_filled, red_read, g)
                    if red_number == red_known:
                        loaded = answer_red(
                            networks, red_rows, red_number, words, red_scratch, red_cumulative, red_likely, loaded
                        )
                red_found[t, i] = red_number
                if t == steps:
                    continue
                if env.step < openings.shape[1]:
                    choice = opening_choice(openings, keys[g], env.step)
                else:
                    choice = draw_action(cumulative, likely, number, keys[g], env.step)
                action = resolve_choice(meanings, shifts, choice, memory)
                reward10, ended, red_choice = 0, False, 0
                if env.ended and inside.autoreset == NEXT_STEP:
                    next_episode(env, tables, chance, red_odds[i])
                    keys[g] = environment_key(environment_key(seed, i), env.episode)
                    red_keys[g] = red_key(chance.key, env.episode)
                    forget_one(memory)
                else:
                    if remembers:
                        remember_one(memory, effects, host_slots, host_scans, listed, seen, action)
                    elif suspicion >= 0:
                        suspect_one(memory, effects, seen, action)
                    if is_learned:
                        red_choice = draw_action(red_cumulative, red_likely, red_number, red_keys[g], env.step)
                        env.red_verb = verbs[red_choice]
                        env.red_target = targets[red_choice]
                        env.red_wish = wishes[red_choice]
                    begin_turn(env, chance)
                    verb, target = decide_red(env, tables, chance, inside.own)
                    reward10 = step_one(env, tables, action, verb, target, chance, inside.green, inside.max_steps)
                    if is_learned:
                        digest(env, gates, subnets)
                    ended = env.ended
                    if ended and inside.autoreset == SAME_STEP:
                        next_episode(env, tables, chance, red_odds[i])
                        keys[g] = environment_key(environment_key(seed, i), env.episode)
                        red_keys[g] = red_key(chance.key, env.episode)
                        forget_one(memory)
                choices[t, i] = choice
                actions[t, i] = action
                rewards10[t, i] = reward10
                ends[t, i] = ended
                red_choices[t, i] = red_choice
    return n
