"""Real CybORG: found, told by its behaviour, played in worker processes, recorded and replayed.

The first half needs no CybORG. The rest runs when FIXFIRST_CYBORG names a checkout.
"""

import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from cage2 import HOST_ID

import fixfirst as ff
from fixfirst.base.errors import CyborgError
from fixfirst.cyborg.checkout import ENVIRONMENT_VARIABLE, find_cyborg, load_cyborg
from fixfirst.cyborg.cyborg_game import CyborgGame
from fixfirst.cyborg.identity import facts_of_variant, identify
from fixfirst.cyborg.recorder import Recording, record
from fixfirst.cyborg.recordings import check_file
from fixfirst.game import parts
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2
from fixfirst.game.state import RedAgent
from fixfirst.play.evaluation import play
from fixfirst.play.rollout import make_world
from fixfirst.policy.scripts import make_baseline
from fixfirst.reporter.replay import describe_episode

CYBORG = os.environ.get(ENVIRONMENT_VARIABLE)
needs_cyborg = pytest.mark.skipif(not CYBORG, reason=f"{ENVIRONMENT_VARIABLE} names no checkout of CybORG")


def test_a_folder_without_cyborg_is_told_with_the_commands_to_get_it(tmp_path, monkeypatch):
    for path in (tmp_path, None):  # given, or named by the environment
        with pytest.raises(CyborgError, match=r"holds no package CybORG; get it with `git clone https://github\.com/cage-c"):
            find_cyborg(path)
        monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path))
    with pytest.raises(CyborgError, match="holds no package CybORG"):
        ff.CyborgVecEnv(1)
    monkeypatch.delenv(ENVIRONMENT_VARIABLE)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CyborgError, match="not found; get it with"):  # nowhere
        find_cyborg()


def test_a_checkout_is_found_from_its_root_its_subfolder_or_the_package(tmp_path):
    package = tmp_path / "cage-challenge-2" / "CybORG" / "CybORG"
    (package / "Shared" / "Scenarios").mkdir(parents=True)
    (package / "CybORG.py").touch(), (package / "Shared" / "Scenarios" / "Scenario2.yaml").touch()
    for start in (package, package.parent, package.parent.parent):
        assert find_cyborg(start) == package.parent


