"""`ff.report`: from run directories to report files. What can be read of a run is shown, and `missing` says the rest."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from fixfirst.base import arguments, errors, files
from fixfirst.reporter.answer_report import answer_report, running_report
from fixfirst.reporter.document import Document
from fixfirst.reporter.page import address, markdown, report_page
from fixfirst.reporter.run import ASSUMED_TEST_EPISODES, Run
from fixfirst.reporter.training_report import league_report, separate_report, training_report
from fixfirst.runs import layout, rows
from fixfirst.runs.layout import RunFiles

_MOST_NOTES = 5  # about runs that cannot be shown
_NO_RESULT = "is not there: the final evaluation is not done."
_NO_RUNTIME = "is not there: whether the run ended, and how long it took, is not known."
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
    runs: list[Path] = []

    def counted(folder: Path) -> list[tuple[int, str]]:  # network 2 comes before network 10
        return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", folder.name)]

    for folder in arguments:
        if not folder.is_dir():
            raise errors.RunDirError(f"{folder}: no such folder")
        runs += sorted(layout.find_runs(folder, depth=1), key=counted) or [folder]
    return list(dict.fromkeys(runs))


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
        for folder in (out.parent, figures or out.parent):  # before drawing: one that cannot be is named at once
            folder.mkdir(parents=True, exist_ok=True)
        document = report_document(folders, out.parent)
        written = [path for figure in document.figures for path in figure.write(figures)] if figures is not None else []
        pictures = {path.stem: address(path, out.parent) for path in written if path.suffix == ".png"}
        text = report_page(document, out.parent) if form == "html" else markdown(document, pictures, out.parent)
        files.write_atomically(out, text.encode("utf-8", "replace"))
        return WrittenReport(out, tuple(written), tuple(folders), document)
    except OSError as e:
        raise errors.RunDirError(f"{e.filename or out}: cannot be written ({e.strerror or e})") from e


def report_document(folders: Sequence[Path], page_folder: Path | None = None) -> Document:
    """Build the report of a run, or the comparison of several. page_folder: from which pages of single runs are linked."""
    runs: list[Run] = []
    unreadable: list[str] = []
    for folder in folders:
        try:
            runs.append(read_run(folder))
        except errors.RunDirError as e:
            unreadable.append(str(e))
        except OSError as e:
            unreadable.append(f"{e.filename or folder}: cannot be read ({e.strerror or e})")
    shared = [run for run in runs if run.is_search and not run.is_separate]
    silent = [run for run in shared if run.answer is None and not run.rounds]
    if len(silent) == len(runs):
        raise errors.RunDirError("; ".join(_notes(unreadable, silent)))
    answered = [(run, run.answer) for run in shared if run.answer is not None]
    if len(folders) > 1 and answered and len(shared) == len(runs):
        notes = _notes(unreadable, [run for run in runs if run.answer is None])
        from fixfirst.reporter.study_report import study_report  # only several runs need it

        return study_report(answered, notes, len(folders), page_folder)
    if len(folders) > 1:
        from fixfirst.reporter.comparison_report import comparison_report

        return comparison_report([run for run in runs if run not in silent], _notes(unreadable, silent))
    (run,) = runs
    if run.answer is not None:
        return answer_report(run, run.answer)
    if run.kind == layout.Kind.LEAGUE:
        return league_report(run)
    if run.rounds:
        return running_report(run)
    return separate_report(run) if run.is_search else training_report(run)


def _notes(unreadable: Sequence[str], unfinished: Sequence[Run]) -> list[str]:
    """Say which runs cannot be shown, and how to go on with searches without an answer: no more than somebody reads."""
    notes, studies = [*unreadable], {run.folder.parent for run in unfinished}
    if len(unfinished) > 1 and len(studies) == 1 and RunFiles(study := studies.pop()).study.exists():
        notes.append(f"{len(unfinished):,} searches are not finished; go on with: {errors.command('resume', study)}")
    else:
        for run in unfinished:
            notes += [f"{run.folder}: there is no answer yet; go on with: {errors.command('resume', run.folder)}"]
    more = len(notes) - _MOST_NOTES
    return notes if more <= 0 else [*notes[:_MOST_NOTES], f"And {more:,} more like these."]


def read_run(folder: Path) -> Run:
    """Return what there is of a run, and what is missing; RunDirError if there is nothing to show."""
    run = Run(folder, lenient=True)
    nothing, absent = "", list[tuple[Any, str, str]]()
    if run.is_search and not run.is_separate:
        if run.answer is None and RunFiles(folder).answer.exists():
            raise errors.RunDirError(run.missing[-1])
        _ = run.rounds  # damage is named
    elif run.kind == layout.Kind.LEAGUE:
        nothing = "" if run.matrix else "no round is over yet"
    else:
        nothing = "" if run.trials or len(run.updates) or run.result else "no finished trial and no update"
        absent = _of_search(run) if run.is_search else [(run.result, RunFiles.result, _NO_RESULT)]
        absent.append((len(run.updates), RunFiles.training_log, "has no rows: no learning curves."))
    if nothing:
        why = f" ({'; '.join(run.missing)})" if run.missing else ""
        raise errors.RunDirError(f"{run.folder}: there is nothing to report, {nothing}{why}")
    _ = run.config, run.choices, run.result, run.policy_sha256  # damage is told, whether or not they are shown
    if run.is_running:
        run.missing.insert(0, "The run goes on; these are its results so far.")
    elif run.status == rows.Outcome.INTERRUPTED:
        advice = errors.printable(f"Go on with: {errors.command('resume', folder)}")
        run.missing.insert(0, f"The run did not end; these are its results so far. {advice}")
    absent.append((run.is_running or run.sessions, RunFiles.runtime, _NO_RUNTIME))
    for part, file, text in absent:
        if not part and not any(file in problem for problem in run.missing):
            run.missing.append(f"{file} {text}")
    return run


def _of_search(run: Run) -> list[tuple[Any, str, str]]:
    """Return the parts of a search the published way, their files, and what a report without them cannot say."""
    assumed = f"five unit types and {ASSUMED_TEST_EPISODES:,} test episodes"
    warmed_up = run.warmup or run.config.get("warmup_episodes") == 0 or run.config.get("from_policy") is not None
    has_best = run.status != rows.Outcome.FINISHED or run.ranked_trials is None or run.policy_sha256
    return [
        (run.trials, RunFiles.ledger, "has no finished trial."),
        (run.config, RunFiles.config, f"is not there: {assumed} are assumed."),
        (run.choices, RunFiles.choices, "has no rows: what was expected of the orders is not known."),
        (warmed_up, RunFiles.warmup_result, "is not there: what no order earns, and its training episodes, are not known."),
        (has_best, f"{RunFiles.best}/", "holds no policy."),
    ]
