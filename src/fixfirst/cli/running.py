"""The commands that make runs: `fixfirst search`, the main job; `train`, one order; `resume`, what was interrupted."""

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fixfirst.base import errors
from fixfirst.cli.app import RARE, Again, Csv, CyborgFlag, Json, Latex, Quiet, Whole, check_tables, print_json, write_tables
from fixfirst.cli.flags import flags_of, given
from fixfirst.runs import layout, manifest, sessions
from fixfirst.runs.layout import RunFiles
from fixfirst.settings import resolve as settings, training as config
from fixfirst.settings.execution import Execution
from fixfirst.settings.presets import LEAGUE
from fixfirst.settings.search import SHOWN_DEFAULTS, SearchConfig
from fixfirst.settings.training import TrainConfig

if TYPE_CHECKING:
    from fixfirst.api import run_objects

    SearchFlags = Any
    TrainFlags = Any
else:
    PUBLISHED = [name for name, values in settings.PRESETS.items() if values and values.get("workflow") != config.NONE]
    SearchFlags = flags_of(
        SearchConfig,
        without=("units", "workflow"),
        helps={"preset": f"default, or a published one: {', '.join(PUBLISHED)}."},
        defaults=SHOWN_DEFAULTS,
    )
    TrainFlags = flags_of(TrainConfig)

ExecutionFlags = Annotated[Execution, Parameter(name="*", group=RARE["Workers"])]


