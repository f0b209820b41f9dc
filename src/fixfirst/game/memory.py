"""What a defender remembers: one small record per environment, forgotten when an episode ends.

All of it follows from what blue saw and did; the truth is not needed. A record holds what was known *before* the current
observation, so that a repeated scan differs from a first one. Each field is one *group* of bits, a set of hosts, of turns
or of slots (`decoy_lists.py`); a policy reads the groups its scheme names (`memory_schemes.py`). Spare slots of `decoy` are
kept for macros and not read. How a record changes is in `remembering.py`, and in words in `docs/model.md`.
"""

from typing import NamedTuple

import numpy as np

from fixfirst.game.actions import ACTIONS
from fixfirst.game.decoy_lists import LISTED, SLOTS, host_slots
from fixfirst.game.network import HOST_NAMES, HOSTS
from fixfirst.game.state import BITS_PER_HOST
from fixfirst.game.tables import HALF, HALF_BITS, constant, hosts_mask

QUIET_TURNS = 5  # longer than that is remembered as that
SCAN_HOSTS = tuple(host.name for host in HOSTS if host.unit != "op_host")  # those of the published defenders


class Group(NamedTuple):
    """Bits that are remembered together. `parts` says of each bit what it stands for, lowest first."""

    name: str
    meaning: str
    short: str  # in an episode's account
    parts: tuple[str, ...]


_SLOT_NAMES = tuple(f"{host} {decoy}" for host, decoy in SLOTS)
GROUPS = (
    Group("act1", "the host had activity in some earlier turn", "active", HOST_NAMES),
    Group("last", "the host had the most recent earlier activity; of several, it is the first", "latest", HOST_NAMES),
    Group("expl", "the host was seen exploited in some earlier turn", "exploited", HOST_NAMES),
    Group("rest", "the host was restored in this episode", "restored", HOST_NAMES),
    Group(
        "quiet",
        "at least so many views in a row before this one showed no activity",
        "quiet turns",
        tuple(str(turns + 1) for turns in range(QUIET_TURNS)),
    ),
    Group("decoy", "the decoy stands", "decoys", _SLOT_NAMES),
    Group("seen", "the decoy stood when the host was seen scanned in some earlier turn", "red saw", _SLOT_NAMES),
    Group("scans", "the host was seen scanned in some earlier turn", "scanned", SCAN_HOSTS),
)


def _holding(group: Group) -> type[np.signedinteger]:
    """The smallest type for the bits of a group. Signed, because Numba turns uint64 - int into a float."""
    return next(kind for kind in (np.int8, np.int16, np.int64) if len(group.parts) < np.iinfo(kind).bits)


# Beside the groups, what suspicion (`remembering.py`) needs: the suspect hosts, and the host analysed last, both as sets.
NOTES = ("suspect", "analysed")
MEMORY_DTYPE = np.dtype(  # packed, 31 bytes
    [(group.name, _holding(group)) for group in GROUPS] + [(name, np.int16) for name in NOTES]
)

# ---- for the compiled functions: what an action, and what a set of hosts means for the groups
RESTORES = constant([hosts_mask(a.host) if a.verb == "Restore" and a.host else 0 for a in ACTIONS])  # [145] set of hosts
ANALYSES = constant([hosts_mask(a.host) if a.verb == "Analyse" and a.host else 0 for a in ACTIONS])  # [145] likewise
ACTIVITY = sum(1 << BITS_PER_HOST * host for host in range(len(HOSTS)))  # of an observation: the first bit of every host


def _for_sets(bits_of_host: list[int]) -> np.ndarray:
    """[2, 128]: for every lower, and every upper half of a set of hosts (`tables.py`), the bits of all its members."""

    def bits_of(hosts: int) -> int:
        return sum(bits for host, bits in enumerate(bits_of_host) if hosts >> host & 1)

    return constant([[bits_of(half << shift) for half in range(HALF + 1)] for shift in (0, HALF_BITS)])


HALF_SLOTS = _for_sets([host_slots(host) & LISTED for host in HOST_NAMES])
HALF_SCANS = _for_sets([1 << SCAN_HOSTS.index(host) if host in SCAN_HOSTS else 0 for host in HOST_NAMES])
