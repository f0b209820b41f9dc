"""Simple defenders: what CybORG is recorded with, and the baselines, the few that can be evaluated like policies.

A defender maps observations [N, bits] to actions [N]. Those that draw, or remember something, are made anew for every
episode: `DEFENDERS` makes each of them for a scenario, N environments and a generator. H hosts, D decoys.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from fixfirst.base import errors
from fixfirst.game import parts
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders.order import Workflow
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.turns import Moment, Player

Choose = Callable[[np.ndarray], np.ndarray]
_MakeDefender = Callable[[Scenario, int, np.random.Generator], Choose]

_USER, _PRIVILEGED = 2, 3
_FOUR_DECOYS = ("HarakaSMPT", "Tomcat", "Vsftpd", "Apache")
_USEFUL_DECOYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Enterprise0": _FOUR_DECOYS,
        "Op_Server0": _FOUR_DECOYS,
        "Enterprise1": ("Femitter",),
        "Enterprise2": ("Femitter",),
        "User1": ("Apache", "Tomcat", "Smss", "Svchost"),
        "User2": ("Femitter", "Tomcat", "Apache", "SSHD"),
        "User3": ("Vsftpd", "SSHD"),
        "User4": ("Vsftpd",),
    }
)
_PUT_BACK = {**_USEFUL_DECOYS, "Op_Server0": ("HarakaSMPT", "Apache", "Tomcat", "Vsftpd")}  # in another order than at first


class HostActions(NamedTuple):
    """The ids of a scenario's actions, by host."""

    analyse: np.ndarray  # [H]
    remove: np.ndarray  # [H]
    restore: np.ndarray  # [H]
    decoys: np.ndarray  # [H, D]


@cache
def host_actions(scenario: Scenario) -> HostActions:
    """Return the action ids of a scenario; computed once."""

    def block(verb: str) -> np.ndarray:
        there = verb in scenario.verbs
        return np.array([scenario.action_id(verb, host) if there else scenario.sleep_id for host in scenario.host_names])

    verbs = [f"Decoy{decoy.name}" for decoy in scenario.decoys] or ["Misinform"]
    decoys = np.column_stack([block(verb) for verb in verbs])
    return HostActions(block("Analyse"), block("Remove"), block("Restore"), decoys)


def _beliefs(obs: np.ndarray, scenario: Scenario) -> np.ndarray:
    """Return what is believed of each host [N, H]: 0 clean or not listed, 1 unknown, 2 user, 3 privileged."""
    bits = obs.reshape(len(obs), -1, parts.BITS_PER_HOST)
    beliefs = np.zeros((len(obs), scenario.num_hosts), np.int64)
    beliefs[:, list(scenario.listed)] = bits[:, :, 2] + 2 * bits[:, :, 3]
    return beliefs


def _sleep(scenario: Scenario, n: int, rng: np.random.Generator) -> Choose:
    """Do nothing."""
    return lambda obs: np.full(len(obs), scenario.sleep_id)


def _repair_first(block: str, least: int) -> _MakeDefender:
    """Repair the lowest host of which at least this is believed, by the actions of this block."""

    def make(scenario: Scenario, n: int, rng: np.random.Generator) -> Choose:
        actions: np.ndarray = getattr(host_actions(scenario), block)

        def choose(obs: np.ndarray) -> np.ndarray:
            hosts = _beliefs(obs, scenario) >= least
            return np.where(hosts.any(axis=1), actions[hosts.argmax(axis=1)], scenario.sleep_id)

        return choose

    return make


def _uniform(scenario: Scenario, n: int, rng: np.random.Generator) -> Choose:
    """Take any action."""
    return lambda obs: rng.integers(0, scenario.num_actions, n)


def _restore_target_first(scenario: Scenario, n: int, rng: np.random.Generator) -> Choose:
    """Restore the target in the first step, then sleep."""
    sleep = scenario.sleep_id
    restore = sleep if scenario.target is None else host_actions(scenario).restore[scenario.target_id]
    first = iter([np.full(n, restore)])
    return lambda obs: next(first, np.full(n, sleep))


def _decoys(scenario: Scenario, n: int, rng: np.random.Generator) -> Choose:
    """Place any decoy anywhere, and do nothing else."""
    return lambda obs: rng.choice(host_actions(scenario).decoys.ravel(), n)


def _few_hosts(scenario: Scenario, n: int, rng: np.random.Generator) -> Choose:
    """Take all kinds of actions on three hosts only: decoys are placed, scanned, shot at and cleared again and again."""
    ids = host_actions(scenario)
    few = min(3, scenario.num_hosts)
    hosts = np.array([rng.choice(scenario.num_hosts, few, replace=False) for _ in range(n)])
    per_host = np.column_stack([ids.analyse, ids.remove, ids.restore, ids.decoys])  # [H, kinds]

    def choose(obs: np.ndarray) -> np.ndarray:
        targets = hosts[np.arange(n), rng.integers(0, few, n)]
        actions: np.ndarray = per_host[targets, rng.integers(0, per_host.shape[1], n)]
        return actions

    return choose


