"""Judging repairs against a workflow, and the reward for keeping to it. What the rules are, `compliance.py` says.

T steps, N episodes side by side, H hosts, U unit types, A actions.
"""

from typing import NamedTuple

import numpy as np

from fixfirst.base.compile import compiled
from fixfirst.orders.compliance import DEFAULT_JUDGING, FIXED_TYPES, NO_HIGHER, RULES, TOP, Judging
from fixfirst.orders.order import UnitScheme


class Judgement(NamedTuple):
    """What was judged in T steps of N episodes, all [T, N] bool."""

    repair: np.ndarray  # blue repaired something
    judged: np.ndarray
    compliant: np.ndarray  # judged, and in order
    contested: np.ndarray  # judged, and two or more unit types needed repair
    effective: np.ndarray  # repaired, and the host is clean after the step
    needed: np.ndarray  # some host needed repair

    def reward(self, keep: str, weight: float) -> np.ndarray:
        """[T, N] what the learner gets for keeping to the order, by the setting `keep`; nothing where a shield keeps it.

        delta: weight * (c_t - c_{t-1}), c = compliant / judged so far in the episode, 0 before the first judged repair.
        penalty: minus weight for every violation.
        """
        if keep == "delta":
            judged, compliant = self.judged.cumsum(axis=0), self.compliant.cumsum(axis=0)
            return weight * np.diff(compliant / np.maximum(judged, 1), axis=0, prepend=0.0)
        if keep == "penalty":
            return -weight * (self.judged & ~self.compliant)
        return np.zeros(self.judged.shape)


def judge(
    actions: np.ndarray, held: np.ndarray, ranks: np.ndarray, scheme: UnitScheme, judging: Judging = DEFAULT_JUDGING
) -> Judgement:
    """Judge every step of N whole episodes.

    actions [T, N]; held [T + 1, N] sets of held hosts before each action and after the last; ranks [N, U] the position
    of each unit type in the episode's workflow, 0 = fix first.
    """
    host_unit = np.array(scheme.host_unit)
    unit_hosts = np.array([(1 << np.flatnonzero(host_unit == unit)).sum() for unit in range(scheme.size)], np.int64)
    flags = np.empty((len(Judgement._fields), *actions.shape), np.bool_)
    judge_steps(
        np.ascontiguousarray(actions, np.int16),
        np.ascontiguousarray(held),
        np.ascontiguousarray(ranks, np.int64),
        np.array(scheme.scenario.repaired_hosts),
        host_unit,
        unit_hosts,
        RULES.index(judging.rule),
        judging.never_needy(scheme),
        flags,
    )
    return Judgement(*flags)


@compiled
def judge_steps(actions, held, ranks, repaired_host, host_unit, unit_hosts, rule, never, flags):
    """Fill flags [6, T, N] bool, in the order of `Judgement`.

    repaired_host [A]: the host that an action repairs, or -1; host_unit [H]: unit type of each host; unit_hosts [U]: the
    hosts of each type as sets; never: the set of hosts that never need repair.
    """
    steps, episodes = actions.shape
    for i in range(episodes):
        targeted = 0  # unit types that were the target of a repair before, as a set
        for t in range(steps):
            needs = held[t, i] & ~never
            host = repaired_host[actions[t, i]]
            in_need, top, target = 0, len(unit_hosts), 0
            for unit in range(len(unit_hosts)):
                if needs & unit_hosts[unit]:
                    in_need += 1
                    top = min(top, ranks[i, unit])
            repair, judged, compliant = host >= 0, False, False
            if repair:
                target = ranks[i, host_unit[host]]
                judged = needs != 0 or rule == FIXED_TYPES
                if rule == NO_HIGHER:
                    compliant = judged and target <= top
                elif rule == TOP:
                    compliant = judged and target == top
                else:
                    compliant = True
                    for unit in range(len(unit_hosts)):
                        if ranks[i, unit] < target and not targeted >> unit & 1:
                            compliant = False
                targeted |= 1 << host_unit[host]
            flags[0, t, i] = repair
            flags[1, t, i] = judged
            flags[2, t, i] = compliant
            flags[3, t, i] = judged and in_need >= 2
            flags[4, t, i] = repair and not held[t + 1, i] >> max(host, 0) & 1
            flags[5, t, i] = needs != 0


class Counts(NamedTuple):
    """Per episode, all [N] int: what `Compliance` is computed from. Concatenate them to pool episodes."""

    repairs: np.ndarray
    judged: np.ndarray
    compliant: np.ndarray
    contested: np.ndarray
    contested_compliant: np.ndarray
    effective: np.ndarray
    needed: np.ndarray  # steps on which some host needed repair
    responded: np.ndarray  # such steps on which a repair was made

    @classmethod
    def of(cls, judgement: Judgement) -> "Counts":
        counts = np.zeros((len(cls._fields), judgement.repair.shape[1]), np.int64)
        count_steps(*judgement, counts)
        return cls(*counts)


@compiled
def count_steps(repair, judged, compliant, contested, effective, needed, counts):
    """Fill counts [8, N], in the order of `Counts`, from flags [T, N]."""
    for t in range(len(repair)):
        for i in range(repair.shape[1]):
            counts[0, i] += repair[t, i]
            counts[1, i] += judged[t, i]
            counts[2, i] += compliant[t, i]
            counts[3, i] += contested[t, i]
            counts[4, i] += contested[t, i] and compliant[t, i]
            counts[5, i] += effective[t, i]
            counts[6, i] += needed[t, i]
            counts[7, i] += needed[t, i] and repair[t, i]
