"""`ff.search`: the main job. A search, or several under different seeds and red agents; and going on with them."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, Unpack, overload

from fixfirst.api.following import Callback, Progress, finished_before, say_where
from fixfirst.api.run_objects import SearchRun, StudyRun
from fixfirst.api.watch import write_replays
from fixfirst.base import checks, compile as machine_code, errors, jobs, ray, typed
from fixfirst.game import world
from fixfirst.learner.training import check_trainable
from fixfirst.reporter import live, report
from fixfirst.runs import layout
from fixfirst.searcher import driver, study
from fixfirst.searcher.config import SearchConfig, search_configs

_MOST_PAGES = 12  # searches of a study that have a page each; of more, `fixfirst report` writes those that are wanted


@overload
def search(*, seeds: Literal[1] = 1, **settings: Unpack[typed.SearchSettings]) -> SearchRun: ...
@overload
def search(*, seeds: int, **settings: Unpack[typed.SearchSettings]) -> SearchRun | StudyRun: ...
def search(
    *,
    out: str | Path | None = None,
    seeds: int = 1,
    units: str | Path | None = None,
    config: str | Path | None = None,
    workers: int = 0,
    executor: Literal["inline", "process", "ray"] | None = None,
    ray_address: str | None = None,
    cpus_per_trial: int | None = None,
    report: bool = True,
    again: bool = False,
    quiet: bool = False,
    callback: Callback | None = None,
    **settings: Any,
) -> SearchRun | StudyRun:
    """What is each order worth? One defender is trained for all of them, several times over, within an episode budget.

        run = ff.search(red_agent="b_line", total_episodes=100_000, quiet=True)
        run.answer.rule, run.answer.swaps, run.answer.orders, run.best, run.folder

    separate=True is the published way, one training per order: then the result is run.ranking, of run.trials.

    settings: those of `fixfirst search --help` with underscores. Each comes from here, else from FIXFIRST_<NAME>, else from
    the TOML file `config`, else from the preset. seeds: the same search under so many seeds; with several of them, several
    red agents ("b_line,meander") or scenarios ("a.yaml,tiny", "generate:0-99"), the result is a StudyRun. workers,
    executor, ray_address, cpus_per_trial: where trials run, which does not change the result. report: end with a page about
    it. again: run it also if a finished run has this very result, which is returned otherwise unless `out` is given.
    callback: is told how far it is after every update (`ff.Progress`); if it returns True, the search stops as by Ctrl-C.
    Ctrl-C raises Interrupted after saving; `ff.resume` goes on.
    """
    file, grouping = (None if path is None else checks.check_path("config, units", path) for path in (config, units))
    configs = search_configs(settings, file, grouping, seeds)
    folder = layout.unused_folder(study.study_name(configs)) if out is None else checks.check_path("out", out)
    execution = jobs.Execution(workers, executor, ray_address, cpus_per_trial)
    report, quiet = checks.check_bool("report", report), checks.check_bool("quiet", quiet)
    if out is None and len(configs) == 1 and not checks.check_bool("again", again):
        before = finished_before(study.study_name(configs), configs[0], quiet)
        if before is not None:
            return SearchRun(study.open_search(before))

    def begin() -> study.Study:
        begun = study.begin_study(configs, folder)
        say_where(folder, quiet)
        return begun

    return run_study(configs, begin, execution, report=report, quiet=quiet, callback=callback)


def resume_searches(
    folder: Path, execution: jobs.Execution, cyborg: str | None = None, *, report: bool, quiet: bool
) -> SearchRun | StudyRun:
    """Go on with a search, or with all searches of a study that are not finished."""
    found = study.open_study(folder, cyborg)
    configs = [search.config for search in found.searches]
    return run_study(configs, lambda: found, execution, report=report, quiet=quiet)


def run_study(
    configs: Sequence[SearchConfig],
    make_study: Callable[[], study.Study],
    execution: jobs.Execution,
    *,
    report: bool,
    quiet: bool,
    callback: Callback | None = None,
) -> SearchRun | StudyRun:
    """Run the searches. What they need comes before the folder: without it there is nothing to begin."""
    for training in {config.training.game: config.training for config in configs}.values():
        check_trainable(training)
    machine_code.announce_compilation()
    world.compile_kernel()
    with jobs.interrupts() as interrupt, closing(driver.make_scheduler(execution, configs, interrupt)) as scheduler:
        study = make_study()
        if execution.executor == "ray" and not quiet:
            errors.note(ray.who_reaches(execution.ray_address or "local"))
        with _View(interrupt, callback, several=len(study.searches) > 1, quiet=quiet) as view:
            to_run = study.unfinished if len(study.searches) > 1 else study.searches
            finished = driver.run_searches(to_run, scheduler, view, interrupt, study.folder)
    if not finished:
        raise errors.Interrupted(f"interrupted; go on with: {errors.command('resume', study.folder)}")
    runs = tuple(SearchRun(search) for search in study.searches)
    result = runs[0] if len(runs) == 1 else StudyRun(study.folder, runs)
    if report:
        _write_pages(result, quiet)
    return result


class _View(live.SearchView):
    """What the user sees of searches, and what a callback is told, which may stop them."""

    def __init__(self, interrupt: jobs.Interrupt, callback: Callback | None, **options: bool):
        super().__init__(**options)
        self._interrupt, self._callback = interrupt, callback

    def progress(self, search: Any, number: int, message: Any) -> None:
        """Take what a training tells."""
        super().progress(search, number, message)
        if self._callback is not None and not isinstance(message, str) and not message.done:
            reached = Progress(search.folder, self._used(), self.total, number, {"return": message.env_reward})
            self._interrupt.requested |= bool(self._callback(reached))


def _write_pages(result: SearchRun | StudyRun, quiet: bool) -> None:
    """A page about each run, unless there are very many, and, if there are several, one about all of them.

    The search is done; whatever may be wrong with its report, it must not look as if the search had failed.
    """
    try:
        members = result.searches if isinstance(result, StudyRun) else [result]
        members = members if len(members) <= _MOST_PAGES else []
        if isinstance(result, StudyRun) and not quiet:
            errors.note(f"writing {len(members) + 1} reports ...")
        for run in members:
            write_replays(run.folder)
            if isinstance(result, StudyRun):
                report.report(run.folder)
        result.report()
    except Exception as e:
        errors.note(f"no report ({str(e) or type(e).__name__}); try again with: {errors.command('report', result.folder)}")
