"""`fixfirst train`: one order."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from fixfirst.cli.shared import Json, app, unused_folder
from fixfirst.game.compiled import announce_compilation

if TYPE_CHECKING:
    from fixfirst.learner.train_run import TrainResult


@app.command(name="train")
def train(
    *,
    workflow: str | None = None,
    red_agent: str | None = None,
    total_episodes: int | None = None,
    seed: int | None = None,
    out: Path | None = None,
    preset: str | None = None,
    variant: str | None = None,
    n_envs: int | None = None,
    episodes_per_update: int | None = None,
    epochs: int | None = None,
    minibatches: int | None = None,
    returns: str | None = None,
    learning_rate: float | None = None,
    lr_schedule: str | None = None,
    gamma: float | None = None,
    gae_lambda: float | None = None,
    entropy: float | None = None,
    engine: str | None = None,
    alignment: str | None = None,
    alignment_lambda: float | None = None,
    rule: str | None = None,
    count_foothold: bool | None = None,
    compliance_threshold: float | None = None,
    stop_when_compliant: bool | None = None,
    max_steps: int | None = None,
    green: bool | None = None,
    checkpoint_every: int | None = None,
    backend: str | None = None,
    cyborg: Annotated[str | None, Parameter(help="A checkout of cage-challenge-2, for --backend cyborg.")] = None,
    from_policy: Annotated[Path | None, Parameter(name="--from")] = None,
    units: Path | None = None,
    config: Path | None = None,
    tensorboard: bool = True,
    quiet: bool = False,
    as_json: Json = False,
) -> int:
    """Train a defender that keeps to a workflow, and evaluate it on episodes it never saw.

    Settings come from the command line, else FIXFIRST_<NAME>, else --config, else the preset. Ctrl-C stops after the current
    update; `fixfirst resume` goes on.

    Parameters
    ----------
    workflow
        The order to keep to, e.g. "enterprise > op_server > op_host > user > defender" or a named one (critical_first);
        "none": no order (default); "all": one drawn per episode, for a policy that follows any order (hard: start it --from
        a policy that can defend already).
    red_agent
        b_line (default), meander, sleep, or a mixture such as b_line:0.5,meander:0.5.
    total_episodes
        How many episodes to train on (20,000).
    seed
        Same seed, same policy, byte for byte (0).
    out
        Where to write (runs/train-<red agent>-<seed>).
    preset
        default, or a published one: sequential, hybrid, parallel-25, parallel-100, original.
    variant
        current (default), leaderboard or debugged.
    backend
        simulator (default), cyborg (the real thing, in worker processes), or workers (our simulator there).
    n_envs
        Environments side by side.
    episodes_per_update
        What one update learns from; a multiple of --n-envs.
    epochs
        Passes over an update's episodes.
    minibatches
        Parts an epoch is cut into; 1 = all at once.
    returns
        gae or monte_carlo.
    lr_schedule
        constant or linear (down to 0).
    engine
        auto (default), rows or plain: whether equal observations are computed once.
    alignment
        penalty (default), delta or none: the learner's reward for keeping to the order.
    alignment_lambda
        Its weight: of delta, or the multiplier that penalty starts with.
    rule
        no_higher (default), top or fixed_types: when a repair is in order (docs/method.md).
    count_foothold
        Count User0, where red can never be evicted, as needing repair.
    stop_when_compliant
        Stop as soon as the gate is passed.
    from_policy
        A policy or run to start from.
    units
        A TOML file that groups the hosts otherwise than the five types.
    config
        A TOML file with settings, as written to config.toml of every run.
    """
    from fixfirst.api import settings
    from fixfirst.learner import train_run

    flags = ("out", "from_policy", "units", "config", "tensorboard", "quiet", "as_json")
    given = {name: value for name, value in locals().items() if name not in (*flags, "flags", "settings", "train_run")}
    resolved = settings.train_config(given, config, units)
    folder = out or unused_folder(f"train-{resolved.red_agent}-{resolved.seed}")
    announce_compilation()
    result = train_run.start(resolved, folder, from_policy=from_policy, tensorboard=tensorboard, quiet=quiet)
    return tell_training(result, as_json)


def tell_training(result: "TrainResult", as_json: bool) -> int:
    """The result, and what to do next; the exit code."""
    from fixfirst.api import protocol

    if result.evaluation is None:
        return 130
    if as_json:
        print(
            json.dumps(
                {"run": str(result.folder), "accepted": result.accepted, "evaluation": asdict(result.evaluation)}, indent=2
            )
        )
        return 0
    print(protocol.table([result.evaluation]))
    if result.evaluation.compliance is not None:
        print("gate: " + ("passed" if result.accepted else "not passed"))
    print(f"policy: {result.folder}\nnext:   fixfirst evaluate {result.folder}")
    return 0
