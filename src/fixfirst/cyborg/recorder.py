"""Plays CybORG and writes what happened in the format of `recordings.py`, every chance decision included.

One thing our model leaves out on purpose: a new process may by chance get a process id that blue has already noted as
suspicious, and Remove then hits it too. The recorder marks an episode in which that happens, with the step.

CybORG stays as it is on disk. In the recording process its few decisive random calls are replaced by ones that draw the
same numbers from the same generators and take note.
"""

import gzip
import json
import random
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fixfirst.base import arguments, errors, jobs
from fixfirst.cyborg.checkout import Cyborg, check_images, load_cyborg
from fixfirst.cyborg.cyborg_game import CyborgGame
from fixfirst.cyborg.identity import Identity, identify
from fixfirst.cyborg.learned_red import LearnedRed
from fixfirst.cyborg.recordings import (
    HOST_LETTERS,
    LEARNED_RED,
    OT_NAMES,
    PID_REUSED,
    RED_AGENTS,
    observation_word,
    red_words,
)
from fixfirst.game import chance as dice, parts, state
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.policy import reds, scripts, trained
from fixfirst.runs import layout

MIXTURE = "mixture"  # another policy for every episode
_BLUE_STREAM, _GAME_STREAM = range(2)
_EXPLOIT_OF_WEIGHT = {exploit.weight: exploit.name for exploit in CAGE2.exploits}  # CybORG draws among weights


@dataclass(frozen=True)
class Recording:
    """What to record.

    Parameters
    ----------
    episodes
        How many.
    steps
        Length of an episode.
    red_agent
        A red agent, or a mixture drawn per episode; also learned attackers that leave the exploit to the game.
    green
        With users who scan ports at random.
    policy
        How blue plays: sleep, random, react, ... (policy/scripts.py), a mixture drawn per episode, or a policy.
    seed
        Decides all of it.
    scenario
        The network: cage2, cage1, tiny, flat, office, or a scenario file, of which a copy is kept beside the recording.
    """

    episodes: int = 100
    steps: int = 100
    red_agent: str = "b_line:0.45,meander:0.45,sleep:0.1"
    green: bool = False
    policy: str = MIXTURE
    seed: int = 0
    scenario: str = CAGE2.name


@dataclass(frozen=True)
class Summary:
    """What was recorded."""

    file: str
    cyborg: Identity
    episodes: int
    steps: int
    pid_reuses: int  # episodes in which a process id came back
    stops: int  # episodes that CybORG could not play to their end


def record(
    folder: Path, out: Path, recording: Recording, *, num_workers: int | None = None, say: Callable[[str], None] = print
) -> Summary:
    """Record CybORG from `folder` into the file `out` (.jsonl or .jsonl.gz); the same bytes for any number of workers."""
    layout.check_output("out", out, recording.scenario, recording.policy)
    game, recording = _checked(recording)
    check_images(folder, game.scenario)
    cyborg = identify(folder)
    if game.scenario != CAGE2:
        recording = replace(recording, scenario=str(_write_scenario(game.scenario, out)))
    part, opener = out.with_name(out.name + ".part"), gzip.open if out.suffix == ".gz" else open
    workers = min(recording.episodes, num_workers or jobs.available_cores())
    pid_reuses = steps = stops = 0
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _open_recorder, (folder, recording, cyborg.variant))
    try:
        with errors.writing(out, error=errors.CyborgError):
            with pool, opener(part, "wt", encoding="utf-8") as file:
                for done, episode in enumerate(pool.map(_play_episode, range(recording.episodes)), start=1):
                    file.write(json.dumps(episode, separators=(",", ":")) + "\n")
                    pid_reuses += PID_REUSED in episode
                    steps, stops = steps + len(episode["steps"]), stops + ("stops" in episode)
                    if done % 20 == 0:
                        say(f"{done} of {recording.episodes} episodes")
            part.replace(out)
    except BrokenProcessPool as e:
        raise errors.WorkerError("a recording process died; nothing was written") from e
    finally:
        part.unlink(missing_ok=True)
    return Summary(str(out), cyborg, recording.episodes, steps, pid_reuses, stops)


