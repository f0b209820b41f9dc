"""`fixfirst compare`: two policies in the same episodes."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from fixfirst.api import evaluate
from fixfirst.base import errors
from fixfirst.cli import misuse
from fixfirst.cli.app import Json, Quiet, TableFiles, Tables, Whole, print_json
from fixfirst.cli.flags import GameFlags, GameSettings, OrderFlag, given
from fixfirst.cli.own_agents import named_agent
from fixfirst.reporter import results


@dataclass(frozen=True)
class Played:
    """What is played, by the names that `ff.compare` has for it."""

    workflow: OrderFlag = None
    greedy: bool = False
    """The most probable action instead of a drawn one."""
    red_agent: str = "b_line,meander"
    """Only these, separated by commas."""
    steps: Whole | None = None
    """Length of an episode; default: 100, or that of the scenario's own reward."""
    episodes: Whole = 2_000
    """How many against each red agent."""
    seed: Whole = 0
    """Other episodes: they are the same for the same seed, and those of `fixfirst evaluate`."""


def compare_command(
    first: str,
    second: str,
    /,
    *,
    played: Annotated[Played, Parameter(name="*")] = Played(),
    game: GameSettings = GameFlags(),
    tables: Tables = TableFiles(),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Are two policies different, and by how much? Both play the same held-out episodes, against each red agent.

    What is compared is the difference within an episode, in which both meet the same luck: far fewer episodes tell two
    policies apart than two evaluations would need. The worst episodes of each are named.

    Parameters
    ----------
    first
        A run, a policy folder, champion, a baseline, an ONNX file, or your own agent, as in `fixfirst evaluate`.
    second
        Another one.
    """
    tables.check(first, second)
    settings = given(played) | given(game)
    rows = evaluate.compare(named_agent(first), named_agent(second), **settings, quiet=quiet, say=errors.note)
    tables.write(rows)
    if as_json:
        print_json([asdict(row) | {"different": row.different} for row in rows])
    else:
        results.print_comparison(rows, first, second, _flags_of_watch(settings))


def _flags_of_watch(settings: dict[str, Any]) -> list[str]:
    """Return the flags with which `fixfirst watch` plays the same episodes, but for red agent and variant."""
    flags: list[str] = []
    for name, value in settings.items():
        if value and name not in ("red_agent", "variant", "episodes"):
            flags += [misuse.flag(name), *([] if value is True else [str(value)])]
    return flags
