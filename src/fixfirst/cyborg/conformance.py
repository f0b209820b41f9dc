"""Replays recorded CybORG episodes through the kernel and compares everything that was recorded, step by step.

The recorded chance outcomes replace the kernel's own draws (`chance.py`); all else must follow: which chances were taken,
what red did and whether it worked, what blue saw, the reward, red's access and files per host, the OT service.
Not compared: process ids, addresses and ephemeral ports, which have no effect.
The file format is described in `docs/cyborg.md`.

T = steps of an episode. A recording is decoded into two arrays: outcomes [T] (CHANCE_DTYPE) that drive the kernel, and
what must come out [T] (RECORD_DTYPE), whose fields are named as in the kernel's own state.
"""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import numpy as np

from fixfirst.base import errors, files
from fixfirst.game import rules
from fixfirst.game.attackers import own_addresses
from fixfirst.game.chance import CHANCE_DTYPE, Decision
from fixfirst.game.scenario import CAGE2, VARIANT_ID, VariantName
from fixfirst.game.state import NO_TARGET, STATE_DTYPE, OTService, RedAgent, RedVerb

HOST_LETTERS = "abcdefghijklm"
SUBNET_LETTERS = "".join(name[0] for name in CAGE2.subnet_names)
RED_AGENTS = tuple(agent.name.lower() for agent in RedAgent)
RED_VERBS = tuple(verb.name.lower() for verb in RedVerb)
OT_NAMES = tuple(state.name.lower() for state in OTService)
PID_REUSED = "pid_reused"  # field of an episode: the step in which a process got a process id that blue had noted before
LONGEST_EPISODE = 4 * files.MB  # as a line of text; one of 100 steps has 10 kB
DECISIONS = tuple(d.name.lower() for d in Decision if d not in (Decision.AGENT, Decision.REFUSED))

# What a recording says of a step, in the order in which a difference explains itself best.
_RECORDED: tuple[str, ...] = ("chances", "red_verb", "red_target", "red_exploit", "red_success")
_RECORDED += ("privileged", "removable", "stubborn", "malware", "ot", "observation")
RECORD_DTYPE = np.dtype([(name, STATE_DTYPE[name]) for name in _RECORDED] + [("reward10", np.int32)])


@dataclass(frozen=True)
class RecordedEpisode:
    """One recorded episode of T steps."""

    id: Any
    red: RedAgent
    green: bool
    variant: VariantName
    policy: str
    return10: int
    pid_reused: int | None  # from this step on (from 1) a process id may matter, which the model does without
    actions: np.ndarray  # [T] int64, blue's
    outcomes: np.ndarray  # [T] CHANCE_DTYPE
    expected: np.ndarray  # [T] RECORD_DTYPE


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


def replay_file(path: Path, report: ReplayReport) -> None:
    """Replay every episode of a file, adding to `report`."""
    for episode in read_episodes(path):
        report.episodes += 1
        report.steps += len(episode.actions)
        mismatch = compare(episode, replay(episode), path.name)
        if mismatch is not None:
            by_pid = episode.pid_reused is not None and mismatch.step >= episode.pid_reused
            (report.coincidences if by_pid else report.mismatches).append(mismatch)


def replay(episode: RecordedEpisode) -> np.ndarray:
    """Drive the kernel with the recorded actions and outcomes. Returns what came out, [T] RECORD_DTYPE."""
    states, chances, odds = np.zeros(1, STATE_DTYPE), np.zeros(1, CHANCE_DTYPE), np.zeros((1, len(RedAgent)))
    odds[0, episode.red :] = 1.0
    observations, words = np.empty((1, CAGE2.observation_bits), np.int8), np.empty(1, np.uint64)
    access, rewards10, ended = np.empty((1, CAGE2.num_hosts), np.uint8), np.empty(1, np.int32), np.empty(1, np.bool_)
    finals = observations.copy(), access.copy(), np.empty(1, np.int32), np.empty(1, np.int32)
    own = own_addresses(())
    settings = VARIANT_ID[episode.variant], episode.green, 0, rules.DISABLED

    rules.reset_batch(states, chances, odds, np.ones(1, np.bool_), observations, words, access)
    trace = np.empty(len(episode.actions), STATE_DTYPE)
    got = np.empty(len(episode.actions), RECORD_DTYPE)
    for t in range(len(trace)):
        chances[:] = episode.outcomes[t]
        actions = episode.actions[t : t + 1]
        rules.step_batch(
            states, chances, odds, own, actions, *settings, observations, words, access, rewards10, ended, *finals
        )
        trace[t] = states[0]
        got["reward10"][t] = rewards10[0]
    for name in _RECORDED:
        got[name] = trace[name]
    return got


def compare(episode: RecordedEpisode, got: np.ndarray, file: str = "") -> Mismatch | None:
    """The first difference between a recording and what came out of the kernel, or None."""
    same = got == episode.expected  # [T]
    if not same.all():
        step = int(np.argmin(same))
        expected_facts, got_facts = _in_words(episode.expected[step]), _in_words(got[step])
        for name, expected in expected_facts.items():
            actual = got_facts[name]
            if expected == actual:
                continue
            if isinstance(expected, dict):
                host = next(h for h in CAGE2.host_names if expected[h] != actual[h])
                return Mismatch(file, episode.id, step + 1, name, host, expected[host], actual[host])
            return Mismatch(file, episode.id, step + 1, name, None, expected, actual)
        raise AssertionError(f"step {step + 1} of episode {episode.id} differs in something that has no words")
    if (total := int(got["reward10"].sum())) != episode.return10:
        return Mismatch(file, episode.id, len(got), "return10", None, episode.return10, total)
    return None


