"""Wrong input gets one clear error that says what came and what is right, and changes nothing."""

import numpy as np
import pytest

import fixfirst as ff
from fixfirst.game.base_world import output_arrays
from fixfirst.game.scenario import CAGE2
from fixfirst.orders.order import FIVE_TYPES


def begun(**settings):
    envs = ff.make_vec(3, **settings)
    envs.reset(seed=0)
    return envs


def refuse(call, says):
    with pytest.raises(ff.FixfirstError) as error:
        call()
    assert says in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"num_envs": 0}, "num_envs must be a whole number, at least 1, got 0"),
        ({"max_steps": 0}, "max_steps must be a whole number, at least 1, got 0"),
        ({"variant": "newest"}, "variant must be current, leaderboard or debugged, got 'newest'"),
        ({"red_agent": "redd"}, "unknown red agent 'redd'; use b_line, meander, sleep"),
        ({"red_agent": "b_line:nan,meander:1"}, "weight nan in red agent mixture"),
        ({"red_agent": "b_line:0,meander:0"}, "must have a finite sum above 0"),
        ({"red_agent": "b_line:x"}, "weight x in red agent mixture 'b_line:x' must be a finite number"),
        ({"red_agent": "b_line,meander"}, "needs a weight for 'b_line'"),
        ({"red_agent": ["b_line"] * 3}, "3 red agents given for 4 environments"),
        ({"red_agent": [1, 2, 3, 4]}, "a red agent is given by name, got 1"),
        ({"autoreset_mode": "never"}, "autoreset_mode 'never' is not one of next_step, same_step, disabled"),
        ({"env_ids": [1, 2]}, "env_ids must hold 4 numbers"),
        ({"arrays": {}}, "arrays['observations'] must be"),
    ],
)
def test_a_world_that_cannot_be_built(arguments, says):
    refuse(lambda: ff.make_vec(**({"num_envs": 4} | arguments)), says)


@pytest.mark.parametrize("wrong", [None, True, 2.5, 2**63, [], {}, [["a"], ["b", "c"]], np.zeros(3), print])
@pytest.mark.parametrize(
    "name", ["red_agent", "variant", "green", "max_steps", "memory", "action_set", "backend", "autoreset_mode", "num_envs"]
)
def test_any_wrong_type_is_an_error_that_names_the_argument(name, wrong):
    if f"{name}={wrong}" not in ("max_steps=None", "variant=None", "green=True"):
        with pytest.raises(ff.FixfirstError, match=name.replace("_", "[ _]")):
            ff.make_vec(**{"num_envs": 2, name: wrong})


@pytest.mark.parametrize(
    ("actions", "says"),
    [
        ([0, 145, 0], "action 145 of environment 1 is not in 0..144"),
        ([0, 0, -1], "action -1 of environment 2 is not in 0..144"),
        ([0, 0], r"actions must have shape (3,), one per environment, got (2,)"),
        ([0.0, 1.0, 2.0], "actions must be whole numbers, got dtype float64"),
        (np.array([2**64 - 1, 0, 0], np.uint64), "is not in 0..144"),
        ([[1], [1, 2]], "actions must be an array"),
    ],
)
def test_bad_actions_are_refused_and_nothing_moves(actions, says):
    envs = begun(red_agent="meander")
    envs.step(np.zeros(3, int))
    before = envs.get_state()
    refuse(lambda: envs.step(actions), says)
    assert np.array_equal(envs.get_state(), before)
    envs.step(np.zeros(3, int))  # and goes on


@pytest.mark.parametrize(
    ("field", "value"), [("red_agent", 7), ("bline_stage", 200), ("privileged", -1), ("decoys", 2**13), ("red_target", 13)]
)
def test_states_of_the_wrong_kind_or_no_game_can_be_in_are_refused_and_nothing_moves(field, value):
    """The compiled code uses these as indices: a damaged file must not lead it out of its arrays."""
    envs = begun()
    before = envs.get_state()
    for wrong in (before[:2], np.zeros(3), None, "x"):
        refuse(lambda wrong=wrong: envs.set_state(wrong), "states must be 1 or 3 records")
    states = before.copy()
    states[field][1] = value
    refuse(lambda: envs.set_state(states), f"state field {field} is {value}, not in")
    assert np.array_equal(envs.get_state(), before)


def test_arrays_that_the_compiled_code_would_write_beyond_are_refused():
    good = {name: np.zeros((4, *shape), dtype) for name, (shape, dtype) in output_arrays(CAGE2).items()}
    ff.make_vec(4, arrays=good).reset(seed=0)
    for name, array in good.items():
        for wrong in (
            array[:1],
            array[:3],
            array.astype(np.float16),
            np.asfortranarray(np.zeros((4, 4, 4))),
            None,
            array[::-1],
        ):
            refuse(lambda n=name, w=wrong: ff.make_vec(4, arrays=good | {n: w}), f"arrays['{name}'] must be")


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_an_episode_put_at_or_beyond_its_end_ends_with_the_next_step_unless_there_is_no_limit(mode):
    for step in (9, 10, 2**32 - 2):
        envs = begun(max_steps=10, autoreset_mode=mode)
        states = envs.get_state()
        states["step"] = step
        envs.set_state(states)
        assert envs.step(np.zeros(3, int))[3].all()
    assert not begun(max_steps=None, autoreset_mode=mode).step(np.zeros(3, int))[3].any()


