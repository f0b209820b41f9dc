"""Unit types by default: hosts grouped by their names, or by their subnets."""

import re
from collections.abc import Iterable, Mapping

_KNOWN_UNITS = ("user", "op_host", "op_server", "enterprise", "defender")
_FEWEST_UNITS, _MOST_UNITS = 2, 8


def default_units(
    hosts: Iterable[str], subnet_of: Mapping[str, str], subnets: Iterable[str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return unit types and host -> unit type: by names without their numbers, else by subnets, else none."""
    by_name = {host: _word(host.rstrip("0123456789_")) for host in hosts}
    present = tuple(dict.fromkeys(by_name.values()))
    names = tuple(unit for unit in _KNOWN_UNITS if unit in present)
    names += tuple(unit for unit in present if unit not in _KNOWN_UNITS)
    if _FEWEST_UNITS <= len(names) <= _MOST_UNITS and "" not in names:
        return names, by_name
    words = {subnet: _word(subnet) for subnet in subnets}
    names = tuple(dict.fromkeys(words.values()))
    if _FEWEST_UNITS <= len(names) <= _MOST_UNITS and "" not in names and len(names) == len(words):
        return names, {host: words[subnet] for host, subnet in subnet_of.items()}
    return (), {}


def _word(name: str) -> str:
    """Return a name as a unit type can be called: a word in lower case."""
    return re.sub(r"[^\w.-]+", "_", name.lower()).lstrip(".-")
