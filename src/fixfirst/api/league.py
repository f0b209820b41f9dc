"""`ff.train_league`: a defender that has met attackers who learn; and going on with one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixfirst.api import following
from fixfirst.api.policies import load_named
from fixfirst.base import arrays, checks, compile as machine_code, errors, files, jobs, statistics, tables
from fixfirst.game import red_view
from fixfirst.game.game import Game
from fixfirst.learner import checkpoint, training_run
from fixfirst.learner.league import FrozenRed, League, LeagueConfig
from fixfirst.policy import red_file
from fixfirst.policy.file import Policy, load_policy
from fixfirst.policy.network import Weights
from fixfirst.reporter import live, report
from fixfirst.reporter.report import WrittenReport
from fixfirst.runs import layout, manifest, matrix, rows
from fixfirst.runs.run import Run

_FIRST_DEFENDER = "champion-current"  # the defender that leagues begin with
SAVE_EVERY = 25  # updates


@dataclass(frozen=True)
class LeagueRun(tables.Tabular):
    """A league: how its defender stood after each round, and its policy once it is finished.

    For example:

        run = ff.train_league(updates=2, responses=0, out="runs/small-league", quiet=True)
        run.rounds[-1].scripts["b_line"], run.best
    """

    folder: Path
    config: LeagueConfig
    rounds: tuple[matrix.Round, ...]

    def __repr__(self) -> str:
        return f"LeagueRun({str(self.folder)!r}: {self.rounds[-1].in_words() if self.rounds else 'no round is over'})"

    def table(self) -> tables.Table:
        """Return a row per round and attacker: the matrix."""
        found = Run(self.folder).matrix
        columns = rows.MatrixRow.columns()
        return tables.Table(columns, tuple(tuple(row.values().values()) for row in found), columns)

    @property
    def best(self) -> Policy:
        """The defender."""
        return load_policy(self.folder)

    def report(self, out: str | Path | None = None, **options: Any) -> WrittenReport:
        """Write a page about it; see `ff.report`."""
        return report.report(self.folder, out, **options)


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
    folder = layout.unused_folder(f"league-{config.seed}") if out is None else checks.check_path("out", out)
    quiet = checks.check_bool("quiet", quiet)
    machine_code.announce_compilation()
    origin = str(Path(start).resolve()) if Path(start).exists() else str(start)
    options = {"from_policy": origin, "from_sha256": policy.facts.get("sha256")}
    manifest.create_run(folder, layout.Kind.LEAGUE, config.model_dump(mode="json"), config.seed, options)
    following.say_where(folder, quiet)
    return _run(config, folder, policy, origin, quiet)


def resume_league(folder: Path, *, quiet: bool = False) -> LeagueRun:
    """Go on with an interrupted league; it ends with the same files as one that was not interrupted."""
    if manifest.is_finished(folder):
        raise errors.RunDirError(f"{folder} is finished; see {folder / layout.RESULT}")
    options = layout.read_manifest(folder).get("options")
    if not isinstance(options, dict) or not isinstance(origin := options.get("from_policy"), str):
        raise errors.RunDirError(f"{folder / layout.MANIFEST}: damaged, its options make no sense")
    policy = load_named(origin)
    if policy.facts.get("sha256") != options.get("from_sha256"):
        raise errors.RunDirError(f"{folder}: {origin} is another policy than the one that the league was begun with")
    machine_code.announce_compilation()
    return _run(LeagueConfig(**manifest.read_config(folder)), folder, policy, origin, quiet)


def load_league(folder: Path) -> LeagueRun:
    """Return a league as an object; it may be running, finished or interrupted."""
    run = Run(folder)
    return LeagueRun(folder, LeagueConfig(**run.config), tuple(matrix.rounds_of(run.matrix)))


def _run(config: LeagueConfig, folder: Path, start: Policy, origin: str, quiet: bool) -> LeagueRun:
    spec, red = start.spec, red_view.RedSpec(start.spec.scenario, config.picky)
    league = League(config, spec, start.weights, _known(red), pool=_past(Path(origin), red))
    document = {"league": config.model_dump(mode="json"), "start": start.facts.get("sha256")}
    hint = f"; mend that, then: {errors.command('resume', folder)}"
    with errors.writing(folder, hint), manifest.locked(folder), manifest.Session(folder) as session:
        if not _is_concluded(folder):
            _work(league, folder, document, quiet)
        checkpoint.delete_checkpoints(folder)  # a kill may have come before
        session.finished = True
    return load_league(folder)


def _is_concluded(folder: Path) -> bool:
    """Does it have its result, and the policy that this tells of?"""
    result, policy = Run(folder).result_document, folder / layout.POLICY_TENSORS
    return result is not None and policy.exists() and result.get("policy_sha256") == files.sha256(files.read_file(policy))


def _past(origin: Path, spec: red_view.RedSpec) -> list[FrozenRed]:
    """Return the attackers of the league that a defender comes from, if it does; they count as of round 0."""
    found = [red_file.load_red(folder, spec.scenario) for folder in sorted((origin / layout.ATTACKERS).glob("*"))]
    return [_frozen(origin, red) for red in found if red.spec == spec]


def _frozen(origin: Path, red: red_file.RedPolicy) -> FrozenRed:
    taken, kind, start = (red.facts.get(name) for name in ("taken", "kept_as", "start"))
    if not isinstance(taken, int | float) or kind not in (matrix.LIVE, matrix.RESPONSE) or not isinstance(start, str):
        raise errors.PolicyError(f"{origin / layout.ATTACKERS}: holds an attacker that is not one of a league")
    return FrozenRed(red.weights, max(-checks.MOST, min(checks.MOST, taken)), kind, start, 0)


def _known(spec: red_view.RedSpec) -> dict[str, Weights]:
    """Return the attackers that come with fixfirst and fit."""
    found: dict[str, Weights] = {}
    for name in (red_file.BASE, *red_file.KNOWN):
        try:
            red = red_file.load_red(name, spec.scenario)
        except errors.PolicyError:
            continue
        if red.spec == spec:
            found[name] = red.weights
    return found


def _work(league: League, folder: Path, document: dict[str, Any], quiet: bool) -> None:
    """Train, write down every round, and conclude; or raise Interrupted."""
    checkpoint.go_on(folder, league, document)
    log = rows.CsvLog(folder / layout.MATRIX, rows.MatrixRow, lambda row: row.round <= league.rounds)
    if (0 if log.last is None else log.last.round) < league.rounds:
        raise errors.RunDirError(f"{folder / layout.MATRIX}: rows of the first {league.rounds} rounds are missing")
    with jobs.interrupts() as interrupt, live.ProgressLine(league.config.total_episodes, quiet=quiet) as progress:

        def step() -> None:
            earned, closed = league.step()
            if closed:
                for row in closed:
                    log.write(row)
                log.sync()
                if not quiet:
                    progress.say(matrix.rounds_of(closed)[-1].in_words())
            elif progress.due():
                worst = min(earned, key=lambda name: earned[name])
                told = f"round {league.rounds + 1} of {league.config.rounds}, {worst} takes {earned[worst]:.1f}"
                progress.show(league.episodes, told)

        try:
            checkpoint.train_on(folder, league, document, step, SAVE_EVERY, interrupt)
        except errors.Interrupted as e:
            raise errors.Interrupted(f"{str(e).partition(';')[0]}; go on with: {errors.command('resume', folder)}") from None
        finally:
            log.close()
    _save(folder, league, document)
    last = [row for row in rows.read_rows(folder / layout.MATRIX, rows.MatrixRow) if row.round == league.rounds]
    training_run.conclude(folder, _result(league, last))


def _save(folder: Path, league: League, document: dict[str, Any]) -> None:
    """Write the defender like any policy, and its attackers beside it."""
    for number, red in enumerate(league.pool):
        facts = {"against": [folder.name], "taken": red.taken, "kept_as": red.kind, "start": red.start, "round": red.round}
        facts |= {"variant": league.config.variant, "seed": league.config.seed}
        red_file.save_red(layout.attacker_folder(folder, number), red.weights, league.red_spec, facts)
    spec = league.spec
    facts = {
        "workflow": None,
        **spec.as_dict(),
        "inputs": spec.inputs,
        "actions": spec.actions,
        "updates": league.updates,
        "versions": manifest.versions(),
        "config": {"variant": league.config.variant, "seed": league.config.seed, **document},
        "notes": {"league": True},
    }
    arrays.write_pair(folder / layout.POLICY_JSON, "policy", facts, league.average)


def _result(league: League, last: Sequence[rows.MatrixRow]) -> dict[str, Any]:
    """Return what result.json says: against the attacker that takes most, and the last round."""
    worst, episodes = min(last, key=lambda row: row.mean), league.config.matrix_episodes
    margin = statistics.t_quantile(episodes - 1, 0.975) * worst.standard_error
    evaluation = {"mean": worst.mean, "low": worst.mean - margin, "high": worst.mean + margin, "episodes": episodes}
    rounds = matrix.rounds_of(last)
    return {
        "evaluation": evaluation | {"attacker": worst.attacker},
        "episodes": league.episodes,
        "last_round": rounds[-1].as_dict(),
    }
