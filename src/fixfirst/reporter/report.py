"""`ff.report`: from run directories to report files. What can be read of a run is shown, and `missing` says the rest."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from fixfirst.base import arguments, errors, files
from fixfirst.reporter.answer_report import answer_report, running_report
from fixfirst.reporter.comparison_report import comparison_report
from fixfirst.reporter.document import Document
from fixfirst.reporter.league_report import league_report
from fixfirst.reporter.page import address, markdown, report_page
from fixfirst.reporter.readable_run import NothingYetError, read_run
from fixfirst.reporter.run import Run
from fixfirst.reporter.study_report import study_report
from fixfirst.reporter.trials_report import separate_report, training_report
from fixfirst.runs import layout
from fixfirst.runs.layout import RunFiles

MOST_NOTES = 5  # about runs that cannot be shown
Format = Literal["html", "md"]


@dataclass(frozen=True)
class WrittenReport:
    """What was written, and what it says."""

    path: Path
    figures: tuple[Path, ...]
    runs: tuple[Path, ...]
    document: Document


def expand_run_folders(arguments: Sequence[Path]) -> list[Path]:
    """Return the run directories: each argument, or, where it has runs as children, all of those."""
    found: list[Path] = []
    for folder in arguments:
        if not folder.is_dir():
            raise errors.RunDirError(f"{folder}: no such folder")
        found += sorted(layout.find_runs(folder, depth=1), key=_natural) or [folder]
    return list(dict.fromkeys(found))


def _natural(folder: Path) -> list[tuple[int, str]]:
    """Return what sorts names as people count: network 2 before network 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", folder.name)]


def report(
    runs: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    figures: str | Path | None = None,
    form: Format = "html",
) -> WrittenReport:
    """Write the report of a run, or the comparison of several; return what was written, and what it says.

    runs: run directories, or folders whose children are runs: they stand for all of them. out: RUN/report.html unless
    given, and STUDY/report.html of a study. figures: a folder for every figure as SVG, PNG and CSV.
    RunDirError if there is nothing to show.

    For example:

        page = ff.report("runs/first", out="report.html").path
    """
    given = list(runs) if isinstance(runs, list | tuple) else [runs]
    arguments.check_choice("form", form, get_args(Format))
    out, figures = (None if path is None else arguments.check_path("out", path) for path in (out, figures))
    folders = expand_run_folders([arguments.check_path("a run", folder) for folder in given])
    if out is None:  # beside the files of a single run, or of a study, else here
        above = {folder.parent for folder in folders}
        study = above.pop() if len(given) == len(above) == 1 else None
        home = folders[0] if len(folders) == 1 else study if study is not None and RunFiles(study).study.is_file() else None
        out = RunFiles(home or Path()).report(form)
    layout.check_output("out", out)
    try:
        for place in (out.parent, figures):  # before drawing: a place that cannot be is named at once
            if place is not None:
                place.mkdir(parents=True, exist_ok=True)
        return _write(report_document(folders, out.parent), folders, out, figures, form)
    except OSError as e:
        raise errors.RunDirError(f"{e.filename or out}: cannot be written ({e.strerror or e})") from e


def report_document(folders: Sequence[Path], place: Path | None = None) -> Document:
    """Build the report of a run, or the comparison of several. place: the folder of the page."""
    runs: list[Run] = []
    unreadable: list[str] = []
    waiting: dict[Path, str] = {}
    for folder in folders:
        try:
            runs.append(read_run(folder))
        except NothingYetError as e:
            waiting[folder] = str(e)
        except errors.RunDirError as e:
            unreadable.append(str(e))
        except OSError as e:
            unreadable.append(f"{e.filename or folder}: cannot be read ({e.strerror or e})")
    if not runs:
        raise errors.RunDirError("; ".join(_shortened([*unreadable, *_unfinished(waiting)])))
    answered = [(run, run.answer) for run in runs if run.answer is not None]
    if len(folders) > 1 and answered and all(run.is_search and not run.is_separate for run in runs):
        begun = [run for run in runs if run.answer is None]
        waiting |= {
            run.folder: f"{run.name}: it is not finished; go on with: {errors.command('resume', run.folder)}"
            for run in begun
        }
        return study_report(answered, _shortened([*unreadable, *_unfinished(waiting)]), len(folders), place)
    if len(folders) > 1:
        return comparison_report(runs, [*unreadable, *waiting.values()])
    (run,) = runs
    if run.answer is not None:
        return answer_report(run, run.answer)
    if run.kind == layout.Kind.LEAGUE:
        return league_report(run)
    if run.rounds:
        return running_report(run)
    return separate_report(run) if run.is_search else training_report(run)


def _unfinished(waiting: Mapping[Path, str]) -> list[str]:
    """Say which searches are not finished; of several of one study, how many."""
    studies = {folder.parent for folder in waiting}
    if len(waiting) > 1 and len(studies) == 1 and RunFiles(study := studies.pop()).study.exists():
        return [f"{len(waiting):,} searches are not finished; go on with: {errors.command('resume', study)}"]
    return list(waiting.values())


def _shortened(notes: list[str]) -> list[str]:
    """Return no more notes than somebody reads."""
    more = len(notes) - MOST_NOTES
    return notes if more <= 0 else [*notes[:MOST_NOTES], f"And {more:,} more like these."]


def _write(document: Document, folders: Sequence[Path], out: Path, figures: Path | None, form: Format) -> WrittenReport:
    """Write the page and the figures."""
    written = [path for figure in document.figures for path in figure.write(figures)] if figures is not None else []
    if form == "html":
        text = report_page(document, out.parent)
    else:
        pictures = {path.stem: address(path, out.parent) for path in written if path.suffix == ".png"}
        text = markdown(document, pictures, out.parent)
    files.write_atomically(out, text.encode("utf-8", "replace"))
    return WrittenReport(out, tuple(written), tuple(folders), document)
