"""The Gymnasium interface: one environment, N at once, and the ways in which an episode ends."""

import gymnasium as gym
import numpy as np
import pytest
from cage2 import CAGE2, HOST_ID, action_id
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import fixfirst as ff
from fixfirst.reporter.picture import map_of

MEMORY = {"memory": "full", "action_set": "macros"}


def actions_for(steps, num_envs, seed=0):
    return np.random.default_rng(seed).integers(0, 145, (steps, num_envs))


def choices_for(steps, num_envs, seed=0):
    """Half of them decoy macros, so that some are soon masked."""
    rng = np.random.default_rng(seed)
    shape = (steps, num_envs)
    return np.where(rng.random(shape) < 0.5, rng.integers(28, 40, shape), rng.integers(0, 28, shape))


REMEMBERED = [(memory, actions) for memory in ("none", "scans", "full") for actions in ("all", "macros")]


@pytest.mark.filterwarnings("ignore:.*Overwriting existing.*", "ignore:.*different from the unwrapped version")
@pytest.mark.parametrize("settings", [{}, {"render_mode": "rgb_array"}, {"render_mode": "ansi"}, *REMEMBERED])
def test_gymnasiums_checker_accepts_the_environment_its_frames_and_one_that_remembers(settings):
    remembering = isinstance(settings, tuple)
    env = ff.Remember(ff.Cage2(), *settings) if remembering else gym.make("fixfirst/Cage2-v0", **settings).unwrapped
    check_env(env, skip_render_check=remembering or "render_mode" not in settings)


@pytest.mark.parametrize("role", [{}, MEMORY], ids=["plain", "remembering"])
def test_a_vector_environment_equals_as_many_single_ones(role):
    n, settings = 5, {"red_agent": "b_line:0.5,meander:0.5", "green": True, "max_steps": 25}
    envs = ff.make_vec(n, autoreset_mode="same_step", **settings, **role)
    singles = [ff.Cage2(env_id=i, **settings) for i in range(n)]
    singles = [ff.Remember(env, **role) for env in singles] if role else singles
    batch, _ = envs.reset(seed=3)
    assert np.array_equal(batch, [env.reset(seed=3)[0] for env in singles])

    def same(batch, i, own):
        return all(np.array_equal(batch[fact][i], own[fact]) for fact in ("access", "action_mask") if fact in own)

    for choices in choices_for(60, n) if role else actions_for(60, n):
        obs, rewards, terminated, truncated, info = envs.step(choices)
        for i, env in enumerate(singles):
            last, reward, _, ended, own = env.step(choices[i])
            assert rewards[i] == reward and truncated[i] == ended and not terminated[i]
            if ended:
                assert np.array_equal(info["final_obs"][i], last) and same(info["final_info"], i, own)
                assert info["episode_return"][i] == own["episode_return"] and info["episode_length"][i] == 25
                last, own = env.reset()
            assert np.array_equal(obs[i], last) and same(info, i, own)


def test_access_is_the_true_state_and_arrays_without_copying_say_the_same_as_the_interface():
    """Only the foothold User0 is held at first; a shell of B_line shows up in the info of the step it came in."""
    envs = ff.make_vec(200, red_agent="b_line")
    _, info = envs.reset(seed=0)
    assert np.array_equal(info["access"], np.tile([0] * 8 + [2] + [0] * 4, (200, 1)))
    words, access = envs.world.packed_obs, envs.world.access
    for step, actions in enumerate([np.zeros(200, int)] * 3 + [*actions_for(30, 200)]):
        obs, reward, _, _, info = envs.step(actions)
        if step == 2:
            held = info["access"][:, 9:]
            assert set(np.unique(held)) == {0, 1, 2} and (held > 0).any(axis=1).mean() > 0.8
        bits = words[:, None] >> np.arange(52, dtype=np.uint64) & np.uint64(1)
        assert np.array_equal(bits, obs) and np.array_equal(access, info["access"])
        assert np.array_equal(envs.world.rewards10 / 10, reward)
    assert envs.world.packed_obs is words and envs.world.access is access


def test_next_step_autoreset_spends_one_step_on_the_reset():
    envs = ff.make_vec(2, max_steps=3)
    envs.reset(seed=0)
    restore = np.full(2, action_id("Restore", "User0"))
    truncations, rewards, lengths = [], [], []
    for _ in range(8):
        obs, reward, _, truncated, info = envs.step(restore)
        truncations.append(bool(truncated[0]))
        rewards.append(reward[0])
        lengths += info["episode_length"].tolist() if "episode_length" in info else []
    assert truncations == [False, False, True, False, False, False, True, False]
    assert rewards[3] == 0.0 and rewards[7] == 0.0  # the action is ignored, a Restore would cost 1
    assert lengths == [3, 3, 3, 3] and not obs.any()


