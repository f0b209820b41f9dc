"""What is done with a policy: `fixfirst evaluate`, on held-out episodes; `compare`, with another one; `export`."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fixfirst.adapters.players import load_named
from fixfirst.api import attackers, evaluate, policies
from fixfirst.base import errors
from fixfirst.cli.app import Csv, Json, Latex, Quiet, Whole, as_whole, check_tables, print_json, write_tables
from fixfirst.cli.flags import OrderFlag, flags_of, given, named_agent
from fixfirst.game.game_config import Game
from fixfirst.orders import order
from fixfirst.orders.compliance import Judging
from fixfirst.play import equivalence, evaluation
from fixfirst.reporter import results, screen

if TYPE_CHECKING:
    _EvaluatedGame = Any
    _ComparedGame = Any
    JudgingFlags = Any
else:
    _EvaluatedGame = flags_of(Game, without=("red_agent", "max_steps", "backend"))
    _ComparedGame = flags_of(Game, without=("red_agent", "max_steps"))
    JudgingFlags = flags_of(Judging)

_no, _usual = (lambda _: "no"), (lambda _: f"{attackers.EPISODES:,}")
STEPS = evaluation.PROTOCOL_STEPS
SIMULATOR_SHARE = 10  # in a comparison with CybORG, the simulator plays so many times its episodes
ALL_REDS, ALL_STEPS = ",".join(evaluation.PROTOCOL_REDS), ",".join(map(str, STEPS))


@dataclass(frozen=True)
class BestResponse:
    """Flags about attackers that learn, by the names that `ff.exploit` has for them.

    Parameters
    ----------
    exploit
        Instead: what an attacker takes that learns against this policy, and what it does, in words. Half a minute or so.
        The attacker is kept in the run's folder exploit/. In the variant of the policy's training unless --variant is given.
    picky
        With --exploit: the attacker names its exploit instead of leaving it to the draw.
    starts
        With --exploit: where trainings of red begin, separated by commas: scratch, last (what was found before), or
        attackers by name or path. Unless given: scratch, base-attacker, noise, two-fronts, and last if there is one.
    train_episodes
        With --exploit: how many episodes red learns on from each start.
    """

    exploit: Annotated[bool | None, Parameter(negative="", show_default=_no)] = None
    picky: Annotated[bool | None, Parameter(negative="", show_default=_no)] = None
    starts: Annotated[str | None, Parameter(name="--exploit-starts")] = None
    train_episodes: Annotated[Whole | None, Parameter(name="--exploit-episodes", show_default=_usual)] = None


def evaluate_command(
    policy: str,
    /,
    *,
    workflow: OrderFlag = None,
    greedy: Annotated[bool | None, Parameter(show_default=lambda _: "no; with --exploit, mostly")] = None,
    best_response: Annotated[BestResponse, Parameter(name="*")] = BestResponse(),
    as_leaderboard: Annotated[bool, Parameter(name="--leaderboard", negative="")] = False,
    red_agent: str = ALL_REDS,
    steps: str = ALL_STEPS,
    episodes: Whole = 1_000,
    seed: Whole = 0,
    backend: Literal["simulator", "workers", "cyborg", "both"] = "simulator",
    margin: float = 0.5,
    game: Annotated[_EvaluatedGame, Parameter(name="*")] = _EvaluatedGame(),
    judging: Annotated[JudgingFlags, Parameter(name="*")] = JudgingFlags(),
    csv: Csv = None,
    latex: Latex = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """A frozen policy on CAGE2's protocol: 30, 50 and 100 steps against b_line, meander and sleep, on held-out episodes.

    Parameters
    ----------
    policy
        A run, a policy folder, a policy that comes with fixfirst (champion), a baseline: sleep, random, react-restore,
        react-remove, priority-restore (sees the truth and restores by --workflow), an ONNX file; or your own agent, as
        MODULE:NAME or FILE.py:NAME, whose code is run.
    greedy
        The most probable action instead of a drawn one. With --exploit unless --no-greedy is given, or the policy comes
        from a league, such as guardian: it has learned to draw.
    as_leaderboard
        The challenge's own table instead: 30, 50 and 100 steps against b_line (B30, B50, B100) and meander (M30, M50, M100)
        in variant leaderboard, and their total, beside the published ones. One play of --episodes against each gives all
        columns. Sleep's columns, 0 for a defender that does nothing without cause, are left out.
    red_agent
        Only these, separated by commas.
    steps
        Only these lengths, separated by commas.
    episodes
        How many of each; with --backend both, on CybORG, and ten times as many on the simulator.
    seed
        Other episodes: they are the same for the same seed.
    backend
        simulator, cyborg, workers (our simulator in worker processes), or both: simulator and CybORG side by side, with the
        difference and whether it is shown to be within --margin.
    margin
        With --backend both: how far apart mean returns may be and still count as equivalent.
    """
    check_tables(csv, latex, policy)
    played: dict[str, Any] = {"workflow": workflow, "seed": seed, "episodes": episodes, "quiet": quiet, "say": errors.note}
    played |= given(game) | given(judging)
    agent, lengths, red = named_agent(policy), _lengths(steps), given(best_response)
    if red.pop("exploit", False):
        if as_leaderboard or backend != "simulator":
            raise errors.ConfigError("--exploit trains attackers on the simulator: leave out --leaderboard and --backend")
        return _exploit(agent, red, {**played, "greedy": greedy, "max_steps": max(lengths or STEPS)}, as_json)
    if red:
        flags = {"starts": "exploit-starts", "train_episodes": "exploit-episodes"}
        raise errors.ConfigError(f"--{flags.get(name := next(iter(red)), name)} goes with --exploit")
    played |= {"greedy": bool(greedy), "backend": backend}
    if as_leaderboard:
        if backend == "both":
            raise errors.ConfigError("--leaderboard is played in one world: --backend simulator, workers or cyborg")
        odd = {"red_agent": red_agent} if red_agent != ALL_REDS else {"steps": steps} if lengths is not None else {}
        standing = evaluate.leaderboard(agent, **{**played, **odd})
        write_tables(standing, csv, latex)
        if as_json:
            print_json(standing.as_dict())
        else:
            results.print_leaderboard(standing)
        return 0
    played |= {"red_agent": red_agent, "steps": lengths}
    if backend == "both":
        if csv is not None or latex is not None:
            raise errors.ConfigError("--csv and --latex are of one world: give --backend simulator or cyborg")
        return _compare_worlds(agent, played, margin, as_json)
    rows = evaluate.evaluate(agent, **played)
    write_tables(rows, csv, latex)
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        results.print_evaluations(rows)
    return 0


def _lengths(steps: str) -> list[int] | None:
    """Return the lengths of episodes that were asked for, ascending; None if none were."""
    try:
        return None if steps == ALL_STEPS else sorted(as_whole(part) for part in steps.split(","))
    except ValueError:
        raise errors.ConfigError(f"--steps must be whole numbers separated by commas, got {steps!r}") from None


def _exploit(agent: Any, red: dict[str, Any], played: dict[str, Any], as_json: bool) -> int:
    """Say what an attacker takes that learns, after what the scripts take."""
    if "starts" in red:
        red["starts"] = red["starts"].split(",")
    best = attackers.exploit(agent, **red, **played)
    same = {"greedy": best.greedy, "variant": best.variant, "say": lambda text: None}
    lengths = {"steps": played.pop("max_steps"), "red_agent": ("b_line", "meander")}
    scripts = evaluate.evaluate(agent, **{**played, **same, **lengths})
    if as_json:
        print_json(best.as_dict() | {"scripts": {row.red_agent: row.mean for row in scripts}})
    else:
        screen.print_lines(*best.in_words(scripts))
    return 0


def _compare_worlds(agent: Any, played: dict[str, Any], margin: float, as_json: bool) -> int:
    """Play the same policy on CybORG and on the simulator."""
    if margin <= 0:
        raise errors.ConfigError(f"--margin must be above 0, got {margin}")
    theirs = evaluate.evaluate(agent, **{**played, "backend": "cyborg"})
    # Cheap, and it makes the difference more precise; in the variant that CybORG is, and what had to be said was said.
    here = {"backend": "simulator", "variant": theirs[0].variant, "say": lambda text: None}
    here["episodes"] = SIMULATOR_SHARE * played["episodes"]
    ours = evaluate.evaluate(agent, **{**played, **here})
    if as_json:
        pairs = [(a, b, equivalence.difference(a, b, margin)) for a, b in zip(ours, theirs, strict=True)]
        print_json([{"simulator": asdict(a), "cyborg": asdict(b), "difference": asdict(gap)} for a, b, gap in pairs])
    else:
        results.print_both_worlds(ours, theirs, margin)
    return 0


def compare_command(
    first: str,
    second: str,
    /,
    *,
    workflow: OrderFlag = None,
    greedy: bool = False,
    red_agent: str = "b_line,meander",
    steps: Whole | None = None,
    episodes: Whole = 2_000,
    seed: Whole = 0,
    game: Annotated[_ComparedGame, Parameter(name="*")] = _ComparedGame(),
    csv: Csv = None,
    latex: Latex = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Are two policies different, and by how much? Both play the same held-out episodes, against each red agent.

    What is compared is the difference within an episode, in which both meet the same luck: far fewer episodes tell two
    policies apart than two evaluations would need. The worst episodes of each are named.

    Parameters
    ----------
    first
        A run, a policy folder, champion, a baseline, an ONNX file, or your own agent, as in `fixfirst evaluate`.
    second
        Another one.
    greedy
        The most probable action instead of a drawn one.
    red_agent
        Only these, separated by commas.
    steps
        Length of an episode; default: 100, or that of the scenario's own reward.
    episodes
        How many against each red agent.
    seed
        Other episodes: they are the same for the same seed, and those of `fixfirst evaluate`.
    """
    check_tables(csv, latex, first, second)
    settings: dict[str, Any] = {
        "workflow": workflow,
        "greedy": greedy,
        "red_agent": red_agent,
        "steps": steps,
        "episodes": episodes,
    }
    rows = evaluate.compare(
        named_agent(first), named_agent(second), seed=seed, quiet=quiet, say=errors.note, **settings, **given(game)
    )
    write_tables(rows, csv, latex)
    if as_json:
        print_json([asdict(row) | {"different": row.different} for row in rows])
    else:
        results.print_comparison(rows, first, second, _flags_of_watch(settings, given(game), seed))
    return 0


