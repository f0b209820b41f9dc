"""Plays CybORG and writes what happened in the format of `conformance.py`, every chance decision included.

CybORG stays as it is on disk. In the recording process its few decisive random calls are replaced by ones that draw the
same numbers from the same generators and take note; all else is read from the simulator's objects after each step.

One thing our model leaves out on purpose: a new process may by chance get a process id that blue has already noted as
suspicious, and Remove then hits it too. The recorder marks an episode in which that happens, with the step.
"""

import gzip
import json
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.base import arguments, errors, jobs
from fixfirst.cyborg.checkout import PRIVILEGED_ACCOUNTS, Cyborg, CyborgGame, Identity, check_images, identify, load_cyborg
from fixfirst.cyborg.conformance import HOST_LETTERS, LEARNED_RED, OT_NAMES, PID_REUSED, RED_AGENTS, RED_VERBS, subnet_words
from fixfirst.cyborg.world import LearnedRed
from fixfirst.game import chance as dice, parts, state
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.policy import policy_file, red_file, scripts
from fixfirst.policy.policy_file import load_policy
from fixfirst.runs import layout

MIXTURE = "mixture"  # another policy for every episode
_BLUE_STREAM, _GAME_STREAM = range(2)
_EXPLOIT_OF_WEIGHT = {exploit.weight: exploit.name for exploit in CAGE2.exploits}  # CybORG draws among weights
_MALWARE_DENSITY = 0.9  # of files that Analyse takes for malware


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
    stops: int = 0  # episodes that CybORG could not play to their end


def record(
    folder: Path, out: Path, recording: Recording, *, num_workers: int | None = None, say: Callable[[str], None] = print
) -> Summary:
    """Record CybORG from `folder` into the file `out` (.jsonl or .jsonl.gz); the same bytes for any number of workers."""
    layout.check_output("out", out, recording.scenario, recording.policy)
    arguments.check_int("episodes", recording.episodes), arguments.check_int("steps", recording.steps)
    arguments.check_seed("seed", recording.seed)
    game = Game(scenario=recording.scenario, red_agent=recording.red_agent)
    scenario = game.scenario
    if recording.policy not in (MIXTURE, *scripts.DEFENDERS) and not _is_policy(recording.policy):
        raise errors.CyborgError(
            f"unknown policy {recording.policy!r}; use {MIXTURE}, a policy, or one of {', '.join(scripts.DEFENDERS)}"
        )
    recording = replace(recording, red_agent=game.attacker)
    for name in game.learned:
        if red_file.load_red(name, scenario).spec.picky:
            raise errors.CyborgError(f"{name}: names its exploit, which a recording does not tell; record plain attackers")
    check_images(folder, scenario)
    cyborg = identify(folder)
    if scenario != CAGE2:
        recording = replace(recording, scenario=str(_keep_file(scenario, out)))
    part = out.with_name(out.name + ".part")
    pid_reuses = steps = stops = 0
    try:
        opener = gzip.open if out.suffix == ".gz" else open
        with opener(part, "wt", encoding="utf-8") as file:
            for done, episode in enumerate(_episodes(folder, recording, cyborg.variant, num_workers), start=1):
                file.write(json.dumps(episode, separators=(",", ":")) + "\n")
                pid_reuses += PID_REUSED in episode
                steps, stops = steps + len(episode["steps"]), stops + ("stops" in episode)
                if done % 20 == 0:
                    say(f"{done} of {recording.episodes} episodes")
        part.replace(out)
    except BrokenProcessPool as e:
        raise errors.WorkerError("a recording process died; nothing was written") from e
    except OSError as e:
        raise errors.CyborgError(f"{out}: cannot be written ({e})") from e
    finally:
        part.unlink(missing_ok=True)
    return Summary(str(out), cyborg, recording.episodes, steps, pid_reuses, stops)


def _keep_file(scenario: Scenario, out: Path) -> Path:
    """Write the scenario beside its recording, where `fixfirst conform` looks for it."""
    file = out.with_name(f"{out.name.removesuffix('.gz').removesuffix('.jsonl')}.yaml")
    with errors.writing(file, error=errors.CyborgError):
        file.write_text(scenario.to_yaml())
    return file


def _episodes(
    folder: Path, recording: Recording, variant: parts.VariantName, num_workers: int | None
) -> Iterator[dict[str, Any]]:
    """All episodes in order, played by a few processes."""
    workers = min(recording.episodes, num_workers or jobs.available_cores())
    with ProcessPoolExecutor(workers, get_context("spawn"), _open_recorder, (folder, recording, variant)) as pool:
        yield from pool.map(_play_episode, range(recording.episodes))


def _is_policy(name: str) -> bool:
    return name in policy_file.shipped_policies() or Path(name).exists()


