"""Played episodes as one plain document, turn by turn, and that document as a self-contained page, or as text.

The episodes are the first ones that an evaluation of the same seed and purpose plays: what one watches was measured.
The page loads nothing: style, script and data are in it, and its policy forbids everything else. Data stand in a JSON block
in which `<` is escaped, and reach the reader as text, never as markup. T steps, H hosts.
"""

from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.base import errors, files
from fixfirst.game import parts, state
from fixfirst.game.scenario import CAGE2
from fixfirst.orders.compliance import DEFAULT_JUDGING, Judging
from fixfirst.play.evaluation import EpisodeBatch
from fixfirst.policy.spec import PolicySpec, bits_of
from fixfirst.reporter.page import fill
from fixfirst.reporter.picture import map_of, scenario_of
from fixfirst.reporter.reasons import BESIDE, Verdict, describe_turns, explain_repairs, explain_return, needy_hosts
from fixfirst.reporter.turn import Turn, outcome, summarise_turn, tenths

_PLAIN_SPEC = PolicySpec()


class Step(Turn):
    """One turn of an episode; the first of an episode is its start, before anyone acts."""

    needed: tuple[str, ...]  # hosts that needed repair when blue chose its action
    suspected: tuple[str, ...]  # hosts that blue suspected or believed not clean then, where the order is a mask
    forbidden: tuple[str, ...]  # unit types whose repair that mask forbade
    repair: bool  # blue removed or restored something
    contested: bool  # and two or more unit types needed repair
    verdict: Verdict | None  # of a repair, where there is a workflow
    impact: bool  # red stopped the OT service in this turn, or kept it stopped
    remembered: dict[str, str]  # what the policy knew of whom before it saw this turn's end, where it remembers anything