def test_remembered_addresses_are_read_and_printed_as_python_does():
    script = """
import ipaddress
from fixfirst.cyborg.world import settle_for_cyborg

texts = "10.0.1.7 0.0.0.0 255.255.255.255 10.0.1 10.0.1.256 10.0.01.1 x ::1 10.0.0.0/28 10.0.0.1/28".split()

def answers():
    for make in (ipaddress.IPv4Address, ipaddress.IPv4Network):
        for text in texts + [167772423, -1, 2**32]:
            try:
                address = make(text)
                yield str(address), hash(address), address == make(str(address))
            except ValueError as error:
                yield repr(error)

before = list(answers())
settle_for_cyborg()
assert list(answers()) == list(answers()) == before and len(before) == 26
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_red_agent_that_cyborg_does_not_have_is_refused_there():
    game = CyborgGame.__new__(CyborgGame)
    game._red_agents = {}
    with pytest.raises(CyborgError, match="CybORG has no red agent 'meander'"):
        game.reset(RedAgent.MEANDER, [0])


def test_the_facts_asked_for_tell_all_variants_apart():
    facts = [tuple(facts_of_variant(variant).values()) for variant in parts.VARIANTS]
    assert len(set(facts)) == len(parts.VARIANTS)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"policy": "fly"}, "unknown policy 'fly'"),
        ({"episodes": 0}, "episodes must be a whole number"),
        ({"red_agent": "blue"}, "unknown red agent 'blue'"),
        ({"seed": -1}, "seed must be in"),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_anything_starts(tmp_path, setting, says):
    with pytest.raises(ff.FixfirstError, match=says):
        record(tmp_path, tmp_path / "x.jsonl", Recording(**setting))
    assert list(tmp_path.iterdir()) == []


@needs_cyborg
def test_a_variant_that_is_not_there_is_refused():
    found = identify(find_cyborg()).variant
    other = next(variant for variant in parts.VARIANTS if variant != found)
    with pytest.raises(ff.WorkerError, match=f"is the variant {found}, not {other}"):
        ff.CyborgVecEnv(1, variant=other)


def run(workers, steps=45, **settings):
    """Observations, words, access, rewards, ends and returns of a run on CybORG."""
    options = {"red_agent": "b_line:0.5,meander:0.5", "green": True, "max_steps": 20} | settings
    with make_world(Game(backend="cyborg", variant=None, **options), 5, num_workers=workers) as world:
        world.reset(3)
        rows = []
        for actions in np.random.default_rng(0).integers(0, 145, (steps, 5)):
            ended = world.step(actions)
            returns = world.final_returns10[world.ended].tolist()
            arrays = (world.observations, world.packed_obs, world.access, world.rewards10, world.ended)
            rows.append((ended, returns, *(a.copy() for a in arrays)))
        world.reset()
        return rows, world.access.copy()


@needs_cyborg
def test_the_number_of_workers_changes_nothing():
    (one, _), (two, access) = run(1), run(2)
    for a, b in zip(one, two, strict=True):
        assert a[:2] == b[:2] and all(np.array_equal(x, y) for x, y in zip(a[2:], b[2:], strict=True))
    assert sum(row[0] for row in one) == 10  # two episodes of 20 steps in 45, with one step for each reset
    assert access.tolist() == [[0] * 8 + [2] + [0] * 4] * 5  # a reset leaves red its foothold only


def play_untouched(seed, env, episode, actions):
    """CybORG as it is, in a process that nothing was done to: what blue sees and earns."""
    game = CyborgGame(load_cyborg(find_cyborg()))
    game.reset(RedAgent.MEANDER, [seed, env, episode, 1])
    return [(obs.tolist(), reward) for obs, reward in map(game.step, actions)]


@needs_cyborg
def test_the_worlds_process_plays_as_an_untouched_one_does():
    actions = np.random.default_rng(1).integers(0, 145, (60, 1))
    with make_world(Game(backend="cyborg", variant=None, red_agent="meander"), 1) as world:
        world.reset(7)
        ours = []
        for row in actions:
            world.step(row)
            ours.append((world.observations[0].tolist(), int(world.rewards10[0])))
    with ProcessPoolExecutor(1, get_context("spawn")) as untouched:
        theirs = untouched.submit(play_untouched, 7, 0, 0, actions[:, 0].tolist()).result()
    assert ours == theirs and ours[-1][1] < 0


@needs_cyborg
def test_cyborg_keeps_the_promises_of_the_vector_environment():
    native = ff.make_vec(3)
    envs = ff.CyborgVecEnv(3, max_steps=4, autoreset_mode="same_step", num_workers=1)
    with envs.world as world:
        assert envs.single_observation_space == native.single_observation_space
        obs, info = envs.reset(seed=[1, 2, 3])
        assert obs.dtype == np.int8 and not obs.any() and info["access"].dtype == np.uint8
        total = np.zeros(3)
        for t in range(4):
            obs, reward, terminated, truncated, info = envs.step(np.zeros(3, int))
            total += reward
            assert not terminated.any() and truncated.all() == (t == 3)
        assert np.allclose(info["episode_return"], total) and info["episode_length"].tolist() == [4, 4, 4]
        assert info["final_obs"].any() and not obs.any() and info["final_info"]["access"].any()
        bits = np.unpackbits(world.packed_obs.view(np.uint8).reshape(3, 8), axis=1, bitorder="little")[:, :52]
        assert np.array_equal(bits, obs)


@needs_cyborg
def test_turns_of_cyborg_explain_its_rewards_and_show_its_decoys():
    """Random actions against both agents: the costs of every turn sum to CybORG's reward, and a placed decoy is there."""
    game = Game(red_agent="b_line:0.5,meander:0.5", variant=None, max_steps=60, backend="cyborg")
    played = play(make_baseline("random"), game, episodes=8, seed=0, purpose="test", keep_turns=True)
    decoys = CAGE2.by_variant[played.variant].decoys
    placed, verbs = 0, set()
    for number in range(8):
        for step in describe_episode(played, "", number)["steps"][1:]:
            verbs.add(step["red"].split()[0])
            assert sum(cost["tenths"] for cost in step["costs"]) == step["reward10"]
            assert step["red_worked"] is not None or step["red"] == "Sleep"
            if step["blue"].startswith("Decoy") and step["blue_worked"]:
                placed += 1
                name = step["blue"].split()[0].removeprefix("Decoy")
                port = next(decoy.opens for decoy in decoys if decoy.name == name)
                assert port in step["decoys"][HOST_ID[step["blue_target"]]]
    assert placed > 50 and verbs >= {"Discover", "Scan", "Exploit", "Escalate"}
    assert np.array_equal(played.rollout.turns["return10"][-1], played.rollout.rewards10.sum(axis=0))
    assert np.array_equal(played.rollout.turns["observation"], played.rollout.packed_obs)


