"""Rollouts: the remembered policy equals the plain one, and every row is what the policy saw when it acted."""

import numpy as np
import pytest
from cage2 import HOST_ID, NUM_ACTIONS, NUM_HOSTS, OBSERVATION_BITS, SLEEP, action_id
from late import Late

from fixfirst.base.errors import ConfigError
from fixfirst.game.chance import chance_keys
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.orders.order import UnitScheme, Workflow, all_workflows
from fixfirst.play.rollout import collect
from fixfirst.policy.compiled_loop import GROUP
from fixfirst.policy.memories import Memories
from fixfirst.policy.network import Network
from fixfirst.policy.scripts import PriorityRestore, make_baseline
from fixfirst.policy.spec import PolicySpec, bits_of, words_of
from fixfirst.policy.table import PolicyTable, find_rows
from fixfirst.policy.turns import ROOT, Moment, held_mask

stats = Late("scipy.stats")

ORDERS = (Workflow.parse("critical_first"), Workflow.parse("user_priority"), Workflow.parse("reverse"))


def world(num_envs, red_agent="b_line", steps=30, **options):
    return World(Game(red_agent=red_agent, max_steps=steps, **options), num_envs, autoreset="disabled")


def opinionated(workflows=()):
    """A policy that prefers some actions to others, depending on every bit it reads; such fractions add up exactly."""
    bits = workflows[0].scheme.encoding_bits if workflows else 0
    weights = np.random.default_rng(0).integers(-(2**19), 2**19, (OBSERVATION_BITS + bits, NUM_ACTIONS)) / 2**20

    def act(inputs):
        odds = np.exp(inputs.astype(np.float64) @ weights)
        return (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)

    return act


def play(player, *, num_envs=20, passes=1, first_episode=0, workflows=(), seeds=(1, 2), **options):
    streams = {"world_seed": seeds[0], "policy_seed": seeds[1], "first_episode": first_episode}
    return collect(world(num_envs, **options), player, passes=passes, workflows=workflows, **streams)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a[:6], b[:6], strict=True))


def rows_of(rollout):
    """[T * B, K] what the policy read before each action."""
    orders = PolicySpec.for_orders(rollout.workflows).orders(rollout.workflows)[rollout.assigned]
    rows = np.repeat(orders[None], len(rollout.actions), axis=0)
    rows[:, :, 0] |= rollout.packed_obs[:-1]
    return rows.reshape(-1, rows.shape[2])


class InSteps:
    """A player that hides what it is, so that it is played step by step. forgetful: it is asked anew in every turn."""

    def __init__(self, table, forgetful=False):
        self.table, self.spec, self.forgetful = table, table.spec, forgetful

    def act(self, moment):
        if self.forgetful:
            self.table.forget()
        return self.table.choose(moment.memories, moment.words, moment.assigned, moment.keys, moment.steps)[2]


@pytest.mark.parametrize("red_agent", ["b_line", "meander"])
@pytest.mark.parametrize(
    "workflows", [(), ORDERS[:1], ORDERS, (ORDERS[0], *ORDERS)], ids=["no order", "one", "three", "one of three twice"]
)
def test_the_remembered_policy_acts_like_one_that_is_asked_anew(red_agent, workflows):
    table, forgetful = (PolicyTable(opinionated(workflows), workflows) for _ in range(2))
    options = {"workflows": workflows, "red_agent": red_agent, "passes": 2}
    remembered = play(table, **options)
    assert same(remembered, play(InSteps(forgetful, forgetful=True), **options))
    assert len(np.unique(remembered.actions)) > 20


def network(workflows=(), seed=0):
    """A network that is sure of some things."""
    made = Network.zeros(PolicySpec.for_orders(workflows).inputs, NUM_ACTIONS)
    made.vector[:] = np.random.default_rng(seed).uniform(-0.4, 0.4, len(made.vector))
    return made


