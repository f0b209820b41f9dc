"""Same seed, same bytes: an episode depends on (seed, environment, episode, step), and on nothing else."""

import hashlib

import cold_start
import numpy as np

import fixfirst as ff
from fixfirst.game import rules
from fixfirst.game.state import RedVerb

STEPS = 230  # two autoresets


def trace(environments, *, seed=7, red_agent="b_line:0.5,meander:0.5"):
    """Observations, rewards and true access of a run with fixed actions: [T, N, 52], [T, N], [T, N, 13]."""
    envs = ff.make_vec(len(environments), red_agent=red_agent, green=True, env_ids=list(environments))
    envs.reset(seed=seed)
    actions = np.random.default_rng(42).integers(0, 145, (STEPS, 64))[:, environments]
    rows = [envs.step(row) for row in actions]
    return tuple(np.array(part) for part in zip(*((r[0], r[1], r[4]["access"]) for r in rows), strict=True))


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_the_same_seed_gives_the_same_run_whatever_else_is_in_the_batch():
    """Environments 5 and 9 alone, whichever is stepped first, beside others, and beside others with another red agent."""
    run, mixture = trace(range(16)), "b_line:0.5,meander:0.5"
    assert same(run, trace(range(16))) and not same(run, trace(range(16), seed=8))
    assert same(run, [part[:, :16] for part in trace(range(64))])
    others = trace(range(16), red_agent=[mixture if i in (5, 9) else "sleep" for i in range(16)])
    assert same([part[:, [5, 9]] for part in run], [part[:, [5, 9]] for part in others])
    for ids in ([5, 9], [9], [5]):
        assert same(trace(ids), [part[:, ids] for part in run])


def test_a_list_of_seeds_seeds_each_environment_on_its_own_and_resets_without_one_go_on_to_new_episodes():
    envs = ff.make_vec(2, red_agent="meander", env_ids=[0, 0])
    envs.reset(seed=[4, 5])
    runs = [ff.make_vec(1, red_agent="meander") for _ in range(2)]
    for run, seed in zip(runs, (4, 5), strict=True):
        run.reset(seed=seed)
    episode = []
    for _ in range(50):
        episode.append(envs.step(np.zeros(2, int))[0])
        assert np.array_equal(episode[-1], [run.step(np.zeros(1, int))[0][0] for run in runs])
    envs.reset()
    assert not np.array_equal(episode, [envs.step(np.zeros(2, int))[0] for _ in range(50)])


def test_cold_and_warm_cache_give_the_same_bytes_and_the_cold_one_says_that_it_compiles(tmp_path):
    cold, warm = cold_start.cold(tmp_path), cold_start.play()
    assert cold[0] == warm[0] and len(warm[0].strip()) == hashlib.sha256().digest_size * 2
    assert cold[1].count("compiling") == 1
    assert warm[1] == ""


def test_the_simulator_is_compiled_once_whatever_the_number_of_environments():
    """One environment, several, and a red agent for each: the same types of arrays, so the same machine code."""
    compiled = []  # how many machine codes after each: other tests may have loaded larger networks before
    for options in ({"num_envs": 1}, {"num_envs": 3}, {"num_envs": 2, "red_agent": ["b_line", "meander"]}):
        envs = ff.make_vec(**options)
        envs.reset(seed=0)
        envs.step(np.zeros(envs.num_envs, int))
        compiled.append((len(rules.reset_batch.signatures), len(rules.step_batch.signatures)))
    assert compiled[0] == compiled[1] == compiled[2]


def test_the_late_attacker_sleeps_for_some_twenty_turns_and_is_then_b_line():
    """It wakes with probability 1/20 in every turn; of 100 turns it sleeps through 18.4, if it wakes at all."""
    envs, verbs = ff.make_vec(2_000, red_agent="late"), []
    envs.reset(seed=0)
    for _ in range(99):
        envs.step(np.zeros(2_000, np.int64))
        verbs.append(envs.world.get_state()["red_verb"])
    asleep = np.array(verbs) == RedVerb.SLEEP
    slept, woke = asleep.argmin(axis=0), ~asleep.all(axis=0)
    assert abs(slept[woke].mean() - 18.4) < 1 and 0 < (~woke).sum() < 30
    assert (np.array(verbs)[slept, np.arange(2_000)][woke] == RedVerb.DISCOVER).all()