def _busy(scenario: Scenario, n: int, rng: np.random.Generator) -> Choose:
    """Mostly repair some host that is not believed clean, sometimes analyse one or take any action."""
    ids = host_actions(scenario)

    def choose(obs: np.ndarray) -> np.ndarray:
        actions = rng.integers(0, scenario.num_actions, n)
        for i, beliefs in enumerate(_beliefs(obs, scenario)):
            suspects = np.flatnonzero(beliefs)
            kind = rng.random()
            if kind < 0.7 and len(suspects):
                actions[i] = (ids.remove if kind < 0.35 else ids.restore)[rng.choice(suspects)]
            elif kind < 0.85:
                actions[i] = ids.analyse[rng.integers(scenario.num_hosts)]
        return actions

    return choose


def _good_decoy_react(scenario: Scenario, n: int, rng: np.random.Generator) -> Choose:
    """Restore a privileged host, then its decoys; remove where red is seen; else place useful decoys; else analyse."""

    def decoy_actions(decoys: Mapping[str, tuple[str, ...]]) -> dict[str, list[int]]:
        return {
            host: [scenario.action_id(f"Decoy{decoy}", host) for decoy in names if f"Decoy{decoy}" in scenario.verbs]
            for host, names in decoys.items()
            if host in scenario.host_ids
        }

    ids, put_back = host_actions(scenario), decoy_actions(_PUT_BACK)
    every = [action for actions in decoy_actions(_USEFUL_DECOYS).values() for action in actions]
    todo = [list(rng.permutation(every)) for _ in range(n)]

    def choose(obs: np.ndarray) -> np.ndarray:
        actions = np.empty(n, np.int64)
        for i, beliefs in enumerate(_beliefs(obs, scenario)):
            privileged, user = np.flatnonzero(beliefs == _PRIVILEGED), np.flatnonzero(beliefs == _USER)
            if len(privileged):
                host = rng.choice(privileged)
                actions[i] = ids.restore[host]
                back = put_back.get(scenario.host_names[host], [])
                todo[i] = back + [a for a in todo[i] if a not in back]
            elif len(user):
                actions[i] = ids.remove[rng.choice(user)]
            elif todo[i]:
                actions[i] = todo[i].pop(0)
            else:
                actions[i] = ids.analyse[rng.integers(scenario.num_hosts)]
        return actions

    return choose


DEFENDERS: Mapping[str, _MakeDefender] = MappingProxyType(
    {
        "sleep": _sleep,
        "random": _uniform,
        "react": _repair_first("restore", _USER),
        "react_restore": _repair_first("restore", 1),  # whatever is not believed clean
        "react_remove": _repair_first("remove", _USER),
        "opfirst": _restore_target_first,
        "decoys": _decoys,
        "few_hosts": _few_hosts,
        "busy": _busy,
        "good_decoy_react": _good_decoy_react,
    }
)

BASELINES = ("sleep", "random", "react-restore", "react-remove", "priority-restore")


class PriorityRestore:
    """Sees the truth: restores a host of the highest unit type that needs repair, the lowest-numbered first."""

    def __init__(self, workflows: Sequence[Workflow]):
        self._scenario, host_unit = workflows[0].scheme.scenario, np.array(workflows[0].scheme.host_unit)
        self._host_ranks = np.array([w.ranks[host_unit] for w in workflows])  # [W, H]

    def act(self, moment: Moment) -> np.ndarray:
        """See `TurnPlayer`."""
        restore, needs = host_actions(self._scenario).restore, moment.access > 0
        needs[:, self._scenario.start_id] = False
        ranks = np.where(needs, self._host_ranks[moment.assigned], needs.shape[1])
        return np.where(needs.any(axis=1), restore[ranks.argmin(axis=1)], self._scenario.sleep_id)


def make_baseline(name: str, workflows: Sequence[Workflow] = (), scenario: Scenario = CAGE2) -> Player:
    """Return a baseline by name; `priority-restore` follows the given workflow, the others read observations only."""
    if name not in BASELINES:
        raise errors.ConfigError(f"unknown baseline {name!r}; use {', '.join(BASELINES)}")
    if name == "priority-restore":
        if not workflows:
            raise errors.ConfigError("priority-restore follows an order: give one with --workflow")
        return PriorityRestore(workflows)
    spec = PolicySpec.for_orders(workflows, scenario)
    count = spec.scenario.num_actions
    if name == "random":
        return PolicyTable(lambda inputs: np.full((len(inputs), count), 1 / count), workflows, spec=spec)
    choose = DEFENDERS[name.replace("-", "_")](spec.scenario, 1, np.random.default_rng(0))  # none of these draws
    bits = spec.scenario.observation_bits
    return PolicyTable(lambda inputs: np.eye(count)[choose(inputs[:, :bits])], workflows, spec=spec)