def search_command(
    *,
    settings: Annotated[SearchFlags, Parameter(name="*")] = SearchFlags(),
    where: ExecutionFlags = Execution(),
    seeds: Whole = 1,
    out: Path | None = None,
    units: Path | None = None,
    config: Path | None = None,
    report: bool = True,
    again: Annotated[Again, Parameter(group=RARE["Files"])] = False,
    csv: Annotated[Csv, Parameter(group=RARE["Files"])] = None,
    latex: Annotated[Latex, Parameter(group=RARE["Files"])] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """What is each order worth? Trains one defender for all of them within an episode budget, and says how sure we are.

    Settings come from the command line, else FIXFIRST_NAME, else --config, else the preset. Ctrl-C stops cleanly;
    `fixfirst resume` goes on and ends with the same files. A plain list of red agents (b_line,meander) or of scenarios
    (a.yaml,tiny,generate:0-99) is a study: one search each, and what they say together.

    Parameters
    ----------
    seeds
        A study: the same search under so many seeds, counted from --seed, and what they say together.
    out
        Where to write (runs/search-AGENT-SEED, a study: runs/study-AGENTS-SEEDS).
    units
        A TOML file that groups the hosts otherwise than the five types.
    config
        A TOML file with settings, as config.toml of a run.
    report
        End with a page about the run, as `fixfirst report` writes it.
    """
    from fixfirst.api import running  # --help need not wait for it

    check_tables(csv, latex, config, units)
    run = running.search(
        out=out,
        seeds=seeds,
        units=units,
        config=config,
        report=report,
        again=again,
        quiet=quiet,
        **vars(where),
        **given(settings),
    )
    write_tables(run, csv, latex)
    tell_searches(run, report, as_json)
    return 0


def tell_searches(run: "run_objects.SearchRun | run_objects.StudyRun", report: bool, as_json: bool) -> None:
    """The result, and what to do next."""
    from fixfirst.api import run_objects
    from fixfirst.reporter import results

    searches = [run.search] if isinstance(run, run_objects.SearchRun) else [member.search for member in run.searches]
    page = RunFiles(run.folder).page
    shown = page if report and page.exists() else None
    if as_json:
        print_json(results.searches_document(searches, run.folder, shown))
    else:
        results.print_searches(searches, run.folder, shown)


# ---------------------------------------------------------------- train


def train_command(
    *,
    settings: Annotated[TrainFlags, Parameter(name="*")] = TrainFlags(),
    out: Path | None = None,
    from_policy: Annotated[Path | None, Parameter(name="--from")] = None,
    units: Path | None = None,
    config: Path | None = None,
    workers: int = 0,
    test_episodes: Annotated[Whole, Parameter(group=RARE["Files"])] = 1_000,
    side: Annotated[Literal["blue", "red"], Parameter(group=RARE["Attackers"])] = "blue",
    against: Annotated[str | None, Parameter(group=RARE["Attackers"])] = None,
    picky: Annotated[bool, Parameter(negative="", group=RARE["Attackers"])] = False,
    league: Annotated[bool, Parameter(negative="", group=RARE["Attackers"])] = False,
    updates: Annotated[Whole | None, Parameter(group=RARE["Attackers"])] = None,
    again: Annotated[Again, Parameter(group=RARE["Files"])] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Train a defender that keeps to a workflow, and evaluate it on episodes it never saw.

    Settings come from the command line, else FIXFIRST_NAME, else --config, else the preset. Ctrl-C stops after the current
    update; `fixfirst resume` goes on.

    Parameters
    ----------
    out
        Where to write (runs/train-AGENT-SEED).
    from_policy
        A policy or run to start from.
    units
        A TOML file that groups the hosts in another way.
    config
        A TOML file with settings, as written to config.toml of every run.
    workers
        Processes that train starts and openings that compete, or on CybORG those that play; 0: as many as there are cores.
        The result is the same.
    test_episodes
        Held-out episodes that the trained policy is judged on.
    side
        red: train an attacker --against defenders that stay as they are, instead of a defender. The same command goes on
        with one that was interrupted. Only --out, --from, --picky, --total-episodes, --seed and the game's flags count.
    against
        With --side red: runs, policies or baselines, separated by commas.
    picky
        With --side red or --league: attackers name their exploit instead of leaving it to the draw.
    league
        Train a defender against scripts, attackers of the past, and attackers that learn meanwhile, beginning --from a
        policy (champion-current unless given); --preset guardian says the same. Only --out, --from, --config, --picky,
        --updates, --seed and --variant count.
    updates
        With --league: updates of the defender.
    """
    said = given(settings)
    league = league or said.get("preset") == LEAGUE
    if side == "red" or league:
        mode = "--league" if league else "--side red"
        idle = {"units": units, "workers": workers, "again": again}
        idle |= {"test-episodes": test_episodes != 1_000}
        idle |= {"side red": side == "red"} if league else {"config": config, "updates": updates}
        if useless := [name for name, value in idle.items() if value]:
            raise errors.ConfigError(f"--{useless[0]} does not go with {mode}")
        if league:
            said = {name: value for name, value in said.items() if (name, value) != ("preset", LEAGUE)}
        return _train_attackers(said, out, from_policy, config, against, picky, updates, league, quiet, as_json)
    if against is not None or picky or updates is not None:
        odd = "--against" if against is not None else "--picky" if picky else "--updates"
        raise errors.ConfigError(f"{odd} is for trainings of attackers: --side red, or --league")
    from fixfirst.api import running  # --help need not wait for it

    run = running.train(
        out=out,
        from_policy=from_policy,
        units=units,
        config=config,
        workers=workers,
        test_episodes=test_episodes,
        again=again,
        quiet=quiet,
        **said,
    )
    tell_training(run, as_json)
    return 0


def _train_attackers(
    settings: dict[str, Any],
    out: Path | None,
    start: Path | None,
    config: Path | None,
    against: str | None,
    picky: bool,
    updates: int | None,
    league: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Train an attacker, or a league."""
    from fixfirst.api import attackers, league as leagues
    from fixfirst.settings.league import LeagueConfig

    common = {"seed", "variant"}
    allowed = common if league else common | {"total_episodes", "green", "max_steps"}
    if odd := sorted(set(settings) - allowed):
        what = "--league" if league else "--side red"
        raise errors.ConfigError(f"--{odd[0].replace('_', '-')} does not go with {what}")
    if league:
        if against is not None:
            raise errors.ConfigError("a league finds its attackers itself: leave out --against")
        settings |= {name: value for name, value in (("updates", updates), ("start", start)) if value is not None}
        read = {} if config is None else LeagueConfig(**manifest.read_settings(config)).model_dump(exclude_unset=True)
        settings = {"picky": picky} | read | settings | ({"picky": True} if picky else {})
        tell_league(leagues.train_league(out=out, quiet=quiet, **settings), as_json)
        return 0
    if against is None:
        raise errors.ConfigError("--side red needs --against: runs, policies or baselines, separated by commas")
    folder = out if out is not None else layout.RUNS / f"red-{settings.get('seed', 0)}"
    red = attackers.train_red(against, out=folder, start=start, picky=picky, quiet=quiet, **settings)
    if as_json:
        print_json({"run": str(folder), "against": red.facts["against"]})
    else:
        print(errors.printable(f"attacker: {folder}"))
    return 0


def tell_league(run: "run_objects.LeagueRun", as_json: bool) -> None:
    """How the defender stood after each round, and what to do next."""
    if as_json:
        print_json({"run": str(run.folder), "rounds": [one.as_dict() for one in run.rounds]})
        return
    for one in run.rounds:
        print(one.in_words())
    page, attack = errors.command("report", run.folder), errors.command("evaluate", run.folder, "--exploit")
    print(errors.printable(f"policy: {run.folder}"))
    print(errors.printable(f"next:   {page}, {attack}"))


def tell_training(run: "run_objects.TrainRun", as_json: bool) -> None:
    """The result, and what to do next."""
    from fixfirst.reporter import results
    from fixfirst.stats.evaluation import Evaluations

    assert run.evaluation is not None  # it is finished
    if as_json:
        print_json({"run": str(run.folder), "accepted": run.accepted, "evaluation": asdict(run.evaluation)})
        return
    rows = Evaluations([run.evaluation])
    rows.world = run.config.game.scenario.in_words()
    results.print_evaluations(rows)
    if run.evaluation.compliance is not None:
        print("gate: " + ("passed" if run.accepted else "not passed"))
    print(errors.printable(f"policy: {run.folder}"))
    print(errors.printable(f"next:   {errors.command('evaluate', run.folder)}"))


# ---------------------------------------------------------------- resume


def resume_command(
    run: Path,
    /,
    *,
    where: ExecutionFlags = Execution(),
    cyborg: CyborgFlag = None,
    report: bool = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> int:
    """Go on with an interrupted run. It ends with the same files as one that was never interrupted.

    Parameters
    ----------
    run
        A run directory, or the folder of a study: all of its searches that are not finished.
    report
        As in `fixfirst search`.
    """
    from fixfirst.api import run_objects, running  # --help need not wait for it
    from fixfirst.runs import layout, rows

    was_finished = False
    with suppress(*errors.UNREADABLE):  # what is wrong with it, `resume` says
        runs = layout.find_runs(run, 1) if RunFiles(run).study.is_file() else [run]
        was_finished = bool(runs) and all(sessions.status(one) == rows.Outcome.FINISHED for one in runs)
    result = running.resume(run, cyborg=cyborg, report=report, quiet=quiet, **vars(where))
    if was_finished:
        errors.note(f"{run} was finished already; this is its result")
    if isinstance(result, run_objects.TrainRun):
        tell_training(result, as_json)
    elif isinstance(result, run_objects.LeagueRun):
        tell_league(result, as_json)
    else:
        tell_searches(result, report, as_json)
    return 0
