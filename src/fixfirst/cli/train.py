"""`fixfirst train`: one order."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fixfirst.cli.app import Json, Quiet, print_json
from fixfirst.cli.flags import flags_of, given
from fixfirst.learner.config import TrainConfig

if TYPE_CHECKING:
    from fixfirst.api.run_objects import TrainRun

    TrainFlags = Any
else:
    TrainFlags = flags_of(TrainConfig)


def train_command(
    *,
    settings: Annotated[TrainFlags, Parameter(name="*")] = TrainFlags(),
    out: Path | None = None,
    from_policy: Annotated[Path | None, Parameter(name="--from")] = None,
    units: Path | None = None,
    config: Path | None = None,
    workers: int = 0,
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
        A TOML file that groups the hosts otherwise than the five types.
    config
        A TOML file with settings, as written to config.toml of every run.
    workers
        Processes that train starts and openings that compete; 0: as many as there are cores. The result is the same.
    """
    from fixfirst.api.training import train  # --help need not wait for it

    run = train(
        out=out,
        from_policy=from_policy,
        units=units,
        config=config,
        workers=workers,
        quiet=quiet,
        **given(settings),
    )
    tell_training(run, as_json)
    return 0


def tell_training(run: "TrainRun", as_json: bool) -> None:
    """The result, and what to do next."""
    from fixfirst.reporter.results import evaluation_table
    from fixfirst.reporter.screen import results

    assert run.evaluation is not None  # it is finished
    if as_json:
        print_json({"run": str(run.folder), "accepted": run.accepted, "evaluation": asdict(run.evaluation)})
        return
    print(evaluation_table([run.evaluation], results().width))
    if run.evaluation.compliance is not None:
        print("gate: " + ("passed" if run.accepted else "not passed"))
    print(f"policy: {run.folder}\nnext:   fixfirst evaluate {run.folder}")
