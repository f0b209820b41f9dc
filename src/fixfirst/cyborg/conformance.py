"""Replays recorded CybORG episodes through the kernel and compares everything that was recorded, step by step.

The recorded chance outcomes replace the kernel's own draws (`chance.py`); all else must follow: which chances were taken,
what red did and whether it worked, what blue saw, the reward, red's access and files per host, the OT service.
Not compared: process ids, addresses and ephemeral ports, which have no effect.
The file format is described in `tests/conformance/README.md`.

T = steps of an episode. A recording is decoded into two arrays: outcomes [T] (`chance_dtype`) that drive the kernel, and
what must come out [T] (`record_dtype`), whose fields are named as in the kernel's own state.
"""

import gzip
import string
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, get_args

import numpy as np

from fixfirst.base import errors, files
from fixfirst.game import attackers, chance as dice, parts, rules, state, tables
from fixfirst.game.scenario import CAGE2, Scenario

HOST_LETTERS = string.ascii_lowercase + string.ascii_uppercase + string.digits + "-_"  # of so many hosts as there are
RED_AGENTS = tuple(agent.name.lower() for agent in state.RedAgent)
LEARNED_RED = "learned"  # whichever it was: a recording tells all that it did
RED_VERBS = tuple(verb.name.lower() for verb in state.RedVerb)
OT_NAMES = tuple(one.name.lower() for one in state.OTService)
PID_REUSED = "pid_reused"  # field of an episode: the step in which a process got a process id that blue had noted before
LONGEST_EPISODE = 4 * files.MB  # as a line of text; one of 100 steps has 10 kB
_BLUES, _GREENS = ("misinform",), ("green", "green_host")
_REDS = ("user", "addresses", "names", "other", "top", "detected")
_MADE_UP = tuple(decoy.name for decoy in parts.MADE_UP)

# What a recording says of a step, in the order in which a difference explains itself best.
_RECORDED: tuple[str, ...] = ("chances", "red_verb", "red_target", "red_exploit", "red_success")
_RECORDED += ("privileged", "removable", "stubborn", "malware", "ot", "observation")


@cache
def record_dtype(size: tables.Size) -> np.dtype:
    """Return the type of what a recording says of a step, for scenarios of a size. Packed."""
    whole = state.state_dtype(size)
    return np.dtype([*((name, whole[name]) for name in _RECORDED), ("reward10", np.int32)])


def decisions(scenario: Scenario) -> tuple[str, ...]:
    """Return the chance decisions of a step in the order in which they are made."""
    return _BLUES + (_REDS + _GREENS if scenario.red_before_green else _GREENS + _REDS)


def subnet_words(scenario: Scenario) -> tuple[str, ...]:
    """Return how recordings call subnets: by their names, in CAGE2 by the first letters of them."""
    return tuple(name[0] for name in scenario.subnet_names) if scenario == CAGE2 else scenario.subnet_names


@dataclass(frozen=True)
class RecordedEpisode:
    """One recorded episode of T steps."""

    id: Any
    scenario: Scenario
    red: int  # a number of RedAgent, or LEARNED
    green: bool
    variant: parts.VariantName
    policy: str
    return10: int
    pid_reused: int | None  # from this step on (from 1) a process id may matter, which the model does without
    actions: np.ndarray  # [T] int64, blue's
    outcomes: np.ndarray  # [T] of `chance_dtype`
    expected: np.ndarray  # [T] of `record_dtype`


@dataclass(frozen=True)
class Mismatch:
    """The first place where the kernel and a recording differ."""

    file: str
    episode: Any
    step: int  # from 1
    field: str
    host: str | None
    expected: object
    got: object

    def __str__(self) -> str:
        host = f" of {self.host}" if self.host else ""
        place = f"{self.file}, episode {self.episode}, step {self.step}"
        return errors.in_one_line(f"{place}: {self.field}{host}: expected {self.expected!r}, got {self.got!r}")


@dataclass
class ReplayReport:
    """What a replay of many files found."""

    episodes: int = 0
    steps: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)  # at most one per episode: afterwards all may differ
    coincidences: list[Mismatch] = field(default_factory=list)  # differences after a process id was used twice

    def add(self, other: "ReplayReport") -> None:
        """Take over what another replay found."""
        self.episodes += other.episodes
        self.steps += other.steps
        self.mismatches += other.mismatches
        self.coincidences += other.coincidences


