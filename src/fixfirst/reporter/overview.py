"""What there is in a folder of runs, as a table, and what to do next with it."""

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from fixfirst.base.errors import printable
from fixfirst.runs.layout import Kind
from fixfirst.runs.listing import RunSummary
from fixfirst.runs.lock import RUNNING, duration
from fixfirst.runs.rows import Outcome

COLOURS: dict[str, str] = {Outcome.FINISHED: "green", RUNNING: "cyan", Outcome.INTERRUPTED: "yellow"}

WIDE, LONGEST_WORD = 110, 10
MOST_SHOWN = 300  # characters of a text


def runs_table(runs: Sequence[RunSummary], width: int = WIDE) -> Table:
    """A row per run, in the order given; with less room, fewer columns, and nothing is broken inside a word."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    left = ("run", "kind", "red agent", "status") if width >= WIDE else ("run", "status")
    right = ("return", "time", "begun (UTC)") if width >= WIDE else ("return",)
    fits = max((len(str(run.folder)) for run in runs), default=0) <= width // 2  # else paths are folded
    for name in left:
        table.add_column(name, overflow="fold", no_wrap=name == "run" and fits, min_width=len(Outcome.INTERRUPTED))
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("best order, or the one trained", overflow="fold", min_width=LONGEST_WORD)
    for run in runs:
        mean = "" if run.mean is None else f"{run.mean:.2f}"
        time = "" if run.seconds is None else duration(run.seconds)
        state = f"[{COLOURS[run.status]}]{run.status}[/]" if run.status in COLOURS else _plain(run.status)
        created = _plain(run.created[:16].replace("T", " "))
        name, kind, red, workflow = (_plain(str(text or "")) for text in (run.folder, run.kind, run.red_agent, run.workflow))
        cells = {
            "run": name,
            "kind": kind,
            "red agent": red,
            "status": state,
            "return": mean,
            "time": time,
            "begun (UTC)": created,
        }
        table.add_row(*(cells[column] for column in (*left, *right)), workflow)
    return table


def _plain(text: str) -> str:
    """Text from a file: a terminal finds nothing in it to obey, and rich no markup."""
    return escape(printable(text[:MOST_SHOWN]))


def advice(runs: Sequence[RunSummary]) -> list[tuple[str, str]]:
    """What to type next, and why. Runs newest first."""
    if not runs:
        first = "a first answer in half a minute: which kind to fix first against B_line"
        return [
            ("fixfirst search --total-episodes 30000", first),
            ("fixfirst search", "the real thing, about a minute on two cores"),
        ]
    latest, folder = runs[0], printable(str(runs[0].folder))
    steps = []
    if latest.status == Outcome.INTERRUPTED:
        steps.append((f"fixfirst resume {folder}", "go on where it stopped"))
    if latest.kind == Kind.SEARCH:
        steps.append((f"fixfirst report {folder}", "the whole story as one page"))
    if latest.mean is not None:
        steps.append((f"fixfirst watch {folder}", "see its best defender play"))
        steps.append((f"fixfirst evaluate {folder}", "judge it on CAGE2's protocol"))
    return [*steps, ("fixfirst search --red-agent meander", "another attacker")]
