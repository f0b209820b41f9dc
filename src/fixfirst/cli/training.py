"""`fixfirst train`: a defender of one order; or, on the other side, an attacker; or both, in a league."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fixfirst.base import errors
from fixfirst.cli import outcome
from fixfirst.cli.app import RARE, Again, Json, Quiet, Whole, print_json
from fixfirst.cli.flags import flags_of, given
from fixfirst.runs import layout, manifest
from fixfirst.settings.presets import LEAGUE
from fixfirst.settings.training import TrainConfig

if TYPE_CHECKING:
    TrainFlags = Any
else:
    TrainFlags = flags_of(TrainConfig)

_TEST_EPISODES = 1_000
_COUNT_FOR = {  # what counts beside --out, --quiet and --json
    "--league": {"from", "config", "picky", "updates", "seed", "variant", "preset"},
    "--side red": {"side red", "from", "against", "picky", "total-episodes", "seed", "variant", "green", "max-steps"},
}


def train_command(
    *,
    settings: Annotated[TrainFlags, Parameter(name="*")] = TrainFlags(),
    out: Path | None = None,
    from_policy: Annotated[Path | None, Parameter(name="--from")] = None,
    units: Path | None = None,
    config: Path | None = None,
    workers: int = 0,
    test_episodes: Annotated[Whole, Parameter(group=RARE["Files"])] = _TEST_EPISODES,
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
        red: train an attacker --against defenders that stay as they are, instead of a defender. Run the same command to
        continue one that was interrupted. Only --out, --from, --picky, --total-episodes, --seed and the game's flags count.
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
    chosen = given(settings)
    if league or chosen.get("preset") == LEAGUE or side == "red":
        mode = "--side red" if not league and chosen.get("preset") != LEAGUE else "--league"
        flags = {"from": from_policy, "units": units, "config": config, "workers": workers, "against": against}
        flags |= {"picky": picky, "updates": updates, "again": again, "side red": side == "red"}
        flags |= {"test-episodes": test_episodes != _TEST_EPISODES}
        named = [*(name for name, value in flags.items() if value), *(name.replace("_", "-") for name in chosen)]
        if odd := [name for name in named if name not in _COUNT_FOR[mode]]:
            raise errors.ConfigError(f"--{odd[0]} does not go with {mode}")
        chosen |= {name: value for name, value in (("picky", picky), ("start", from_policy)) if value}
        if mode == "--league":
            return _train_league(chosen | ({"updates": updates} if updates is not None else {}), out, config, quiet, as_json)
        return _train_red(against, chosen, out, quiet, as_json)
    if against is not None or picky or updates is not None:
        odd_flag = "--against" if against is not None else "--picky" if picky else "--updates"
        raise errors.ConfigError(f"{odd_flag} is for trainings of attackers: --side red, or --league")
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
        **chosen,
    )
    outcome.tell(run, False, as_json)
    return 0


def _train_league(chosen: dict[str, Any], out: Path | None, config: Path | None, quiet: bool, as_json: bool) -> int:
    from fixfirst.api import league
    from fixfirst.settings.league import LeagueConfig

    chosen.pop("preset", None)
    file = {} if config is None else LeagueConfig(**manifest.read_settings(config)).model_dump(exclude_unset=True)
    outcome.tell(league.train_league(out=out, quiet=quiet, **(file | chosen)), False, as_json)
    return 0


def _train_red(against: str | None, chosen: dict[str, Any], out: Path | None, quiet: bool, as_json: bool) -> int:
    from fixfirst.api import attackers

    if against is None:
        raise errors.ConfigError("--side red needs --against: runs, policies or baselines, separated by commas")
    folder = out if out is not None else layout.RUNS / f"red-{chosen.get('seed', 0)}"
    red = attackers.train_red(against, out=folder, quiet=quiet, **chosen)
    if as_json:
        print_json({"run": str(folder), "against": red.facts["against"]})
    else:
        print(f"attacker: {folder}")
    return 0