def check_file(path: Path, report: ReplayReport) -> None:
    """Replay every episode of a file, adding to `report`."""
    for episode in read_episodes(path):
        report.episodes += 1
        report.steps += len(episode.actions)
        mismatch = first_difference(episode, replay_episode(episode), path.name)
        if mismatch is not None:
            by_pid = episode.pid_reused is not None and mismatch.step >= episode.pid_reused
            (report.coincidences if by_pid else report.mismatches).append(mismatch)


def replay_episode(episode: RecordedEpisode) -> np.ndarray:
    """Drive the kernel with the recorded actions and outcomes. Returns what came out, [T] of `record_dtype`."""
    scenario, size = episode.scenario, tables.size_of(episode.scenario)
    states, chances = np.zeros(1, state.state_dtype(size)), np.zeros(1, dice.chance_dtype(size))
    block, odds = (
        tables.tables_of(scenario, parts.VARIANT_ID[episode.variant]),
        np.zeros((1, max(len(state.RedAgent), episode.red + 1))),
    )
    odds[0, episode.red :] = 1.0
    observations = np.empty((1, scenario.observation_bits), np.int8)
    words, access = np.empty((1, scenario.observation_words), np.uint64), np.empty((1, scenario.num_hosts), np.uint8)
    rewards10, ended = np.empty(1, np.int32), np.empty(1, np.bool_)
    finals = observations.copy(), access.copy(), np.empty(1, np.int32), np.empty(1, np.int32)
    settings = episode.green and scenario.green_hosts is not None, 0, rules.DISABLED
    seen, own = (observations, words, access), attackers.own_addresses((), size)

    rules.reset_batch(states, block, chances, odds, np.ones(1, np.bool_), *seen)
    trace: np.ndarray = np.empty(len(episode.actions), states.dtype)
    got: np.ndarray = np.empty(len(episode.actions), record_dtype(size))
    for t in range(len(trace)):
        chances[:] = episode.outcomes[t]
        if (
            episode.red == state.LEARNED
        ):  # what it decided is written down; whether that was possible, and what came of it, is not
            states["red_verb"], states["red_target"] = episode.expected["red_verb"][t], episode.expected["red_target"][t]
        actions = episode.actions[t : t + 1]
        rules.step_batch(states, block, chances, odds, own, actions, *settings, *seen, rewards10, ended, *finals)
        trace[t] = states[0]
        got["reward10"][t] = rewards10[0]
    for name in _RECORDED:
        got[name] = trace[name]
    return got


def first_difference(episode: RecordedEpisode, got: np.ndarray, file: str = "") -> Mismatch | None:
    """Return the first difference between a recording and what came out of the kernel, or None."""
    pairs = zip(got, episode.expected, strict=True)
    step = next((step for step, (one, other) in enumerate(pairs) if one.tobytes() != other.tobytes()), None)
    if step is not None:
        expected_facts, got_facts = (_in_words(steps[step], episode.scenario) for steps in (episode.expected, got))
        for name, expected in expected_facts.items():
            actual = got_facts[name]
            if expected == actual:
                continue
            if isinstance(expected, dict):
                host = next(h for h in expected if expected[h] != actual[h])
                return Mismatch(file, episode.id, step + 1, name, host, expected[host], actual[host])
            return Mismatch(file, episode.id, step + 1, name, None, expected, actual)
        raise AssertionError(f"step {step + 1} of episode {episode.id} differs in something that has no words")
    if (total := int(got["reward10"].sum())) != episode.return10:
        return Mismatch(file, episode.id, len(got), "return10", None, episode.return10, total)
    return None