@pytest.mark.parametrize("group", ["was_active", "quiet_turns", "decoys", "was_scanned", "break_ins", "restores"])
def test_memories_with_bits_that_no_group_has_are_refused(group):
    """They would be written beyond the last word of a row."""
    envs = begun(memory="full", action_set="macros")
    records = envs.memories.records.copy()
    envs.set_state(envs.get_state(), records)
    for wrong in (2**64 - 1,) if records[group].dtype == np.uint64 else (-1, np.iinfo(records[group].dtype).max):
        records[group] = wrong
        with pytest.raises(ff.WorldError, match=f"memories hold a {group} of more than"):
            envs.set_state(envs.get_state(), records)


MACROS, ACT1, RAGGED = ff.ActionSet.parse("macros"), ff.MemoryScheme.parse("act1"), [np.zeros(3), np.zeros(2)]


def single(**settings):
    env = ff.Cage2(**settings)
    env.reset(seed=0)
    return env


def ended():
    env = single(max_steps=1)
    assert env.step(0)[3]
    return env


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: ff.make_vec(2).step(np.zeros(2, int)), "before reset"),
        (lambda: ff.make_vec(2).get_state(), "before reset"),
        (lambda: ff.make_vec(2).set_state(None), "before reset"),
        (lambda: ff.Cage2().step(0), "before reset"),
        (lambda: ff.Cage2(render_mode="ansi").render(), "before reset"),
        (lambda: ended().step(0), "ended"),
        (lambda: ended().render(), "needs a render_mode"),
        (lambda: ff.Cage2(render_mode="human"), "render_mode 'human' is not supported; use rgb_array or ansi"),
        (lambda: begun().reset(seed=-1), "got -1"),
        (lambda: begun().reset(seed=2**64), "0..2**64-1"),
        (lambda: begun().reset(seed=[1, 2]), "2 seeds given for 3"),
        (lambda: begun().reset(seed="x"), "whole number, got 'x'"),
        *(
            (lambda mask=mask: begun().reset(options={"reset_mask": mask}), "reset_mask must be")
            for mask in (np.ones(2, bool), np.ones(3, int), [True, False], [[1], [1, 2]])
        ),
        (lambda: begun().reset(options="x"), "options"),
        *((lambda action=action: single().step(action), "action") for action in (145, -1, 3.5, [0, 1], "x", None)),
        (lambda: begun().set_state(begun().get_state(), RAGGED), "memories must be 1 or 3 records"),
        (lambda: begun(memory="full").set_state(begun().get_state(), RAGGED), "memories must be 1 or 3 records"),
        (lambda: ff.UnitScheme(("a", "b"), (0, 1, *11 * (7,))), "host_unit must hold unit ids of 0..1"),
        (lambda: ff.UnitScheme(5, 5), "names must be a tuple of strings, got 5"),
        (lambda: ff.UnitScheme.per_host().hosts("User0"), "unit must be a whole number, at least 0, got 'User0'"),
        (lambda: ff.Workflow((0, 1), "five"), "the unit types of a workflow are a UnitScheme, got 'five'"),
        (lambda: ff.Workflow.from_number(0).kendall_distance(0), "compared with another one, got 0"),
        (lambda: ff.ActionSet("mine", np.zeros(3)), "actions of action set 'mine' must be a tuple of whole numbers"),
        (lambda: ff.ActionSet("mine", (0,), 5), "macros of action set 'mine' must be a tuple of strings, got 5"),
        (lambda: ff.MemoryScheme(5), "groups must be a tuple of strings, got 5"),
        (lambda: ff.Game(max_steps=2**63), "max_steps must be at most 2147483647, got 92233"),
        (lambda: ff.Game("b_line"), "positional argument"),
        (lambda: FIVE_TYPES.untouched(None), "a set of hosts, as bits must be a whole number, at least 0, got None"),
        (lambda: FIVE_TYPES.untouched(2**13), "a set of hosts, as bits must be at most 8191, got 8192"),
        (lambda: FIVE_TYPES.numbers([np.zeros(2)], "idle"), "which is none of the unit types user"),
        (lambda: MACROS.first_masked(None), "choices must be a tuple of whole numbers, got None"),
        (lambda: MACROS.first_masked([40]), "a choice must be at most 39, got 40"),
        (lambda: ACT1.in_words(7), "a memory of act1 has 13 bits, got 7"),
        (lambda: ACT1.in_words([1]), "a memory of act1 has 13 bits, got [1]"),
        (lambda: ff.load_policy("champion").assign(None, -1), "num_envs must be a whole number, at least 0, got -1"),
    ],
)
def test_a_value_or_a_call_that_makes_no_sense(call, says):
    refuse(call, says)
