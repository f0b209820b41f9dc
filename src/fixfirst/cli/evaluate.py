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
from fixfirst.cli.app import Json, Quiet, Switch, TableFiles, Tables, Whole, as_whole, flag, print_json, refuse
from fixfirst.cli.flags import GameFlags, GameFlagsButBackend, GameSettings, JudgingFlags, JudgingSettings, OrderFlag, given
from fixfirst.cli.own_agents import named_agent
from fixfirst.play import evaluation
from fixfirst.reporter import results, screen

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
        _exploit(agent, red, settings, as_json)
        return
    if red:
        raise errors.ConfigError(f"{flag(next(iter(red)))} goes with --exploit")
    if backend == "both":
        refuse("--backend both", ["leaderboard"] if as_leaderboard else files)
        _compare_worlds(agent, settings, margin, as_json)
        return
    settings["backend"] = backend
    if as_leaderboard:
        standing = evaluate.leaderboard(agent, **settings)
        tables.write(standing)
        if as_json:
            print_json(standing.as_dict())
        else:
            results.print_leaderboard(standing)
        return
    rows = evaluate.evaluate(agent, **settings)
    tables.write(rows)
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        results.print_evaluations(rows)


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
        screen.show(*best.in_words(scripts))


def _compare_worlds(agent: PolicyLike, settings: dict[str, Any], margin: float, as_json: bool) -> None:
    """Play the same policy on CybORG and on the simulator."""
    if margin <= 0:
        raise errors.ConfigError(f"--margin must be above 0, got {margin}")
    theirs = evaluate.evaluate(agent, **settings, backend="cyborg")
    # Cheap, and it makes the difference more precise; in the variant that CybORG is, and what had to be said was said.
    here: dict[str, Any] = {"episodes": SIMULATOR_SHARE * settings["episodes"], "variant": theirs[0].variant}
    ours = evaluate.evaluate(agent, **settings | here | {"say": lambda text: None})
    if as_json:
        pairs = [(a, b, a.difference(b, margin)) for a, b in zip(ours, theirs, strict=True)]
        print_json([{"simulator": asdict(a), "cyborg": asdict(b), "difference": asdict(gap)} for a, b, gap in pairs])
    else:
        results.print_both_worlds(ours, theirs, margin)


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
        results.print_comparison(rows, first, second, _flags_of_watch(settings))


def _flags_of_watch(settings: dict[str, Any]) -> list[str]:
    """Return the flags with which `fixfirst watch` plays the same episodes, but for red agent and variant."""
    flags: list[str] = []
    for name, value in settings.items():
        if value and name not in ("red_agent", "variant", "episodes"):
            flags += [flag(name), *([] if value is True else [str(value)])]
    return flags