def _in_words(record: np.void, scenario: Scenario) -> dict[str, Any]:
    """Return a step as recordings write it: field -> value, or field -> host -> value."""
    verb, target, exploit = state.RedVerb(record["red_verb"]), int(record["red_target"]), int(record["red_exploit"])
    targets = subnet_words(scenario) if verb == state.RedVerb.DISCOVER else HOST_LETTERS
    chances, made = int(record["chances"]), decisions(scenario)
    observation = sum(int(word) << 64 * k for k, word in enumerate(record["observation"]))
    by_host: dict[str, dict[str, str]] = {"access": {}, "malware": {}, "observation": {}}
    for h, name in enumerate(scenario.host_names):
        sessions = (record["removable"] >> h & 1) + 2 * (record["stubborn"] >> h & 1)
        by_host["access"][name] = "p" if record["privileged"] >> h & 1 else "0rsb"[sessions]
        by_host["malware"][name] = str(record["malware"] >> h & 1)
    for place, h in enumerate(scenario.listed):
        by_host["observation"][scenario.host_names[h]] = format(observation >> 4 * place & 15, "04b")[::-1]
    return {
        "chance decisions": [name for name in made if chances >> dice.Decision[name.upper()] & 1],
        "chance outcomes possible": not chances >> dice.Decision.REFUSED & 1,
        "red verb": RED_VERBS[verb],
        "red target": None if target == state.NO_TARGET else targets[target],
        "red exploit": None if exploit < 0 else scenario.exploit_names[exploit],
        "red success": int(record["red_success"]),
        **by_host,
        "ot": OT_NAMES[record["ot"]],
        "reward10": int(record["reward10"]),
    }


# ---------------------------------------------------------------- reading


def read_episodes(path: Path) -> Iterator[RecordedEpisode]:
    """The episodes of a .jsonl or .jsonl.gz file; a file that cannot be read as such raises ConformanceError."""
    number = 0
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as file:
            while line := file.readline(LONGEST_EPISODE + 1):
                number += 1
                if len(line) > LONGEST_EPISODE:
                    raise ValueError(f"more than {LONGEST_EPISODE // files.MB} MB")
                yield _episode(files.parse_json(line), path.parent)
    except errors.ScenarioError as e:
        raise errors.ConformanceError(f"{path}, line {number}: its scenario cannot be loaded ({e})") from e
    except FileNotFoundError as e:
        raise errors.ConformanceError(f"{path}: no such file") from e
    except (EOFError, zlib.error) as e:
        raise errors.ConformanceError(f"{path}: cut off or damaged after line {number} ({e})") from e
    except OSError as e:
        raise errors.ConformanceError(f"{path}: cannot be read ({e})") from e
    except (KeyError, TypeError, ValueError, OverflowError) as e:
        reason = f"no field {e}" if isinstance(e, KeyError) else str(e)
        raise errors.ConformanceError(f"{path}, line {max(number, 1)}: not a recorded episode ({reason})") from e
    if number == 0:
        raise errors.ConformanceError(f"{path}: holds no episodes")


def _episode(data: dict[str, Any], folder: Path) -> RecordedEpisode:
    if not isinstance(data, dict):
        raise ValueError(f"expected a JSON object, got {str(data)[:60]}")
    steps = data["steps"]
    if not isinstance(steps, list):
        raise ValueError(f"steps must be a list, got {str(steps)[:60]}")
    scenario = CAGE2 if data.get("scenario") is None else _scenario(data["scenario"], folder)
    size = tables.size_of(scenario)
    actions, outcomes = np.empty(len(steps), np.int64), np.full(len(steps), -1, dice.chance_dtype(size))
    outcomes["recorded"] = True
    expected = np.zeros(len(steps), record_dtype(size))
    for t, values in enumerate(steps):
        if not isinstance(values, list) or len(values) != 8:
            raise ValueError(f"step {t + 1} must have 8 values, got {str(values)[:60]}")
        blue, chance, *result = values
        if not 0 <= _whole("blue action", blue) < scenario.num_actions:
            raise ValueError(f"step {t + 1}: blue action {blue} is not in 0..{scenario.num_actions - 1}")
        actions[t] = blue
        expected[t] = (_made(chance, scenario), *_result(scenario, *result))
        for name, value in chance:
            outcome = _outcome(name, value, scenario)
            if isinstance(outcome, list):
                outcomes[name][t, : len(outcome)] = outcome
            else:
                outcomes[name][t] = outcome
    return RecordedEpisode(
        id=data["id"],
        scenario=scenario,
        red=state.LEARNED if data["red"] == LEARNED_RED else _index("red", data["red"], (*RED_AGENTS, LEARNED_RED)),
        green=bool(_index("green", data["green"], ("sleep", "agent"))),
        variant=get_args(parts.VariantName)[_index("variant", data.get("variant", "current"), get_args(parts.VariantName))],
        policy=str(data.get("policy", "")),
        return10=_whole("return10", data["return10"]),
        pid_reused=None if data.get(PID_REUSED) is None else _whole(PID_REUSED, data[PID_REUSED]),
        actions=actions,
        outcomes=outcomes,
        expected=expected,
    )


