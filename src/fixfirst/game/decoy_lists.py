"""Which decoys are worth placing on which host, and in which order: derived from the tables of the world.

A decoy is worth placing if, in every variant, it can be placed on the untouched host and an exploit then finds it on a port
where no real service answers. The one that fools the exploit red prefers comes first. All decoys of a list need different
ports, so each can be placed whichever of the others stand.

A *slot* is a place in these lists, counted host by host; the decoys that can be placed and are in no list, one per host at
most, have spare slots behind them. A set of slots is an integer bit mask, as sets of hosts are.
"""

from collections.abc import Mapping
from types import MappingProxyType

from fixfirst.game.actions import ACTIONS, action_id
from fixfirst.game.network import DECOYS, EXPLOITS, HOST_NAMES, HOSTS, VARIANTS, Decoy, Host
from fixfirst.game.tables import constant, fits


def _real_ports(host: Host) -> set[int]:
    return {port for service in host.services for port in service.ports}


def _can_be_placed(decoy: Decoy, host: Host) -> bool:
    """On the untouched host."""
    return fits(decoy, host) and decoy.needs_free not in _real_ports(host)


def _weight_fooled(decoy: Decoy, host: Host) -> float:
    """The weight of the exploit that the decoy fools on the untouched host; 0 if it fools none or cannot be placed."""
    if not _can_be_placed(decoy, host):
        return 0.0
    met = (decoy.opens, decoy.kind)
    return max((e.weight for e in EXPLOITS if (e.port, e.kind) == met and e.port not in _real_ports(host)), default=0.0)


def _decoy_list(host: int) -> tuple[str, ...]:
    """The decoys worth placing on a host, heaviest exploit first."""
    worth = {d.name: min(_weight_fooled(v.decoys[k], v.hosts[host]) for v in VARIANTS) for k, d in enumerate(DECOYS)}
    return tuple(sorted((name for name in worth if worth[name] > 0), key=lambda name: -worth[name]))


DECOY_LISTS: Mapping[str, tuple[str, ...]] = MappingProxyType({h: _decoy_list(i) for i, h in enumerate(HOST_NAMES)})
SLOTS = tuple((host, decoy) for host, decoys in DECOY_LISTS.items() for decoy in decoys)  # (host, decoy), 33 of them
LONGEST_LIST = max(map(len, DECOY_LISTS.values()))
LIST_MASK = (1 << LONGEST_LIST) - 1
LISTED = (1 << len(SLOTS)) - 1  # the set of all slots of the lists

_SPARE = tuple(  # Vsftpd, wherever it fits: it stands in for Apache, or for nothing
    (host.name, decoy.name)
    for host in HOSTS
    for decoy in DECOYS
    if _can_be_placed(decoy, host) and decoy.name not in DECOY_LISTS[host.name]
)
SLOT_OF = MappingProxyType({place: slot for slot, place in enumerate(SLOTS + _SPARE)})  # (host, decoy) -> slot


def host_slots(host: str) -> int:
    """The set of a host's slots: host_slots("User2") == 0b1111 << 28."""
    return sum(1 << slot for (owner, _), slot in SLOT_OF.items() if owner == host)


_SLOT_OF_ACTION = {action_id(f"Decoy{decoy}", host): slot for (host, decoy), slot in SLOT_OF.items()}

# What an action does to the standing decoys. [145] sets of slots
PLACES = constant([1 << _SLOT_OF_ACTION[a] if a in _SLOT_OF_ACTION else 0 for a in range(len(ACTIONS))])
CLEARS = constant([host_slots(a.host) if a.verb == "Restore" and a.host else 0 for a in ACTIONS])
