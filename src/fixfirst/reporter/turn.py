"""One turn in plain values and words: what pictures, texts and pages show of it.

Made of the records that every world hands out (`BaseWorld.turns`), so it tells of CybORG's games as well.
H hosts, in the order of the scenario.
"""

from typing import TypedDict

import numpy as np

from fixfirst.game import parts
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.state import LEARNED, NO_TARGET, OTService, RedVerb, Success

_ACCESS = ("none", "user", "root")  # what red truly has on a host
_SEEN = ("none", "scan", "", "exploit")  # what blue sees of it in this step, by two bits
_BELIEF = ("clean", "unknown", "user", "root")  # what blue believes of it; CybORG: No, Unknown, User, Privileged
_RED_BELIEF = ("none", "user", "root", "lost")  # what a learned attacker believes to have on it
_OT_STATES = tuple(state.name.lower() for state in OTService)  # running, stopped, restored
_WORKED = {Success.UNKNOWN: None, Success.FALSE: False, Success.TRUE: True}
_RED_DOES = {
    RedVerb.DISCOVER: "Discover subnet",
    RedVerb.SCAN: "Scan",
    RedVerb.EXPLOIT: "Exploit",
    RedVerb.ESCALATE: "Escalate on",
    RedVerb.IMPACT: "Impact",
}


class Cost(TypedDict):
    """A part of a reward, in tenths: never positive."""

    what: str  # a host that red holds, "impact", or "restore"
    tenths: int


class Turn(TypedDict):
    """The end of one turn: what red and blue did in it, what is true since, and what blue sees of it."""

    step: int  # turns taken; 0 = nobody has acted yet
    red: str  # in words
    red_target: str | None  # a host or a subnet
    red_worked: bool | None  # None: nothing that can fail
    blue: str
    blue_target: str | None  # a host
    blue_worked: bool | None
    access: tuple[str, ...]  # [H]
    belief: tuple[str, ...]  # [H]
    activity: tuple[str, ...]  # [H]
    decoys: tuple[tuple[int, ...], ...]  # [H] ports that decoys opened
    ot: str  # the service on Op_Server0 that Impact stops
    costs: tuple[Cost, ...]
    reward10: int  # their sum, in tenths
    return10: int  # rewards so far, in tenths
    red_belief: tuple[str, ...]  # [H]; empty, if a script attacks


def summarise_turn(turn: np.void, variant: parts.VariantName, scenario: Scenario = CAGE2) -> Turn:
    """Return one record of `turn_dtype` in plain values."""
    red, red_target, red_worked = _red(turn, scenario)
    action = scenario.actions[turn["blue_action"]]
    words = sum(int(word) << 64 * k for k, word in enumerate(np.atleast_1d(turn["observation"])))
    seen = {host: words >> parts.BITS_PER_HOST * slot for slot, host in enumerate(scenario.listed)}
    view = [seen.get(host, 0) for host in range(scenario.num_hosts)]
    open_ports = (int(mask) for mask in turn["decoys"])
    charges = costs(turn, variant, scenario)
    return {
        "step": int(turn["step"]),
        "red": red,
        "red_target": red_target,
        "red_worked": red_worked,
        "blue": str(action) if turn["step"] else "nothing yet",
        "blue_target": action.host,
        "blue_worked": _WORKED[Success(turn["blue_success"])] if action.host else None,
        "access": tuple(_ACCESS[level] for level in turn["access"]),
        "belief": tuple(_BELIEF[bits >> 2 & 0b11] for bits in view),
        "activity": tuple(_SEEN[bits & 0b11] for bits in view),
        "decoys": tuple(tuple(p for bit, p in enumerate(scenario.ports) if mask >> bit & 1) for mask in open_ports),
        "ot": _OT_STATES[turn["ot"]],
        "costs": charges,
        "reward10": sum(cost["tenths"] for cost in charges),
        "return10": int(turn["return10"]),
        "red_belief": tuple(_RED_BELIEF[n] for n in turn["red_belief"]) if turn["red_agent"] >= LEARNED else (),
    }


def _red(turn: np.void, scenario: Scenario) -> tuple[str, str | None, bool | None]:
    """Return red's action in words, its target, and whether it achieved anything.

    Two actions are reported to red as successes and achieve nothing: a scan of a host it cannot reach, and Impact on a
    service that was restored before.
    """
    verb, worked = RedVerb(turn["red_verb"]), _WORKED[Success(turn["red_success"])]
    if turn["red_target"] == NO_TARGET:
        return ("Sleep" if turn["step"] else "nothing yet"), None, None
    target = (scenario.subnet_names if verb == RedVerb.DISCOVER else scenario.host_names)[turn["red_target"]]
    note = ""
    if verb == RedVerb.SCAN:
        worked = bool(turn["scan_answered"])
        note = "" if worked else " (out of reach)"
    elif verb == RedVerb.EXPLOIT:
        note = f" ({scenario.exploit_names[turn['red_exploit']] if turn['red_exploit'] >= 0 else 'never scanned'})"
    elif verb == RedVerb.IMPACT and worked and turn["ot"] == OTService.RESTORED:
        worked, note = False, " (harmless once restored)"
    return f"{_RED_DOES[verb]} {target}{note}", target, worked


def costs(turn: np.void, variant: parts.VariantName, scenario: Scenario = CAGE2) -> tuple[Cost, ...]:
    """Return what this turn cost blue: hosts that red holds, the stopped OT service, blue's Restore. Sums to the reward."""
    charged = turn["access"] >= (1 if parts.VARIANTS[variant].any_session_costs else 2)
    held = (scenario.hosts[h] for h in np.flatnonzero(charged))
    charges = [(host.name, host.value) for host in held if host.value]
    if turn["ot"] == OTService.STOPPED:
        charges.append(("impact", scenario.ot_cost))
    if scenario.actions[turn["blue_action"]].verb == "Restore":
        charges.append(("restore", scenario.restore_cost))
    return tuple({"what": what, "tenths": -round(10 * points)} for what, points in charges)


def tenths(value: int) -> str:
    """-13 -> "-1.3"."""
    return f"{value / 10:.1f}" if value else "0.0"


def outcome(worked: bool | None) -> str:
    """Return how an action went, to be put behind it."""
    return {True: ": worked", False: ": failed", None: ""}[worked]


def turn_text(turn: Turn, scenario: Scenario = CAGE2) -> str:
    """Return the turn as lines of text, a line per host."""
    rewards = f"reward {tenths(turn['reward10'])}   return {tenths(turn['return10'])}"
    lines = [
        f"step {turn['step']}   {rewards}   OT service {turn['ot']}",
        f"red   {turn['red']}{outcome(turn['red_worked'])}",
        f"blue  {turn['blue']}{outcome(turn['blue_worked'])}",
        f"{'host':12} {'true':6} {'believed':9} {'seen now':9} decoys",
    ]
    hosts = zip(scenario.host_names, *(turn[name] for name in ("access", "belief", "activity", "decoys")), strict=True)
    for name, access, belief, activity, decoys in hosts:
        lines.append(f"{name:12} {access:6} {belief:9} {activity:9} {' '.join(map(str, decoys))}".rstrip())
    return "\n".join(lines) + "\n"
