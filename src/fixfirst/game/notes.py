"""What a scenario's names and links mean for the game: where B_line and Meander play as CybORG's, and what to rename.

CybORG's agents know some hosts by name. On a network with other names they play all the same: a gate may never open, an
impact may be impossible, a scan of green may hit nobody; and where CybORG would stop with an error, ours go on by a rule of
their own, a *fallback* (docs/scenarios.md). The notes say so, each in a sentence.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fixfirst.base import errors
from fixfirst.game import parts

if TYPE_CHECKING:
    from fixfirst.game.parts import Host
    from fixfirst.game.scenario import Scenario


def b_line_fallbacks(scenario: "Scenario") -> Iterator[str]:
    """Tell where CybORG's B_line would stop, or could."""
    home, target, subnets = scenario.home, scenario.target, scenario.subnets
    firsts = scenario.b_line_first or (scenario.host_ids[home],)
    if home != parts.HOME_NAME:
        yield f"red does not know the subnet of {parts.HOME_NAME} at the start; B_line begins at {home} instead"
    if not scenario.b_line_first:
        yield f"{home} is alone in its subnet; B_line begins with {home} itself"
    ways = [scenario.b_line_ways[u] for u in firsts]
    users, seconds, thirds = ([scenario.hosts[h] for h in dict.fromkeys(sorted(hosts))] for hosts in zip(*ways, strict=True))
    lost = (u.name for u in users if not scenario.b_line_goes_on(u)[1])
    rule = "; B_line goes on with any other address there, else stays"
    yield from _about(f"red finds no address of a host whose name contains {parts.GATE_WORD} on ", lost, rule)
    blind = (e.name for e in seconds if not any(f.host == e.name and f.subnet for f in e.reveals))
    yield from _about("red does not find the own subnet of ", blind, " there; B_line explores it all the same")
    small = sorted({subnets[e.subnet].name for e in seconds if len(subnets[e.subnet].hosts) < 3})
    yield from _about("fewer than three hosts are in ", small, "; B_line takes the last of the list for the third")
    far = (p.name for p in thirds if not any(f.host == target and f.address for f in p.reveals))
    yield from _about(f"red does not find the address of {target} on ", far, "; B_line goes there all the same")
    deaf = (h.name for h in scenario.hosts if h in (*seconds, *thirds) and not _always_answers(scenario, h))
    yield from _about("a scan of ", deaf, " may get no answer; B_line then attacks all the same, in vain")


def _always_answers(scenario: "Scenario", host: "Host") -> bool:
    """Return whether every scan of a host by red sees a port."""
    subnet = scenario.subnets[host.subnet]
    if subnet.reach == parts.CLOSED or (subnet.reach == parts.GATED and parts.GATE_WORD not in scenario.start):
        return False
    return any(map(subnet.lets, host.ports))


def meander_fallbacks(scenario: "Scenario") -> Iterator[str]:
    """Tell where CybORG's Meander would stop, or could."""
    words = [word for word in ("Op", "Ent") if word in scenario.start]
    if words:
        yield f"red starts on {scenario.start}, whose name contains {words[0]}; Meander may forget it before it exploited it"
    if not _never_out_of_options(scenario):
        yield "every host that Meander is sure to find can be taken; when it holds them all, it sleeps"


def _never_out_of_options(scenario: "Scenario") -> bool:
    """Return whether Meander always finds a host that resists, or the target, before it holds all it knows.

    It has no option left only when it has taken and escalated all hosts whose address it knows. Then it has learnt what they
    tell. Subnets that were out of reach when it explored them are never explored again, so only open ones count.
    """
    ids, hosts = scenario.host_ids, scenario.hosts
    known, subnets, asked = set[int](), set[int](), set[int]()
    waiting = list(scenario.known)
    while True:
        known |= {ids[finding.host] for finding in waiting if finding.address}
        subnets |= {hosts[ids[finding.host]].subnet for finding in waiting if finding.subnet}
        explored = {s for s in subnets if scenario.subnets[s].reach in (parts.OPEN, parts.FILTERED)}
        known |= {h for h, host in enumerate(hosts) if host.subnet in explored}
        if scenario.target_id in known or any(not _can_be_taken(scenario, hosts[h]) for h in known):
            return True
        fresh = known - asked
        if not fresh:
            return False
        asked |= fresh
        waiting = [finding for h in fresh for finding in hosts[h].reveals]


def _can_be_taken(scenario: "Scenario", host: "Host") -> bool:
    subnet = scenario.subnets[host.subnet]
    lets_in = subnet.reach != parts.CLOSED
    return lets_in and any(exploit.takes(host) and subnet.lets(exploit.port) for exploit in scenario.exploits)


def notes_of(scenario: "Scenario") -> Iterator[str]:
    """Tell what a reader of the file should know."""
    yield from scenario.remarks
    if scenario.own_reward:
        yield scenario.stakes
    names, green, target = scenario.host_names, scenario.green_hosts, scenario.target
    gated, closed = ([s.name for s in scenario.subnets if s.reach == reach] for reach in (parts.GATED, parts.CLOSED))
    keys = [name for name in names if parts.GATE_WORD in name]
    if not keys:
        why = f": no name of a host contains {parts.GATE_WORD}; call a host that leads there {parts.GATE_WORD}0"
        yield from _about("red never gets into ", gated, why)
    elif scenario.start in keys:
        yield from _about("red always gets into ", gated, f": it starts on {scenario.start}")
    else:
        yield from _about("red gets into ", gated, f" while it holds {_list(keys, 'or')}")
    yield from _about("red never gets into ", closed)
    if target is None:
        yield f"nothing can be impacted and b_line cannot play: call the host to be protected most {parts.TARGET_NAME}"
    else:
        if not scenario.can_stop_service:
            yield f"{target} cannot be impacted: its image does not run OTService; use OP_Server"
        elif not any(finding.ot_service for host in scenario.hosts for finding in host.reveals):
            yield f"{target} cannot be impacted: no host's info names its service (Services: [OTService])"
        yield from (f"b_line: {note}" for note in b_line_fallbacks(scenario))
    yield from (f"meander: {note}" for note in meander_fallbacks(scenario))
    for word, meant in (("Op", "Op_"), ("Ent", parts.GATE_WORD)):
        odd = (name for name in names if word in name and meant not in name)
        yield from _about("meander takes ", odd, f" for one of the {meant} hosts, because of {word} in the name")
    if green is None:
        yield "there is no agent Green: nobody but red scans ports"
    else:
        void = [name for name in parts.GREEN_NAMES if name not in green]
        yield from _about(f"green: {len(void)} of 8 scans hit nobody, because it looks for ", void)
    for word, wanted in (("list", "listed"), ("watch", "watched"), ("reach", "reached")):
        yield from _about(f"blue does not {word} ", (host.name for host in scenario.hosts if not getattr(host, wanted)))


def _about(before: str, names: Iterable[str], after: str = "") -> Iterator[str]:
    """Yield the sentence with these names in it, unless there are none."""
    if listed := list(names):
        yield f"{before}{_list(listed)}{after}"


def _list(names: list[str], word: str = "and") -> str:
    return errors.list_words(names if len(names) <= 6 else [*names[:5], f"{len(names) - 5} more"], word)