def notable(played: EpisodeBatch, beside: EpisodeBatch | None = None) -> dict[str, int]:
    """Return the worst, the median and the best episode by return, as label -> number; fewer where fewer were played.

    beside: of another player; then also the one in which the two are furthest apart.
    """
    returns10 = played.rollout.rewards10.sum(axis=0)
    order = np.argsort(returns10, kind="stable").tolist()
    if len(order) == 1:
        return {"only": 0}
    middle = {"median": order[(len(order) - 1) // 2]} if len(order) > 2 else {}
    chosen = {"worst": order[0], **middle, "best": order[-1]}
    if beside is not None:
        apart = int(np.abs(beside.rollout.rewards10.sum(axis=0) - returns10).argmax())
        if apart not in chosen.values():
            chosen["furthest apart"] = apart
    return chosen


def replay_document(
    played: EpisodeBatch,
    numbers: dict[str, int],
    facts: dict[str, Any],
    judging: Judging = DEFAULT_JUDGING,
    spec: PolicySpec = _PLAIN_SPEC,
    beside: bool = False,
) -> dict[str, Any]:
    """Return everything a page or a text needs of these episodes, as JSON values.

    facts: what the reader should know about the policy; spec: of it. beside: the episodes were chosen for what another
    player did.
    """
    workflows, scheme, scenario, returns = played.rollout.workflows, played.scheme, played.game.scenario, played.returns
    document = {
        **facts,
        "memory": spec.memory.name,
        "shield": spec.shield,
        "opening": [spec.action_set.names[choice] for choice in spec.opening],
        "variant": played.variant,
        "workflow": str(workflows[0]).split(" > ") if workflows else None,
        "changes": [{"step": each.step, "workflow": str(workflows[each.workflow]).split(" > ")} for each in played.changes],
        "played": {"episodes": len(returns), "mean_return": float(returns.mean())},
        "hosts": [
            {
                "name": host.name,
                "subnet": scenario.subnet_names[host.subnet],
                "unit": scheme.names[unit],
                "value": host.value,
            }
            for host, unit in zip(scenario.hosts, scheme.host_unit, strict=True)
        ],
        "episodes": [describe_episode(played, label, n, judging, spec, beside) for label, n in numbers.items()],
    }
    if scenario != CAGE2:
        document["scenario"] = scenario.as_dict()
    if scenario.own_reward:
        document["reward"] = scenario.stakes
    if played.rollout.turns is not None and played.game.learned:  # habits of scripts are known
        document["habits"] = describe_turns(played.rollout, played.rollout.turns, scenario)
    return document


def describe_episode(
    played: EpisodeBatch,
    label: str,
    number: int,
    judging: Judging = DEFAULT_JUDGING,
    spec: PolicySpec = _PLAIN_SPEC,
    beside: bool = False,
) -> dict[str, Any]:
    """Return one of the episodes, with its T + 1 steps. spec: of the policy that played."""
    assert played.rollout.turns is not None, "played without keep_turns"
    steps = _steps(played, number, judging, spec)
    verdicts = [step["verdict"]["kind"] for step in steps if step["verdict"] is not None]
    mean, many = float(played.returns.mean()), len(played.returns)
    return {
        "label": label,
        "number": number,
        "red_agent": played.game.red_name(int(played.rollout.turns[0, number]["red_agent"])),
        "return10": steps[-1]["return10"],
        "violations": verdicts.count("violation"),
        "judged": len(verdicts) - verdicts.count("not judged"),
        "impacts": sum(step["impact"] for step in steps),
        "why": explain_return(BESIDE if beside else label, steps, mean, many, played.game.scenario),
        "steps": steps,
    }


def _steps(played: EpisodeBatch, number: int, judging: Judging, spec: PolicySpec) -> list[Step]:
    assert played.rollout.turns is not None
    scenario, scheme = played.game.scenario, played.scheme
    rollout = played.rollout
    actions, held, rewards10 = (each[:, number] for each in (rollout.actions, rollout.held, rollout.rewards10))
    verdicts, remembered, shielded = (
        _judged(played, number, judging),
        _remembered(played, number, spec),
        _shielded(played, number, spec),
    )
    steps: list[Step] = []
    for t, turn in enumerate(played.rollout.turns[:, number]):
        acted = t > 0  # with the action before it
        needy = needy_hosts(int(held[t - 1]), scheme, judging) if acted else []
        repair = acted and scenario.repaired_hosts[actions[t - 1]] >= 0
        suspected, forbidden = shielded[t - 1] if acted else ((), ())
        stops = turn["red_verb"] == state.RedVerb.IMPACT and turn["red_success"] == state.Success.TRUE
        steps.append(
            {
                **summarise_turn(turn, played.variant, scenario),
                "reward10": int(rewards10[t - 1]) if acted else 0,  # as the world gave it
                "needed": tuple(scenario.host_names[host] for host in needy),
                "suspected": suspected,
                "forbidden": forbidden,
                "repair": repair,
                "contested": repair and len({scheme.host_unit[host] for host in needy}) > 1,
                "verdict": verdicts[t - 1] if acted else None,
                "impact": bool(stops and turn["ot"] == state.OTService.STOPPED),  # harmless once it was restored
                "remembered": remembered[t],
            }
        )
    return steps


def _judged(played: EpisodeBatch, number: int, judging: Judging) -> list[Verdict | None]:
    """Return what the workflow in force says of each step [T]."""
    rollout = played.rollout
    actions, held = rollout.actions[:, number], rollout.held[:, number]
    if not rollout.workflows:
        return [None] * len(actions)
    verdicts = explain_repairs(actions, held, rollout.workflows[rollout.assigned[number]], judging)
    for change in played.changes:
        later = explain_repairs(actions, held, rollout.workflows[change.workflow], judging)
        verdicts[change.step - 1 :] = later[change.step - 1 :]
    return verdicts


def _remembered(played: EpisodeBatch, number: int, spec: PolicySpec) -> list[dict[str, str]]:
    """Return what the policy remembered when it read each row [T + 1] of an episode."""
    rows, memory = played.rollout.row_ids[:, number], spec.memory
    if not memory.groups:
        return [{} for _ in rows]
    bits = bits_of(played.rollout.rows[rows], memory.inputs)[:, spec.scenario.observation_bits :]
    return [memory.in_words(row) for row in bits.tolist()]


def _shielded(played: EpisodeBatch, number: int, spec: PolicySpec) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the hosts that blue had reason to repair in each step [T], and the unit types whose repair its mask forbade."""
    numbers, scenario = played.rollout.row_ids[:-1, number], spec.scenario
    if not spec.shield or spec.units is None:
        return [((), ())] * len(numbers)
    rows = played.rollout.rows[numbers]
    repairs: dict[str, list[int]] = {}  # of each unit type, as choices
    for choice, host in enumerate(scenario.repaired_hosts[action] for action in spec.action_set.actions):
        if host >= 0:
            repairs.setdefault(spec.units.names[spec.units.host_unit[host]], []).append(choice)
    bits = bits_of(rows, spec.memory.inputs + scenario.num_hosts)
    view = bits[:, : scenario.observation_bits].reshape(len(rows), -1, parts.BITS_PER_HOST)
    suspected = (bits[:, spec.memory.inputs :] > 0) | (view[:, :, 2:].sum(axis=2) > 0)  # [T, H]: suspect, or not clean
    suspected[:, scenario.start_id] = False
    return [
        (
            tuple(scenario.host_names[host] for host in np.flatnonzero(hosts)),
            tuple(name for name, choices in repairs.items() if not may[choices].any()),
        )
        for hosts, may in zip(suspected, spec.allowed(rows), strict=True)
    ]


def replay_page(document: dict[str, Any]) -> str:
    """Build the replay page. The same document gives the same bytes."""
    scenario = scenario_of(document)
    drawn = {**vars(map_of(scenario)), "foothold": scenario.start, "ot_server": scenario.target}
    return fill("replay.html", data=document | {"map": drawn})


def write_replay(path: Path, document: dict[str, Any]) -> None:
    """Write the page; its folder is made if need be."""
    with errors.writing(path, "; choose another place with --out", errors.ConfigError):
        path.parent.mkdir(exist_ok=True)
        files.write_atomically(path, replay_page(document).encode())


def replay_lines(document: dict[str, Any], *, turns: bool) -> list[str]:
    """Return what is replayed, every episode and why it earned what it did; turns: a few lines for each turn, too."""
    lines, hosts = [_headline(document)], [host["name"] for host in document["hosts"]]
    for episode in document["episodes"]:
        lines += ["", _episode_line(episode), episode["why"]] if turns else [_episode_line(episode), f"  {episode['why']}"]
        for step in episode["steps"][1:] if turns else ():
            changed = [change["workflow"] for change in document["changes"] if change["step"] == step["step"]]
            lines += [f"from here on the order is {' > '.join(order)}" for order in changed]
            lines += _step_lines(step, hosts)
    if "beside" in document:
        first, *others = replay_lines(document["beside"], turns=turns)
        lines += [*([""] if turns else []), f"beside: {first}", *others]
    return lines


def _headline(document: dict[str, Any]) -> str:
    """Say what is replayed, in one line."""
    order, played = document["workflow"], document["played"]
    parts = [
        document["policy"],
        f"order {' > '.join(order)}" if order else "no order",
        *(f"from step {change['step']} on {' > '.join(change['workflow'])}" for change in document["changes"]),
        f"against {document['red_agent']} on {document['backend']}, variant {document['variant']}",
        f"scenario {document['scenario']['name']}" if "scenario" in document else "",
        document.get("reward", ""),
        f"memory {document['memory']}" if document["memory"] != "none" else "",
        f"opening {', '.join(document['opening'])}" if document["opening"] else "",
        f"{played['episodes']:,} episodes of {document['steps']} steps, mean return {played['mean_return']:.2f}",
    ]
    return "; ".join(filter(None, parts))


def _episode_line(episode: dict[str, Any]) -> str:
    """Say an episode's name and what came of it."""
    repairs = f", {episode['violations']} of {episode['judged']} judged repairs out of order" if episode["judged"] else ""
    impacts = f", {episode['impacts']} impacts" if episode["impacts"] else ""
    who = f"episode {episode['number']} against {episode['red_agent']}"
    return f"{episode['label']}: {who}: return {tenths(episode['return10'])}{repairs}{impacts}"


def _step_lines(step: dict[str, Any], hosts: list[str]) -> list[str]:
    """Return what red and blue did, and what is to be said of the hosts: nothing of those that are clean and quiet."""

    def listed(words: list[str]) -> str:
        return ", ".join(f"{name} {word}" for name, word in zip(hosts, words, strict=False) if word not in ("", "none"))

    verdict = step["verdict"]
    judged = f"   [{verdict['kind']}: {verdict['reason']}]" if verdict else ""
    costs = ", ".join(f"{cost['what']} {tenths(cost['tenths'])}" for cost in step["costs"]) or "nothing"
    believed = [
        ("" if belief == "clean" and activity == "none" else belief) + ("" if activity == "none" else f" ({activity} now)")
        for belief, activity in zip(step["belief"], step["activity"], strict=True)
    ]
    by_red = listed(step["red_belief"])
    shield = f"suspected {', '.join(step['suspected'])}; forbade repairs of {', '.join(step['forbidden'])}"
    rows = [
        ("red", step["red"] + outcome(step["red_worked"])),
        ("blue", step["blue"] + outcome(step["blue_worked"]) + judged),
        ("true", listed(step["access"])),
        ("thinks", f"red: {by_red}" if by_red else ""),
        ("seen", listed(believed)),
        ("decoys", listed([" ".join(map(str, ports)) for ports in step["decoys"]])),
        ("memory", "; ".join(f"{whom} {what}" for whom, what in step["remembered"].items())),
        ("shield", shield if step["forbidden"] else ""),
        ("cost", f"{costs}; reward {tenths(step['reward10'])}, return {tenths(step['return10'])}"),
    ]
    rows = [(name, words) for name, words in rows if words]
    return [f"{step['step'] if i == 0 else '':>4}  {name:6} {words}" for i, (name, words) in enumerate(rows)]
