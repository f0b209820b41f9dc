"""Why a repair is in order or not, in words. Whether it is, `compliance.py` decides; here are the hosts behind it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fixfirst.orders.compliance import DEFAULT_JUDGING, Judging, Rule
from fixfirst.orders.judging import judge, never_needy
from fixfirst.orders.order import UnitScheme, Workflow

VerdictKind = Literal["in order", "violation", "not judged"]


@dataclass(frozen=True)
class Reason:
    """What the workflow says of one repair."""

    kind: VerdictKind
    reason: str


def reasons(
    actions: np.ndarray, held: np.ndarray, workflow: Workflow, judging: Judging = DEFAULT_JUDGING
) -> list[Reason | None]:
    """Return a reason per step of one episode, None where nothing was repaired. actions [T]; held [T + 1]: see `judge`."""
    judgement = judge(actions[:, None], held[:, None], workflow.ranks[None], workflow.scheme, judging)
    found: list[Reason | None] = []
    repaired_before: set[int] = set()  # unit types
    scheme = workflow.scheme
    for t, host in enumerate(scheme.scenario.repaired_hosts[action] for action in actions):
        if not judgement.repair[t, 0]:
            found.append(None)
            continue
        case = _Case(host, needy_hosts(int(held[t]), scheme, judging), workflow, frozenset(repaired_before))
        if not judgement.judged[t, 0]:
            found.append(Reason("not judged", f"fixed {case.target} while nothing needed repair"))
        elif judgement.compliant[t, 0]:
            found.append(Reason("in order", case.why_in_order(judging.rule)))
        else:
            found.append(Reason("violation", case.why_not(judging.rule)))
        repaired_before.add(scheme.host_unit[host])
    return found


def needy_hosts(held: int, scheme: UnitScheme, judging: Judging = DEFAULT_JUDGING) -> list[int]:
    """Return the hosts that need repair, of a set of held ones."""
    needs = held & ~never_needy(scheme, judging)
    return [host for host in range(len(scheme.host_unit)) if needs >> host & 1]


@dataclass(frozen=True)
class _Case:
    """A repair and what needed repair when blue chose it."""

    host: int
    needy: list[int]
    workflow: Workflow
    repaired_before: frozenset[int]

    @property
    def target(self) -> str:
        if self.host in self.needy:
            return self._list([self.host])
        return self._list([self.host]) + (
            " (the foothold)" if self.host == self.workflow.scheme.scenario.start_id else " (not held)"
        )

    def why_in_order(self, rule: Rule) -> str:
        if rule == "fixed_types":
            return f"fixed {self.target}; every type above it was fixed before"
        waiting = [host for host in self.needy if self._rank(host) > self._rank(self.host)]
        return f"fixed {self.target}" + (f" before {self._list(waiting)}" if waiting else "; nothing more urgent was held")

    def why_not(self, rule: Rule) -> str:
        names, ranks = self.workflow.scheme.names, self.workflow.ranks
        if rule == "fixed_types":
            skipped = [u for u in self.workflow.order if ranks[u] < self._rank(self.host) and u not in self.repaired_before]
            return f"fixed {self.target} before any repair of {', '.join(names[unit] for unit in skipped)}"
        above = [host for host in self.needy if self._rank(host) < self._rank(self.host)]
        if not above:  # rule top: a type that needed nothing was fixed
            top = min(self._rank(host) for host in self.needy)
            above = [host for host in self.needy if self._rank(host) == top]
        return f"fixed {self.target} while {self._list(above)} {'was' if len(above) == 1 else 'were'} held"

    def _rank(self, host: int) -> int:
        return int(self.workflow.ranks[self.workflow.scheme.host_unit[host]])

    def _list(self, hosts: list[int]) -> str:
        """Unit types in their order, each with its hosts."""
        units, known = self.workflow.scheme.host_unit, self.workflow.scheme.scenario.host_names
        by_unit = {unit: [known[host] for host in hosts if units[host] == unit] for unit in self.workflow.order}
        return " and ".join(
            f"{self.workflow.scheme.names[unit]} {', '.join(names)}" for unit, names in by_unit.items() if names
        )