@pytest.mark.parametrize("greedy", [False, True], ids=["drawn", "greedy"])
@pytest.mark.parametrize("red_agent", ["b_line", "meander", "b_line:0.5,meander:0.5"])
@pytest.mark.parametrize("workflows", [(), ORDERS[:1], ORDERS], ids=["no order", "one", "three"])
def test_the_compiled_loop_plays_what_is_played_step_by_step(red_agent, workflows, greedy):
    """Observations, truths, actions and rewards, of 37 environments: two groups and a rest, and a table that must grow."""
    net = network(workflows)
    loop, steps = PolicyTable(net, workflows, greedy=greedy), InSteps(PolicyTable(net, workflows, greedy=greedy))
    options = {"workflows": workflows, "red_agent": red_agent, "num_envs": 2 * GROUP + 5, "green": True}
    compiled, twin = (play(player, **options, passes=2, variant="leaderboard") for player in (loop, steps))
    assert same(compiled, twin)
    assert len(np.unique(compiled.actions)) > 5
    assert loop.table.filled[0] > 256 or greedy  # it began with room for 256 rows


def test_a_policy_that_changed_is_asked_again():
    net = network()
    table = PolicyTable(net)
    before = play(table)
    net.vector[:] = network(seed=1).vector
    table.forget()
    assert same(play(table), play(PolicyTable(net))) and not same(play(table), before)


def test_the_remembered_policy_is_asked_once_per_observation_and_workflow():
    asked = []

    def act(inputs):
        asked.append(inputs)
        return np.full((len(inputs), NUM_ACTIONS), 1 / NUM_ACTIONS, np.float32)

    rollout = play(PolicyTable(act, ORDERS), workflows=ORDERS, num_envs=50)
    rows = np.concatenate(asked)
    assert len(np.unique(rows, axis=0)) == len(rows)
    assert np.array_equal(words_of(rows), rollout.rows) and len(rows) == len(np.unique(rollout.row_ids))
    assert np.array_equal(rollout.rows[rollout.row_ids[:-1].ravel()], rows_of(rollout))


def test_a_rollout_is_reproducible_and_follows_its_seeds():
    """Also with a table that has the rows already."""
    table, sleeping = PolicyTable(opinionated()), make_baseline("sleep")
    first = play(table)
    assert same(first, play(table)) and same(first, play(PolicyTable(opinionated())))
    assert not np.array_equal(first.actions, play(table, seeds=(1, 3)).actions)
    assert not np.array_equal(play(sleeping, seeds=(1, 2)).packed_obs, play(sleeping, seeds=(3, 2)).packed_obs)


@pytest.mark.parametrize("workflows", [(), ORDERS], ids=["no order", "three"])
def test_an_environment_does_not_notice_how_many_others_there_are(workflows):
    """Environments 0..9 of a batch of 20, two episodes each, are those of a batch of 10."""
    act = opinionated(workflows)
    small, large = (play(PolicyTable(act, workflows), num_envs=n, passes=2, workflows=workflows) for n in (10, 20))
    columns = [*range(10), *range(20, 30)]  # the second pass follows the first
    assert same(small, [part[..., columns] for part in large[:6]])


def test_passes_are_consecutive_episodes():
    act = opinionated()
    both = play(PolicyTable(act), num_envs=5, passes=2, first_episode=3)
    single = [play(PolicyTable(act), num_envs=5, first_episode=episode) for episode in (3, 4)]
    assert same(both, [np.concatenate(parts, axis=-1) for parts in zip(*(s[:6] for s in single), strict=True)])


def test_a_row_holds_what_the_policy_saw_and_what_was_true_before_its_action():
    """The stored actions, played again by hand, meet the stored observations, truths and rewards in their places."""
    rollout = play(PolicyTable(opinionated()), num_envs=6, red_agent="meander")
    again = world(6, "meander")
    again.reset(1, episode=0)
    for t, actions in enumerate(rollout.actions):
        assert np.array_equal(again.packed_obs, rollout.packed_obs[t])
        assert np.array_equal(held_mask(again.access), rollout.held[t])
        assert np.array_equal(held_mask(again.access, ROOT), rollout.privileged[t])
        again.step(actions)
        assert np.array_equal(again.rewards10, rollout.rewards10[t])
    assert np.array_equal(again.packed_obs, rollout.packed_obs[-1])
    assert np.array_equal(held_mask(again.access), rollout.held[-1])
    assert np.array_equal(rollout.returns, rollout.rewards10.sum(axis=0) / 10)


