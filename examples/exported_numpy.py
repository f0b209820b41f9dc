"""An exported policy played with NumPy alone, as a reference for other languages: the turn of `docs/export.md` in formulas.

Bits are 0.0 and 1.0; p is the file. Compared with `policy.act`: the champion, and a policy of all orders with a shield.
"""

import numpy as np

import fixfirst as ff


def turn(p, observation, state, draw, order=None):
    """[N, 52], [N, S], [N], [N, U] -> actions [N], next state [N, S], probabilities [N, choices]"""
    had = {name[6:]: state[:, slice(*p[name])] for name in p if name.startswith("group_")}
    active = np.maximum(observation[:, 0::4], observation[:, 1::4])
    exploited = observation[:, 0::4] * observation[:, 1::4]
    cleared = had["analysed"] * (1 - observation[:, 2::4] * observation[:, 3::4])
    suspect = np.maximum.reduce([had["suspect"] * (1 - cleared), exploited, active * had["act1"]])

    used = had["decoy"] @ p["slots"]
    read = [observation, state[:, p["reads"]], *([suspect] if "repairs" in p else [])]
    hidden = np.concatenate(read, axis=1) @ p["weight1"] + p["bias1"]
    if "higher" in p:  # it knows orders
        ranks = (p.get("order", order) @ p["differences"] > 0) @ p["higher"] + p["at_the_end"]
        hidden = hidden + (ranks @ p["each_position"] == p["positions"]) @ p["weight_order"]
    if "repairs" in p:  # it keeps them by a shield
        suspected = np.maximum.reduce([suspect, observation[:, 2::4], observation[:, 3::4]])
        other = (suspected @ p["host_units"] > 0) @ p["each_other"]
        used = used + ((ranks @ p["differences"] > 0) * other @ p["pairs"] > 0) @ p["repairs"]
    hidden = np.tanh(np.tanh(hidden) @ p["weight2"] + p["bias2"])
    logits = np.where(used < p["full"], hidden @ p["weight3"] + p["bias3"], -1e9)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    drawn = (odds.cumsum(axis=1) <= (draw * odds.sum(axis=1))[:, None]).sum(axis=1)
    choice = np.where(draw < 0, odds.argmax(axis=1), drawn)
    opening = p["opening"][np.minimum(state[:, -1].astype(int), len(p["opening"]) - 1), 0]
    choice = np.where(opening < 0, choice, opening)
    standing = (had["decoy"] @ p["codes"])[np.arange(len(choice)), choice].astype(int)
    action = p["meanings"][choice, standing]

    scanned, something = active - exploited, active.any(axis=1, keepdims=True)
    longer = np.hstack([np.ones_like(had["quiet"][:, :1]), had["quiet"][:, :-1]])
    new = [
        np.maximum(had["act1"], active),
        np.where(something, active * (active.cumsum(axis=1) == 1), had["last"]),
        np.maximum(had["expl"], exploited),
        np.maximum(had["rest"], p["restores"][action]),
        np.where(something, 0, longer),
        np.maximum(had["decoy"] * (1 - p["clears"][action]), p["places"][action]),
        np.maximum(had["seen"], had["decoy"][:, : had["seen"].shape[1]] * (scanned @ p["host_slots"])),
        np.maximum(had["scans"], scanned @ p["host_scans"]),
        suspect * (1 - p["restores"][action]),
        p["analyses"][action],
        state[:, -1:] + 1,
    ]
    return action, np.concatenate(new, axis=1), odds


ff.search(total_episodes=600, out="runs/exported", report=False, quiet=True)  # one of all orders, hardly trained
orders = [ff.Workflow.from_number(number) for number in range(100)]
ranks, greedy = np.array([order.ranks for order in orders]), np.full(100, -1.0)
for name, told in (("champion", None), ("runs/exported", orders)):
    policy, p = ff.load_policy(name), dict(np.load(ff.export(name, "numpy", "policy.npz")))
    envs = ff.make_vec(100, red_agent="meander")
    obs, info = envs.reset(seed=0)
    state, same = np.zeros((100, p["state_size"])), 0
    for _ in range(100):
        actions, state, odds = turn(p, obs.astype(float), state, greedy, None if told is None else ranks)
        same += (actions == policy.act(obs, greedy=True, workflow=told)).sum()
        obs, reward, terminated, truncated, info = envs.step(actions)
    print(f"{name}: the same action in {same:,} of 10,000 turns")
    assert same == 10_000
