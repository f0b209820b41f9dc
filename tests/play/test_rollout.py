"""Rollouts: compiled as step by step, rows are what the policy saw when it acted, each environment is its own."""

import numpy as np
import pytest
from cage2 import HOST_ID, NUM_ACTIONS, NUM_HOSTS, SLEEP, action_id
from late import Late

from fixfirst.base.errors import ConfigError
from fixfirst.game.chance import chance_keys
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.orders.order import FIVE_TYPES, UnitScheme, Workflow, all_workflows
from fixfirst.orders.repairs import Counts, judge
from fixfirst.play.rollout import collect
from fixfirst.policy.action_sets import ActionSet
from fixfirst.policy.compiled_loop import GROUP
from fixfirst.policy.memories import Memories
from fixfirst.policy.memory import MemoryScheme
from fixfirst.policy.network import Network
from fixfirst.policy.scripts import PriorityRestore, make_baseline
from fixfirst.policy.spec import PolicySpec, bits_of, words_of
from fixfirst.policy.table import FREE, PolicyTable, find_rows, probabilities
from fixfirst.policy.turns import ROOT, Moment, held_mask

stats = Late("scipy.stats")

ORDERS = tuple(Workflow.parse(name) for name in ("critical_first", "user_priority", "reverse"))
MACROS = ActionSet.parse("macros")
NO_ORDER, READS = PolicySpec(), PolicySpec(units=FIVE_TYPES)


def spec(memory="full", action_set="macros", units=None, opening=(), shield=False):
    return PolicySpec(MemoryScheme.parse(memory), ActionSet.parse(action_set), units, opening, shield)


ROLES = {  # what a policy reads and may choose; the orders of its environments
    "no order": (NO_ORDER, ()),
    "three orders": (READS, ORDERS),
    "full, macros": (spec(), ()),
    "counts, macros": (spec("counts"), ()),
    "scans, the winner's set": (spec("scans", "original"), ()),
    "full, macros, orders": (spec(units=FIVE_TYPES), ORDERS),
    "with an opening": (spec(opening=MACROS.numbers(["Decoy User2", "Restore User1"])), ()),
    "shield": (spec("none", "all", FIVE_TYPES, shield=True), ORDERS),
    "shield, full, macros": (spec(units=FIVE_TYPES, shield=True), ORDERS),
}


def network(of=NO_ORDER, seed=0):
    """One that is sure of some things."""
    made = Network.zeros(of.inputs, of.actions)
    made.vector[:] = np.random.default_rng(seed).uniform(-0.4, 0.4, len(made.vector))
    return made


def table(role, hidden=False, **options):
    """hidden: its network, so that it is played step by step."""
    of, orders = ROLES[role]
    made = PolicyTable(network(of), orders, spec=of, **options)
    made.network = None if hidden else made.network
    return made


def world(num_envs, red_agent="b_line", steps=30, **options):
    return World(Game(red_agent=red_agent, max_steps=steps, **options), num_envs, autoreset="disabled")


def play(player, *, num_envs=20, passes=1, first_episode=0, workflows=None, seeds=(1, 2), **options):
    orders = getattr(player, "workflows", ()) if workflows is None else workflows
    streams = {"world_seed": seeds[0], "policy_seed": seeds[1], "first_episode": first_episode}
    return collect(world(num_envs, **options), player, passes=passes, workflows=orders, **streams)


BOTH = {"red_agent": "b_line:0.5,meander:0.5", "steps": 40, "variant": "leaderboard", "green": True}


def same(a, b):
    """Observations, truths, actions, rewards and choices."""
    return all(np.array_equal(x, y) for x, y in zip(a[:6], b[:6], strict=True))


@pytest.mark.parametrize("greedy", [False, True], ids=["drawn", "greedy"])
@pytest.mark.parametrize("role", ROLES)
def test_the_compiled_loop_plays_what_is_played_step_by_step(role, greedy):
    """37 environments, two episodes each: two groups and a rest, and a table that must grow."""
    tables = [table(role, hidden, greedy=greedy) for hidden in (False, True)]
    fast, slow = (play(each, num_envs=2 * GROUP + 5, passes=2, **BOTH) for each in tables)
    assert same(fast, slow)
    assert np.array_equal(fast.rows[fast.row_ids], slow.rows[slow.row_ids])  # numbered in another order
    assert len(np.unique(fast.choices)) > 4
    assert tables[0].table.filled[0] > 256 or greedy  # it began with room for 256 rows


