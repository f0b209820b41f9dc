"""Replays recorded CybORG episodes through the kernel and compares everything that was recorded, step by step.

The recorded chance outcomes replace the kernel's own draws (`chance.py`); all else must follow: which chances were taken,
what red did and whether it worked, what blue saw, the reward, red's access and files per host, the OT service.
Not compared: process ids, addresses and ephemeral ports, which have no effect.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.base import errors
from fixfirst.cyborg.recordings import (
    LEARNED_RED,
    OT_NAMES,
    RecordedEpisode,
    Step,
    observation_word,
    outcome_words,
    read_episodes,
    red_words,
)
from fixfirst.game.chance import Decision
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World


@dataclass(frozen=True)
class Mismatch:
    """The first point at which the kernel and a recording differ."""

    file: str
    episode: Any
    step: int  # from 1
    field: str
    host: str | None
    expected: object
    got: object

    def __str__(self) -> str:
        host = f" of {self.host}" if self.host else ""
        where = f"{self.file}, episode {self.episode}, step {self.step}"
        return errors.in_one_line(f"{where}: {self.field}{host}: expected {self.expected!r}, got {self.got!r}")


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
        report.steps += len(episode.steps)
        mismatch = first_difference(episode, path.name)
        if mismatch is not None:
            by_pid = episode.pid_reused is not None and mismatch.step >= episode.pid_reused
            (report.coincidences if by_pid else report.mismatches).append(mismatch)


def first_difference(episode: RecordedEpisode, file: str = "") -> Mismatch | None:
    """Return the first difference between a recording and what comes out of the kernel, or None."""
    for number, (expected, got) in enumerate(zip(episode.steps, replay(episode), strict=True), start=1):
        if expected != got:
            name = next(name for name in Step._fields if getattr(expected, name) != getattr(got, name))
            return _mismatch(file, episode, number, name, getattr(expected, name), getattr(got, name))
    total = sum(step.reward10 for step in episode.steps)
    if total != episode.return10:
        return Mismatch(file, episode.id, len(episode.steps), "return10", None, episode.return10, total)
    return None


def _mismatch(file: str, episode: RecordedEpisode, number: int, name: str, expected: Any, got: Any) -> Mismatch:
    """Return the mismatch of a fact of a step; of one that has a letter per host, with the first host that differs."""
    host = None
    if name in ("access", "malware", "observation"):
        at = next(at for at, letter in enumerate(expected) if letter != got[at])
        hosts = episode.scenario.listed if name == "observation" else range(episode.scenario.num_hosts)
        host, expected, got = episode.scenario.host_names[hosts[at]], expected[at], got[at]
    if name == "observation":
        expected, got = (f"{int(digit, 16):04b}" for digit in (expected, got))
    if name == "chance_decisions":
        expected, got = list(expected), list(got)
    return Mismatch(file, episode.id, number, name.replace("_", " "), host, expected, got)


def replay(episode: RecordedEpisode) -> Iterator[Step]:
    """Drive the kernel with the recorded actions and outcomes, and yield what comes of every step."""
    scenario, learned = episode.scenario, episode.red == LEARNED_RED
    red = "sleep" if learned else episode.red
    game = Game(scenario=scenario, red_agent=red, green=episode.green, variant=episode.variant, max_steps=None)
    world, refused = World(game, 1), 1 << Decision.REFUSED
    decisions = {name: 1 << Decision[name.upper()] for name in outcome_words(scenario)}
    if learned:
        world.meet(_RecordedRed(episode.intents), [1.0])
    world.reset(0)
    states, _, chances, *_ = world.inside()
    nothing_recorded = np.full(1, -1, chances.dtype)
    nothing_recorded["recorded"] = True
    for t, outcomes in enumerate(episode.outcomes):
        chances[:] = nothing_recorded
        for name, outcome in outcomes.items():
            chances[name].reshape(-1)[: np.size(outcome)] = outcome
        world.step(episode.actions[t : t + 1])
        env = dict(zip(states.dtype.names or (), states[0].item(), strict=True))
        yield Step(
            tuple(name for name, bit in decisions.items() if env["chances"] & bit),
            not env["chances"] & refused,
            *red_words(scenario, env["red_verb"], env["red_target"], env["red_success"], env["red_exploit"]),
            _access_word(env["removable"], env["stubborn"], env["privileged"], scenario.num_hosts),
            f"{env['malware']:0{scenario.num_hosts}b}"[::-1],
            observation_word(world.observations),
            OT_NAMES[env["ot"]],
            int(world.rewards10[0]),
        )


@lru_cache(maxsize=4096)  # sets come again and again
def _access_word(removable: int, stubborn: int, privileged: int, hosts: int) -> str:
    """Return a letter per host: removable, stubborn, both, privileged, or none of it."""
    kinds = ((removable >> h & 1) + 2 * (stubborn >> h & 1) + 4 * (privileged >> h & 1) for h in range(hosts))
    return "".join("0rsbpppp"[kind] for kind in kinds)


class _RecordedRed:
    """Decides what a recorded attacker decided; whether that was possible, and what came of it, is not written down."""

    def __init__(self, intents: list[tuple[int, int]]):
        self._intents = iter(intents)

    def decide(self, states: np.ndarray, chances: np.ndarray) -> None:
        states["red_verb"], states["red_target"] = next(self._intents)

    def conclude(self, states: np.ndarray) -> None:
        pass