def _checked(recording: Recording) -> tuple[Game, Recording]:
    """Return the game to record, and the recording with its attackers named by what they are."""
    arguments.check_int("episodes", recording.episodes)
    arguments.check_int("steps", recording.steps)
    arguments.check_seed("seed", recording.seed)
    game = Game(scenario=recording.scenario, red_agent=recording.red_agent)
    by_name = (MIXTURE, *scripts.DEFENDERS, *trained.shipped_policies())
    if recording.policy not in by_name and not Path(recording.policy).exists():
        raise errors.CyborgError(f"unknown policy {recording.policy!r}; use a policy, or one of {', '.join(by_name)}")
    for name in game.learned:
        if reds.load_red(name, game.scenario).spec.picky:
            raise errors.CyborgError(f"{name}: names its exploit, which a recording does not tell; record plain attackers")
    return game, replace(recording, red_agent=game.attacker)


def _write_scenario(scenario: Scenario, out: Path) -> Path:
    """Write the scenario beside its recording, where `fixfirst conform` looks for it."""
    file = out.with_name(f"{out.name.removesuffix('.gz').removesuffix('.jsonl')}.yaml")
    with errors.writing(file, error=errors.CyborgError):
        file.write_text(scenario.to_yaml())
    return file


_recorder: "Recorder"  # of a recording process


def _open_recorder(folder: Path, recording: Recording, variant: parts.VariantName) -> None:
    global _recorder
    jobs.follow_parent()
    _recorder = Recorder(load_cyborg(folder), recording, variant)


def _play_episode(number: int) -> dict[str, Any]:
    return _recorder.play(number)


class Recorder:
    """One CybORG environment with its chance decisions listened to. Changes CybORG in this process for good."""

    def __init__(self, cyborg: Any, recording: Recording, variant: parts.VariantName):
        self._recording, self._variant = recording, variant
        played = Game(scenario=recording.scenario, red_agent=recording.red_agent)
        scenario, self._red_odds = played.scenario, played.red_odds(1)[0]
        file = None if scenario == CAGE2 else recording.scenario
        self._game = CyborgGame(cyborg, green=recording.green, scenario=scenario, file=file)
        self._listener = Listener(cyborg, self._game)
        self._learned = [LearnedRed.named(reds.load_red(name, scenario)) for name in played.learned]

    def play(self, number: int) -> dict[str, Any]:
        """Episode `number`, ready to be written."""
        setting, scenario, entropy = self._recording, self._game.scenario, [self._recording.seed, number]
        rng = np.random.default_rng([*entropy, _BLUE_STREAM])
        red = int(np.searchsorted(self._red_odds, rng.random(), side="right"))
        policy = str(rng.choice(list(scripts.DEFENDERS))) if setting.policy == MIXTURE else setting.policy
        if policy in scripts.DEFENDERS:
            choose = scripts.DEFENDERS[policy](scenario, 1, rng)
        else:
            choose = partial(trained.load_policy(policy).act, greedy=True)
        learned = red >= state.LEARNED
        episode: dict[str, Any] = {"id": number, "red": LEARNED_RED if learned else RED_AGENTS[red]}
        episode |= {"green": "agent" if setting.green else "sleep", "variant": self._variant, "policy": policy}
        self._game.reset(self._learned[red - state.LEARNED] if learned else state.RedAgent(red), [*entropy, _GAME_STREAM])
        observation = np.zeros(scenario.observation_bits, np.int8)
        endings: dict[str, Any] = {}
        steps: list[list[Any]] = []
        for step in range(1, setting.steps + 1):
            self._listener.begin_turn()
            action = int(choose(observation[None])[0])
            try:
                observation, reward10 = self._game.step(action)
            except errors.FixfirstError:
                raise
            except Exception as e:  # CybORG cannot go on: whatever it raises is what happened
                endings["stops"] = f"{type(e).__name__}: {e}"
                break
            turn = list(red_words(scenario, *self._game.red_action()[:4]))
            steps.append([action, self._listener.chances, turn, observation_word(observation), reward10, *self._truth()])
            if self._listener.pid_reused:
                endings.setdefault(PID_REUSED, step)
        episode["return10"] = sum(turn[4] for turn in steps)
        if scenario != CAGE2:
            episode["scenario"] = Path(setting.scenario).name
        return episode | endings | {"steps": steps}

    def _truth(self) -> tuple[str, str, str]:
        """Return access and malware per host, and the OT service."""
        kinds: list[set[str]] = [set() for _ in self._game.scenario.hosts]
        for host, privileged, noted in self._game.red_sessions():
            kinds[host].add("p" if privileged else "r" if noted else "s")
        access = "".join("p" if "p" in k else "b" if len(k) == 2 else next(iter(k), "0") for k in kinds)
        return access, "".join("01"[held] for held in self._game.has_malware()), OT_NAMES[self._game.ot_service()]