@pytest.mark.parametrize("role", ROLES)
def test_a_row_is_the_observation_the_memory_and_the_order(role):
    """The memory of each episode, followed by hand with the actions that were played."""
    of, orders = ROLES[role]
    rollout, memories = play(table(role), num_envs=9, passes=2, **BOTH), Memories(of, 18)
    for t in range(41):
        rows = rollout.rows[rollout.row_ids[t]]
        bits = bits_of(rows, of.inputs)
        assert np.array_equal(bits[:, :52], bits_of(rollout.packed_obs[t][:, None], 52))
        assert np.array_equal(bits[:, 52 : of.memory.inputs], memories.bits())
        if orders:
            assert np.array_equal(bits[:, of.inputs - 25 :], [orders[i].encode() for i in rollout.assigned])
        if of.masks and not of.shield:
            assert np.array_equal(of.allowed(rows), memories.masks())
        if t < 40:
            if of.masks and t >= len(of.opening):
                assert of.allowed(rows)[np.arange(18), rollout.choices[t]].all()  # a masked choice is never taken
            assert np.array_equal(memories.actions_of(rollout.choices[t].astype(int)), rollout.actions[t])
            memories.remember(rollout.packed_obs[t], rollout.actions[t].astype(int))


@pytest.mark.parametrize("role", ["shield", "shield, full, macros"])
def test_a_shielded_policy_keeps_to_its_order(role):
    """Untrained, so that it tries everything: it repairs often, and hardly ever out of order."""
    rollout = play(table(role), num_envs=200)
    counts = Counts.of(judge(rollout.actions, rollout.held, rollout.ranks, FIVE_TYPES))
    assert counts.judged.sum() > 200 and (counts.judged - counts.compliant).sum() < 0.05 * counts.judged.sum()


def test_an_opening_begins_every_episode_and_where_it_says_nothing_the_policy_chooses():
    """It wakes, sleeps in the fourth and fifth turn, and wakes again: until then the episodes are those without a lapse."""
    opening = ROLES["with an opening"][0].opening
    rollout = play(table("with an opening"), **BOTH)
    assert (rollout.choices[:2] == np.array(opening)[:, None]).all()
    later = rollout.after(2)
    assert later.actions.shape[0] == 38 and np.array_equal(later.row_ids, rollout.row_ids[2:])
    (sleep,) = MACROS.numbers(["Sleep"])
    for hidden in (False, True):
        lapsing = table("full, macros", hidden)
        lapsing.begin_with([(FREE, FREE, FREE, sleep, sleep)])
        whole, lapse = play(table("full, macros", hidden), **BOTH), play(lapsing, **BOTH)
        assert np.array_equal(lapse.choices[:3], whole.choices[:3]) and (whole.choices[:3] != sleep).any()
        assert (lapse.choices[3:5] == sleep).all() and (whole.choices[3:5] != sleep).any()
        assert (lapse.choices[5:] != sleep).any()


def test_an_opening_that_is_not_legal_is_refused():
    with pytest.raises(ConfigError, match=r"an opening names choices of 0\.\.39, got 40"):
        spec(opening=(3, 40))
    too_many = ["Decoy User2", "Decoy User3", "Sleep", "Decoy User3"]  # User3's list has one decoy
    with pytest.raises(ConfigError, match="cannot be played: its choice 4, Decoy User3, is masked, as all its decoys"):
        spec(opening=MACROS.numbers(too_many))
    spec(opening=MACROS.numbers([*too_many[:2], "Restore User3", "Decoy User3"]))  # has it again
    winners = ActionSet.parse("original")  # without masks a macro may be named as often as one likes
    assert spec("scans", winners, opening=winners.numbers(["Decoy User4"] * 3)).opening == (35, 35, 35)


def test_a_policy_is_asked_once_per_distinct_row():
    asked, answer = [], probabilities(network(READS))

    def act(inputs):
        asked.append(inputs)
        return answer(inputs)

    rollout = play(PolicyTable(act, ORDERS), num_envs=50)
    assert same(rollout, play(table("three orders"), num_envs=50))
    rows = np.concatenate(asked)
    assert len(np.unique(rows, axis=0)) == len(rows) == len(np.unique(rollout.row_ids))
    assert np.array_equal(words_of(rows), rollout.rows)
    read = READS.orders(ORDERS)[rollout.assigned][None].repeat(31, axis=0)
    read[:, :, 0] |= rollout.packed_obs
    assert np.array_equal(rollout.rows[rollout.row_ids], read)


