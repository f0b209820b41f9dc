"""Red as a player: what it may choose, what it reads, what it believes. Only what CybORG tells red, or what red did itself.

H hosts, S subnets, E exploits, A choices, M pairs of a host and an exploit. *Plain* red leaves it to the game which exploit
is used, as B_line and Meander do; *picky* red may name it. A row is all that red reads, packed into words of 64 bits, then
the set of choices that are masked, and in the last byte which of several attackers reads it (`policy/reds.py`).

Beliefs are kept in the record, in the fields that Meander uses as well and in a few more. They follow from red's own actions
and what was reported about them: a session that blue has killed is believed to be there until something fails.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import uint64

from fixfirst.base.compile import compiled, inlined
from fixfirst.game import parts
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.state import LEARNED, NO_TARGET, RedVerb, Success

CLOCK = (5, 10, 20, 40, 60, 80)  # steps from which on a bit of the clock is set
SLEEPS = (1, 2, 4, 8)  # turns slept in a row, likewise
NO_WISH = -1
_FRUITLESS = (parts.NOTHING, parts.NO_PASSWORD, parts.IMMUNE)
OWNER_BITS = 8


class RedChoice(NamedTuple):
    """What red may choose: a verb, its target, and the exploit that it names (NO_WISH: the game draws one)."""

    verb: RedVerb
    target: int
    wish: int = NO_WISH


class RedArrays(NamedTuple):
    """What red reads and chooses, for compiled functions."""

    starts: np.ndarray  # [len(Group)] int64: the bit of a row at which each group begins
    ports: np.ndarray  # [extra ports, 2] int64: host and port, as a set of one, that is open there only by a decoy
    pairs: np.ndarray  # [M] int64: the host of each choice that names an exploit
    gates: np.ndarray  # [S] int64: hosts of which red must hold one to reach the subnet; 0: holding some changes nothing
    subnets: np.ndarray  # [H] int64: of each host
    verbs: np.ndarray  # [A] int64: of each choice, likewise:
    targets: np.ndarray  # [A] int64
    wishes: np.ndarray  # [A] int64
    hosts: int  # H
    target: int
    words: int  # of a row's bits


class BitGroup(IntEnum):
    """The groups of bits that red reads, in their order."""

    VERB = 0  # of its last action, as one of RedVerb; then its target
    HOST = 1
    SUBNET = 2
    WORKED = 3
    ANSWERED = 4  # to a scan
    EXPLOIT = 5  # the one that was used, if red knows
    RESISTED_NOW = 6  # something answered, and yet it failed
    KNOWN_SUBNETS = 7
    KNOWN_HOSTS = 8
    SCANNED = 9
    PORTS = 10  # seen open, and open there only by a decoy
    HELD = 11  # as red believes, likewise:
    ROOT = 12
    NAMES = 13  # of hosts once broken into
    LOST = 14
    FAILED = 15
    FAILED_AGAIN = 16
    RESISTED = 17
    OT_KNOWN = 18
    IMPACT = 19  # was reported as a success
    CLOCK = 20
    SLEEPS = 21


@dataclass(frozen=True)
class RedSpec:
    """Red's side of the game: a role for the learner as `PolicySpec` is blue's. picky: it may name its exploit."""

    scenario: Scenario = CAGE2
    picky: bool = False

    @cached_property
    def choices(self) -> tuple[RedChoice, ...]:
        """What each number stands for; picky red has more at the end."""
        hosts, target = range(self.scenario.num_hosts), self.scenario.target_id
        plain = [RedChoice(RedVerb.DISCOVER, subnet) for subnet in range(len(self.scenario.subnets))]
        plain += [RedChoice(verb, host) for verb in (RedVerb.SCAN, RedVerb.EXPLOIT, RedVerb.ESCALATE) for host in hosts]
        plain += [RedChoice(RedVerb.IMPACT, max(target, 0)), RedChoice(RedVerb.SLEEP, NO_TARGET)]  # masked without a target
        return (*plain, *(RedChoice(RedVerb.EXPLOIT, host, wish) for host, wish in self._pairs if self.picky))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The choices in words, as files name them."""
        return tuple(self._name(choice) for choice in self.choices)

    def _name(self, choice: RedChoice) -> str:
        if choice.verb == RedVerb.SLEEP:
            return "Sleep"
        places = self.scenario.subnet_names if choice.verb == RedVerb.DISCOVER else self.scenario.host_names
        weapon = f" ({self.scenario.exploit_names[choice.wish]})" if choice.wish >= 0 else ""
        return f"{choice.verb.name.capitalize()} {places[choice.target]}{weapon}"

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        """Hosts beside the foothold, and the exploits that can work there."""
        return [
            (number, weapon)
            for number, host in enumerate(self.scenario.hosts)
            for weapon, exploit in enumerate(self.scenario.exploits)
            if host.name != self.scenario.start and exploit.meets(host) not in _FRUITLESS
        ]

    @cached_property
    def _extra_ports(self) -> list[tuple[int, int]]:
        """Hosts and ports that are open there only by a decoy."""
        scenario = self.scenario
        return [
            (number, scenario.ports_mask(port))
            for number, host in enumerate(scenario.hosts)
            for port in sorted({d.opens for d in scenario.decoys if d.fits(host) and d.needs_free not in host.ports})
            if port not in host.ports
        ]

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        """How many bits each group has."""
        hosts, subnets = self.scenario.num_hosts, len(self.scenario.subnets)
        last = (len(RedVerb), hosts, subnets, 1, 1, len(self.scenario.exploits), 1)
        known = (subnets, hosts, hosts, len(self._extra_ports), hosts, hosts, hosts, hosts)
        return (*last, *known, hosts, hosts, hosts, 1, 1, len(CLOCK), len(SLEEPS))

    @property
    def inputs(self) -> int:
        """How many bits it reads."""
        return sum(self._sizes)

    @property
    def actions(self) -> int:
        """How many choices it has."""
        return len(self.choices)

    @property
    def words(self) -> int:
        """Words of bits in a row."""
        return -(-self.inputs // 64)

    @property
    def row_words(self) -> int:
        """Words of a row: of its bits, and of the choices that are masked, with a byte for whose row it is."""
        return self.words + -(-(self.actions + OWNER_BITS) // 64)

    def allowed(self, rows: np.ndarray) -> np.ndarray:
        """Return the choices that rows [M, row words] leave, [M, A] bool."""
        masks = np.ascontiguousarray(rows[:, self.words :]).astype("<u8").view(np.uint8)
        return np.unpackbits(masks, axis=1, bitorder="little", count=self.actions) == 0

    def read(self, states: np.ndarray, rows: np.ndarray) -> None:
        """Fill rows [N, row words] with what red reads in states [N]."""
        _read_all(states, self.arrays, self.picky, rows)

    def conclude(self, states: np.ndarray) -> None:
        """Let learned attackers draw their conclusions from the turn that has just been played in states [N]."""
        _conclude_all(states, self.arrays)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values, as red.json has it."""
        return {"picky": self.picky, "inputs": self.inputs, "choices": list(self.names)}

    @cached_property
    def arrays(self) -> RedArrays:
        """What red reads and chooses, for compiled functions."""
        scenario = self.scenario
        gate = scenario.name_mask(parts.GATE_WORD)
        return RedArrays(
            starts=np.concatenate([[0], np.cumsum(self._sizes)[:-1]]).astype(np.int64),
            ports=np.array(self._extra_ports, np.int64).reshape(-1, 2),
            pairs=np.array([choice.target for choice in self.choices if choice.wish >= 0], np.int64),
            gates=np.array([gate if subnet.reach == "gated" else 0 for subnet in scenario.subnets], np.int64),
            subnets=np.array([host.subnet for host in scenario.hosts], np.int64),
            verbs=np.array([choice.verb for choice in self.choices], np.int64),
            targets=np.array([choice.target for choice in self.choices], np.int64),
            wishes=np.array([choice.wish for choice in self.choices], np.int64),
            hosts=scenario.num_hosts,
            target=scenario.target_id,
            words=self.words,
        )


@inlined
def digest(env, gates, subnets):
    """Let red draw its conclusions from the result of the turn that has just ended. Once per turn."""
    verb, worked = env.red_verb, env.red_success == Success.TRUE
    env.sleeps = min(env.sleeps + 1, 255) if verb == RedVerb.SLEEP else 0
    if verb == RedVerb.SLEEP:
        return
    bit = 1 << env.red_target
    if verb == RedVerb.DISCOVER:
        if not worked:
            lose(env, gates[env.red_target])
    elif verb == RedVerb.SCAN:
        if env.scan_answered:
            clear_failures(env, bit)
        else:
            lose(env, gates[subnets[env.red_target]])
    elif verb == RedVerb.EXPLOIT:
        if worked:
            env.exploited |= bit
            env.breached |= bit
            env.lost &= ~bit
            clear_failures(env, bit)
        else:
            env.failed_again |= env.failed & bit
            env.failed |= bit
            if env.red_met:
                env.resisted |= bit
    elif not worked:
        lose(env, bit)
    elif verb == RedVerb.ESCALATE:
        env.exploited |= bit
        env.escalated |= bit
    else:
        env.impact_reported = True


@inlined
def lose(env, hosts):
    """Let red believe that it holds none of these hosts."""
    env.lost |= env.exploited & hosts
    env.exploited &= ~hosts
    env.escalated &= ~hosts


@inlined
def clear_failures(env, bit):
    env.failed &= ~bit
    env.failed_again &= ~bit
    env.resisted &= ~bit


def beliefs_of(states: np.ndarray, hosts: int) -> np.ndarray:
    """Return what learned attackers believe to have on hosts, [N, H]: 0 nothing, 1 user, 2 root, 3 lost; 0 of scripts."""
    learned = states["red_agent"] >= LEARNED
    held, root, lost = (
        (np.where(learned, states[name], 0)[:, None] >> np.arange(hosts) & 1).astype(np.uint8)
        for name in ("exploited", "escalated", "lost")
    )
    return np.where(root | held, 1 + root, 3 * lost).astype(np.uint8)


@inlined
def read_red(env, starts, ports, pairs, hosts, target, words, owner, picky, rows, i):
    """Write what red reads, the choices that are masked, and whose row it is, into row i of rows [N, row words]."""
    for k in range(rows.shape[1]):
        rows[i, k] = uint64(0)
    scanned = 0
    for host in range(hosts):
        if env.remembered[host] != 0:
            scanned |= 1 << host
    read_last_turn(env, starts, rows, i)
    put(rows, i, starts[BitGroup.KNOWN_SUBNETS], env.known_subnets)
    put(rows, i, starts[BitGroup.KNOWN_HOSTS], env.known_hosts)
    put(rows, i, starts[BitGroup.SCANNED], scanned)
    for p in range(len(ports)):
        put(rows, i, starts[BitGroup.PORTS] + p, env.remembered[ports[p, 0]] & ports[p, 1] != 0)
    put(rows, i, starts[BitGroup.HELD], env.exploited)
    put(rows, i, starts[BitGroup.ROOT], env.escalated)
    put(rows, i, starts[BitGroup.NAMES], env.breached)
    put(rows, i, starts[BitGroup.LOST], env.lost)
    put(rows, i, starts[BitGroup.FAILED], env.failed)
    put(rows, i, starts[BitGroup.FAILED_AGAIN], env.failed_again)
    put(rows, i, starts[BitGroup.RESISTED], env.resisted)
    put(rows, i, starts[BitGroup.OT_KNOWN], env.ot_known)
    put(rows, i, starts[BitGroup.IMPACT], env.impact_reported)
    for mark in range(len(CLOCK)):
        put(rows, i, starts[BitGroup.CLOCK] + mark, env.step >= CLOCK[mark])
    for mark in range(len(SLEEPS)):
        put(rows, i, starts[BitGroup.SLEEPS] + mark, env.sleeps >= SLEEPS[mark])
    subnets = starts[BitGroup.KNOWN_HOSTS] - starts[BitGroup.KNOWN_SUBNETS]
    mask_choices(env, scanned, pairs, hosts, target, subnets, picky, words, rows, i)
    rows[i, rows.shape[1] - 1] |= uint64(owner) << uint64(64 - OWNER_BITS)


@inlined
def read_last_turn(env, starts, rows, i):
    """Write what red did last and what was reported. Which exploit the game drew shows only if something answered."""
    if env.step == 0:
        return
    put(rows, i, starts[BitGroup.VERB] + env.red_verb, 1)
    if env.red_verb != RedVerb.SLEEP:
        group = BitGroup.SUBNET if env.red_verb == RedVerb.DISCOVER else BitGroup.HOST
        put(rows, i, starts[group] + env.red_target, 1)
    put(rows, i, starts[BitGroup.WORKED], env.red_success == Success.TRUE)
    put(rows, i, starts[BitGroup.ANSWERED], env.red_verb == RedVerb.SCAN and env.scan_answered)
    if env.red_exploit >= 0 and (env.red_met or env.red_wish >= 0):
        put(rows, i, starts[BitGroup.EXPLOIT] + env.red_exploit, 1)
    met = env.red_verb == RedVerb.EXPLOIT and env.red_met
    put(rows, i, starts[BitGroup.RESISTED_NOW], met and env.red_success != Success.TRUE)


@inlined
def mask_choices(env, scanned, pairs, hosts, target, subnets, picky, words, rows, i):
    """Mask what red does not know enough for. Sleep is never masked."""
    everywhere, first, names = (1 << hosts) - 1, 64 * words, env.known_names
    open_to_attack = env.known_hosts & scanned
    put(rows, i, first, ~env.known_subnets & (1 << subnets) - 1)
    put(rows, i, first + subnets, ~env.known_hosts & everywhere)
    put(rows, i, first + subnets + hosts, ~open_to_attack & everywhere)
    put(rows, i, first + subnets + 2 * hosts, ~names & everywhere)
    put(rows, i, first + subnets + 3 * hosts, ~(names >> target) & 1 if target >= 0 else 1)
    for p in range(len(pairs)):
        put(rows, i, first + subnets + 3 * hosts + 2 + p, 1 - (picky and open_to_attack >> pairs[p] & 1))


@inlined
def put(rows, i, at, bits):
    """OR bits into row i from bit `at` on, into two words if need be."""
    word, shift, more = at >> 6, uint64(at & 63), uint64(bits)
    rows[i, word] |= more << shift
    if shift and more >> (uint64(64) - shift):
        rows[i, word + 1] |= more >> (uint64(64) - shift)


@compiled
def _read_all(states, view, picky, rows):
    words = view.words
    for i in range(len(states)):
        env = states[i]
        read_red(env, view.starts, view.ports, view.pairs, view.hosts, view.target, words, 0, picky, rows, i)


@compiled
def _conclude_all(states, view):
    for i in range(len(states)):
        if states[i].red_agent >= LEARNED and states[i].step > 0:  # else no turn is behind it
            digest(states[i], view.gates, view.subnets)