class Listener:
    """Notes the chance decisions of one game. Changes CybORG in this process for good."""

    def __init__(self, cyborg: Cyborg, game: CyborgGame):
        self._game = game
        self._noted_pids: Mapping[str, list[int]] = {}
        self.chances: list[list[Any]] = []  # of a turn: pairs of a decision and its outcome, as they are recorded
        self.pid_reused = False  # a new process got a process id that blue had noted
        agents, actions = "Agents.SimpleAgents", "Shared.Actions"
        exploits = cyborg.module(f"{actions}.AbstractActions.ExploitRemoteService")
        cyborg.module(f"{agents}.GreenAgent").random = _Dice(self._note_green)
        cyborg.module(f"{agents}.B_line").random = _Dice(lambda address: self._note("user", self._letter(address)))
        cyborg.module(f"{agents}.Meander").random = _Dice(self._note_order)
        top, detected = _Odds(self._note, "top", dice.P_TOP_EXPLOIT), _Odds(self._note, "detected", CAGE2.detection)
        exploits.random = _Dice(lambda weight: self._note("other", _EXPLOIT_OF_WEIGHT[weight]), top)
        cyborg.module(f"{actions}.ConcreteActions.ExploitAction").random = _Dice(odds=detected).random
        cyborg.module(f"{actions}.AbstractActions.Misinform").choice = _Dice(self._note_decoy).choice
        self._watch_processes(cyborg.module("Simulator.Host").Host)

    def begin_turn(self) -> None:
        """Forget the last turn."""
        self.chances, self.pid_reused, self._noted_pids = [], False, self._game.noted_pids

    def _note(self, decision: str, outcome: Any) -> None:
        self.chances.append([decision, outcome])

    def _letter(self, host_or_address: Any) -> str:
        return HOST_LETTERS[self._game.host_id(host_or_address)]

    def _note_green(self, picked: Any) -> None:
        if isinstance(picked, str):
            can_be_scanned = picked in (self._game.scenario.green_hosts or ())
            self._note("green_host", self._letter(picked) if can_be_scanned else None)
        else:
            self._note("green", {"Sleep": 0, "GreenPortScan": 1}[picked.__name__])

    def _note_decoy(self, picked: Any) -> None:
        """Note what Misinform places; sessions are drawn by the same function, and do not matter."""
        name = type(picked).__name__
        if name.endswith("DecoyFactory") and self._game.scenario.misinform:
            self._note("misinform", name.removesuffix("DecoyFactory"))

    def _note_order(self, order: Sequence[Any]) -> None:
        letters = "".join(map(self._letter, order))
        self._note("names" if isinstance(order[0], str) else "addresses", letters)

    def _watch_processes(self, host_class: Any) -> None:
        add_process = host_class.add_process

        def listened(host: Any, *args: Any, **kwargs: Any) -> Any:
            process = add_process(host, *args, **kwargs)
            self.pid_reused |= process.pid in self._noted_pids.get(host.hostname, ())
            return process

        host_class.add_process = listened


class _Odds(NamedTuple):
    """A yes-or-no decision and the probability of yes that our model expects."""

    note: Callable[[str, Any], None]
    decision: str
    probability: float


class _Dice:
    """Stands in for the module `random` in one module of CybORG: draws just as that would, and notes what came."""

    def __init__(self, note: Callable[[Any], None] = lambda picked: None, odds: _Odds | None = None):
        self._note, self._odds = note, odds

    def choice(self, options: Sequence[Any]) -> Any:
        picked = random.choice(options)
        self._note(picked)
        return picked

    def choices(self, options: Sequence[Any]) -> list[Any]:
        picked = random.choices(options)
        self._note(picked[0])
        return picked

    def shuffle(self, items: list[Any]) -> None:
        random.shuffle(items)
        self._note(items)

    def random(self) -> float:
        if self._odds is None:
            raise errors.CyborgError("CybORG draws a number where it did not before")
        draw = _Draw(random.random())
        draw.odds = self._odds
        return draw


class _Draw(float):
    """A random number that knows what it decides: the outcome is noted when it is compared with a probability."""

    odds: _Odds

    def __lt__(self, probability: float) -> bool:
        outcome = float(self) < probability
        note, decision, expected = self.odds
        if probability != expected:
            raise errors.CyborgError(f"CybORG decides {decision!r} with probability {probability}, not {expected}")
        note(decision, int(outcome))
        return outcome