def test_disabled_autoreset_waits_for_a_masked_reset_which_spares_what_the_others_remember():
    envs = ff.make_vec(3, max_steps=2, autoreset_mode=AutoresetMode.DISABLED, **MEMORY)
    envs.reset(seed=0)
    envs.step(np.full(3, 30))
    obs, _ = envs.reset(options={"reset_mask": np.array([True, False, False])})
    assert obs.any(axis=1).tolist() == [False, True, True]
    _, _, _, truncated, _ = envs.step(np.zeros(3, int))
    assert truncated.tolist() == [False, True, True]
    with pytest.raises(ff.ResetNeeded, match=r"environments \[1, 2\] have ended"):
        envs.step(np.zeros(3, int))
    envs.reset(options={"reset_mask": np.array([False, True, True])})
    assert envs.step(np.zeros(3, int))[3].tolist() == [True, False, False]


def test_red_agents_may_differ_per_environment_and_be_mixed_per_episode():
    envs = ff.make_vec(4, red_agent=["b_line", "meander", "sleep", "b_line:1,meander:3"], max_steps=1)
    drawn = []
    envs.reset(seed=0)
    for _ in range(400):
        drawn.append(envs.get_state()["red_agent"])
        envs.reset()
    first, second, third, mixed = np.array(drawn).T
    assert set(first) == {0} and set(second) == {1} and set(third) == {2}
    assert set(mixed) == {0, 1} and abs((mixed == 1).mean() - 0.75) < 4 * np.sqrt(0.75 * 0.25 / 400)


@pytest.mark.parametrize(("role", "inputs", "choices"), [({}, 52, 145), (MEMORY, 175, 40)])
def test_types_spaces_and_masks_are_those_promised(role, inputs, choices):
    envs = ff.make_vec(3, **role)
    assert envs.single_action_space == gym.spaces.Discrete(choices)
    obs, info = envs.reset(seed=0)
    assert obs.dtype == np.int8 and obs.shape == (3, inputs) and not obs.any() and obs in envs.observation_space
    chosen = [envs.single_action_space.sample(mask) for mask in info["action_mask"]]
    obs, reward, terminated, truncated, info = envs.step(chosen)
    assert obs in envs.observation_space
    assert (reward.dtype, terminated.dtype, truncated.dtype) == (np.float64, bool, bool)
    assert (info["access"].dtype, info["access"].shape) == (np.uint8, (3, 13))
    assert (info["action_mask"].dtype, info["action_mask"].shape) == (np.int8, (3, choices)) and info["_action_mask"].all()


@pytest.mark.parametrize("memory", ["none", "scans", "full", "quiet+seen"])
def test_the_first_52_bits_are_the_worlds_whatever_is_remembered(memory):
    plain, envs = ff.make_vec(5, red_agent="meander"), ff.make_vec(5, red_agent="meander", memory=memory)
    plain.reset(seed=0), envs.reset(seed=0)
    for actions in actions_for(120, 5):
        (seen, *told), (obs, *same) = plain.step(actions), envs.step(actions)
        assert np.array_equal(obs[:, :52], seen) and np.array_equal(same[0], told[0])
        assert np.array_equal(obs[:, 52:], envs.memories.bits())


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_a_new_episode_begins_with_nothing_in_mind(mode):
    """After the reset the first turn is remembered: one decoy stands, and one view was quiet."""
    envs = ff.make_vec(2, red_agent="sleep", max_steps=3, autoreset_mode=mode, **MEMORY)
    envs.reset(seed=0)
    user3 = envs.memories.spec.action_set.names.index("Decoy User3")
    for _ in range(3):
        obs, *_, info = envs.step([user3, 0])
    if mode == "next_step":
        assert obs[:, 52:].any() and info["action_mask"][0, user3] == 0  # the last view of the old episode
        obs, *_, info = envs.step([user3, 0])  # begins anew; the choices are ignored
    elif mode == "disabled":
        obs, info = envs.reset(options={"reset_mask": np.array([True, True])})
    assert not obs.any() and info["action_mask"].all()
    obs, *_, info = envs.step([user3, 0])
    names = np.array(envs.memories.spec.memory.names)
    assert [names[bits == 1].tolist() for bits in obs[:, 52:]] == [["quiet 1", "decoy User3 SSHD"], ["quiet 1"]]
    assert info["action_mask"][:, user3].tolist() == [0, 1]


def test_an_environment_that_remembers_can_be_made_by_name_and_asked_for_its_masks():
    env = ff.Remember(gym.make("fixfirst/Cage2-v0", red_agent="sleep"))
    env.reset(seed=0)
    *_, info = env.step(env.memories.spec.action_set.names.index("Decoy User3"))
    assert env.action_masks().tolist() == [True] * 39 + [False] == info["action_mask"].astype(bool).tolist()
    assert env.spec.additional_wrappers[-1].kwargs == {"memory": "full", "action_set": "macros"}


@pytest.mark.parametrize("action", [40, -1, 3.5, [0, 1], "x", None])
def test_bad_choices_of_a_single_environment(action):
    env = ff.Remember(ff.Cage2())
    env.reset(seed=0)
    with pytest.raises(ff.ActionError):
        env.step(action)


def test_only_environments_of_the_challenge_can_remember():
    with pytest.raises(ff.WorldError, match=r"needs an environment with 52 observations and 145 actions, got Box"):
        ff.Remember(gym.make("CartPole-v1"))


