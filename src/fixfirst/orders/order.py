"""Workflows: in which order to fix the kinds of machines, and how hosts are grouped into kinds.

U unit types (5 unless another grouping is given), H hosts. A workflow is a permutation of the unit types,
first = fix first. Orders are numbered 0..U!-1 in lexicographic order of their unit ids.
"""

import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.base import arguments, errors, files
from fixfirst.game.scenario import CAGE2, Scenario

MIN_UNITS = 2


@dataclass(frozen=True)
class UnitScheme:
    """A grouping: the hosts of a scenario in named unit types. The order of `names` gives the ids 0..U-1.

    For example:

        others = [host for host in ff.UnitScheme.per_host().names if host != "Op_Server0"]
        groups = ff.UnitScheme.from_dict({"server": ["Op_Server0"], "rest": others})
        order = ff.Workflow.parse("server > rest", groups)
    """

    names: tuple[str, ...]
    host_unit: tuple[int, ...]  # [H] unit id of each host
    scenario: Scenario = field(default=CAGE2, repr=False)

    def __post_init__(self) -> None:
        arguments.check_strings("names", self.names)
        most = self.scenario.num_hosts
        if not MIN_UNITS <= len(self.names) <= most:
            raise errors.WorkflowError(f"a unit scheme has {MIN_UNITS} to {most} unit types, got {len(self.names)}")
        for name in self.names:
            if not re.fullmatch(r"\w[\w.-]*", name):
                raise errors.WorkflowError(f"unit type {name!r} must be a word of letters, digits, '_', '-' or '.'")
        if len(set(self.names)) != len(self.names):
            raise errors.WorkflowError(f"unit types must have different names, got {', '.join(self.names)}")
        if not all(0 <= unit < len(self.names) for unit in arguments.check_ints("host_unit", self.host_unit)):
            # Compiled code looks up ranks by them, and checks nothing.
            raise errors.WorkflowError(f"host_unit must hold unit ids of 0..{len(self.names) - 1}, got {self.host_unit}")
        empty = [name for unit, name in enumerate(self.names) if unit not in self.host_unit]
        if len(self.host_unit) != self.scenario.num_hosts or empty:
            raise errors.WorkflowError(
                f"every unit type needs a host and every host a unit type (empty: {', '.join(empty) or 'none'})"
            )

    @classmethod
    def check(cls, value: Any) -> "UnitScheme":
        """Return the scheme itself; raise WorkflowError if it is something else."""
        if not isinstance(value, cls):
            raise errors.WorkflowError(f"the unit types of a workflow are a UnitScheme, got {value!r}")
        return value

    @property
    def size(self) -> int:
        return len(self.names)

    @property
    def encoding_bits(self) -> int:
        return self.size**2

    @property
    def num_orders(self) -> int:
        return math.factorial(self.size)

    def order_of(self, units: tuple[int, ...]) -> "Workflow":
        """Return the order of these unit ids, which was checked at its first use."""
        if units not in self._orders:
            self._orders[units] = Workflow(units, self)
        return self._orders[units]

    @cached_property
    def _orders(self) -> dict[tuple[int, ...], "Workflow"]:
        return {}

    def __reduce__(self) -> Any:
        return UnitScheme, (self.names, self.host_unit, self.scenario)  # without the orders

    def untouched(self, held: int) -> tuple[str, ...]:
        """Return the unit types of which a set of hosts has none, red's foothold apart."""
        arguments.check_int("a set of hosts, as bits", held, 0, 2**self.scenario.num_hosts - 1)
        start = self.scenario.start_id
        touched = {unit for host, unit in enumerate(self.host_unit) if held >> host & 1 and host != start}
        return tuple(name for unit, name in enumerate(self.names) if unit not in touched)

    def numbers(self, names: Sequence[str], what: str) -> tuple[int, ...]:
        """Return the ids of unit types by name. what: who names them, for the error."""
        if not isinstance(names, list | tuple):
            raise errors.WorkflowError(f"{what} must be a list of unit types, got {names!r}")
        for name in names:
            if not isinstance(name, str) or name not in self.names:
                raise errors.WorkflowError(f"{what} names {name!r}, which is none of the unit types {', '.join(self.names)}")
        return tuple(self.names.index(name) for name in names)

    def hosts(self, unit: int) -> tuple[str, ...]:
        """Return the names of a unit type's hosts."""
        arguments.check_int("unit", unit, 0, self.size - 1)
        return tuple(name for name, u in zip(self.scenario.host_names, self.host_unit, strict=True) if u == unit)

    def as_dict(self) -> dict[str, list[str]]:
        """Return unit type -> hosts, as in a TOML file."""
        return {name: list(self.hosts(unit)) for unit, name in enumerate(self.names)}

    @classmethod
    def from_dict(cls, units: dict[str, list[str]], scenario: Scenario = CAGE2) -> "UnitScheme":
        """Make one from unit type -> hosts; every host must appear exactly once."""
        if not isinstance(units, dict) or not all(isinstance(v, list) and isinstance(k, str) for k, v in units.items()):
            raise errors.WorkflowError('a unit scheme gives a list of hosts per unit type, e.g. servers = ["Op_Server0"]')
        owner: dict[str, int] = {}
        names = Scenario.check(scenario).host_names
        for unit, (name, hosts) in enumerate(units.items()):
            for host in hosts:
                if host not in names:
                    raise errors.WorkflowError(f"unit type {name!r} names {host!r}, which is none of {', '.join(names)}")
                if host in owner:
                    raise errors.WorkflowError(f"host {host} is in more than one unit type")
                owner[host] = unit
        missing = [host for host in names if host not in owner]
        if missing:
            raise errors.WorkflowError(f"every host needs a unit type (missing: {', '.join(missing)})")
        return cls(tuple(units), tuple(owner[host] for host in names), scenario)

    @classmethod
    def from_toml(cls, path: str | Path, scenario: Scenario = CAGE2) -> "UnitScheme":
        """Read one from a TOML file with a table [units]: unit type = list of hosts."""
        return cls.from_dict(read_units(path), scenario)

    @classmethod
    def from_config(cls, units: Any, scenario: Any) -> "UnitScheme":
        """Make the one that a run's settings name; None: the usual ones. scenario: as a run keeps it."""
        played = CAGE2 if scenario is None or scenario == CAGE2.name else Scenario.from_dict(scenario)
        return cls.by_type(played) if units is None else cls.from_dict(units, played)

    @classmethod
    def per_host(cls, scenario: Scenario = CAGE2) -> "UnitScheme":
        """Make every host its own unit type: 13! orders in CAGE2."""
        Scenario.check(scenario)
        return cls(scenario.host_names, tuple(range(scenario.num_hosts)), scenario)

    @classmethod
    def by_type(cls, scenario: Scenario = CAGE2) -> "UnitScheme":
        """Group hosts by the unit types of their scenario."""
        units = Scenario.check(scenario).unit_types
        if not units:
            raise errors.WorkflowError(
                f"the names of {scenario.name} give no 2 to 8 unit types, nor do its subnets; give --units FILE.toml"
            )
        return cls(units, tuple(units.index(host.unit) for host in scenario.hosts), scenario)


