"""What there is in a folder of runs, as a table, and what to do next with it."""

from collections.abc import Sequence

from rich.table import Table

from fixfirst.runs import RUNNING, Kind, Outcome, RunSummary, duration

COLOURS: dict[str, str] = {Outcome.FINISHED: "green", RUNNING: "cyan", Outcome.INTERRUPTED: "yellow"}


def runs_table(runs: Sequence[RunSummary]) -> Table:
    """A row per run, in the order given."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("run", "kind", "red agent", "status"):
        table.add_column(name, overflow="fold")
    for name in ("return", "time", "begun (UTC)"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("best order, or the one trained", overflow="fold")
    for run in runs:
        mean = "" if run.mean is None else f"{run.mean:.2f}"
        time = "" if run.seconds is None else duration(run.seconds)
        state = f"[{COLOURS[run.status]}]{run.status}[/]" if run.status in COLOURS else _plain(run.status)
        created = _plain(run.created[:16].replace("T", " "))
        name, kind, red, workflow = (_plain(str(text or "")) for text in (run.folder, run.kind, run.red_agent, run.workflow))
        table.add_row(name, kind, red, state, mean, time, created, workflow)
    return table


def _plain(text: str) -> str:
    """Text from a file, for rich: brackets in it are not markup."""
    return text.replace("[", r"\[")


def advice(runs: Sequence[RunSummary]) -> list[tuple[str, str]]:
    """What to type next, and why. Runs newest first."""
    if not runs:
        first = "a first answer in half a minute: which kind to fix first against B_line"
        return [
            ("fixfirst search --total-episodes 30000", first),
            ("fixfirst search", "the real thing: 100,000 training episodes, about a minute"),
        ]
    latest = runs[0]
    steps = []
    if latest.status == Outcome.INTERRUPTED:
        steps.append((f"fixfirst resume {latest.folder}", "go on where it stopped"))
    if latest.kind == Kind.SEARCH:
        steps.append((f"fixfirst report {latest.folder}", "the whole story as one page"))
    if latest.mean is not None:
        steps.append((f"fixfirst watch {latest.folder}", "see its best defender play"))
        steps.append((f"fixfirst evaluate {latest.folder}", "judge it on CAGE2's protocol"))
    return [*steps, ("fixfirst search --red-agent meander", "another attacker")]
