"""What a scenario's names and links mean for the game: where B_line and Meander play as CybORG's, and what to rename.

CybORG's agents know some hosts by name. On a network with other names they play all the same: a gate may never open, an
impact may be impossible, a scan of green may hit nobody; and where CybORG would stop with an error, ours go on by a rule of
their own, a *fallback* (docs/scenarios.md). The notes say so, each in a sentence.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fixfirst.base import errors
from fixfirst.game import parts, reward

if TYPE_CHECKING:
    from fixfirst.game.parts import Host
    from fixfirst.game.scenario import Scenario


def b_line_fallbacks(scenario: "Scenario") -> Iterator[str]:
    """Tell where CybORG's B_line would stop, or could."""
    hosts, ids = scenario.hosts, scenario.host_ids
    if scenario.home != parts.HOME_NAME:
        yield f"red does not know the subnet of {parts.HOME_NAME} at the start; B_line begins at {scenario.home} instead"
    if not scenario.b_line_first:
        yield f"{scenario.home} is alone in its subnet; B_line begins with {scenario.home} itself"
    firsts = scenario.b_line_first or (ids[scenario.home],)
    lost = [u for u in firsts if not scenario.finds_second(hosts[u])]
    if lost:
        yield (
            f"red finds no address of a host whose name contains {parts.GATE_WORD} on {_names(scenario, lost)}; B_line goes "
            "on with any other address there, else stays"
        )
    seconds = sorted({scenario.b_line_second[u] for u in firsts})
    lost = [e for e in seconds if not any(f.host == hosts[e].name and f.subnet for f in hosts[e].reveals)]
    if lost:
        yield f"red does not find the own subnet of {_names(scenario, lost)} there; B_line explores it all the same"
    lost = [e for e in seconds if len(scenario.subnets[hosts[e].subnet].hosts) < 3]
    if lost:
        names = sorted({scenario.subnets[hosts[e].subnet].name for e in lost})
        yield f"fewer than three hosts are in {_list(names)}; B_line takes the last of the list for the third"
    thirds = sorted({scenario.b_line_third[e] for e in seconds})
    lost = [p for p in thirds if not any(f.host == scenario.target and f.address for f in hosts[p].reveals)]
    if lost and scenario.target is not None:
        where = f"the address of {scenario.target} on {_names(scenario, lost)}"
        yield f"red does not find {where}; B_line goes there all the same"
    lost = sorted({h for h in (*seconds, *thirds) if not _always_answers(scenario, hosts[h])})
    if lost:
        yield f"a scan of {_names(scenario, lost)} may get no answer; B_line then attacks all the same, in vain"


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
        for finding in waiting:
            if finding.address:
                known.add(ids[finding.host])
            if finding.subnet:
                subnets.add(hosts[ids[finding.host]].subnet)
        for subnet in subnets:
            if scenario.subnets[subnet].reach in (parts.OPEN, parts.FILTERED):
                known |= {h for h, host in enumerate(hosts) if host.subnet == subnet}
        if scenario.target_id in known or any(not _can_be_taken(scenario, hosts[h]) for h in known):
            return True
        fresh = known - asked
        if not fresh:
            return False
        asked |= fresh
        waiting = [finding for h in fresh for finding in hosts[h].reveals]


def _can_be_taken(scenario: "Scenario", host: "Host") -> bool:
    subnet = scenario.subnets[host.subnet]
    if subnet.reach == parts.CLOSED:
        return False
    return any(exploit.takes(host) and subnet.lets(exploit.port) for exploit in scenario.exploits)


def notes_of(scenario: "Scenario") -> Iterator[str]:
    """Tell what a reader of the file should know."""
    yield from scenario.remarks
    if scenario.own_reward:
        yield reward.in_words(scenario)
    gated = [subnet.name for subnet in scenario.subnets if subnet.reach == parts.GATED]
    keys = [name for name in scenario.host_names if parts.GATE_WORD in name]
    if gated and not keys:
        name = f"no name of a host contains {parts.GATE_WORD}; call a host that leads there {parts.GATE_WORD}0"
        yield f"red never gets into {_list(gated)}: {name}"
    elif gated and scenario.start in keys:
        yield f"red always gets into {_list(gated)}: it starts on {scenario.start}"
    elif gated:
        yield f"red gets into {_list(gated)} while it holds {_list(keys, 'or')}"
    closed = [subnet.name for subnet in scenario.subnets if subnet.reach == parts.CLOSED]
    if closed:
        yield f"red never gets into {_list(closed)}"
    yield from _notes_on_target(scenario)
    if scenario.target is not None:
        yield from (f"b_line: {note}" for note in b_line_fallbacks(scenario))
    yield from (f"meander: {note}" for note in meander_fallbacks(scenario))
    for word, meant in (("Op", "Op_"), ("Ent", parts.GATE_WORD)):
        odd = [name for name in scenario.host_names if word in name and meant not in name]
        if odd:
            yield f"meander takes {_list(odd)} for one of the {meant} hosts, because of {word} in the name"
    if scenario.green_hosts is None:
        yield "there is no agent Green: nobody but red scans ports"
    elif len(scenario.green_hosts) < len(parts.GREEN_NAMES):
        void = [name for name in parts.GREEN_NAMES if name not in scenario.green_hosts]
        yield f"green: {len(void)} of 8 scans hit nobody, because it looks for {_list(void)}"
    for word, wanted in (("list", "listed"), ("watch", "watched"), ("reach", "reached")):
        lacking = [host.name for host in scenario.hosts if not getattr(host, wanted)]
        if lacking:
            yield f"blue does not {word} {_list(lacking)}"


def _notes_on_target(scenario: "Scenario") -> Iterator[str]:
    if scenario.target is None:
        yield f"nothing can be impacted and b_line cannot play: call the host to be protected most {parts.TARGET_NAME}"
        return
    if not scenario.hosts[scenario.target_id].runs_ot:
        yield f"{scenario.target} cannot be impacted: its image does not run OTService; use OP_Server"
    elif not any(finding.ot_service for host in scenario.hosts for finding in host.reveals):
        yield f"{scenario.target} cannot be impacted: no host's info names its service (Services: [OTService])"


def _names(scenario: "Scenario", hosts: list[int]) -> str:
    return _list([scenario.host_names[host] for host in hosts])


def _list(names: list[str], word: str = "and") -> str:
    return errors.list_words(names if len(names) <= 6 else [*names[:5], f"{len(names) - 5} more"], word)
