"""`ff.report`: from run directories to report files. What can be read of a run is shown, and `missing` says the rest."""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from fixfirst.base import arguments, errors, files
from fixfirst.reporter.document import Document, Draw, markdown, report_page
from fixfirst.reporter.figure import FigureData
from fixfirst.reporter.report_answers import answer_report, running_report, study_report
from fixfirst.reporter.report_trials import comparison_report, league_report, search_report, training_report
from fixfirst.runs import layout, manifest, rows
from fixfirst.runs.run import Run

# ---------------------------------------------------------------- reading


class NothingYetError(errors.RunDirError):
    """A search has no round yet."""


def read_run(folder: Path) -> Run:
    """Return what there is of a run; RunDirError if there is nothing to show."""
    run = Run(folder, lenient=True)
    shared = run.is_search and not run.is_separate
    if run.answer is None and shared:
        if (folder / layout.ANSWER).exists():
            raise errors.RunDirError(run.missing[-1])
        if not run.rounds:
            advice = f"; go on with: {errors.command('resume', folder)}"
            raise NothingYetError(str(_nothing(run, "there is no answer to report yet", advice)))
    if run.kind == layout.Kind.LEAGUE:
        if not run.matrix:
            raise _nothing(run, "there is nothing to report, no round is over yet")
    elif not (shared or run.trials or len(run.updates) or run.result):
        raise _nothing(run, "there is nothing to report, no finished trial and no update")
    if not shared and run.kind != layout.Kind.LEAGUE:
        _note_absent(run)
    _ = run.config, run.choices, run.result_document, run.stored_sha256  # damage is told, whether or not they are shown
    if run.status == manifest.RUNNING:
        run.note("The run goes on; these are its results so far.", first=True)
    elif run.status == rows.Outcome.INTERRUPTED:
        run.note(
            f"The run did not end; these are its results so far. Go on with: {errors.command('resume', folder)}", first=True
        )
    elif not run.sessions:
        _note(run, layout.RUNTIME, "is not there: whether the run ended, and how long it took, is not known.")
    return run


def _nothing(run: Run, text: str, advice: str = "") -> errors.RunDirError:
    why = f" ({'; '.join(run.missing)})" if run.missing else ""
    return errors.RunDirError(f"{run.folder}: {text}{why}{advice}")


def _note_absent(run: Run) -> None:
    """Say what a report of a training, or of a search the published way, has to do without."""
    if run.is_search:
        if not run.trials:
            _note(run, layout.LEDGER, "has no finished trial.")
        if not run.config:
            run.note(
                f"Without {layout.CONFIG}, five unit types and {manifest.ASSUMED_TEST_EPISODES:,} test episodes are assumed."
            )
        if not run.choices:
            _note(run, layout.CHOICES, "has no rows: what was expected of the orders is not known.")
        if run.warmup is None and _expects_warmup(run.config):
            _note(run, layout.WARMUP_RESULT, "is not there: no comparison with the defender before any order.")
        best = run.ranked_trials
        if best is not None and run.status == rows.Outcome.FINISHED and run.stored_sha256 != best.best.policy_sha256:
            found = "another policy than" if run.stored_sha256 else "no policy, not even"
            run.note(f"{layout.BEST}/ holds {found} the one the ledger names as best.")
    elif run.result is None:
        _note(run, layout.RESULT, "is not there: the final evaluation is not done.")
    elif (told := (run.result_document or {}).get("policy_sha256")) and run.stored_sha256 not in (None, told):
        run.note(f"{layout.POLICY_JSON} is of another policy than the one that {layout.RESULT} tells of.")
    if not len(run.updates):
        _note(run, layout.TRAINING_LOG, "has no rows: no learning curves.")


def _note(run: Run, file: str, text: str) -> None:
    """Say what is wrong with a file, unless more was said of it already."""
    if not any(file in said for said in run.missing):
        run.note(f"{file} {text}")


def _expects_warmup(config: dict[str, Any]) -> bool:
    return config.get("warmup_episodes") != 0 and config.get("from_policy") is None


# ---------------------------------------------------------------- writing

