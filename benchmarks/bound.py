"""What does hidden information cost? A defender that sees the truth, by the same learner, from the same start.

    python benchmarks/bound.py --red-agent meander --episodes 60000
    python benchmarks/bound.py --red-agent runs/league/exploit --variant current --start guardian

It reads what the start reads, and which hosts red holds: as root, by a session that Remove kills, by one that it does not,
and where red left files. With --whole it reads the whole state of the game: also what red knows and believes, its script's
stage, its last action; then hardly two turns are alike, and an update takes several times as long.

It begins with the start's weights, so that it plays like it until the truth helps. What it earns is a lower bound of what
can be earned by a defender that knows this; what the start earns beside it says how much of the distance is due to what
blue cannot see.

Environments are stepped from Python, since the compiled loop reads observations only: some hundred episodes a second.
"""

import argparse
import time
from typing import NamedTuple

import numpy as np

from fixfirst.base.seeds import stream_seed
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.learner.ppo import PPO, scale_logits, widen
from fixfirst.play.rollout import Rollout, collect, make_world
from fixfirst.policy.memories import Memories
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.trained import Policy, load_policy
from fixfirst.settings.training import PPOConfig

ACCESS = ("privileged", "removable", "stubborn", "malware")
WHOLE = (*ACCESS, "patched", "decoys", "ot", "remembered", "ot_known", "red_agent", "red_verb", "red_target", "red_success")
WHOLE += ("red_exploit", "red_met", "scan_answered", "bline_stage", "bline_user", "bline_seen_server", "known_subnets")
WHOLE += ("explored_subnets", "known_hosts", "known_names", "scanned", "exploited", "escalated", "breached", "lost")
WHOLE += ("failed", "failed_again", "resisted", "sleeps")
ENVS = 250
SOFT = 0.5  # the factor on the start's logits: one that is sure of what it does finds nothing else


