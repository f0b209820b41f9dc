"""`ff.report`: a run directory, or several, as one page or as Markdown."""

from collections.abc import Callable, Sequence
from pathlib import Path

from fixfirst.base.checks import check_path
from fixfirst.reporter.report import Format, WrittenReport, write_report


def report(
    runs: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    figures: str | Path | None = None,
    form: Format = "html",
    say: Callable[[str], None] = lambda text: None,
) -> WrittenReport:
    """Write the report of a run, or the comparison of several; what was written, and what it says.

    runs: run directories, or folders that hold some. out: RUN/report.html unless told. figures: a folder for every figure as
    SVG, PNG and CSV. say: is told about anything that takes long.

    For example:

        page = ff.report("runs/first", out="report.html").path
    """
    folders = list(runs) if isinstance(runs, list | tuple) else [runs]
    place, pictures = (None if path is None else check_path("out", path) for path in (out, figures))
    return write_report([check_path("a run", folder) for folder in folders], place, figures=pictures, form=form, say=say)
