"""`fixfirst search`, the main job; `fixfirst train`, one defender or attacker, or a league; `fixfirst resume`."""

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fixfirst.base import errors
from fixfirst.cli.app import RARE, Again, CyborgFlag, Json, Quiet, Switch, TableFiles, Whole, print_json, refuse
from fixfirst.cli.flags import flags_of, given
from fixfirst.runs import layout, manifest, sessions
from fixfirst.runs.layout import RunFiles
from fixfirst.settings.presets import LEAGUE, PUBLISHED
from fixfirst.settings.search import Execution, SearchConfig
from fixfirst.settings.training import TrainConfig

if TYPE_CHECKING:  # made of models, these are no types to a checker
    from fixfirst.api import league as leagues, running

    SearchFlags = Any
    TrainFlags = Any
else:
    SearchFlags = flags_of(
        SearchConfig,
        without=("units", "workflow"),
        helps={"preset": f"default, or a published one: {', '.join(PUBLISHED)}."},
        defaults=SearchConfig.defaults_of({}) | SearchConfig.defaults_of({"separate": True}),
    )
    TrainFlags = flags_of(TrainConfig)

ExecutionFlags = Annotated[Execution, Parameter(name="*", group=RARE["Workers"])]
Report = Annotated[bool, Parameter(help="End with a page about the run, as `fixfirst report` writes it.")]
_OF_RED = {"out", "from_policy", "against", "picky", "total_episodes", "seed", "variant", "green", "max_steps"}
_OF_LEAGUE = {"out", "from_policy", "config", "picky", "updates", "seed", "variant"}


@dataclass(frozen=True)
class SearchOptions:
    """What is no setting of a search, by the names that `ff.search` has for it."""

    seeds: Whole = 1
    """A study: the same search under so many seeds, counted from --seed, and what they say together."""
    out: Path | None = None
    """Where to write (runs/search-AGENT-SEED, a study: runs/study-AGENTS-SEEDS)."""
    units: Path | None = None
    """A TOML file that groups the hosts otherwise than the five types."""
    config: Path | None = None
    """A TOML file with settings, as config.toml of a run."""
    report: Report = True
    again: Again = False
    quiet: Quiet = False


def search_command(
    *,
    settings: Annotated[SearchFlags, Parameter(name="*")] = SearchFlags(),
    where: ExecutionFlags = Execution(),
    options: Annotated[SearchOptions, Parameter(name="*")] = SearchOptions(),
    tables: Annotated[TableFiles, Parameter(name="*", group=RARE["Files"])] = TableFiles(),
    as_json: Json = False,
) -> None:
    """What is each order worth? Trains one defender for all of them within an episode budget, and says how sure we are.

    Settings come from the command line, else FIXFIRST_NAME, else --config, else the preset. Ctrl-C stops cleanly;
    `fixfirst resume` goes on and ends with the same files. A plain list of red agents (b_line,meander) or of scenarios
    (a.yaml,tiny,generate:0-99) is a study: one search each, and what they say together.
    """
    from fixfirst.api import running  # --help need not wait for it

    tables.check(options.config, options.units)
    run = running.search(**vars(options), **vars(where), **given(settings))
    tables.write(run)
    _tell(run, as_json, options.report)


@dataclass(frozen=True)
class TrainOptions:
    """What is no setting of a training, by the names that `ff.train` has for it."""

    out: Path | None = None
    """Where to write (runs/train-AGENT-SEED)."""
    from_policy: Annotated[Path | None, Parameter(name="--from")] = None
    """A policy or run to start from."""
    units: Path | None = None
    """A TOML file that groups the hosts in another way."""
    config: Path | None = None
    """A TOML file with settings, as written to config.toml of every run."""
    workers: int | None = None
    """Processes that train starts and openings that compete, or on CybORG those that play; unless given, as many as there
    are cores. The result is the same."""
    test_episodes: Annotated[Whole | None, Parameter(group=RARE["Files"])] = None
    """Held-out episodes that the trained policy is judged on (1,000)."""
    again: Again | None = None


@dataclass(frozen=True)
class AttackerOptions:
    """What only trainings of attackers have."""

    against: str | None = None
    """With --side red: runs, policies or baselines, separated by commas."""
    picky: Switch | None = None
    """With --side red or --league: attackers name their exploit instead of leaving it to the draw."""
    updates: Whole | None = None
    """With --league: updates of the defender."""