def read_units(path: str | Path) -> Any:
    """Return the table [units] of a TOML file, which a `UnitScheme` can be made from."""
    try:
        document = files.read_toml(arguments.check_path("units", path))
    except OSError as e:
        raise errors.WorkflowError(f"{path}: cannot be read ({e.strerror})") from e
    except ValueError as e:
        raise errors.WorkflowError(f"{path}: not a TOML file ({e})") from e
    if "units" not in document:
        raise errors.WorkflowError(f"{path}: has no table [units] with a list of hosts per unit type")
    return document["units"]


FIVE_TYPES = UnitScheme.by_type()

# Orders with a name in the literature: D defender, E enterprise, S op_server, H op_host, U user.
_LETTERS = {"D": "defender", "E": "enterprise", "S": "op_server", "H": "op_host", "U": "user"}
NAMED_ORDERS = {
    "critical_first": "DSEHU",
    "enterprise_focus": "EDSHU",
    "user_priority": "UDESH",
    "operational_focus": "SHDEU",
    "balanced": "DESUH",
    "reverse": "UHESD",
}


@dataclass(frozen=True)
class Workflow:
    """An order of unit types: fix the first one first.

    For example:

        order = ff.Workflow.parse("enterprise > user > op_server > op_host > defender")  # or a name: "critical_first"
        order.ranks  # [5]: the position of user, op_host, op_server, enterprise, defender
        order.kendall_distance(ff.Workflow.from_number(0))  # 0 equal, 1 reversed
    """

    order: tuple[int, ...]  # unit ids
    scheme: UnitScheme = field(default=FIVE_TYPES, repr=False)

    def __post_init__(self) -> None:
        units = range(UnitScheme.check(self.scheme).size)
        if sorted(arguments.check_ints("order", self.order)) != list(units):
            raise errors.WorkflowError(f"an order must hold each of the unit ids 0..{len(units) - 1} once, got {self.order}")

    @classmethod
    def parse(cls, text: str, scheme: UnitScheme = FIVE_TYPES) -> "Workflow":
        """From `a > b > c` (also with -> or commas), or a name of NAMED_ORDERS; in capitals or not."""
        UnitScheme.check(scheme)
        if not isinstance(text, str):
            raise errors.WorkflowError(f"a workflow is a text such as {' > '.join(scheme.names)}, got {text!r}")
        if scheme.names == FIVE_TYPES.names and text.strip().lower() in NAMED_ORDERS:
            text = " > ".join(_LETTERS[letter] for letter in NAMED_ORDERS[text.strip().lower()])
        as_named = {name.lower(): name for name in scheme.names}
        as_named = as_named if len(as_named) == scheme.size else {}  # some differ by capitals only: then these count
        names = [as_named.get(name.strip().lower(), name.strip()) for name in re.split(r"->|>|→|,", text)]
        if sorted(names) != sorted(scheme.names):
            unknown = [name for name in names if name not in scheme.names]
            twice = sorted({name for name in names if names.count(name) > 1 and name in scheme.names})
            missing = [name for name in scheme.names if name not in names]
            named = tuple(NAMED_ORDERS) if scheme.names == FIVE_TYPES.names else ()
            problems = (("unknown", unknown), ("twice", twice), ("missing", missing))
            wrong = "; ".join(f"{what}: {', '.join(map(repr, which))}" for what, which in problems if which)
            hint = errors.did_you_mean(unknown[0], (*scheme.names, *named)) if unknown else ""
            spelling = f", or be one of {', '.join(named)}" if named and len(names) == 1 else ""
            every = ", ".join(scheme.names)
            raise errors.WorkflowError(f"workflow {text!r} must name each of {every} exactly once ({wrong}){spelling}{hint}")
        return scheme.order_of(tuple(scheme.names.index(name) for name in names))

    @classmethod
    def from_number(cls, number: int, scheme: UnitScheme = FIVE_TYPES) -> "Workflow":
        """Return the order of this number, 0..U!-1."""
        if not 0 <= arguments.check_int("number", number, 0, sys.maxsize) < UnitScheme.check(scheme).num_orders:
            raise errors.WorkflowError(f"workflow number {number} is not in 0..{scheme.num_orders - 1}")
        units, order = list(range(scheme.size)), []
        for left in range(scheme.size - 1, -1, -1):
            index, number = divmod(number, math.factorial(left))
            order.append(units.pop(index))
        return scheme.order_of(tuple(order))

    @cached_property
    def number(self) -> int:
        """The order's number, 0..U!-1."""
        total = 0
        for position, unit in enumerate(self.order):
            smaller_to_come = sum(later < unit for later in self.order[position + 1 :])
            total += smaller_to_come * math.factorial(self.scheme.size - 1 - position)
        return total

    @cached_property
    def ranks(self) -> np.ndarray:
        """[U] position of each unit type, 0 = fix first."""
        ranks = np.empty(self.scheme.size, np.int64)
        ranks[list(self.order)] = np.arange(self.scheme.size)
        ranks.setflags(write=False)
        return ranks

    def __str__(self) -> str:
        return " > ".join(self.scheme.names[unit] for unit in self.order)

    def encode(self) -> np.ndarray:
        """[U * U] int8, bit U * position + unit id."""
        bits = np.zeros(self.scheme.encoding_bits, np.int8)
        for position, unit in enumerate(self.order):
            bits[self.scheme.size * position + unit] = 1
        return bits

    def with_last(self, units: Sequence[int]) -> "Workflow":
        """Return the same order with these unit types at its end, among themselves by id."""
        arguments.check_ints("units", units)
        order = (*(unit for unit in self.order if unit not in units), *sorted(units))
        return self.scheme.order_of(order)

    def pair_signs(self) -> np.ndarray:
        """[U * (U - 1) / 2] int8, one per pair a < b of unit ids: +1 if a comes before b, else -1."""
        ranks = self.ranks
        return np.array([1 if ranks[a] < ranks[b] else -1 for a, b in combinations(range(len(ranks)), 2)], np.int8)

    def kendall_distance(self, other: "Workflow") -> float:
        """Share of pairs of unit types that the two orders rank differently: 0 equal, 1 reversed."""
        if not isinstance(other, Workflow):
            raise errors.WorkflowError(f"a workflow is compared with another one, got {other!r}")
        if self.scheme != other.scheme:
            raise errors.WorkflowError("workflows of different unit schemes cannot be compared")
        return float((self.pair_signs() != other.pair_signs()).mean())


def all_workflows(scheme: UnitScheme = FIVE_TYPES) -> Iterator[Workflow]:
    """All orders, by number. Lazy: 13 unit types have 6 billion."""
    return (Workflow(order, scheme) for order in permutations(range(scheme.size)))
