"""One turn in words: what red and blue did, what is true since, what blue sees, and what the turn cost.

Works on the records that every world hands out (`BaseWorld.turns`, TURN_DTYPE), so it tells of CybORG's games as well.
H = 13 hosts, in the order of `HOSTS`.
"""

from dataclasses import dataclass

import numpy as np

from fixfirst.game.actions import ACTIONS
from fixfirst.game.kernel import OT_TENTHS, QUIET, RESTORE_TENTHS, SEEN_EXPLOIT, SEEN_SCAN
from fixfirst.game.network import EXPLOIT_NAMES, HOST_NAMES, NUM_HOSTS, PORTS, SUBNETS, VARIANT_ID, VARIANTS, VariantName
from fixfirst.game.state import BITS_PER_HOST, NO_TARGET, OTService, RedVerb, Success
from fixfirst.game.tables import VALUE_TENTHS

ACCESS = ("none", "user", "root")  # what red truly has on a host
BELIEF = ("clean", "unknown", "user", "root")  # what blue believes of it; CybORG: No, Unknown, User, Privileged
ACTIVITY = ("none", "scan", "exploit")  # what blue saw there in this step
OT_STATES = tuple(state.name.lower() for state in OTService)  # running, stopped, restored

_SEEN = dict(zip((QUIET, SEEN_SCAN, SEEN_EXPLOIT), ACTIVITY, strict=True))
_WORKED = {Success.UNKNOWN: None, Success.FALSE: False, Success.TRUE: True}


@dataclass(frozen=True)
class Cost:
    """A part of a reward, in tenths: never positive."""

    what: str  # a host that red holds, "impact", or "restore"
    tenths: int


@dataclass(frozen=True)
class Moment:
    """The end of one turn: what red and blue did in it, what is true since, and what blue sees of it."""

    step: int  # turns taken; 0 = nobody has acted yet
    red: str  # in words
    red_target: str | None  # a host or a subnet
    red_worked: bool | None  # None: nothing that can fail
    blue: str
    blue_target: str | None  # a host
    blue_worked: bool | None
    access: tuple[str, ...]  # [H] of ACCESS
    belief: tuple[str, ...]  # [H] of BELIEF
    activity: tuple[str, ...]  # [H] of ACTIVITY
    decoys: tuple[tuple[int, ...], ...]  # [H] ports that decoys opened
    ot: str  # of OT_STATES: the service on Op_Server0 that Impact stops
    costs: tuple[Cost, ...]  # their sum is the reward of this turn
    return10: int  # rewards so far, in tenths

    @property
    def reward10(self) -> int:
        return sum(cost.tenths for cost in self.costs)


def moment_of(turn: np.void, variant: VariantName) -> Moment:
    """One record of TURN_DTYPE in plain values."""
    red, red_target, red_worked = _red(turn)
    action = ACTIONS[turn["blue_action"]]
    view = [int(turn["observation"]) >> BITS_PER_HOST * host for host in range(NUM_HOSTS)]
    return Moment(
        step=int(turn["step"]),
        red=red,
        red_target=red_target,
        red_worked=red_worked,
        blue=str(action) if turn["step"] else "nothing yet",
        blue_target=action.host,
        blue_worked=_WORKED[Success(turn["blue_success"])] if action.host else None,
        access=tuple(ACCESS[level] for level in turn["access"]),
        belief=tuple(BELIEF[bits >> 2 & 0b11] for bits in view),
        activity=tuple(_SEEN[bits & 0b11] for bits in view),
        decoys=tuple(_ports(mask) for mask in turn["decoys"].tolist()),
        ot=OT_STATES[turn["ot"]],
        costs=costs(turn, variant),
        return10=int(turn["return10"]),
    )


def _red(turn: np.void) -> tuple[str, str | None, bool | None]:
    """Red's action in words, its target, and whether it achieved anything.

    Two actions are reported to red as successes and achieve nothing: a scan of a host it cannot reach, and Impact on a
    service that was restored before.
    """
    verb, worked = RedVerb(turn["red_verb"]), _WORKED[Success(turn["red_success"])]
    if turn["red_target"] == NO_TARGET:
        return ("Sleep" if turn["step"] else "nothing yet"), None, None
    target = (SUBNETS if verb == RedVerb.DISCOVER else HOST_NAMES)[turn["red_target"]]
    if verb == RedVerb.DISCOVER:
        return f"Discover subnet {target}", target, worked
    if verb == RedVerb.SCAN:
        answered = bool(turn["scan_answered"])
        return f"Scan {target}" + ("" if answered else " (out of reach)"), target, answered
    if verb == RedVerb.EXPLOIT:
        weapon = EXPLOIT_NAMES[turn["red_exploit"]] if turn["red_exploit"] >= 0 else "never scanned"
        return f"Exploit {target} ({weapon})", target, worked
    if verb == RedVerb.ESCALATE:
        return f"Escalate on {target}", target, worked
    harmless = bool(worked) and turn["ot"] == OTService.RESTORED
    return f"Impact {target}" + (" (harmless once restored)" if harmless else ""), target, worked and not harmless


def costs(turn: np.void, variant: VariantName) -> tuple[Cost, ...]:
    """What this turn cost blue: the hosts red holds, the stopped OT service, blue's Restore. `reward_tenths` in parts."""
    charged = turn["access"] >= (1 if VARIANTS[VARIANT_ID[variant]].any_session_costs else 2)
    parts = [Cost(HOST_NAMES[h], -int(VALUE_TENTHS[h])) for h in np.flatnonzero(charged) if VALUE_TENTHS[h]]
    if turn["ot"] == OTService.STOPPED:
        parts.append(Cost("impact", -OT_TENTHS))
    if ACTIONS[turn["blue_action"]].verb == "Restore":
        parts.append(Cost("restore", -RESTORE_TENTHS))
    return tuple(parts)


def _ports(mask: int) -> tuple[int, ...]:
    return tuple(port for bit, port in enumerate(PORTS) if mask >> bit & 1)
