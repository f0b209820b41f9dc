"""`fixfirst scenario`: look at a network, or make one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from fixfirst.base import errors, files
from fixfirst.cli.app import Json, Whole, print_json
from fixfirst.game import parts
from fixfirst.game.scenario import Scenario
from fixfirst.game.scenario_names import scenario_named
from fixfirst.policy import decoy_slots
from fixfirst.reporter.network_map import map_of
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
) -> int:
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
    if file == NEW:
        sizes = (("hosts", hosts), ("subnets", subnets))
        chosen: dict[str, Any] = {name: value for name, value in sizes if value is not None}
        scenario = Scenario.generate(seed, **chosen)
    elif hosts is not None or subnets is not None:
        raise errors.ConfigError(f"--hosts and --subnets are of a new network: fixfirst scenario {NEW} --hosts 20")
    else:
        scenario = (
            Scenario.from_table(file, errors.note) if Path(file).suffix == HOST_TABLE else scenario_named(file, images)
        )
    if out is not None:
        with errors.writing(out, error=errors.ConfigError):
            files.write_atomically(out, scenario.to_yaml().encode())
        errors.note(f"{out}: {scenario.num_hosts} hosts in {len(scenario.subnets)} subnets, digest {scenario.digest[:12]}")
    if as_json:
        print_json(as_document(scenario))
    elif out is None:
        print(_as_text(scenario))
    return 0


def as_document(scenario: Scenario) -> dict[str, Any]:
    """Return all that is shown as JSON values."""
    lists = decoy_slots.decoy_slots(scenario).lists
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
        "b_line": [list(way) for way in b_line_ways(scenario)],
        "notes": list(scenario.notes),
    }


def b_line_ways(scenario: Scenario) -> list[tuple[str, ...]]:
    """Return the hosts that B_line attacks one after the other, for each of its first victims."""
    if scenario.target is None:
        return []
    names, firsts = scenario.host_names, scenario.b_line_first or (scenario.host_ids[scenario.home],)
    seconds = [scenario.b_line_second[u] for u in firsts]
    return [
        (names[u], names[e], names[scenario.b_line_third[e]], scenario.target) for u, e in zip(firsts, seconds, strict=True)
    ]


def _as_text(scenario: Scenario) -> str:
    """Return the same for people, in lines of at most 100 columns where names are short."""
    document = as_document(scenario)
    lines = [
        f"{scenario.name}: {scenario.num_hosts} hosts, {len(scenario.subnets)} subnets, {scenario.num_actions} actions, "
        f"digest {scenario.digest[:12]}",
        f"unit types: {', '.join(scenario.unit_types) or 'none; give --units FILE.toml'}",
        "",
        *_map(scenario),
        "",
    ]
    table = [("host", "unit", "image", "value", "ports", "decoys worth placing")]
    for host in document["hosts"]:
        lacking = "" if host["watched"] else " (not watched)"
        ports, decoys = " ".join(map(str, host["ports"])), ", ".join(host["decoys"])
        table.append((host["name"] + lacking, host["unit"], host["image"], f"{host['value']:g}", ports, decoys))
    lines += [*_columns(table), ""]
    reach = {"open": "always", "closed": "never", "gated": "while red holds an Enterprise host"}
    for subnet in scenario.subnets:
        ports = ", ".join(f"{first} to {end - 1}" for first, end in subnet.lets_through) or "none"
        lines.append(f"red gets into {subnet.name}: {reach.get(subnet.reach, f'ports {ports}')}")
    lines += ["", "B_line's ways:" if document["b_line"] else "B_line has no way: there is no host named Op_Server0"]
    lines += [f"  {' > '.join((scenario.home, *way))}" for way in document["b_line"]]
    exact = [red for red, yes in document["exact"].items() if yes]
    lines += ["", f"exactly as CybORG's: {', '.join([*exact, 'sleep'])}"]
    lines += [f"note: {text}" for text in document["notes"]]
    changed = [v.name for v, one in zip(parts.VARIANTS, scenario.by_variant, strict=True) if one.hosts != scenario.hosts]
    if changed:
        lines.append(f"note: in variant {', '.join(changed)} some images differ")
    return "\n".join(lines)


def _map(scenario: Scenario) -> list[str]:
    """Return the map as text: a box per subnet, in the order of pictures."""
    marks = {scenario.start: "*", scenario.target: "!"}
    width = max(len(name) for name in scenario.host_names) + 3
    lines: list[str] = []
    for subnet, rows in map_of(scenario).rows.items():
        lines.append(subnet)
        lines += ["  " + "".join(f"{marks.get(name, ' ')}{name:{width}}" for name in row).rstrip() for row in rows]
    return [*lines, "(* red starts here" + (", ! its target)" if scenario.target is not None else ")")]


def _columns(table: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