class Witness:
    """Sleeps, and writes down what it is shown."""

    def __init__(self):
        self.moments = []

    def act(self, moment):
        self.moments.append(moment)
        return np.full(len(moment.words), SLEEP)


def test_the_player_is_shown_the_rows_that_are_stored():
    witness = Witness()
    rollout = play(witness, num_envs=4, steps=15)
    assert [moment.turn for moment in witness.moments] == list(range(15))
    assert np.array_equal([moment.words for moment in witness.moments], rollout.packed_obs[:-1])
    assert np.array_equal(held_mask(np.array([moment.access for moment in witness.moments])), rollout.held[:-1])
    assert len(np.unique(rollout.held)) > 3  # red got somewhere, so a shifted row would show


def test_each_episode_draws_its_workflow_uniformly():
    """120 orders, 24,000 episodes, about 200 each; a fair draw fails this once in 1,000 seeds, and the seed is fixed."""
    orders = tuple(all_workflows())
    drawn = play(Witness(), num_envs=2000, passes=12, steps=1, workflows=orders).assigned
    assert stats.chisquare(np.bincount(drawn, minlength=120)).pvalue > 1e-3
    passes = drawn.reshape(12, 2000)
    assert (passes[0] == passes[1]).mean() < 0.05  # one in 120 by chance


def test_one_workflow_is_everybodys():
    rollout = play(Witness(), workflows=ORDERS[:1], steps=1)
    assert not rollout.assigned.any() and (rollout.ranks == ORDERS[0].ranks).all()


def test_greedy_takes_the_most_probable_action():
    act = opinionated(ORDERS)
    rollout = play(PolicyTable(act, ORDERS, greedy=True), workflows=ORDERS)
    inputs = bits_of(rows_of(rollout), PolicySpec.for_orders(ORDERS).inputs)
    assert np.array_equal(rollout.actions.ravel(), act(inputs).argmax(axis=1))


def ask(table, words, keys=None):
    """The actions of a table that remembers nothing."""
    n = len(words)
    keys = np.zeros(n, np.uint64) if keys is None else keys
    return table.choose(Memories(table.spec, n), words, np.zeros(n, np.int64), keys, np.zeros(n, np.int64))[2]


def test_actions_are_drawn_with_the_policys_probabilities():
    """Actions 3, 7 and 144 with 1/2, 1/3 and 1/6, never another."""
    odds = np.zeros(NUM_ACTIONS, np.float32)
    odds[[3, 7, 144]] = 1 / 2, 1 / 3, 1 / 6
    n = 30_000
    keys = np.empty(n, np.uint64)
    chance_keys(5, 0, keys)
    table = PolicyTable(lambda inputs: np.tile(odds, (len(inputs), 1)))
    actions = ask(table, np.zeros(n, np.uint64), keys)
    counts = np.bincount(actions, minlength=NUM_ACTIONS)
    assert counts[[3, 7, 144]].sum() == n
    assert stats.chisquare(counts[[3, 7, 144]], n * np.array([1 / 2, 1 / 3, 1 / 6])).pvalue > 1e-3


def test_the_table_grows_and_forgets_nothing():
    """Each observation's action is its lowest 7 bits: 20,000 distinct ones, in batches, then all of them again."""

    def act(inputs):
        number = (inputs[:, :7] @ (1 << np.arange(7))).astype(int)
        return np.eye(NUM_ACTIONS, dtype=np.float32)[number]

    words = np.random.default_rng(0).permutation(20_000).astype(np.uint64) << np.uint64(3) | np.uint64(5)
    table = PolicyTable(act)

    batches = np.split(words, [1, 3, 300, 301, 5_000])
    assert np.array_equal(np.concatenate([ask(table, batch) for batch in batches]), words & np.uint64(127))
    assert np.array_equal(ask(table, words), words & np.uint64(127))