def train_command(
    *,
    settings: Annotated[TrainFlags, Parameter(name="*")] = TrainFlags(),
    options: Annotated[TrainOptions, Parameter(name="*")] = TrainOptions(),
    side: Annotated[Literal["blue", "red"], Parameter(group=RARE["Attackers"])] = "blue",
    league: Annotated[Switch, Parameter(group=RARE["Attackers"])] = False,
    of_attackers: Annotated[AttackerOptions, Parameter(name="*", group=RARE["Attackers"])] = AttackerOptions(),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a defender that keeps to a workflow, and evaluate it on episodes it never saw.

    Settings come from the command line, else FIXFIRST_NAME, else --config, else the preset. Ctrl-C stops after the current
    update; `fixfirst resume` goes on.

    Parameters
    ----------
    side
        red: train an attacker --against defenders that stay as they are, instead of a defender. The same command goes on
        with one that was interrupted. Only --out, --from, --picky, --total-episodes, --seed and the game's flags count.
    league
        Train a defender against scripts, attackers of the past, and attackers that learn meanwhile, beginning --from a
        policy (champion-current unless given); --preset guardian says the same. Only --out, --from, --config, --picky,
        --updates, --seed and --variant count.
    """
    chosen = given(settings) | given(options) | given(of_attackers)
    if chosen.get("preset") == LEAGUE:
        league = bool(chosen.pop("preset"))
    if league:
        refuse("--league", ["side"] if side == "red" else (name for name in chosen if name not in _OF_LEAGUE))
        _tell(_train_league(chosen, quiet), as_json)
    elif side == "red":
        refuse("--side red", (name for name in chosen if name not in _OF_RED))
        _train_red(chosen, quiet, as_json)
    else:
        refuse("--side blue", given(of_attackers))
        from fixfirst.api import running  # --help need not wait for it

        _tell(running.train(**chosen, quiet=quiet), as_json)


def _train_league(chosen: dict[str, Any], quiet: bool) -> "leagues.LeagueRun":
    """Train a defender against a league: what was given, else the file's settings."""
    from fixfirst.api import league
    from fixfirst.settings.league import LeagueConfig

    file, out = chosen.pop("config", None), chosen.pop("out", None)
    if "from_policy" in chosen:
        chosen["start"] = chosen.pop("from_policy")
    settings = {} if file is None else LeagueConfig(**manifest.read_settings(file)).model_dump(exclude_unset=True)
    return league.train_league(out=out, quiet=quiet, **settings | chosen)


def _train_red(chosen: dict[str, Any], quiet: bool, as_json: bool) -> None:
    """Train an attacker."""
    from fixfirst.api import attackers

    if "against" not in chosen:
        raise errors.ConfigError("--side red needs --against: runs, policies or baselines, separated by commas")
    folder = chosen.pop("out", layout.RUNS / f"red-{chosen.get('seed', 0)}")
    red = attackers.train_red(out=folder, start=chosen.pop("from_policy", None), quiet=quiet, **chosen)
    if as_json:
        print_json({"run": str(folder), "against": red.facts["against"]})
    else:
        print(errors.printable(f"attacker: {folder}"))


def resume_command(
    run: Path,
    /,
    *,
    where: ExecutionFlags = Execution(),
    cyborg: CyborgFlag = None,
    report: Report = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Go on with an interrupted run. It ends with the same files as one that was never interrupted.

    Parameters
    ----------
    run
        A run directory, or the folder of a study: all of its searches that are not finished.
    """
    from fixfirst.api import running  # --help need not wait for it

    was_finished = False
    with suppress(*errors.UNREADABLE):  # what is wrong with it, `resume` says
        runs = layout.find_runs(run, 1) if RunFiles(run).study.is_file() else [run]
        was_finished = bool(runs) and all(map(sessions.is_finished, runs))
    result = running.resume(run, cyborg=cyborg, report=report, quiet=quiet, **vars(where))
    if was_finished:
        errors.note(f"{run} was finished already; this is its result")
    _tell(result, as_json, report)


def _tell(run: "running.AnyRun", as_json: bool, report: bool = False) -> None:
    """Print the result of a run, and what to do next. report: it has a page that is to be named."""
    from fixfirst.api import run_objects

    if isinstance(run, run_objects.SearchRun | run_objects.StudyRun):
        from fixfirst.reporter import results

        searches = [run.search] if isinstance(run, run_objects.SearchRun) else [member.search for member in run.searches]
        page = RunFiles(run.folder).page if report and RunFiles(run.folder).page.exists() else None
        if as_json:
            return print_json(results.searches_document(searches, run.folder, page))
        return results.print_searches(searches, run.folder, page)
    if isinstance(run, run_objects.TrainRun):
        from fixfirst.cli.evaluate import print_evaluations

        assert run.evaluation is not None  # it is finished
        if as_json:
            return print_json({"run": str(run.folder), "accepted": run.accepted, "evaluation": asdict(run.evaluation)})
        print_evaluations(run.evaluations)
        lines = [f"gate: {'passed' if run.accepted else 'not passed'}"] if run.evaluation.compliance is not None else []
        following = [errors.command("evaluate", run.folder)]
    else:
        if as_json:
            return print_json({"run": str(run.folder), "rounds": [asdict(stand) for stand in run.rounds]})
        lines = [stand.in_words() for stand in run.rounds]
        following = [errors.command("report", run.folder), errors.command("evaluate", run.folder, "--exploit")]
    for line in (*lines, f"policy: {run.folder}", f"next:   {', '.join(following)}"):
        print(errors.printable(line))