MOST_NOTES = 5  # about runs that cannot be shown
SILENT_S = 2.0  # a report that takes longer says so
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
    say: Callable[[str], None] = lambda text: None,
) -> WrittenReport:
    """Write the report of a run, or the comparison of several; return what was written, and what it says.

    runs: run directories, or folders whose children are runs: they stand for all of them. out: RUN/report.html unless
    given, and STUDY/report.html of a study. figures: a folder for every figure as SVG, PNG and CSV. say: is given a line
    before anything that takes long.
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
        home = folders[0] if len(folders) == 1 else study if study is not None and (study / layout.STUDY).is_file() else None
        out = (home or Path()) / f"{layout.REPORT}.{form}"
    layout.check_output("out", out)
    try:
        for place in (out.parent, figures):  # before drawing: a place that cannot be is named at once
            if place is not None:
                place.mkdir(parents=True, exist_ok=True)
        return _write(report_document(folders, _announce(say), out.parent), folders, out, figures, form)
    except OSError as e:
        raise errors.RunDirError(f"{e.filename or out}: cannot be written ({e.strerror or e})") from e


def report_document(folders: Sequence[Path], draw: Draw = lambda make: make(), place: Path | None = None) -> Document:
    """Build the report of a run, or the comparison of several. draw: makes each figure. place: the folder of the page."""
    found: list[Run] = []
    unreadable: list[str] = []
    waiting: dict[Path, str] = {}
    for folder in folders:
        try:
            found.append(read_run(folder))
        except NothingYetError as e:
            waiting[folder] = str(e)
        except errors.RunDirError as e:
            unreadable.append(str(e))
        except OSError as e:
            unreadable.append(f"{e.filename or folder}: cannot be read ({e.strerror or e})")
    if not found:
        raise errors.RunDirError("; ".join(_shortened([*unreadable, *_unfinished(waiting)])))
    answered = [(run, run.answer) for run in found if run.answer is not None]
    if len(folders) > 1 and answered and all(run.is_search and not run.is_separate for run in found):
        begun = [run for run in found if run.answer is None]
        waiting |= {
            run.folder: f"{run.name}: it is not finished; go on with: {errors.command('resume', run.folder)}"
            for run in begun
        }
        return study_report(answered, _shortened([*unreadable, *_unfinished(waiting)]), draw, len(folders), place)
    unreadable += waiting.values()
    if len(folders) > 1:
        return comparison_report(found, unreadable, draw)
    if answered:
        return answer_report(*answered[0], draw)
    if found[0].kind == layout.Kind.LEAGUE:
        return league_report(found[0], draw)
    if found[0].rounds:
        return running_report(found[0], draw)
    return search_report(found[0], draw) if found[0].is_search else training_report(found[0], draw)


def _unfinished(waiting: Mapping[Path, str]) -> list[str]:
    """Say which searches are not finished; of several of one study, how many."""
    studies = {folder.parent for folder in waiting}
    if len(waiting) > 1 and len(studies) == 1 and ((study := studies.pop()) / layout.STUDY).exists():
        return [f"{len(waiting):,} searches are not finished; go on with: {errors.command('resume', study)}"]
    return list(waiting.values())


def _shortened(notes: list[str]) -> list[str]:
    """Return no more notes than somebody reads."""
    more = len(notes) - MOST_NOTES
    return notes if more <= 0 else [*notes[:MOST_NOTES], f"And {more:,} more like these."]


def _announce(say: Callable[[str], None]) -> Draw:
    """Return a function that draws, and says once that it takes a while."""
    started, announced = time.perf_counter(), False

    def draw(make: Callable[[], FigureData]) -> FigureData:
        nonlocal announced
        if not announced and time.perf_counter() - started > SILENT_S:
            announced = True
            say("drawing figures")
        return make()

    return draw


def _write(document: Document, folders: Sequence[Path], out: Path, figures: Path | None, form: Format) -> WrittenReport:
    written: list[Path] = []
    if figures is not None:
        for figure in document.figures:
            written += figure.write(figures)
    if form == "html":
        text = report_page(document, out.parent)
    else:
        here = out.parent.resolve()
        pictures = {path.stem: Path(os.path.relpath(path.resolve(), here)) for path in written if path.suffix == ".png"}
        text = markdown(document, pictures, here)
    files.write_atomically(out, text.encode("utf-8", "replace"))
    return WrittenReport(out, tuple(written), tuple(folders), document)