def _scenario(name: Any, folder: Path) -> Scenario:
    """Return the scenario of a file beside the recording."""
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError(f"scenario must be the name of a file beside the recording, got {name!r}")
    return _loaded(folder / name)


@lru_cache(maxsize=64)  # every episode of a file names it
def _loaded(path: Path) -> Scenario:
    return Scenario.load(path)


def _made(chance: list[Any], scenario: Scenario) -> int:
    """Return the set of decisions made, as a bit mask; they always come in the same order."""
    order = decisions(scenario)
    places = [order.index(_word_of("chance decision", name, order)) for name, _ in chance]
    if places != sorted(set(places)):
        raise ValueError(f"chance decisions must come once each, in the order {', '.join(order)}; got {chance}")
    return sum(1 << dice.Decision[order[place].upper()] for place in places)


def _outcome(name: str, value: Any, scenario: Scenario) -> int | list[int]:
    letters = HOST_LETTERS[: scenario.num_hosts]
    if name in ("addresses", "names"):
        if sorted(value) != sorted(letters):
            raise ValueError(f"{name} must hold each of {letters} once, got {value!r}")
        return [letters.index(letter) for letter in value]
    if name == "green_host" and value is None:
        return dice.VOID_NAME
    if name in ("green_host", "user"):
        return _index(name, value, letters)
    return _index(name, value, {"other": scenario.exploit_names, "misinform": _MADE_UP}.get(name, (0, 1)))


def _result(
    scenario: Scenario, red: list[Any], observation: str, reward10: int, access: str, malware: str, ot: str
) -> tuple[Any, ...]:
    """Return the values of `record_dtype` after `chances`."""
    verb, target, success, exploit = red
    hosts, words = scenario.num_hosts, tables.size_of(scenario).words
    subnets = scenario.subnet_names if target in scenario.subnet_names else subnet_words(scenario)
    targets = subnets if verb == "discover" else HOST_LETTERS[:hosts]
    _word("access", access, "0rsbp", hosts)
    seen = _packed(_word("observation", observation, "0123456789abcdef", len(scenario.listed)))
    return (
        _index("red verb", verb, RED_VERBS),
        state.NO_TARGET if target is None else _index("red target", target, targets),
        -1 if exploit is None else _index("exploit", exploit, scenario.exploit_names),
        _index("red success", success, (-1, 0, 1)) - 1,
        _mask(access, "p"),
        _mask(access, "rb"),
        _mask(access, "sb"),
        _mask(_word("malware", malware, "01", hosts), "1"),
        _index("ot", ot, OT_NAMES),
        [seen >> 64 * k & 2**64 - 1 for k in range(words)],
        _whole("reward10", reward10),
    )


def _word_of(what: str, value: Any, allowed: Sequence[str]) -> str:
    return allowed[_index(what, value, allowed)]


def _index(what: str, value: Any, allowed: Sequence[Any]) -> int:
    if value not in tuple(allowed):
        raise ValueError(f"{what} is {value!r}, not one of {', '.join(map(str, allowed))}")
    return tuple(allowed).index(value)


@lru_cache(maxsize=4096)  # words come again and again
def _mask(word: str, members: str) -> int:
    return sum(1 << h for h, letter in enumerate(word) if letter in members)


@lru_cache(maxsize=4096)
def _packed(observation: str) -> int:
    """A hex digit per host, its first position the highest bit, as the kernel packs it: the first position the lowest."""
    digits = [int(f"{int(digit, 16):04b}"[::-1], 2) for digit in observation]
    return sum(digit << 4 * h for h, digit in enumerate(digits))


def _word(what: str, value: Any, letters: str, length: int) -> str:
    if not isinstance(value, str) or len(value) != length or not set(value) <= set(letters):
        raise ValueError(f"{what} must be {length} of the letters {letters}, got {value!r}")
    return value


def _whole(what: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{what} must be a whole number, got {value!r}")
    return value