def _in_words(record: np.void) -> dict[str, Any]:
    """A step as recordings write it: field -> value, or field -> host -> value."""
    verb, target, exploit = RedVerb(record["red_verb"]), int(record["red_target"]), int(record["red_exploit"])
    target_letters = SUBNET_LETTERS if verb == RedVerb.DISCOVER else HOST_LETTERS
    observation, chances = int(record["observation"]), int(record["chances"])
    by_host: dict[str, dict[str, str]] = {"access": {}, "malware": {}, "observation": {}}
    for h, name in enumerate(CAGE2.host_names):
        sessions = (record["removable"] >> h & 1) + 2 * (record["stubborn"] >> h & 1)
        by_host["access"][name] = "p" if record["privileged"] >> h & 1 else "0rsb"[sessions]
        by_host["malware"][name] = str(record["malware"] >> h & 1)
        by_host["observation"][name] = format(observation >> 4 * h & 15, "04b")[::-1]
    return {
        "chance decisions": [name for bit, name in enumerate(DECISIONS) if chances >> bit & 1],
        "chance outcomes possible": not chances >> Decision.REFUSED & 1,
        "red verb": RED_VERBS[verb],
        "red target": None if target == NO_TARGET else target_letters[target],
        "red exploit": None if exploit < 0 else CAGE2.exploit_names[exploit],
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
                yield _episode(files.parse_json(line))
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


def _episode(data: dict[str, Any]) -> RecordedEpisode:
    if not isinstance(data, dict):
        raise ValueError(f"expected a JSON object, got {str(data)[:60]}")
    steps = data["steps"]
    if not isinstance(steps, list):
        raise ValueError(f"steps must be a list, got {str(steps)[:60]}")
    actions, outcomes = np.empty(len(steps), np.int64), np.full(len(steps), -1, CHANCE_DTYPE)
    outcomes["recorded"] = True
    expected = np.zeros(len(steps), RECORD_DTYPE)
    for t, values in enumerate(steps):
        if not isinstance(values, list) or len(values) != 8:
            raise ValueError(f"step {t + 1} must have 8 values, got {str(values)[:60]}")
        blue, chance, *result = values
        if not 0 <= _whole("blue action", blue) < CAGE2.num_actions:
            raise ValueError(f"step {t + 1}: blue action {blue} is not in 0..{CAGE2.num_actions - 1}")
        actions[t] = blue
        for name, value in chance:
            outcomes[name][t] = _outcome(name, value)
        expected[t] = (_decisions(chance), *_result(*result))
    return RecordedEpisode(
        id=data["id"],
        red=RedAgent(_index("red", data["red"], RED_AGENTS)),
        green=bool(_index("green", data["green"], ("sleep", "agent"))),
        variant=get_args(VariantName)[_index("variant", data.get("variant", "current"), get_args(VariantName))],
        policy=str(data.get("policy", "")),
        return10=_whole("return10", data["return10"]),
        pid_reused=None if data.get(PID_REUSED) is None else _whole(PID_REUSED, data[PID_REUSED]),
        actions=actions,
        outcomes=outcomes,
        expected=expected,
    )


def _decisions(chance: list[Any]) -> int:
    """The set of decisions made, as a bit mask; they always come in the same order."""
    bits = [DECISIONS.index(name) for name, _ in chance]
    if bits != sorted(set(bits)):
        raise ValueError(f"chance decisions must come once each, in the order {', '.join(DECISIONS)}; got {chance}")
    return sum(1 << bit for bit in bits)


def _outcome(name: str, value: Any) -> int | list[int]:
    _index("chance decision", name, DECISIONS)
    if name in ("addresses", "names"):
        if sorted(value) != list(HOST_LETTERS):
            raise ValueError(f"{name} must hold each of {HOST_LETTERS} once, got {value!r}")
        return [HOST_LETTERS.index(letter) for letter in value]
    if name in ("green_host", "user"):
        return _index(name, value, HOST_LETTERS)
    return _index(name, value, CAGE2.exploit_names if name == "other" else (0, 1))


def _result(red: list[Any], observation: str, reward10: int, access: str, malware: str, ot: str) -> tuple[int, ...]:
    """The values of RECORD_DTYPE after `chances`."""
    verb, target, success, exploit = red
    letters = SUBNET_LETTERS if verb == "discover" else HOST_LETTERS
    _word("access", access, "0rsbp")
    return (
        _index("red verb", verb, RED_VERBS),
        NO_TARGET if target is None else _index("red target", target, letters),
        -1 if exploit is None else _index("exploit", exploit, CAGE2.exploit_names),
        _index("red success", success, (-1, 0, 1)) - 1,
        _mask(access, "p"),
        _mask(access, "rb"),
        _mask(access, "sb"),
        _mask(_word("malware", malware, "01"), "1"),
        _index("ot", ot, OT_NAMES),
        _packed(_word("observation", observation, "0123456789abcdef")),
        _whole("reward10", reward10),
    )


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


def _word(what: str, value: Any, letters: str) -> str:
    if not isinstance(value, str) or len(value) != CAGE2.num_hosts or not set(value) <= set(letters):
        raise ValueError(f"{what} must be {CAGE2.num_hosts} of the letters {letters}, got {value!r}")
    return value


def _whole(what: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{what} must be a whole number, got {value!r}")
    return value
