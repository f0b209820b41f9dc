"""`fixfirst report`: a run, or several, as one page."""

from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Annotated

from cyclopts import Parameter

from fixfirst.base import errors
from fixfirst.cli.app import Json, Switch, print_json
from fixfirst.reporter import report
from fixfirst.reporter.page import open_page
from fixfirst.runs.layout import RunFiles

FOLLOW_S = 5.0


def report_command(
    runs: Annotated[list[Path], Parameter(negative="")],
    /,
    *,
    out: Path | None = None,
    figures: Path | None = None,
    form: Annotated[report.Format, Parameter(name="--format")] = "html",
    replays: Switch = False,
    follow: Switch = False,
    open_it: Annotated[Switch, Parameter(name="--open")] = False,
    as_json: Json = False,
) -> None:
    """Make one page of a run: the answer with its uncertainty, figures, settings. Several runs are compared.

    Needs only the run directories; what is missing in them, the report says.

    Parameters
    ----------
    runs
        Run directories of `search` or `train`, or folders that hold some.
    out
        Where to write (RUN/report.html, of a study STUDY/report.html; of several runs: report.html).
    figures
        Also write every figure to this folder: SVG, PNG, and CSV with its numbers.
    form
        html: one page that needs no network; md: Markdown, with pictures if --figures is given.
    replays
        First play episodes of each order's defender, for the marks in the figures to link to; a search does so by itself.
    follow
        Write it again every few seconds until the run ends; an open page refreshes itself.
    open_it
        Show it in the browser.
    """
    if replays:
        from fixfirst.api import watch

        for run in runs:
            watch.write_replays(run)
    elif out is None and len(runs) == 1 and RunFiles(runs[0]).answer.is_file():
        from fixfirst.api import watch

        with suppress(errors.FixfirstError, OSError):  # the report says what is wrong with the run, and how to get the page
            watch.write_missing_why(runs[0])
    written = report.report(runs, out, figures=figures, form=form)
    while follow and written.document.running:
        if open_it:
            open_page(written.path)
            open_it = False
        sleep(FOLLOW_S)
        written = report.report(runs, out, figures=figures, form=form)
    document = written.document
    if as_json:
        print_json(
            {
                "report": str(written.path),
                "figures": [str(path) for path in written.figures],
                "runs": [str(path) for path in written.runs],
                "headline": " > ".join(document.headline),
                "answer": document.answer,
                "missing": document.missing,
            }
        )
    else:
        for text in document.missing:
            print(f"missing: {text}")
        print(errors.printable(str(written.path)))
    if open_it:
        open_page(written.path)
