"""`fixfirst evaluate`: a policy on held-out episodes; on the leaderboard; in both worlds; against attackers that learn.

`fixfirst compare`: two policies in the same episodes.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter, Token

from fixfirst.api import attackers, evaluate
from fixfirst.api.defenders import PolicyLike
from fixfirst.base import errors
from fixfirst.base.tables import Table, interval, signed
from fixfirst.cli.app import Json, Quiet, Switch, TableFiles, Tables, Whole, as_whole, flag, print_json, refuse
from fixfirst.cli.flags import GameFlags, GameFlagsButBackend, GameSettings, JudgingFlags, JudgingSettings, OrderFlag, given
from fixfirst.cli.own_agents import named_agent
from fixfirst.play import comparison, evaluation, leaderboard
from fixfirst.reporter.screen import show
from fixfirst.stats.evaluation import Evaluations

SIMULATOR_SHARE = 10  # in a comparison with CybORG, the simulator plays so many times its episodes


def _lengths(kind: Any, tokens: Sequence[Token]) -> tuple[int, ...]:
    """Convert lengths of episodes, separated by commas; ascending."""
    return tuple(sorted(as_whole(part) for token in tokens for part in token.value.split(",")))


@dataclass(frozen=True)
class Played:
    """What is played, by the names that `ff.evaluate` has for it."""

    workflow: OrderFlag = None
    greedy: Annotated[bool | None, Parameter(show_default="no; with --exploit, mostly")] = None
    """The most probable action instead of a drawn one. With --exploit unless --no-greedy is given, or the policy comes
    from a league, such as guardian: it has learned to draw."""
    red_agent: Annotated[str | None, Parameter(show_default=",".join(evaluation.PROTOCOL_REDS))] = None
    """Only these, separated by commas."""
    steps: Annotated[
        tuple[int, ...] | None,
        Parameter(converter=_lengths, negative="", show_default=",".join(map(str, evaluation.PROTOCOL_STEPS))),
    ] = None
    """Only these lengths, separated by commas."""
    episodes: Whole = 1_000
    """How many of each; with --backend both, on CybORG, and ten times as many on the simulator."""
    seed: Whole = 0
    """Other episodes: they are the same for the same seed."""


@dataclass(frozen=True)
class BestResponse:
    """Flags about attackers that learn, by the names that `ff.exploit` has for them."""

    picky: Annotated[bool | None, Parameter(negative="", show_default="no")] = None
    """With --exploit: the attacker names its exploit instead of leaving it to the draw."""
    starts: Annotated[str | None, Parameter(name="--exploit-starts")] = None
    """With --exploit: where trainings of red begin, separated by commas: scratch, last (what was found before), or
    attackers by name or path. Unless given: scratch, base-attacker, noise, two-fronts, and last if there is one."""
    train_episodes: Annotated[Whole | None, Parameter(name="--exploit-episodes", show_default=f"{attackers.EPISODES:,}")] = (
        None
    )
    """With --exploit: how many episodes red learns on from each start."""


def evaluate_command(
    policy: str,
    /,
    *,
    played: Annotated[Played, Parameter(name="*")] = Played(),
    exploit: Switch = False,
    best_response: Annotated[BestResponse, Parameter(name="*")] = BestResponse(),
    as_leaderboard: Annotated[Switch, Parameter(name="--leaderboard")] = False,
    backend: Literal["simulator", "workers", "cyborg", "both"] = "simulator",
    margin: float = 0.5,
    game: Annotated[GameFlagsButBackend, Parameter(name="*")] = GameFlagsButBackend(),
    judging: JudgingSettings = JudgingFlags(),
    tables: Tables = TableFiles(),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """A frozen policy on CAGE2's protocol: 30, 50 and 100 steps against b_line, meander and sleep, on held-out episodes.

    Parameters
    ----------
    policy
        A run, a policy folder, a policy that comes with fixfirst (champion), a baseline: sleep, random, react-restore,
        react-remove, priority-restore (sees the truth and restores by --workflow), an ONNX file; or your own agent, as
        MODULE:NAME or FILE.py:NAME, whose code is run.
    exploit
        Instead: what an attacker takes that learns against this policy, and what it does, in words. Half a minute or so.
        The attacker is kept in the run's folder exploit/. In the variant of the policy's training unless --variant is given.
    as_leaderboard
        The challenge's own table instead: 30, 50 and 100 steps against b_line (B30, B50, B100) and meander (M30, M50, M100)
        in variant leaderboard, and their total, beside the published ones. One play of --episodes against each gives all
        columns. Sleep's columns, 0 for a defender that does nothing without cause, are left out.
    backend
        simulator, cyborg, workers (our simulator in worker processes), or both: simulator and CybORG side by side, with the
        difference and whether it is shown to be within --margin.
    margin
        With --backend both: how far apart mean returns may be and still count as equivalent.
    """
    tables.check(policy)
    agent, red, files = named_agent(policy), given(best_response), given(tables)
    settings = given(played) | given(game) | given(judging) | {"quiet": quiet, "say": errors.note}
    if exploit:
        modes = {"leaderboard": as_leaderboard, "backend": backend != "simulator", "red_agent": played.red_agent} | files
        refuse("--exploit", (name for name, value in modes.items() if value))
        return _exploit(agent, red, settings, as_json)
    if red:
        raise errors.ConfigError(f"{flag(next(iter(red)))} goes with --exploit")
    if backend == "both":
        refuse("--backend both", ["leaderboard"] if as_leaderboard else files)
        return _compare_worlds(agent, settings, margin, as_json)
    settings["backend"] = backend
    if as_leaderboard:
        standing = evaluate.leaderboard(agent, **settings)
        tables.write(standing)
        if as_json:
            return print_json(standing.as_dict())
        return _print_leaderboard(standing)
    rows = evaluate.evaluate(agent, **settings)
    tables.write(rows)
    if as_json:
        return print_json([asdict(row) for row in rows])
    print_evaluations(rows)


def _exploit(agent: PolicyLike, red: dict[str, Any], settings: dict[str, Any], as_json: bool) -> None:
    """Say what an attacker takes that learns, after what the scripts take."""
    steps = max(settings.pop("steps", evaluation.PROTOCOL_STEPS))
    if "starts" in red:
        red["starts"] = red["starts"].split(",")
    best = attackers.exploit(agent, **red, **settings, max_steps=steps)
    same: dict[str, Any] = {"greedy": best.greedy, "variant": best.variant, "say": lambda text: None}
    scripts = evaluate.evaluate(agent, **settings | same, steps=steps, red_agent=("b_line", "meander"))
    if as_json:
        print_json(best.as_dict() | {"scripts": {row.red_agent: row.mean for row in scripts}})
    else:
        show(*best.in_words(scripts))


def _compare_worlds(agent: PolicyLike, settings: dict[str, Any], margin: float, as_json: bool) -> None:
    """Play the same policy on CybORG and on the simulator."""
    if margin <= 0:
        raise errors.ConfigError(f"--margin must be above 0, got {margin}")
    theirs = evaluate.evaluate(agent, **settings, backend="cyborg")
    # Cheap, and it makes the difference more precise; in the variant that CybORG is, and what had to be said was said.
    here: dict[str, Any] = {"episodes": SIMULATOR_SHARE * settings["episodes"], "variant": theirs[0].variant}
    ours = evaluate.evaluate(agent, **settings | here | {"say": lambda text: None})
    gaps = [(a, b, a.difference(b, margin)) for a, b in zip(ours, theirs, strict=True)]
    if as_json:
        return print_json([{"simulator": asdict(a), "cyborg": asdict(b), "difference": asdict(gap)} for a, b, gap in gaps])
    judged, rows = any(row.compliance is not None for row in ours), []
    for a, b, gap in gaps:
        verdict = "equivalent" if gap.equivalent else f"not shown; these episodes would show ±{gap.smallest_margin:.2f}"
        rates = ("" if row.compliance is None else str(row.compliance.compliance) for row in (a, b))
        means = (f"{row.mean:.2f} ± {row.standard_error:.2f}" for row in (a, b))
        parts = (a.red_agent, a.steps, *means, signed(gap.mean), interval(gap.low, gap.high), verdict)
        rows.append((*parts, *rates) if judged else parts)
    columns = ["red agent", "steps", "simulator", "CybORG", "difference", "95 % interval", f"verdict at ±{margin:g}"]
    columns += ["compliance, simulator", "compliance, CybORG"] if judged else []
    counts = f"{theirs[0].episodes:,} episodes of each on CybORG and {ours[0].episodes:,} on the simulator"
    precise = "where they cost nothing and make the difference more precise"
    show(Table(tuple(columns), tuple(rows)), f"{counts}, {precise}; variant {ours[0].variant}")


def print_evaluations(rows: Evaluations) -> None:
    """Print a row per game, the sum that the challenge ranks by, and what an episode cost."""
    total, error = sum(row.mean for row in rows), sum(row.standard_error**2 for row in rows) ** 0.5
    facts = ", ".join(filter(None, (f"{rows[0].episodes:,} episodes each", f"variant {rows[0].variant}", rows.world)))
    lines = [f"sum {total:.2f} ± {error:.2f} ({facts})"]
    for row in rows:
        costs = sorted(((cost, name) for name, cost in row.costs.items() if cost >= 0.005), reverse=True)
        parts = ", ".join(f"{name} {cost:.2f}" for cost, name in costs) or "nothing"
        lines.append(f"{row.red_agent}, {row.steps} steps, costs: {parts}")
    show(rows.table(), *lines)


def _print_leaderboard(standing: leaderboard.LeaderboardScore) -> None:
    """Print six columns and their total, beside the published ones."""
    played = f"{standing.columns[0].episodes:,} episodes against each, variant {standing.columns[0].variant}"
    show(
        *standing.tables(),
        standing.table(),
        *(
            f"total less that of {name}: {lead.mean:+.2f} [{lead.low:+.2f}, {lead.high:+.2f}]"
            for name, lead in standing.leads.items()
        ),
        f"B: b_line, M: meander, with the steps of an episode; {played}",
        f"published: {standing.source}",
    )


@dataclass(frozen=True)
class Compared:
    """What is played, by the names that `ff.compare` has for it."""

    workflow: OrderFlag = None
    greedy: bool = False
    """The most probable action instead of a drawn one."""
    red_agent: str = "b_line,meander"
    """Only these, separated by commas."""
    steps: Whole | None = None
    """Length of an episode; default: 100, or that of the scenario's own reward."""
    episodes: Whole = 2_000
    """How many against each red agent."""
    seed: Whole = 0
    """Other episodes: they are the same for the same seed, and those of `fixfirst evaluate`."""


