"""`fixfirst compare`: are two policies different?"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from fixfirst.base import errors
from fixfirst.cli.agents import named_agent
from fixfirst.cli.app import Csv, Json, Latex, Quiet, Whole, print_json, write_tables
from fixfirst.cli.flags import OrderFlag, flags_of, given
from fixfirst.game.game import Game

if TYPE_CHECKING:
    GameFlags = Any
else:
    GameFlags = flags_of(Game, without=("red_agent", "max_steps"))


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
    game: Annotated[GameFlags, Parameter(name="*")] = GameFlags(),
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
    from fixfirst.api import evaluate  # --help need not wait for it
    from fixfirst.reporter import results, screen

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
        print(results.comparison_text(rows, first, second, _flags(settings, given(game), seed), screen.results().width))
    return 0


def _flags(settings: dict[str, Any], game: dict[str, Any], seed: int) -> list[str]:
    """Return what `fixfirst watch` has to be told to play the same episodes; it is told red agent and variant anyway."""
    told = {name: settings[name] for name in ("workflow", "greedy", "steps")} | {"seed": seed} | game
    flags: list[str] = []
    for name, value in told.items():
        if value and name != "variant":
            flags += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return flags