def test_a_row_holds_the_observation_and_the_workflow():
    """Input bit i is observation bit i; the workflow's bits follow, in the first word and the next."""
    rows = PolicySpec.for_orders(ORDERS).orders(ORDERS)[[2, 0]]
    rows[:, 0] |= np.array([0b101, 1 << 51], np.uint64)
    inputs = bits_of(rows, 77)
    assert rows.shape == (2, 2) and inputs.shape == (2, 77)
    assert np.flatnonzero(inputs[0, :52]).tolist() == [0, 2] and np.flatnonzero(inputs[1, :52]).tolist() == [51]
    assert np.array_equal(inputs[0, 52:], ORDERS[2].encode()) and np.array_equal(inputs[1, 52:], ORDERS[0].encode())
    assert np.array_equal(words_of(inputs), rows)
    each_its_own = Workflow.from_number(0, UnitScheme.per_host())  # 169 bits beside the observation, in four words
    spec = PolicySpec.for_orders([each_its_own])
    assert spec.orders([each_its_own]).shape == (1, 4) and spec.inputs == 221


@pytest.mark.parametrize("words", [1, 2, 4])
def test_rows_of_several_words_are_told_apart(words):
    """5,000 random rows of few different words, so that many share some of them: each is found under its own number."""
    rng = np.random.default_rng(words)
    rows = rng.integers(0, 40, (5_000, words)).astype(np.uint64) << np.uint64(50)
    table, numbers = type(PolicyTable(opinionated()).table).empty(5_000, words, 0), np.empty(5_000, np.int64)
    find_rows(table, rows, numbers)
    assert np.array_equal(table.rows[numbers], rows)
    assert table.filled[0] == len(np.unique(rows, axis=0)) == len(np.unique(numbers))


def test_a_rollout_needs_an_end():
    with pytest.raises(ConfigError, match="give the world max_steps"):
        collect(World(Game(max_steps=None), 1), Witness(), world_seed=0, policy_seed=0, first_episode=0)


def choose(workflows, *held, assigned=(0,)):
    """What `priority-restore` does in environments in which red holds these hosts."""
    access = np.zeros((len(assigned), NUM_HOSTS), np.uint8)
    access[:, [HOST_ID[host] for host in held]] = 1
    words = np.zeros(len(assigned), np.uint64)
    return PriorityRestore(workflows).act(Moment(words, access, np.array(assigned), None, None, None, 0)).tolist()


@pytest.mark.parametrize(
    ("held", "restored"),
    [
        (["User0", "Enterprise1", "Op_Server0", "User2"], "Op_Server0"),
        (["User0", "Enterprise1", "User4", "User2"], "User2"),  # of a type, the lowest-numbered first
        (["User0", "Enterprise1"], "Enterprise1"),
    ],
)
def test_priority_restore_restores_the_first_host_of_the_highest_type_in_need(held, restored):
    order = Workflow.parse("op_server > user > enterprise > op_host > defender")
    assert choose([order], *held) == [action_id("Restore", restored)]
    assert choose([order], "User0") == [SLEEP]  # the foothold is red's for good


def test_priority_restore_follows_each_episodes_own_order_in_any_grouping():
    """critical_first has enterprise above user, user_priority the other way round."""
    restores = [action_id("Restore", host) for host in ("Enterprise0", "User1")]
    assert choose(ORDERS[:2], "User1", "Enterprise0", assigned=[0, 1]) == restores
    scheme = UnitScheme.from_dict({"b": ["Enterprise0"], "a": [h for h in HOST_ID if h != "Enterprise0"]})
    assert choose([Workflow.parse("a > b", scheme)], "Enterprise0", "User4") == [action_id("Restore", "User4")]


@pytest.mark.parametrize(
    ("bits", "restores", "removes"),
    [((0, 0), False, False), ((1, 0), True, False), ((0, 1), True, True), ((1, 1), True, True)],
    ids=["clean", "unknown", "user", "privileged"],
)
def test_reacting_defenders_act_on_what_they_believe(bits, restores, removes):
    """Unknown is not clean, so it is restored; Remove waits until red is believed to be there."""
    belief = np.array([(bits[0] << 2 | bits[1] << 3) << 4 * HOST_ID["User3"]], np.uint64)  # bits 2 and 3 of the host's four
    restore, remove = (ask(make_baseline(name), belief)[0] for name in ("react-restore", "react-remove"))
    assert restore == (action_id("Restore", "User3") if restores else SLEEP)
    assert remove == (action_id("Remove", "User3") if removes else SLEEP)


def test_an_unknown_baseline_is_refused():
    with pytest.raises(ConfigError, match="unknown baseline 'heroic'; use sleep, random, react-restore"):
        make_baseline("heroic")