@needs_cyborg
def test_importing_cyborg_makes_no_noise():
    script = "import fixfirst as ff\nif __name__ == '__main__': ff.CyborgVecEnv(1).reset(seed=0)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == run.stderr == ""


def recorded(path, num_workers=None, **settings):
    """Record CybORG quietly, replay what was recorded, and return both reports."""
    summary = record(find_cyborg(), path, Recording(**settings), num_workers=num_workers, say=lambda text: None)
    return summary, check_file(path)


@needs_cyborg
def test_recordings_of_a_learned_attacker_against_a_policy_replay_and_are_the_same_for_any_number_of_processes(tmp_path):
    attackers = {"red_agent": "noise:0.5,two-fronts:0.5", "policy": "guardian"}
    for workers in (1, 2):
        _, report = recorded(tmp_path / f"{workers}.jsonl", workers, episodes=4, steps=40, **attackers)
        assert report.steps == 160 and report.mismatches == []
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


@needs_cyborg
def test_a_learned_attacker_on_cyborg_tells_what_it_believes():
    """Against a defender that sleeps, what it believes to hold it holds: nobody takes it away."""
    with make_world(Game(red_agent="base-attacker", backend="cyborg", variant=None, max_steps=40), 4) as world:
        world.reset(0)
        for _ in range(40):
            world.step(np.zeros(4, np.int64))
        turns = world.turns()
    held = np.isin(turns["red_belief"], (1, 2))
    assert held.any(axis=1).all() and (turns["access"][held] > 0).all()


FORCE_PID = """
import json, sys
from pathlib import Path
from fixfirst.cyborg.checkout import find_cyborg, load_cyborg
from fixfirst.cyborg.identity import variant_of
from fixfirst.cyborg.recorder import Recorder, Recording
cyborg = load_cyborg(find_cyborg())
host_module = cyborg.module("Simulator.Host")
add = host_module.Host.add_process
def same_pid(self, name, *args, pid=None, **kwargs):  # red's processes get 31000 where that is free
    free = name in ("cmd.sh", "cmd.exe", "sshd") and all(p.pid != 31000 for p in self.processes)
    return add(self, name, *args, pid=31000 if free else pid, **kwargs)
variant = variant_of(cyborg)
host_module.Host.add_process = same_pid
recorder = Recorder(cyborg, Recording(steps=100, red_agent="meander", policy="react"), variant)
Path(sys.argv[1]).write_text("".join(json.dumps(recorder.play(n)) + "\\n" for n in range(8)))
"""


@needs_cyborg
def test_a_process_id_that_comes_back_is_marked(tmp_path):
    """With ids forced to repeat, unseen sessions become removable: told as coincidences, never as mismatches."""
    path = tmp_path / "forced.jsonl"
    subprocess.run([sys.executable, "-c", FORCE_PID, path], check=True)
    report = check_file(path)
    assert report.mismatches == [] and report.coincidences
