"""`fixfirst evaluate`: a frozen policy on held-out episodes."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from fixfirst.cli.shared import Json, app
from fixfirst.errors import ConfigError
from fixfirst.game.compiled import announce_compilation
from fixfirst.game.network import VariantName


@app.command(name="evaluate")
def evaluate(
    policy: str,
    /,
    *,
    workflow: str | None = None,
    greedy: bool = False,
    red_agent: str | None = None,
    steps: str | None = None,
    episodes: int = 1_000,
    variant: VariantName = "current",
    green: bool = False,
    rule: Literal["no_higher", "top", "fixed_types"] = "no_higher",
    count_foothold: bool = False,
    seed: int = 0,
    backend: Literal["simulator", "workers", "cyborg", "both"] = "simulator",
    cyborg: Annotated[str | None, Parameter(help="A checkout of cage-challenge-2, for CybORG.")] = None,
    margin: float = 0.5,
    csv: Path | None = None,
    quiet: bool = False,
    as_json: Json = False,
) -> int:
    """A frozen policy on CAGE2's protocol: 30, 50 and 100 steps against b_line, meander and sleep, on held-out episodes.

    Parameters
    ----------
    policy
        A run, a policy folder, or a baseline: sleep, random, react-restore, react-remove, priority-restore (sees the truth
        and restores by --workflow).
    workflow
        The order to follow and be judged by, if the policy does not carry one.
    greedy
        The most probable action instead of a drawn one.
    red_agent
        Only these, separated by commas.
    steps
        Only these lengths, separated by commas.
    backend
        simulator (default), cyborg, workers (our simulator in worker processes), or both: simulator and CybORG side by side,
        with the difference and whether it is shown to be within --margin.
    margin
        With --backend both: how far apart mean returns may be and still count as equivalent.
    csv
        Also write the table to this file.
    quiet
        Show no progress.
    """
    from fixfirst.api import protocol
    from fixfirst.play.evaluation import PROTOCOL_REDS, PROTOCOL_STEPS, SIMULATOR_SHARE, Evaluation, difference

    try:
        lengths = PROTOCOL_STEPS if steps is None else tuple(int(part) for part in steps.split(","))
    except ValueError:
        raise ConfigError(f"--steps must be whole numbers separated by commas, got {steps!r}") from None
    announce_compilation()

    def run(where: Literal["simulator", "workers", "cyborg"], episodes: int = episodes) -> list[Evaluation]:
        return protocol.run_protocol(
            policy,
            workflow=workflow,
            greedy=greedy,
            red_agents=PROTOCOL_REDS if red_agent is None else red_agent.split(","),
            steps=lengths,
            episodes=episodes,
            variant=variant,
            green=green,
            rule=rule,
            count_foothold=count_foothold,
            seed=seed,
            backend=where,
            cyborg=cyborg,
            quiet=quiet,
        )

    if backend == "both":
        if margin <= 0:
            raise ConfigError(f"--margin must be above 0, got {margin}")
        theirs = run("cyborg")
        ours = run("simulator", SIMULATOR_SHARE * episodes)  # cheap, and it makes the difference more precise
        gaps = [asdict(difference(a, b, margin)) for a, b in zip(ours, theirs, strict=True)]
        both = [
            {"simulator": a.as_dict(), "cyborg": b.as_dict(), "difference": gap}
            for a, b, gap in zip(ours, theirs, gaps, strict=True)
        ]
        print(json.dumps(both, indent=2) if as_json else protocol.side_by_side(ours, theirs, margin))
        return 0
    rows = run(backend)
    if csv is not None:
        protocol.write_csv(csv, rows)
    print(json.dumps([row.as_dict() for row in rows], indent=2) if as_json else protocol.table(rows))
    return 0