def compare_command(
    first: str,
    second: str,
    /,
    *,
    played: Annotated[Compared, Parameter(name="*")] = Compared(),
    game: GameSettings = GameFlags(),
    tables: Tables = TableFiles(),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Are two policies different, and by how much? Both play the same held-out episodes, against each red agent.

    What is compared is the difference within an episode, in which both meet the same luck: far fewer episodes tell two
    policies apart than two evaluations would need. The worst episodes of each are named.

    Parameters
    ----------
    first
        A run, a policy folder, champion, a baseline, an ONNX file, or your own agent, as in `fixfirst evaluate`.
    second
        Another one.
    """
    tables.check(first, second)
    settings = given(played) | given(game)
    rows = evaluate.compare(named_agent(first), named_agent(second), **settings, quiet=quiet, say=errors.note)
    tables.write(rows)
    if as_json:
        print_json([asdict(row) | {"different": row.different} for row in rows])
    else:
        _print_comparison(rows, first, second, settings)


def _print_comparison(rows: comparison.Comparisons, first: str, second: str, settings: dict[str, Any]) -> None:
    """Print the difference of two policies against each red agent, what it means, and their worst episodes."""
    lines = []
    for row in rows:
        name = f"{row.red_agent}, {row.variant}"
        parts = ", ".join(f"{name} {part.mean:+.2f} [{part.low:+.2f}, {part.high:+.2f}]" for name, part in row.parts.items())
        lines += [f"{name}: {_verdict(row)}", f"{name}: second - first by what is paid: {parts or 'nothing'}"]
        for side, worst in (("first", row.worst_of_first), ("second", row.worst_of_second)):
            listed = "; ".join(f"{e.number}: first {e.first:.1f}, second {e.second:.1f}" for e in worst)
            lines.append(f"{name}: worst of the {side}, episode {listed}")
    variants = errors.list_words(list(dict.fromkeys(row.variant for row in rows)))
    facts = (f"{rows[0].episodes:,} episodes against each, the same for both", f"variant {variants}", rows.world)
    row, chosen = rows[0], ("--number", str(rows[0].worst_of_first[0].number))
    world = ["--red-agent", row.red_agent, "--variant", row.variant]
    for name, value in settings.items():
        if value and name not in ("red_agent", "variant", "episodes"):
            world += [flag(name), *([] if value is True else [str(value)])]
    following = errors.command("watch", first, "--beside", second, *chosen, *world)
    lines += [", ".join(filter(None, facts)), f"next: {following}"]
    show(f"first: {first}", f"second: {second}", rows.table(), *lines)


def _verdict(row: comparison.Paired) -> str:
    """Say what an interval means, and what common luck was worth."""
    if row.independent_episodes is None:
        return "they earn the same in every episode"
    luck = f"two evaluations would need {row.independent_episodes:,} episodes each to be as sure"
    if row.different:
        return f"the {'second' if row.mean > 0 else 'first'} is better by {abs(row.mean):.2f}; {luck}"
    return f"not told apart, the difference is below {max(-row.low, row.high):.2f}; {luck}"
