"""What there is of a run to report, and what is missing."""

from pathlib import Path

from fixfirst.base import errors
from fixfirst.reporter.run import ASSUMED_TEST_EPISODES, Run
from fixfirst.runs import layout, rows
from fixfirst.runs.layout import RunFiles


def read_run(folder: Path) -> Run:
    """Return what there is of a run; RunDirError if there is nothing to show."""
    run = Run(folder, lenient=True)
    if run.is_search and not run.is_separate:
        if run.answer is None and RunFiles(folder).answer.exists():
            raise errors.RunDirError(run.missing[-1])
        _ = run.rounds  # damage is named
    elif run.kind == layout.Kind.LEAGUE:
        if not run.matrix:
            raise errors.RunDirError(_nothing(run, "there is nothing to report, no round is over yet"))
    else:
        if not (run.trials or len(run.updates) or run.result):
            raise errors.RunDirError(_nothing(run, "there is nothing to report, no finished trial and no update"))
        _note_absent(run)
    _ = run.config, run.choices, run.result_document, run.stored_sha256  # damage is told, whether or not they are shown
    if run.is_running:
        run.note("The run goes on; these are its results so far.", first=True)
    elif run.status == rows.Outcome.INTERRUPTED:
        advice = f"Go on with: {errors.command('resume', folder)}"
        run.note(f"The run did not end; these are its results so far. {advice}", first=True)
    elif not run.sessions:
        _note(run, RunFiles.runtime, "is not there: whether the run ended, and how long it took, is not known.")
    return run


def _nothing(run: Run, text: str) -> str:
    return f"{run.folder}: {text}" + (f" ({'; '.join(run.missing)})" if run.missing else "")


def _note_absent(run: Run) -> None:
    """Say what a report of a training, or of a search the published way, has to do without."""
    finished = run.status == rows.Outcome.FINISHED
    if run.is_search:
        expects_warmup = run.config.get("warmup_episodes") != 0 and run.config.get("from_policy") is None
        without = [
            (run.trials, RunFiles.ledger, "has no finished trial."),
            (
                run.config,
                RunFiles.config,
                f"is not there: five unit types and {ASSUMED_TEST_EPISODES:,} test episodes are assumed.",
            ),
            (run.choices, RunFiles.choices, "has no rows: what was expected of the orders is not known."),
            (run.warmup or not expects_warmup, RunFiles.warmup_result, "is not there: what no order earns is not known."),
            (not finished or run.ranked_trials is None or run.stored_sha256, f"{RunFiles.best}/", "holds no policy."),
        ]
    else:
        without = [(run.result, RunFiles.result, "is not there: the final evaluation is not done.")]
    for part, file, text in (*without, (len(run.updates), RunFiles.training_log, "has no rows: no learning curves.")):
        if not part:
            _note(run, file, text)


def _note(run: Run, file: str, text: str) -> None:
    """Say what is wrong with a file, unless more was said of it already."""
    if not any(file in said for said in run.missing):
        run.note(f"{file} {text}")
