"""`fixfirst train`: a defender that keeps to an order; an attacker; a defender against a league of attackers."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fixfirst.base import errors
from fixfirst.cli import misuse
from fixfirst.cli.app import RARE, Again, Json, Quiet, Switch, Whole, print_json
from fixfirst.cli.flags import flags_of, given
from fixfirst.runs import layout, manifest
from fixfirst.settings.presets import LEAGUE
from fixfirst.settings.training import TrainConfig

if TYPE_CHECKING:
    from fixfirst.api import run_objects

    TrainFlags = Any
else:
    TrainFlags = flags_of(TrainConfig)

_OF_RED = {"out", "from_policy", "against", "picky", "total_episodes", "seed", "variant", "green", "max_steps"}
_OF_LEAGUE = {"out", "from_policy", "config", "picky", "updates", "seed", "variant"}


@dataclass(frozen=True)
class Options:
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
    options: Annotated[Options, Parameter(name="*")] = Options(),
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
        misuse.refuse("--league", ["side"] if side == "red" else (name for name in chosen if name not in _OF_LEAGUE))
        tell_league(_train_league(chosen, quiet), as_json)
    elif side == "red":
        misuse.refuse("--side red", (name for name in chosen if name not in _OF_RED))
        _train_red(chosen, quiet, as_json)
    else:
        misuse.refuse("--side blue", given(of_attackers))
        from fixfirst.api import running  # --help need not wait for it

        tell_training(running.train(**chosen, quiet=quiet), as_json)


def _train_league(chosen: dict[str, Any], quiet: bool) -> "run_objects.LeagueRun":
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


def tell_league(run: "run_objects.LeagueRun", as_json: bool) -> None:
    """Print how the defender stood after each round, and what to do next."""
    if as_json:
        print_json({"run": str(run.folder), "rounds": [stand.as_dict() for stand in run.rounds]})
        return
    for stand in run.rounds:
        print(stand.in_words())
    page, attack = errors.command("report", run.folder), errors.command("evaluate", run.folder, "--exploit")
    print(errors.printable(f"policy: {run.folder}"))
    print(errors.printable(f"next:   {page}, {attack}"))


def tell_training(run: "run_objects.TrainRun", as_json: bool) -> None:
    """Print the result, and what to do next."""
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
