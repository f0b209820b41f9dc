"""Stable-Baselines3 and sb3-contrib learn on our environments."""

from importlib.util import find_spec

import numpy as np
import pytest
from late import Late

import fixfirst as ff
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable

pytestmark = pytest.mark.skipif(not find_spec("stable_baselines3"), reason="needs pip install fixfirst[sb3]")
SMALL = {"red_agent": "b_line", "variant": "current", "steps": 20, "episodes": 30, "quiet": True}
sb3, theirs = Late("fixfirst.sb3"), Late("stable_baselines3")


def test_the_adapter_plays_the_episodes_of_make_vec_and_only_its_first_reset_takes_the_seed():
    ours, other = (
        ff.make_vec(3, red_agent="meander", max_steps=10, autoreset_mode="same_step"),
        sb3.make(3, red_agent="meander", max_steps=10),
    )
    assert other.seed(7) == [7, 8, 9]
    assert np.array_equal(other.reset(), ours.reset(seed=7)[0])
    for actions in np.random.default_rng(0).integers(0, 145, (25, 3)):
        obs, rewards, _, ended, info = ours.step(actions)
        seen, earned, done, infos = other.step(actions)
        assert np.array_equal(seen, obs) and np.array_equal(done, ended)
        assert earned.dtype == np.float32 and np.allclose(earned, rewards)
        for i in range(3):
            assert bool(infos[i]) == ended[i]
            if ended[i]:
                assert np.array_equal(infos[i]["terminal_observation"], info["final_obs"][i])
                assert infos[i]["episode"] == {"r": info["episode_return"][i], "l": 10} and infos[i]["TimeLimit.truncated"]
    other.reset()
    assert other.envs.world.get_state()["episode"].tolist() == [3, 3, 3]


def test_stable_baselines_checker_and_wrappers_accept_the_environments():
    Late("stable_baselines3.common.env_checker").check_env(ff.Cage2(red_agent="meander"))
    wrappers = theirs.common.vec_env
    envs = wrappers.VecNormalize(wrappers.VecMonitor(sb3.make(4, max_steps=5, render_mode="rgb_array")), norm_obs=False)
    envs.reset()
    for _ in range(5):
        _, _, done, infos = envs.step(np.zeros(4, int))
    assert done.all() and [info["episode"]["l"] for info in infos] == [5] * 4
    assert envs.render().ndim == 3 and len(envs.get_images()) == 4  # a picture of all


def test_ppo_learns_and_logs_what_episodes_earn():
    model = theirs.PPO("MlpPolicy", sb3.make(8, max_steps=20), n_steps=40, batch_size=64, n_epochs=1, seed=0)
    model.learn(640)
    assert len(model.ep_info_buffer) == 32 and all(info["l"] == 20 and info["r"] <= 0 for info in model.ep_info_buffer)


def test_maskable_ppo_finds_the_masks_and_takes_no_masked_choice():
    contrib = pytest.importorskip("sb3_contrib", reason="needs pip install fixfirst[sb3]")
    envs = sb3.make(4, red_agent="meander", memory="full", action_set="macros", max_steps=30)
    model = contrib.MaskablePPO("MlpPolicy", envs, n_steps=60, batch_size=60, n_epochs=1, seed=0)
    model.learn(240)
    masks = model.rollout_buffer.action_masks.reshape(60, 4, 40)
    chosen = model.rollout_buffer.actions.reshape(60, 4, 1).astype(int)
    assert (masks == 0).any() and np.take_along_axis(masks, chosen, axis=2).all()


def test_what_a_batch_cannot_do_is_refused():
    envs = sb3.make(2)
    with pytest.raises(AttributeError, match=r"argument of sb3\.make"):
        envs.set_attr("max_steps", 5)
    with pytest.raises(AttributeError, match="action_masks and render, not fly"):
        envs.env_method("fly")
    with pytest.raises(ff.ConfigError, match="leave out autoreset_mode"):
        sb3.make(2, autoreset_mode="disabled")


def test_models_of_stable_baselines_play_by_their_own_networks():
    contrib = pytest.importorskip("sb3_contrib")
    torch = pytest.importorskip("torch")
    plain = theirs.PPO("MlpPolicy", sb3.make(2), seed=0, device="cpu")
    memory = {"memory": "full", "action_set": "macros"}
    masked = contrib.MaskablePPO("MlpPolicy", sb3.make(2, **memory), seed=0, device="cpu")

    def table(model, **spec):
        def probabilities(inputs):
            with torch.no_grad():
                return model.policy.get_distribution(torch.as_tensor(inputs)).distribution.probs.double().numpy()

        return PolicyTable(probabilities, spec=PolicySpec(**spec), greedy=True)

    assert ff.evaluate(plain, greedy=True, **SMALL) == ff.evaluate(table(plain), **SMALL)
    parts = {"memory": ff.MemoryScheme.parse("full"), "action_set": ff.ActionSet.parse("macros")}
    agent = ff.Agent(masked, **memory)
    assert ff.evaluate(agent, greedy=True, **SMALL) == ff.evaluate(table(masked, **parts), **SMALL)
    with pytest.raises(ff.ConfigError, match=r'reads \(175,\) and has 40 choices.*memory="full", action_set="macros"'):
        ff.evaluate(masked, **SMALL)


def test_a_recurrent_model_of_sb3_contrib_keeps_its_state_for_an_episode():
    contrib = pytest.importorskip("sb3_contrib")
    model = contrib.RecurrentPPO("MlpLstmPolicy", sb3.make(2), n_steps=8, batch_size=8, seed=0, device="cpu")
    envs = ff.make_vec(3, max_steps=4, autoreset_mode="same_step")
    obs, _ = envs.reset(seed=0)
    starts, state, right = np.ones(3, bool), None, []
    for _ in range(10):
        actions, state = model.predict(obs, state=state, episode_start=starts, deterministic=True)
        right.append(actions)
        obs, _, _, starts, _ = envs.step(actions)
    envs.reset(seed=0)
    assert np.array_equal(ff.rollout(envs, model, 10, greedy=True).actions, right)
