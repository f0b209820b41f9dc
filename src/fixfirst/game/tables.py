"""The tables of a scenario as arrays for the compiled kernel: constants to the compiler, of `CAGE2`.

V = 3 variants, H = 13 hosts, P = 12 ports, E = 8 exploits, A = 145 actions. A set of hosts or ports is an integer bit mask:
bit h stands for host h, bit p for the p-th entry of `PORTS`. All arrays are read-only; for the compiler they are constants.
What is asked of a set in every step is looked up, too: loops over members are slow where their number is hard to guess.
"""

import numpy as np

from fixfirst.game.parts import CAGE2_VERBS, Decoy, Exploit, Host
from fixfirst.game.scenario import CAGE2, VARIANTS

# ---- what the kernel is compiled for; whoever is outside this room asks the scenario it was given
HOSTS, SUBNETS, EXPLOITS, ACTIONS, PORTS = CAGE2.hosts, CAGE2.subnets, CAGE2.exploits, CAGE2.actions, CAGE2.ports
NUM_HOSTS, NUM_ACTIONS, OBSERVATION_BITS = CAGE2.num_hosts, CAGE2.num_actions, CAGE2.observation_bits
HOST_ID, FOOTHOLD, OT_SERVER = dict(CAGE2.host_ids), CAGE2.start_id, CAGE2.target_id
VERBS = CAGE2_VERBS
hosts_mask, ports_mask, unit_mask = CAGE2.hosts_mask, CAGE2.ports_mask, CAGE2.unit_mask


def constant(values: object, dtype: type = np.int64) -> np.ndarray:
    """An array that nobody can change."""
    array: np.ndarray = np.array(values, dtype=dtype)
    array.setflags(write=False)
    return array


# ---- sets: any set of hosts, ports or exploits is a lower half of 7 possible members and an upper half
HALF_BITS = 7
HALF = (1 << HALF_BITS) - 1
HALF_SIZE = constant([half.bit_count() for half in range(HALF + 1)], np.int8)  # [128]
HALF_MEMBER = constant(  # [128, 7]: the n-th smallest member
    [sorted(range(HALF_BITS), key=lambda member: (~half >> member & 1, member)) for half in range(HALF + 1)],
    np.int8,
)

# ---- bits as bytes: bit k of 0..255 becomes byte k
EIGHT_BYTES = constant([sum((bits >> k & 1) << 8 * k for k in range(8)) for bits in range(256)], np.uint64)  # [256]

# ---- blue: action id -> verb and host
ACTION_VERB = constant([VERBS.index(a.verb) for a in ACTIONS])  # [A]
ACTION_HOST = constant([-1 if a.host is None else HOST_ID[a.host] for a in ACTIONS])  # [A]

# ---- where things are
SUBNET_HOSTS = constant([hosts_mask(*(h.name for h in HOSTS if h.subnet == s)) for s in range(len(SUBNETS))])
HOST_SUBNET = constant([h.subnet for h in HOSTS])  # [H]
REVEALED_HOST = constant([hosts_mask(*(f.host for f in h.reveals if f.host != h.name)) for h in HOSTS])  # [H] mask
REVEALED_ID = constant(CAGE2.b_line_second)  # [H]
VALUE_TENTHS = constant([round(10 * h.value) for h in HOSTS])  # [H]


def _cost_tenths(hosts: int) -> int:
    return sum(int(value) for host, value in enumerate(VALUE_TENTHS) if hosts >> host & 1)


HALF_COST = constant(  # [2, 128]: the values of all hosts of a lower, and of an upper half
    [[_cost_tenths(half << shift) for half in range(HALF + 1)] for shift in (0, HALF_BITS)]
)

# ---- what listens
REAL_PORTS = constant([[ports_mask(*h.ports) for h in s.hosts] for s in CAGE2.by_variant])  # [V, H]
SMTP_HOSTS = hosts_mask(*(h.name for h in HOSTS if any(s.kind == "smtp" for s in h.services)))


# ---- decoys
DECOY_NEEDS_FREE = constant([[ports_mask(d.needs_free) for d in s.decoys] for s in CAGE2.by_variant])  # [V, D] mask
DECOY_OPENS = constant(  # [V, D, H] mask; 0: the decoy does not fit the host
    [[[ports_mask(d.opens) if d.fits(h) else 0 for h in s.hosts] for d in s.decoys] for s in CAGE2.by_variant], np.int16
)

# ---- exploits, in the order in which red lists them
EXPLOIT_PORT = constant([ports_mask(e.port) for e in EXPLOITS])  # [E] mask of one


def _fitting(ports: int) -> list[int]:
    """The exploits that red considers when it remembers these ports, heaviest first."""
    fitting = [
        number
        for number, exploit in enumerate(EXPLOITS)
        if ports & ports_mask(exploit.port) and (not exploit.also_one_of or ports & ports_mask(*exploit.also_one_of))
    ]
    return sorted(fitting, key=lambda number: -EXPLOITS[number].weight)


_FITTING = [_fitting(ports) for ports in range(2 ** len(PORTS))]
HEAVIEST_EXPLOIT = constant([fitting[0] if fitting else -1 for fitting in _FITTING], np.int8)  # [2**P] of a set of ports
OTHER_EXPLOITS = constant([sum(1 << e for e in fitting[1:]) for fitting in _FITTING], np.int16)  # [2**P] mask: all but it


def _decoy_catches(exploit: Exploit, host: Host, decoys: tuple[Decoy, ...]) -> bool:
    return any(d.opens == exploit.port and d.kind == exploit.kind and d.fits(host) for d in decoys)


ON_REAL_SERVICE = constant([[[e.meets(h) for e in EXPLOITS] for h in s.hosts] for s in CAGE2.by_variant])  # [V, H, E]
DECOY_CATCHES = constant(  # [V, H, E]: would a decoy on the exploit's port here play the right kind of service?
    [[[_decoy_catches(e, h, s.decoys) for e in EXPLOITS] for h in s.hosts] for s in CAGE2.by_variant], np.bool_
)

# ---- the variants' switches
SCANS_ACCUMULATE = constant([v.scans_accumulate for v in VARIANTS], np.bool_)  # [V]
RESTORE_PATCHES_SMTP = constant([v.restore_patches_smtp for v in VARIANTS], np.bool_)  # [V]
REMOVE_REPORTS_RESULT = constant([v.remove_reports_result for v in VARIANTS], np.bool_)  # [V]
ANY_SESSION_COSTS = constant([v.any_session_costs for v in VARIANTS], np.bool_)  # [V]
CALLBACK_OUTRANKS_SCAN = constant([v.callback_outranks_scan for v in VARIANTS], np.bool_)  # [V]