def test_memory_works_with_worker_processes_too():
    one, other = (ff.make_vec(4, red_agent="meander", max_steps=10, backend=b, **MEMORY) for b in ("simulator", "workers"))
    first, second = one.reset(seed=5), other.reset(seed=5)
    assert np.array_equal(first[0], second[0])
    for choices in choices_for(25, 4):
        first, second = one.step(choices), other.step(choices)
        assert np.array_equal(first[0], second[0]) and np.array_equal(first[4]["action_mask"], second[4]["action_mask"])
    other.close()


def test_a_picture_changes_when_red_takes_a_host():
    """Equal states give equal pictures; root on Enterprise0 changes the right half of its box, and nothing else."""
    env = ff.Cage2(render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    assert before.dtype == np.uint8 and before.shape[2] == 3 and np.array_equal(before, env.render())
    state = env.get_state()
    state["privileged"] |= 1 << HOST_ID["Enterprise0"]
    env.set_state(state)
    changed = (env.render() != before).any(axis=2)[: 2 * map_of(CAGE2).height]  # below stands the reward
    x, y = (int(2 * value) for value in map_of(CAGE2).middles["Enterprise0"])
    assert changed[y, x + 6] and not changed[y, x - 6]
    rows, columns = np.nonzero(changed)
    assert x <= columns.min() and columns.max() <= x + 54 and y - 30 <= rows.min() and rows.max() <= y + 30


def test_the_table_says_what_is_true_and_what_blue_believes():
    env = ff.Cage2(red_agent="sleep", render_mode="ansi")
    env.reset(seed=0)
    state = env.get_state()
    state["stubborn"] |= 1 << HOST_ID["User3"]
    env.set_state(state)
    env.step(action_id("DecoyTomcat", "Op_Server0"))
    lines = env.render().splitlines()
    assert lines[:3] == [
        "step 1   reward 0.0   return 0.0   OT service running",
        "red   Sleep",
        "blue  DecoyTomcat Op_Server0: worked",
    ]
    rows = {line.split()[0]: line.split()[1:] for line in lines[4:]}
    assert rows["User3"] == ["user", "clean", "none"] and rows["User0"] == ["root", "clean", "none"]
    assert rows["Op_Server0"] == ["none", "clean", "none", "443"]


def test_make_vec_of_gymnasium_gives_the_native_vector_environment_which_renders_one_frame_per_environment():
    envs = gym.make_vec("fixfirst/Cage2-v0", num_envs=3, red_agent="meander", render_mode="ansi")
    assert isinstance(envs.unwrapped, ff.VecCage2)
    assert envs.observation_space.shape == (3, 52) and envs.action_space.shape == (3,)
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    single = ff.Cage2(red_agent="meander", env_id=2, render_mode="ansi")
    envs.reset(seed=4), single.reset(seed=4)
    for _ in range(5):
        envs.step(np.zeros(3, int)), single.step(0)
    shown = envs.render()
    assert len(shown) == 3 and shown[2] == single.render()
    pictures = ff.make_vec(2, render_mode="rgb_array")
    pictures.reset(seed=0)
    assert [(frame.dtype, frame.ndim) for frame in pictures.render()] == [(np.uint8, 3)] * 2


def test_a_state_put_back_with_its_memory_repeats_its_future_also_from_the_disk(tmp_path):
    envs, other = (ff.make_vec(4, red_agent="meander", **MEMORY) for _ in range(2))
    envs.reset(seed=0), other.reset(seed=0)
    choices = choices_for(50, 4)
    for row in choices[:25]:
        seen, *_ = envs.step(row)
    states, memories = envs.get_state(), envs.memories.records.copy()
    np.save(tmp_path / "states.npy", states)
    future = [envs.step(row)[:2] for row in choices[25:]]
    assert not np.array_equal(states, envs.get_state())  # a copy, not a window
    for again in (envs, other):
        assert np.array_equal(again.set_state(np.load(tmp_path / "states.npy"), memories), seen)
        for row, (obs, reward) in zip(choices[25:], future, strict=True):
            obs_again, reward_again, *_ = again.step(row)
            assert np.array_equal(obs_again, obs) and np.array_equal(reward_again, reward)
    assert not envs.set_state(states)[:, 52:].any()  # without its memory
    with pytest.raises(ff.WorldError, match=r"memories must be 1 or 4 records .* got shape \(3,\) of the right dtype"):
        envs.set_state(states, memories[:3])


@pytest.mark.parametrize(("env_ids", "futures"), [(None, 2), (np.zeros(1000, int), 1)])
def test_one_state_in_a_thousand_environments_has_many_futures_one_environment_number_has_one(env_ids, futures):
    """B_line about to exploit User1 or another user host: some shells are detected, some are not."""
    one, many = ff.make_vec(1), ff.make_vec(1000, env_ids=env_ids)
    one.reset(seed=0), many.reset(seed=9)
    one.step(np.zeros(1, int)), one.step(np.zeros(1, int))
    many.set_state(one.get_state())
    assert len(np.unique(many.step(np.zeros(1000, int))[0], axis=0)) == futures
