"""`fixfirst scenario`: look at a network, or make one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from fixfirst.base import errors, files
from fixfirst.cli.app import Json, Whole, print_json
from fixfirst.game.game_config import scenario_named
from fixfirst.game.scenario import Scenario
from fixfirst.policy import action_sets
from fixfirst.reporter.picture import map_of
from fixfirst.runs import layout

NEW, HOST_TABLE = "new", ".csv"


def scenario_command(
    file: str,
    /,
    *,
    hosts: Annotated[Whole | None, Parameter(help="With new: how many.")] = None,
    subnets: Annotated[Whole | None, Parameter(help="With new: how many.")] = None,
    seed: Whole = 0,
    images: Path | None = None,
    out: Path | None = None,
    as_json: Json = False,
) -> None:
    """Show a network: its map, hosts, who gets where, B_line's way, decoys, and what its names mean; or make one.

    Parameters
    ----------
    file
        A scenario file, one that comes with fixfirst (cage2, cage1, tiny, flat, office), a CSV table of machines, or the
        word new for a random one.
    seed
        With new: the same seed gives the same network.
    images
        A folder of own images.
    out
        Write it as a scenario file of CybORG.
    """
    if out is not None:
        layout.check_output("out", out, file)
    sizes = {name: size for name, size in (("hosts", hosts), ("subnets", subnets)) if size is not None}
    if file == NEW:
        scenario = Scenario.generate(seed, **sizes)  # type: ignore[arg-type]  # its values are no sizes
    elif sizes:
        raise errors.ConfigError(f"--hosts and --subnets are of a new network: fixfirst scenario {NEW} --hosts 20")
    elif Path(file).suffix == HOST_TABLE:
        scenario = Scenario.from_table(file, errors.note)
    else:
        scenario = scenario_named(file, images)
    if out is not None:
        with errors.writing(out, error=errors.ConfigError):
            files.write_atomically(out, scenario.to_yaml().encode())
        errors.note(f"{out}: {scenario.num_hosts} hosts in {len(scenario.subnets)} subnets, digest {scenario.digest[:12]}")
    if as_json:
        print_json(_document(scenario))
    elif out is None:
        print(*_lines(scenario), sep="\n")


def _document(scenario: Scenario) -> dict[str, Any]:
    """Return all there is to see as JSON values."""
    lists = action_sets.decoy_slots(scenario).lists
    return {
        "name": scenario.name,
        "digest": scenario.digest,
        "start": scenario.start,
        "target": scenario.target,
        "actions": scenario.num_actions,
        "unit_types": list(scenario.unit_types),
        "exact": {red: scenario.exact(red) for red in ("b_line", "meander")},
        "subnets": [
            {"name": s.name, "hosts": list(s.hosts), "reach": s.reach, "ports": [list(ports) for ports in s.lets_through]}
            for s in scenario.subnets
        ],
        "hosts": [
            {
                "name": host.name,
                "subnet": scenario.subnet_names[host.subnet],
                "unit": host.unit,
                "image": host.image.name,
                "value": host.value,
                "ports": sorted(host.ports),
                "leads_to": [finding.host for finding in host.reveals if finding.host != host.name and finding.address],
                "decoys": list(lists.get(host.name, ())),
                "listed": host.listed,
                "watched": host.watched,
                "reached": host.reached,
            }
            for host in scenario.hosts
        ],
        "b_line": list(_b_line_ways(scenario)),
        "notes": list(scenario.notes),
    }


def _b_line_ways(scenario: Scenario) -> Iterator[list[str]]:
    """Yield the hosts that B_line attacks one after the other, for each of its first victims."""
    if scenario.target is not None:
        for first in scenario.b_line_first or (scenario.host_ids[scenario.home],):
            yield [*(scenario.host_names[host] for host in scenario.b_line_ways[first]), scenario.target]


def _lines(scenario: Scenario) -> Iterator[str]:
    """Yield the same for people, in lines of at most 100 columns where names are short."""
    document = _document(scenario)
    sizes = f"{scenario.num_hosts} hosts, {len(scenario.subnets)} subnets, {scenario.num_actions} actions"
    yield f"{scenario.name}: {sizes}, digest {scenario.digest[:12]}"
    yield f"unit types: {', '.join(scenario.unit_types) or 'none; give --units FILE.toml'}"
    yield ""
    marks = {scenario.start: "*", scenario.target: "!"}
    width = max(len(name) for name in scenario.host_names) + 3
    for name_of_subnet, rows in map_of(scenario).rows.items():
        yield name_of_subnet
        yield from ("  " + "".join(f"{marks.get(name, ' ')}{name:{width}}" for name in row).rstrip() for row in rows)
    yield "(* red starts here" + (", ! its target)" if scenario.target is not None else ")")
    yield ""
    table = [("host", "unit", "image", "value", "ports", "decoys worth placing")]
    for host in document["hosts"]:
        lacking = "" if host["watched"] else " (not watched)"
        ports, decoys = " ".join(map(str, host["ports"])), ", ".join(host["decoys"])
        table.append((host["name"] + lacking, host["unit"], host["image"], f"{host['value']:g}", ports, decoys))
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    yield from ("  ".join(map(str.ljust, row, widths)).rstrip() for row in table)
    yield ""
    reach = {"open": "always", "closed": "never", "gated": "while red holds an Enterprise host"}
    for subnet in scenario.subnets:
        ports = ", ".join(f"{first} to {end - 1}" for first, end in subnet.lets_through) or "none"
        yield f"red gets into {subnet.name}: {reach.get(subnet.reach, f'ports {ports}')}"
    yield ""
    yield "B_line's ways:" if document["b_line"] else "B_line has no way: there is no host named Op_Server0"
    yield from (f"  {' > '.join((scenario.home, *way))}" for way in document["b_line"])
    yield ""
    yield f"exactly as CybORG's: {', '.join([*(red for red, exact in document['exact'].items() if exact), 'sleep'])}"
    yield from (f"note: {text}" for text in scenario.notes)
    if changed := [name for name, other in scenario.by_variant.items() if other.hosts != scenario.hosts]:
        yield f"note: in variant {', '.join(changed)} some images differ"