def _chooser(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return how a policy plays an episode, by its most probable actions: observations [1, bits] -> actions [1]."""
    policy = load_policy(name)
    return lambda observations: policy.act(observations, greedy=True)


_recorder: "Recorder"  # of a recording process


def _open_recorder(folder: Path, recording: Recording, variant: parts.VariantName) -> None:
    global _recorder
    jobs.follow_parent()
    _recorder = Recorder(load_cyborg(folder), recording, variant)


def _play_episode(number: int) -> dict[str, Any]:
    return _recorder.play(number)


class Recorder:
    """One CybORG environment with its chance decisions listened to. Changes CybORG in this process for good."""

    def __init__(self, cyborg: Cyborg, recording: Recording, variant: parts.VariantName):
        self._recording, self._variant = recording, variant
        self._chances: list[list[Any]] = []
        self._step = 0  # of the episode, from 1; 0 = outside of any step
        self._pid_reuses: list[int] = []  # steps
        self._listen(cyborg)
        played = Game(scenario=recording.scenario, red_agent=recording.red_agent)
        scenario, self._red_odds = played.scenario, played.red_odds(1)[0]
        file = None if scenario == CAGE2 else recording.scenario
        self._game = CyborgGame(cyborg, green=recording.green, scenario=scenario, file=file)
        self._learned = [LearnedRed.named(red_file.load_red(name, scenario)) for name in played.learned]

    def play(self, number: int) -> dict[str, Any]:
        """Episode `number`, ready to be written."""
        setting, entropy = self._recording, [self._recording.seed, number]
        rng = np.random.default_rng([*entropy, _BLUE_STREAM])
        red = int(np.searchsorted(self._red_odds, rng.random(), side="right"))
        policy = str(rng.choice(list(scripts.DEFENDERS))) if setting.policy == MIXTURE else setting.policy
        choose = scripts.DEFENDERS[policy](self._game.scenario, 1, rng) if policy in scripts.DEFENDERS else _chooser(policy)
        agent = self._learned[red - state.LEARNED] if red >= state.LEARNED else state.RedAgent(red)
        self._game.reset(agent, [*entropy, _GAME_STREAM])
        self._pid_reuses.clear()
        observation = np.zeros(self._game.scenario.observation_bits, np.int8)
        steps: list[list[Any]] = []
        stops = None
        for self._step in range(1, setting.steps + 1):
            self._chances = []
            action = int(choose(observation[None])[0])
            try:
                observation, reward10 = self._game.step(action)
            except errors.FixfirstError:
                raise
            except Exception as e:  # CybORG cannot go on: whatever it raises is what happened
                stops = f"{type(e).__name__}: {e}"
                break
            steps.append([action, self._chances, self._red(), _hex(observation), reward10, *self._truth()])
        self._step = 0
        episode: dict[str, Any] = {
            "id": number,
            "red": LEARNED_RED if red >= state.LEARNED else RED_AGENTS[red],
            "green": "agent" if setting.green else "sleep",
        }
        episode |= {"variant": self._variant, "policy": policy, "return10": sum(step[4] for step in steps)}
        if self._game.scenario != CAGE2:
            episode["scenario"] = Path(setting.scenario).name
        if stops is not None:
            episode["stops"] = stops
        if self._pid_reuses:
            episode[PID_REUSED] = self._pid_reuses[0]
        return episode | {"steps": steps}

    # ---- what is read from CybORG's objects after a step

    def _red(self) -> list[Any]:
        """[verb, target, success, exploit]"""
        verb, target, success, exploit, _ = self._game.red_action()
        letters = subnet_words(self._game.scenario) if verb == state.RedVerb.DISCOVER else HOST_LETTERS
        target_letter = None if target == state.NO_TARGET else letters[target]
        return [
            RED_VERBS[verb],
            target_letter,
            int(success),
            None if exploit < 0 else self._game.scenario.exploit_names[exploit],
        ]

    def _truth(self) -> tuple[str, str, str]:
        """Access and malware per host, and the OT service."""
        truth, noted, scenario = self._game.truth, self._noted_pids(), self._game.scenario
        kinds: list[set[str]] = [set() for _ in scenario.hosts]
        for session in truth.sessions["Red"].values():
            removable = session.pid in noted.get(session.host, ())
            kind = "p" if session.username in PRIVILEGED_ACCOUNTS else "r" if removable else "s"
            kinds[scenario.host_ids[session.host]].add(kind)
        access = "".join("p" if "p" in k else "b" if len(k) == 2 else next(iter(k), "0") for k in kinds)
        infected = (any(f.density >= _MALWARE_DENSITY for f in truth.hosts[host].files) for host in scenario.host_names)
        return access, "".join(map(str, map(int, infected))), OT_NAMES[self._game.ot_service()]

    def _noted_pids(self) -> dict[str, list[int]]:
        """Process ids that blue takes for suspicious, per host name."""
        return self._game.truth.sessions["Blue"][0].sus_pids

    def _letter(self, host_or_address: Any) -> str:
        return HOST_LETTERS[self._game.host_id(host_or_address)]

    # ---- what is heard while CybORG plays

    def _listen(self, cyborg: Cyborg) -> None:
        agents, actions = "Agents.SimpleAgents", "Shared.Actions"
        exploits = cyborg.module(f"{actions}.AbstractActions.ExploitRemoteService")
        cyborg.module(f"{agents}.GreenAgent").random = _Dice(self._hear_green)
        cyborg.module(f"{agents}.B_line").random = _Dice(lambda address: self._note("user", self._letter(address)))
        cyborg.module(f"{agents}.Meander").random = _Dice(self._hear_order)
        exploits.random = _Dice(
            lambda weight: self._note("other", _EXPLOIT_OF_WEIGHT[weight]), _Odds(self._note, "top", dice.P_TOP_EXPLOIT)
        )
        detection = _Dice(lambda _: None, _Odds(self._note, "detected", parts.P_DETECTED))
        cyborg.module(f"{actions}.ConcreteActions.ExploitAction").random = detection.random
        cyborg.module(f"{actions}.AbstractActions.Misinform").choice = _Dice(self._hear_decoy).choice
        self._wrap(cyborg.module("Simulator.Host").Host, "add_process", self._hear_process)

    def _note(self, decision: str, outcome: Any) -> None:
        self._chances.append([decision, outcome])

    def _hear_green(self, picked: Any) -> None:
        if isinstance(picked, str):
            can_be_scanned = picked in (self._game.scenario.green_hosts or ())
            self._note("green_host", self._letter(picked) if can_be_scanned else None)
        else:
            self._note("green", {"Sleep": 0, "GreenPortScan": 1}[picked.__name__])

    def _hear_decoy(self, picked: Any) -> None:
        """Take note of what Misinform places; sessions are drawn by the same function, and do not matter."""
        name = type(picked).__name__.removesuffix("DecoyFactory")
        if name != type(picked).__name__ and self._game.scenario.misinform:
            self._note("misinform", name)

    def _hear_order(self, order: Sequence[Any]) -> None:
        letters = "".join(map(self._letter, order))
        self._note("names" if isinstance(order[0], str) else "addresses", letters)

    def _hear_process(self, host: Any, process: Any) -> None:
        """A process that blue will take for an old acquaintance."""
        if self._step > 0 and process.pid in self._noted_pids().get(host.hostname, ()):
            self._pid_reuses.append(self._step)

    @staticmethod
    def _wrap(owner: Any, name: str, hear: Callable[[Any, Any], None]) -> None:
        """Let `hear(self, result)` know of every call of a method."""
        method = getattr(owner, name)

        def listened(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = method(self, *args, **kwargs)
            hear(self, result)
            return result

        setattr(owner, name, listened)


@dataclass(frozen=True)
class _Odds:
    """A yes-or-no decision and the probability of yes that our model expects."""

    note: Callable[[str, Any], None]
    decision: str
    probability: float


class _Dice:
    """Stands in for the module `random` in one module of CybORG: draws just as that would, and tells what came."""

    def __init__(self, tell: Callable[[Any], None], odds: _Odds | None = None):
        self._tell, self._odds = tell, odds

    def choice(self, options: Sequence[Any]) -> Any:
        picked = random.choice(options)
        self._tell(picked)
        return picked

    def choices(self, options: Sequence[Any]) -> list[Any]:
        picked = random.choices(options)
        self._tell(picked[0])
        return picked

    def shuffle(self, items: list[Any]) -> None:
        random.shuffle(items)
        self._tell(items)

    def random(self) -> float:
        if self._odds is None:
            raise errors.CyborgError("CybORG draws a number where it did not before")
        return _Draw(random.random(), self._odds)


class _Draw(float):
    """A random number that knows what it decides: the outcome is noted when it is compared with a probability."""

    def __new__(cls, value: float, odds: _Odds) -> "_Draw":
        return super().__new__(cls, value)

    def __init__(self, value: float, odds: _Odds):
        self._odds = odds

    def __lt__(self, probability: float) -> bool:
        odds, outcome = self._odds, float(self) < probability
        if probability != odds.probability:
            raise errors.CyborgError(
                f"CybORG decides {odds.decision!r} with probability {probability}, not {odds.probability}"
            )
        odds.note(odds.decision, int(outcome))
        return outcome


def _hex(observation: np.ndarray) -> str:
    """Return one hex digit per host; 8, 4, 2, 1 stand for its four positions."""
    return "".join(f"{digit:x}" for digit in observation.reshape(-1, parts.BITS_PER_HOST) @ (8, 4, 2, 1))
