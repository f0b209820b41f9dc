"""`ff.train_league`: a defender that learns against attackers that learn."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fixfirst.api.defenders import load_named
from fixfirst.api.run_objects import Written
from fixfirst.base import arguments, compile as machine_code, errors, tables
from fixfirst.game import red_view
from fixfirst.game.game_config import Game
from fixfirst.learner import driver
from fixfirst.learner.league import League
from fixfirst.learner.population import FrozenRed
from fixfirst.policy import reds
from fixfirst.policy.trained import Policy
from fixfirst.reporter import live
from fixfirst.reporter.run import Run
from fixfirst.runs import csv_logs, layout, manifest, rows
from fixfirst.runs.layout import RunFiles
from fixfirst.settings.league import LeagueConfig
from fixfirst.stats import intervals
from fixfirst.stats.evaluation import Evaluation

_FIRST_DEFENDER = "champion-current"  # the defender that leagues begin with
SAVE_EVERY = 25  # updates


@dataclass(frozen=True)
class LeagueRun(Written):
    """A league: how its defender stood after each round, and its policy once it is finished.

    For example:

        run = ff.train_league(updates=2, responses=0, out="runs/small-league", quiet=True)
        run.rounds[-1].scripts["b_line"], run.best
    """

    folder: Path
    config: LeagueConfig
    rounds: tuple[rows.LeagueRound, ...]

    def __repr__(self) -> str:
        return f"LeagueRun({str(self.folder)!r}: {self.rounds[-1].in_words() if self.rounds else 'no round is over'})"

    def table(self) -> tables.Table:
        """Return a row per round and attacker: the matrix."""
        columns = rows.MatrixRow.columns()
        return tables.Table(columns, tuple(tuple(row.values().values()) for row in Run(self.folder).matrix), columns)


def load_league(folder: Path) -> LeagueRun:
    """Return a league as an object; it may be running, finished or interrupted."""
    run = Run(folder)
    return LeagueRun(folder, LeagueConfig(**run.config), tuple(rows.league_rounds(run.matrix)))


@arguments.checked()
def train_league(
    *, out: str | Path | None = None, start: str | Path = _FIRST_DEFENDER, quiet: bool = False, **settings: Any
) -> LeagueRun:
    """Train a defender against scripts, frozen attackers and live ones (a league).

    start: the defender to begin with; that of a league goes on with its attackers, too. out: runs/league-SEED unless given.
    settings: those of `LeagueConfig`, e.g. updates=400, seed=0. Ctrl-C raises Interrupted after saving; `ff.resume` goes on.

    For example:

        run = ff.train_league(updates=2, responses=0, out="runs/league", quiet=True)
        run.rounds[-1].in_words()
    """
    policy, config = load_named(start), LeagueConfig(**settings)
    if policy.scheme is not None:
        raise errors.ConfigError(f"{start}: follows an order; a league trains a defender that knows none")
    Game(scenario=policy.spec.scenario, variant=config.variant, red_agent=config.scripts)  # refused before it is begun
    folder = layout.unused_folder(f"league-{config.seed}") if out is None else arguments.check_path("out", out)
    machine_code.announce_compilation()
    origin = str(Path(start).resolve()) if Path(start).exists() else str(start)
    options = {"from_policy": origin, "from_sha256": policy.facts.get("sha256")}
    manifest.create_run(folder, layout.Kind.LEAGUE, config.model_dump(mode="json"), options)
    if not quiet:
        errors.note(f"writing to {folder}")
    return _run(config, folder, policy, origin, quiet)


def resume_league(folder: Path, *, quiet: bool = False) -> LeagueRun:
    """Go on with an interrupted league; it ends with the same files as one that was not interrupted."""
    options = manifest.read_manifest(folder)["options"]
    origin = options["from_policy"]
    policy = load_named(origin)
    if policy.facts.get("sha256") != options["from_sha256"]:
        raise errors.RunDirError(f"{folder}: {origin} is another policy than the one that the league was begun with")
    machine_code.announce_compilation()
    return _run(LeagueConfig(**manifest.read_config(folder)), folder, policy, origin, quiet)


def _run(config: LeagueConfig, folder: Path, start: Policy, origin: str, quiet: bool) -> LeagueRun:
    """Train, write down every round, and conclude; or raise Interrupted."""
    spec = red_view.RedSpec(start.spec.scenario, config.picky)
    document = {"league": config.model_dump(mode="json"), "start": start.facts.get("sha256")}
    progress = live.ProgressLine(config.total_episodes, quiet=quiet)
    with driver.working(folder, progress) as interrupt:
        if not RunFiles(folder).result.exists():  # else killed after its end
            pool = _load_pool(Path(origin), spec)
            league = League(config, start.spec, start.weights, reds.shipped_reds((reds.BASE, *reds.KNOWN), spec), pool=pool)
            with driver.Driver(folder, league, {"config": document}, progress.say, SAVE_EVERY) as run:
                _train(league, run, progress, interrupt, quiet)
            _save_attackers(folder, league)
            league.save_policy(folder, document)
            last = [row for row in csv_logs.read_rows(RunFiles(folder).matrix, rows.MatrixRow) if row.round == league.rounds]
            driver.conclude(folder, _result(league, last))
    return load_league(folder)


def _train(league: League, run: driver.Driver, progress: live.ProgressLine, interrupt: object, quiet: bool) -> None:
    log = run.open_log(RunFiles.matrix, rows.MatrixRow, lambda row: row.round, league.rounds)
    for step in run.steps(interrupt):
        for row in step.closed:
            log.write(row)
        if step.closed and not quiet:
            progress.say(rows.league_rounds(step.closed)[-1].in_words())
        elif progress.due():
            worst = min(step.returns, key=step.returns.__getitem__)
            takes = f"{worst} takes {step.returns[worst]:.1f}"
            progress.show(league.episodes, f"round {league.rounds + 1} of {league.config.rounds}, {takes}")
    if run.interrupted:
        again = errors.command("resume", run.folder)
        raise errors.Interrupted(f"interrupted after {league.updates} updates; go on with: {again}")


def _load_pool(origin: Path, spec: red_view.RedSpec) -> list[FrozenRed]:
    """Return the attackers of the league that a defender comes from, if it does; they count as of round 0."""
    pool = []
    for folder in sorted(RunFiles(origin).attackers.glob("*")):
        red = reds.load_red(folder, spec.scenario)
        if red.spec == spec:
            pool.append(FrozenRed(red.weights, red.facts["taken"], red.facts["kept_as"], red.facts["start"], 0))
    return pool


def _save_attackers(folder: Path, league: League) -> None:
    """Write all that were frozen, beside the defender."""
    for number, red in enumerate(league.pool):
        facts = {"against": [folder.name], "taken": red.taken, "kept_as": red.kind, "start": red.start, "round": red.round}
        facts |= {"variant": league.config.variant, "seed": league.config.seed}
        reds.RedPolicy(red.weights, league.red_spec, facts).save(RunFiles(folder).attacker(number))


def _result(league: League, last: list[rows.MatrixRow]) -> dict[str, Any]:
    """Return what result.json says: against the attacker that takes most, and the last round."""
    worst, episodes = min(last, key=lambda row: row.mean), league.config.matrix_episodes
    interval = intervals.Estimate(worst.mean, worst.standard_error, episodes - 1)
    evaluation = Evaluation(
        red_agent=worst.attacker,
        steps=league.steps,
        variant=league.config.variant,
        episodes=episodes,
        mean=interval.mean,
        standard_error=interval.standard_error,
        low=interval.low,
        high=interval.high,
        compliance=None,
    )
    return {
        "evaluation": asdict(evaluation),
        "episodes": league.episodes,
        "last_round": asdict(rows.league_rounds(last)[-1]),
    }
