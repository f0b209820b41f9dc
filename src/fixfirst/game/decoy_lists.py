"""Which decoys are worth placing on which host, and in which order: derived from the tables of the world.

A decoy is worth placing if, in every variant, it can be placed on the untouched host and an exploit then finds it on a port
where no real service answers. The one that fools the exploit red prefers comes first. All decoys of a list need different
ports, so each can be placed whichever of the others stand.

A *slot* is a place in these lists, counted host by host. A set of slots is an integer bit mask, as sets of hosts are.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fixfirst.game.actions import ACTIONS, action_id
from fixfirst.game.network import DECOYS, EXPLOITS, HOST_NAMES, VARIANTS, Decoy, Host
from fixfirst.game.tables import constant, fits


def _weight_fooled(decoy: Decoy, host: Host) -> float:
    """The weight of the exploit that the decoy fools on the untouched host; 0 if it fools none or cannot be placed."""
    real_ports = {port for service in host.services for port in service.ports}
    if not fits(decoy, host) or decoy.needs_free in real_ports:
        return 0.0
    fooled = (e.weight for e in EXPLOITS if (e.port, e.kind) == (decoy.opens, decoy.kind) and e.port not in real_ports)
    return max(fooled, default=0.0)


def _decoy_list(host: int) -> tuple[str, ...]:
    """The decoys worth placing on a host, heaviest exploit first."""
    worth = {d.name: min(_weight_fooled(v.decoys[k], v.hosts[host]) for v in VARIANTS) for k, d in enumerate(DECOYS)}
    return tuple(sorted((name for name in worth if worth[name] > 0), key=lambda name: -worth[name]))


DECOY_LISTS: Mapping[str, tuple[str, ...]] = MappingProxyType({h: _decoy_list(i) for i, h in enumerate(HOST_NAMES)})
SLOTS = tuple((host, decoy) for host, decoys in DECOY_LISTS.items() for decoy in decoys)  # (host, decoy), 33 of them
LONGEST_LIST = max(map(len, DECOY_LISTS.values()))


def host_slots(host: str) -> int:
    """The set of a host's slots: host_slots("User3") == 1 << 32."""
    return sum(1 << slot for slot, (owner, _) in enumerate(SLOTS) if owner == host)


_SLOT_OF_ACTION = {action_id(f"Decoy{decoy}", host): slot for slot, (host, decoy) in enumerate(SLOTS)}

# What an action does to the standing decoys of the lists. [145] sets of slots
PLACES = constant([1 << _SLOT_OF_ACTION[a] if a in _SLOT_OF_ACTION else 0 for a in range(len(ACTIONS))])
CLEARS = constant([host_slots(a.host) if a.verb == "Restore" and a.host else 0 for a in ACTIONS])
