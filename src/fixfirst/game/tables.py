"""The tables of `network.py` as arrays for the compiled kernel.

V = 3 variants, H = 13 hosts, E = 8 exploits, A = 145 actions. A set of hosts or ports is an integer bit mask:
bit h stands for host h, bit p for the p-th entry of `PORTS`. All arrays are read-only; for the compiler they are constants.
"""

import numpy as np

from fixfirst.game.actions import ACTIONS, VERBS
from fixfirst.game.network import (
    EXPLOITS,
    HOST_ID,
    HOSTS,
    PORTS,
    SUBNETS,
    VARIANTS,
    Decoy,
    Exploit,
    Host,
    Service,
)

NUM_EXPLOITS = len(EXPLOITS)


def _constant(values: object, dtype: type = np.int64) -> np.ndarray:
    array: np.ndarray = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


def hosts_mask(*names: str) -> int:
    """The set of these hosts as a bit mask."""
    return sum(1 << HOST_ID[name] for name in names)


def ports_mask(*ports: int) -> int:
    """The set of these port numbers as a bit mask."""
    return sum(1 << PORTS.index(port) for port in set(ports))


def unit_mask(*units: str) -> int:
    """All hosts of these unit types as a bit mask."""
    return hosts_mask(*(host.name for host in HOSTS if host.unit in units))


# ---- blue: action id -> verb and host
ACTION_VERB = _constant([VERBS.index(a.verb) for a in ACTIONS])  # [A]
ACTION_HOST = _constant([-1 if a.host is None else HOST_ID[a.host] for a in ACTIONS])  # [A]

# ---- where things are
SUBNET_HOSTS = _constant([hosts_mask(*(h.name for h in HOSTS if h.subnet == s)) for s in range(len(SUBNETS))])
HOST_SUBNET = _constant([h.subnet for h in HOSTS])  # [H]
REVEALED_HOST = _constant([0 if h.reveals is None else hosts_mask(h.reveals) for h in HOSTS])  # [H] mask
VALUE_TENTHS = _constant([round(10 * h.value) for h in HOSTS])  # [H]

# ---- what listens
REAL_PORTS = _constant(
    [[ports_mask(*(p for s in h.services for p in s.ports)) for h in v.hosts] for v in VARIANTS]
)  # [V, H]
SMTP_HOSTS = hosts_mask(*(h.name for h in HOSTS if any(s.kind == "smtp" for s in h.services)))


# ---- decoys
def _fits(decoy: Decoy, host: Host) -> bool:
    return decoy.os in (None, host.os)


DECOY_FITS = _constant([[[_fits(d, h) for h in v.hosts] for d in v.decoys] for v in VARIANTS], np.bool_)  # [V, D, H]
DECOY_NEEDS_FREE = _constant([[ports_mask(d.needs_free) for d in v.decoys] for v in VARIANTS])  # [V, D] mask
DECOY_OPENS = _constant([[ports_mask(d.opens) for d in v.decoys] for v in VARIANTS])  # [V, D] mask

# ---- exploits, in the order in which red lists them
EXPLOIT_PORT = _constant([ports_mask(e.port) for e in EXPLOITS])  # [E] mask of one
EXPLOIT_ALSO = _constant([ports_mask(*e.also_one_of) for e in EXPLOITS])  # [E] mask; 0: nothing more needed
EXPLOIT_RANK = _constant(np.argsort(np.argsort([e.weight for e in EXPLOITS])))  # [E] 0 = lightest

# What an exploit meets on a real service.
NOTHING, USER_SHELL, ROOT_SHELL, GUESSED_PASSWORD, NO_PASSWORD = range(5)


def _meets(exploit: Exploit, service: Service) -> int:
    if service.kind == "ssh":
        return GUESSED_PASSWORD if service.accounts else NO_PASSWORD
    return ROOT_SHELL if service.root else USER_SHELL


def _on_real_service(exploit: Exploit, host: Host) -> int:
    for service in host.services:
        if exploit.port in service.ports and exploit.kind == service.kind:
            return _meets(exploit, service)
    return NOTHING


def _decoy_catches(exploit: Exploit, host: Host, decoys: tuple[Decoy, ...]) -> bool:
    return any(d.opens == exploit.port and d.kind == exploit.kind and _fits(d, host) for d in decoys)


ON_REAL_SERVICE = _constant([[[_on_real_service(e, h) for e in EXPLOITS] for h in v.hosts] for v in VARIANTS])  # [V, H, E]
DECOY_CATCHES = _constant(  # [V, H, E]: would a decoy on the exploit's port here play the right kind of service?
    [[[_decoy_catches(e, h, v.decoys) for e in EXPLOITS] for h in v.hosts] for v in VARIANTS], np.bool_
)

# ---- the variants' switches
SCANS_ACCUMULATE = _constant([v.scans_accumulate for v in VARIANTS], np.bool_)  # [V]
RESTORE_PATCHES_SMTP = _constant([v.restore_patches_smtp for v in VARIANTS], np.bool_)  # [V]
REMOVE_REPORTS_RESULT = _constant([v.remove_reports_result for v in VARIANTS], np.bool_)  # [V]
ANY_SESSION_COSTS = _constant([v.any_session_costs for v in VARIANTS], np.bool_)  # [V]
CALLBACK_OUTRANKS_SCAN = _constant([v.callback_outranks_scan for v in VARIANTS], np.bool_)  # [V]