def _flags_of_watch(settings: dict[str, Any], game: dict[str, Any], seed: int) -> list[str]:
    """Return what `fixfirst watch` has to be told to play the same episodes; it is told red agent and variant anyway."""
    told = {name: settings[name] for name in ("workflow", "greedy", "steps")} | {"seed": seed} | game
    flags: list[str] = []
    for name, value in told.items():
        if value and name != "variant":
            flags += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return flags


_SETTLED = (
    "The order it will always follow; without it, a policy that follows any is told one at every turn. Also by name: "
    f"{', '.join(order.NAMED_ORDERS)}."
)


def export_command(
    policy: str,
    /,
    *,
    to: Literal["onnx", "torch", "numpy"] = "onnx",
    workflow: Annotated[str | None, Parameter(help=_SETTLED)] = None,
    out: Path | None = None,
    as_json: Json = False,
) -> int:
    """Write a policy as one file that plays without fixfirst: in ONNX, in PyTorch, in plain NumPy (docs/export.md).

    Memory, masks, opening and shield are in the file. It takes an observation of 52 bits and a state, which is 0 when an
    episode begins, and gives an action of the challenge's 145 and the next state. If it was trained to follow any order, it
    takes that, too.

    Parameters
    ----------
    policy
        A run, a policy folder, or a policy that comes with fixfirst.
    to
        onnx (.onnx), torch (.pt2, a program of torch.export) or numpy (.npz, its arrays).
    out
        The file; default: policy.onnx, .pt2 or .npz beside the policy.
    """
    path = policies.export(policy, to, out, workflow=workflow)
    variant = load_named(policy).config.get("variant")
    if as_json:
        made_for = {} if variant is None else {"variant": variant}
        print_json({"file": str(path), "to": to, "bytes": path.stat().st_size, "made_for": made_for})
    else:
        if variant is not None:
            errors.note(f"{policy} was made for variant {variant}: play it there")
        print(errors.printable(str(path)))
    return 0
