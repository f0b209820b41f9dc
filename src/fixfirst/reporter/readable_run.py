"""What there is of a run to report, and what is missing."""

from pathlib import Path
from typing import Any

from fixfirst.base import errors
from fixfirst.runs import layout, manifest, rows
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.run import Run


class NothingYetError(errors.RunDirError):
    """A search has no round yet."""


def read_run(folder: Path) -> Run:
    """Return what there is of a run; RunDirError if there is nothing to show."""
    run = Run(folder, lenient=True)
    shared = run.is_search and not run.is_separate
    if run.answer is None and shared:
        if RunFiles(folder).answer.exists():
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
        _note(run, RunFiles.runtime, "is not there: whether the run ended, and how long it took, is not known.")
    return run


def _nothing(run: Run, text: str, advice: str = "") -> errors.RunDirError:
    why = f" ({'; '.join(run.missing)})" if run.missing else ""
    return errors.RunDirError(f"{run.folder}: {text}{why}{advice}")


def _note_absent(run: Run) -> None:
    """Say what a report of a training, or of a search the published way, has to do without."""
    if run.is_search:
        if not run.trials:
            _note(run, RunFiles.ledger, "has no finished trial.")
        if not run.config:
            run.note(
                f"Without {RunFiles.config}, five unit types and {manifest.ASSUMED_TEST_EPISODES:,} test episodes count."
            )
        if not run.choices:
            _note(run, RunFiles.choices, "has no rows: what was expected of the orders is not known.")
        if run.warmup is None and _expects_warmup(run.config):
            _note(run, RunFiles.warmup_result, "is not there: no comparison with the defender before any order.")
        best = run.ranked_trials
        if best is not None and run.status == rows.Outcome.FINISHED and run.stored_sha256 != best.best.policy_sha256:
            found = "another policy than" if run.stored_sha256 else "no policy, not even"
            run.note(f"{RunFiles.best}/ holds {found} the one the ledger names as best.")
    elif run.result is None:
        _note(run, RunFiles.result, "is not there: the final evaluation is not done.")
    elif (told := (run.result_document or {}).get("policy_sha256")) and run.stored_sha256 not in (None, told):
        run.note(f"{RunFiles.policy_json} is of another policy than the one that {RunFiles.result} tells of.")
    if not len(run.updates):
        _note(run, RunFiles.training_log, "has no rows: no learning curves.")


def _note(run: Run, file: str, text: str) -> None:
    """Say what is wrong with a file, unless more was said of it already."""
    if not any(file in said for said in run.missing):
        run.note(f"{file} {text}")


def _expects_warmup(config: dict[str, Any]) -> bool:
    return config.get("warmup_episodes") != 0 and config.get("from_policy") is None