def test_a_rollout_follows_its_seeds_and_its_policy_which_is_asked_again_when_it_changed():
    """Also with a table that has the rows already."""
    player, sleeping = table("no order"), make_baseline("sleep")
    first = play(player)
    assert same(first, play(player)) and same(first, play(table("no order")))
    assert not np.array_equal(first.actions, play(player, seeds=(1, 3)).actions)
    assert not np.array_equal(play(sleeping, seeds=(1, 2)).packed_obs, play(sleeping, seeds=(3, 2)).packed_obs)
    player.network.vector[:] = network(seed=1).vector
    player.forget()
    assert same(play(player), play(PolicyTable(network(seed=1)))) and not same(play(player), first)


@pytest.mark.parametrize("hidden", [False, True])
def test_an_environment_does_not_notice_how_many_others_there_are_and_passes_are_consecutive_episodes(hidden):
    """Environments 0..9 of a batch of 20, two episodes each, are those of a batch of 10."""
    large, *small = (
        play(table("three orders", hidden), num_envs=n, passes=passes, first_episode=first)
        for n, passes, first in ((20, 2, 3), (10, 1, 3), (10, 1, 4))
    )
    columns = [*range(10), *range(20, 30)]  # the second pass follows the first
    assert same(
        [np.concatenate(parts, axis=1) for parts in zip(*(s[:6] for s in small), strict=True)],
        [x[:, columns] for x in large[:6]],
    )


class Witness:
    """Sleeps, and writes down what it is shown."""

    def __init__(self):
        self.moments = []

    def act(self, moment):
        self.moments.append(moment)
        return np.full(len(moment.words), SLEEP)


def test_a_row_holds_what_the_player_saw_and_what_was_true_before_its_action():
    witness = Witness()
    rollout = play(witness, num_envs=6, red_agent="meander")
    access = np.array([moment.access for moment in witness.moments])
    assert [moment.turn for moment in witness.moments] == list(range(30))
    assert np.array_equal([moment.words for moment in witness.moments], rollout.packed_obs[:-1])
    assert np.array_equal(held_mask(access), rollout.held[:-1])
    assert np.array_equal(held_mask(access, ROOT), rollout.privileged[:-1])
    assert len(np.unique(rollout.held)) > 3 < len(np.unique(rollout.privileged))  # so a shifted row would show
    assert np.array_equal(rollout.returns, rollout.rewards10.sum(axis=0) / 10)
    with pytest.raises(ConfigError, match="give the world max_steps"):
        collect(World(Game(max_steps=None), 1), witness, world_seed=0, policy_seed=0, first_episode=0)


def test_each_episode_draws_its_workflow_uniformly_and_one_is_everybodys():
    """120 orders, 24,000 episodes, about 200 each; a fair draw fails this once in 1,000 seeds, and the seed is fixed."""
    drawn = play(Witness(), num_envs=2000, passes=12, steps=1, workflows=tuple(all_workflows())).assigned
    assert stats.chisquare(np.bincount(drawn, minlength=120)).pvalue > 1e-3
    passes = drawn.reshape(12, 2000)
    assert (passes[0] == passes[1]).mean() < 0.05  # one in 120 by chance
    rollout = play(Witness(), workflows=ORDERS[:1], steps=1)
    assert not rollout.assigned.any() and (rollout.ranks == ORDERS[0].ranks).all()


def ask(player, words, keys=None):
    """The actions of a table that remembers nothing."""
    nothing = np.zeros(len(words), np.int64)
    keys = nothing.astype(np.uint64) if keys is None else keys
    return player.choose(Memories(player.spec, len(words)), words, nothing, keys, nothing)[2]


def test_actions_are_drawn_with_the_policys_probabilities():
    """Actions 3, 7 and 144 with 1/2, 1/3 and 1/6, never another."""
    odds = np.zeros(NUM_ACTIONS, np.float32)
    odds[[3, 7, 144]] = 1 / 2, 1 / 3, 1 / 6
    keys = np.empty(30_000, np.uint64)
    chance_keys(5, 0, keys)
    actions = ask(PolicyTable(lambda inputs: np.tile(odds, (len(inputs), 1))), np.zeros(30_000, np.uint64), keys)
    counts = np.bincount(actions, minlength=NUM_ACTIONS)[[3, 7, 144]]
    assert counts.sum() == 30_000 and stats.chisquare(counts, [15_000, 10_000, 5_000]).pvalue > 1e-3


