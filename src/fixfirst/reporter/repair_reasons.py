"""Why a repair is in order or not, in words. `orders/repairs.py` decides whether it is; here are the hosts behind it."""

from collections.abc import Sequence
from typing import Literal, TypedDict

import numpy as np

from fixfirst.orders import repairs
from fixfirst.orders.compliance import DEFAULT_JUDGING, Judging
from fixfirst.orders.order import UnitScheme, Workflow


class Verdict(TypedDict):
    """What the workflow says of one repair."""

    kind: Literal["in order", "violation", "not judged"]
    reason: str


def explain_repairs(
    actions: np.ndarray, held: np.ndarray, workflow: Workflow, judging: Judging = DEFAULT_JUDGING
) -> list[Verdict | None]:
    """Return a verdict per step of one episode, None where nothing was repaired. actions [T]; held [T + 1]: see `judge`."""
    judgement = repairs.judge(actions[:, None], held[:, None], workflow.ranks[None], workflow.scheme, judging)
    scheme = workflow.scheme
    verdicts: list[Verdict | None] = []
    repaired: set[int] = set()  # unit types, so far
    for t, host in enumerate(scheme.scenario.repaired_hosts[action] for action in actions):
        if not judgement.repair[t, 0]:
            verdicts.append(None)
            continue
        needy, compliant = needy_hosts(int(held[t]), scheme, judging), bool(judgement.compliant[t, 0])
        if not judgement.judged[t, 0]:
            why = " while nothing needed repair"
        elif judging.rule == "fixed_types":
            why = _skipped(host, repaired, workflow)
        else:
            why = _before(host, needy, workflow) if compliant else _while(host, needy, workflow)
        held_now = "" if host in needy else " (the foothold)" if host == scheme.scenario.start_id else " (not held)"
        reason = f"fixed {_by_unit([host], workflow)}{held_now}{why}"
        kind: Literal["in order", "violation"] = "in order" if compliant else "violation"
        verdicts.append({"kind": kind if judgement.judged[t, 0] else "not judged", "reason": reason})
        repaired.add(scheme.host_unit[host])
    return verdicts


def needy_hosts(held: int, scheme: UnitScheme, judging: Judging = DEFAULT_JUDGING) -> list[int]:
    """Return the hosts that need repair, of a set of held ones."""
    needs = held & ~judging.never_needy(scheme)
    return [host for host in range(len(scheme.host_unit)) if needs >> host & 1]


def _skipped(host: int, repaired: set[int], workflow: Workflow) -> str:
    """Name the types above that of a host which were not repaired yet."""
    names, ranks = workflow.scheme.names, workflow.ranks
    skipped = [unit for unit in workflow.order if ranks[unit] < _rank(host, workflow) and unit not in repaired]
    if not skipped:
        return "; every type above it was fixed before"
    return f" before any repair of {', '.join(names[unit] for unit in skipped)}"


def _before(host: int, needy: Sequence[int], workflow: Workflow) -> str:
    waiting = [other for other in needy if _rank(other, workflow) > _rank(host, workflow)]
    return f" before {_by_unit(waiting, workflow)}" if waiting else "; nothing more urgent was held"


def _while(host: int, needy: Sequence[int], workflow: Workflow) -> str:
    above = [other for other in needy if _rank(other, workflow) < _rank(host, workflow)]
    if not above:  # rule top: a type that needed nothing was fixed
        top = min(_rank(other, workflow) for other in needy)
        above = [other for other in needy if _rank(other, workflow) == top]
    return f" while {_by_unit(above, workflow)} {'was' if len(above) == 1 else 'were'} held"


def _rank(host: int, workflow: Workflow) -> int:
    return int(workflow.ranks[workflow.scheme.host_unit[host]])


def _by_unit(hosts: Sequence[int], workflow: Workflow) -> str:
    """List unit types in their order, each with its hosts."""
    scheme = workflow.scheme
    of_unit = {u: [scheme.scenario.host_names[h] for h in hosts if scheme.host_unit[h] == u] for u in workflow.order}
    return " and ".join(f"{scheme.names[unit]} {', '.join(names)}" for unit, names in of_unit.items() if names)