class Seer(NamedTuple):
    """The side of the game of a defender that sees the truth: a `PolicySpec` for the learner."""

    spec: PolicySpec
    fields: tuple[str, ...]  # of the state, that it sees
    truth: int  # bits in them

    @property
    def inputs(self) -> int:
        return self.spec.inputs + self.truth

    @property
    def actions(self) -> int:
        return self.spec.actions

    @property
    def words(self) -> int:
        return -(-self.inputs // 64)

    def allowed(self, rows: np.ndarray) -> np.ndarray:
        """Return the choices that rows leave; their last word is the set of those that are masked."""
        return rows[:, -1:] >> np.arange(self.actions, dtype=np.uint64) & np.uint64(1) == 0


def truth_of(states: np.ndarray, fields: tuple[str, ...]) -> np.ndarray:
    """Return what is true, [N, bits] of 0 and 1."""
    columns = [np.ascontiguousarray(states[name]).view(np.uint8).reshape(len(states), -1) for name in fields]
    return np.unpackbits(np.concatenate(columns, axis=1), axis=1, bitorder="little")


def packed(bits: np.ndarray, words: int) -> np.ndarray:
    """Return bits [N, B] as words [N, words]."""
    whole = np.zeros((len(bits), 64 * words), np.uint8)
    whole[:, : bits.shape[1]] = bits
    return np.packbits(whole, axis=1, bitorder="little").view(np.uint64)


def play(world: World, policy: Policy, role: Seer, learner: PPO, number: int, seed: int, greedy: bool) -> Rollout:
    """Play one episode in every environment."""
    spec, n, steps = policy.spec, world.num_envs, world.game.steps
    memories, rng = Memories(spec, n), np.random.default_rng([seed, number])
    world.reset(stream_seed(seed, "world"), episode=number)
    names = ("choices", "actions", "rewards10", "rows", "packed_obs")
    kept: dict[str, list[np.ndarray]] = {name: [] for name in names}
    weights = learner.weights
    layers = [(weights[f"actor.{layer}.weight"].T, weights[f"actor.{layer}.bias"]) for layer in (0, 2, 4)]
    for step in range(steps + 1):
        words = world.packed_obs.copy()
        masks = memories.masks()
        bits = np.concatenate([world.observations, memories.bits(), truth_of(world.get_state(), role.fields)], axis=1)
        masked = packed(~masks, 1)
        kept["rows"].append(np.concatenate([packed(bits, role.words), masked], axis=1))
        kept["packed_obs"].append(words)
        if step == steps:
            break
        if step < len(spec.opening):
            choices = np.full(n, spec.opening[step])
        else:
            values = bits.astype(np.float32)
            for place, (matrix, bias) in enumerate(layers):
                values = values @ matrix + bias
                values = np.tanh(values) if place < 2 else values
            values = np.where(masks, values, -np.inf)
            noise = 0.0 if greedy else rng.gumbel(size=values.shape)
            choices = (values + noise).argmax(axis=1)
        actions = memories.actions_of(choices)
        memories.remember(words, actions)
        world.step(actions)
        for name, value in (("choices", choices), ("actions", actions), ("rewards10", world.rewards10)):
            kept[name].append(np.array(value))
    rows, found = np.unique(np.concatenate(kept["rows"]), axis=0, return_inverse=True)
    empty = np.zeros((steps + 1, n), np.int16)
    return Rollout(
        packed_obs=np.array(kept["packed_obs"]),
        held=empty,
        privileged=empty,
        actions=np.array(kept["actions"], np.int16),
        rewards10=np.array(kept["rewards10"], np.int32),
        choices=np.array(kept["choices"], np.int16),
        row_ids=found.reshape(steps + 1, n).astype(np.int32),
        rows=rows,
        assigned=np.zeros(n, np.int64),
        workflows=(),
    )


def main() -> None:
    """Train and evaluate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--red-agent", default="b_line", help="whom it meets, also a learned attacker")
    parser.add_argument("--variant", default="leaderboard", choices=("current", "leaderboard", "debugged"))
    parser.add_argument("--start", default="champion", help="the policy to begin with")
    parser.add_argument("--episodes", type=int, default=60_000, help="to train on")
    parser.add_argument("--test-episodes", type=int, default=5_000)
    parser.add_argument("--whole", action="store_true", help="show it the whole state, not only who holds what")
    parser.add_argument("--seed", type=int, default=0)
    said = parser.parse_args()
    policy, game = load_policy(said.start), Game(variant=said.variant, red_agent=said.red_agent)
    world = make_world(game, ENVS, autoreset="disabled")
    world.reset(0)
    fields = WHOLE if said.whole else ACCESS
    role = Seer(policy.spec, fields, truth_of(world.get_state(), fields).shape[1])
    config = PPOConfig(
        epochs=4,
        row_parts=2,
        learning_rate=0.002,
        lr_schedule="linear",
        lr_final=0.02,
        ent_coef=0.01,
        entropy_schedule="linear",
        norms_apart=True,
    )
    learner, opening, begun = PPO(config, role, said.seed), len(policy.spec.opening), time.process_time()
    learner.start_from(scale_logits(widen(policy.weights, role.inputs), SOFT))
    updates = said.episodes // ENVS
    for number in range(updates):
        rollout, progress = play(world, policy, role, learner, number, said.seed, False), number / updates
        learner.update(
            rollout.after(opening),
            (rollout.rewards10 / 10)[opening:],
            entropy=config.entropy_at(progress),
            progress=progress,
            seed=stream_seed(said.seed, "batch", number),
        )
        if number % 20 == 19:
            spent = time.process_time() - begun
            print(f"{(number + 1) * ENVS:,} episodes, {spent:.0f} s: {rollout.returns.mean():.2f}", flush=True)
    passes, fresh = -(-said.test_episodes // ENVS), stream_seed(said.seed, "test")
    parts = [play(world, policy, role, learner, number, fresh, True).returns for number in range(passes)]
    seen = np.concatenate(parts)
    plain = collect(
        world, policy.player(greedy=True), world_seed=fresh, policy_seed=0, first_episode=0, passes=passes
    ).returns
    for name, returns in ((f"{said.start}, which sees what blue sees", plain), ("a defender that sees the truth", seen)):
        print(f"{name}: {returns.mean():.2f} ± {returns.std() / len(returns) ** 0.5:.2f} ({len(returns):,} episodes)")


if __name__ == "__main__":
    main()