def test_the_table_grows_and_forgets_nothing():
    """Each observation's action is its lowest 7 bits: 20,000 distinct ones, in batches, then all of them again."""
    player = PolicyTable(lambda inputs: np.eye(NUM_ACTIONS)[(inputs[:, :7] @ (1 << np.arange(7))).astype(int)])
    words = np.random.default_rng(0).permutation(20_000).astype(np.uint64) << np.uint64(3) | np.uint64(5)
    batches = np.split(words, [1, 3, 300, 301, 5_000])
    assert np.array_equal(np.concatenate([ask(player, batch) for batch in batches]), words & np.uint64(127))
    assert np.array_equal(ask(player, words), words & np.uint64(127))


@pytest.mark.parametrize("words", [1, 4])
def test_rows_of_several_words_have_numbers_of_their_own(words):
    """5,000 random rows of few different words, so that many share some of them."""
    rows = np.random.default_rng(words).integers(0, 40, (5_000, words)).astype(np.uint64) << np.uint64(50)
    met, numbers = type(table("no order").table).empty(5_000, words, 0), np.empty(5_000, np.int64)
    find_rows(met, rows, numbers)
    assert np.array_equal(met.rows[numbers], rows)
    assert met.filled[0] == len(np.unique(rows, axis=0)) == len(np.unique(numbers))


def test_bits_of_a_row_fill_words_one_after_the_other():
    """Input bit i is bit i % 64 of word i // 64; 169 bits of an order beside the observation are in four words."""
    rows = READS.orders(ORDERS)[[2, 0]]
    rows[:, 0] |= np.array([0b101, 1 << 51], np.uint64)
    inputs = bits_of(rows, 77)
    assert np.flatnonzero(inputs[0, :52]).tolist() == [0, 2] and np.flatnonzero(inputs[1, :52]).tolist() == [51]
    assert np.array_equal(inputs[0, 52:], ORDERS[2].encode()) and np.array_equal(words_of(inputs), rows)
    each_its_own = Workflow.from_number(0, UnitScheme.per_host())
    assert PolicySpec.for_orders([each_its_own]).orders([each_its_own]).shape == (1, 4)


def choose(workflows, *held, assigned=(0,)):
    """What `priority-restore` does in environments in which red holds these hosts."""
    access = np.zeros((len(assigned), NUM_HOSTS), np.uint8)
    access[:, [HOST_ID[host] for host in held]] = 1
    moment = Moment(np.zeros(len(assigned), np.uint64), access, np.array(assigned), None, None, None, 0)
    return PriorityRestore(workflows).act(moment).tolist()


def test_priority_restore_restores_the_first_host_of_the_highest_type_in_need():
    """Of each episode's own order, in any grouping: critical_first has enterprise above user, user_priority does not."""
    order = [Workflow.parse("op_server > user > enterprise > op_host > defender")]
    assert choose(order, "User0", "Enterprise1", "Op_Server0", "User2") == [action_id("Restore", "Op_Server0")]
    assert choose(order, "User0", "Enterprise1", "User4", "User2") == [action_id("Restore", "User2")]  # the first of a type
    assert choose(order, "User0") == [SLEEP]  # the foothold is red's for good
    restores = [action_id("Restore", host) for host in ("Enterprise0", "User1")]
    assert choose(ORDERS[:2], "User1", "Enterprise0", assigned=[0, 1]) == restores
    scheme = UnitScheme.from_dict({"b": ["Enterprise0"], "a": [h for h in HOST_ID if h != "Enterprise0"]})
    assert choose([Workflow.parse("a > b", scheme)], "Enterprise0", "User4") == [action_id("Restore", "User4")]


def test_reacting_defenders_act_on_what_they_believe():
    """Unknown is not clean, so it is restored; Remove waits until red is believed to be there."""
    for bits, acting in ((0b00, ()), (0b01, ("Restore",)), (0b10, ("Restore", "Remove")), (0b11, ("Restore", "Remove"))):
        belief = np.array([bits << 2 << 4 * HOST_ID["User3"]], np.uint64)  # clean, unknown, user, privileged
        for verb in ("Restore", "Remove"):
            (action,) = ask(make_baseline(f"react-{verb.lower()}"), belief)
            assert action == (action_id(verb, "User3") if verb in acting else SLEEP)
    with pytest.raises(ConfigError, match="unknown baseline 'heroic'; use sleep, random, react-restore"):
        make_baseline("heroic")
