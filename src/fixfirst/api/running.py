"""`ff.search`, the main job: one, or several; `ff.train`, one order, with its final test; `ff.resume` and `ff.load_run`."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from fixfirst.api.replays import write_replays
from fixfirst.api.run_objects import (
    Callback,
    Progress as Reached,
    SearchRun,
    StudyRun,
    TrainRun,
    load_training,
)
from fixfirst.base import arguments, compile as machine_code, errors, jobs
from fixfirst.game.game_config import Game
from fixfirst.game.simulator import World
from fixfirst.learner import driver
from fixfirst.learner.tournament import Begin, train_in
from fixfirst.play.rollout import make_world
from fixfirst.policy import trained
from fixfirst.policy.network import Weights
from fixfirst.reporter import live, report
from fixfirst.runs import layout, manifest, rows
from fixfirst.runs.layout import RunFiles
from fixfirst.searcher import study
from fixfirst.settings.search import Execution, SearchConfig, search_configs
from fixfirst.settings.training import TrainConfig

if TYPE_CHECKING:
    from fixfirst import typed
    from fixfirst.api.league import LeagueRun

    AnyRun = SearchRun | TrainRun | StudyRun | LeagueRun

TEST_EPISODES = 1_000


@arguments.checked(workers=0, test_episodes=2)
def train(
    *,
    out: str | Path | None = None,
    from_policy: str | Path | None = None,
    units: str | Path | None = None,
    config: str | Path | None = None,
    workers: int = 0,
    test_episodes: int = TEST_EPISODES,
    again: bool = False,
    quiet: bool = False,
    callback: Callback | None = None,
    **settings: Unpack["typed.TrainSettings"],
) -> TrainRun:
    """Train a defender and evaluate it on episodes it never saw.

    settings: those of `fixfirst train --help` with underscores, e.g. workflow="critical_first", red_agent="meander",
    total_episodes=20_000, preset="hybrid". Each comes from here, else from FIXFIRST_<NAME>, else from the TOML file
    `config`, else from the preset. from_policy: a policy or run to start from. units: a TOML file that groups the hosts.
    workers: processes that train starts and openings that compete, or on CybORG those that play; 0: as many as there are
    cores. The result is the same. test_episodes: those that the trained policy is judged on.
    again: train also if a finished run has this very result, which is returned otherwise unless `out` is given.
    callback: is told how far it is after every update (`ff.Progress`); if it returns True, the training stops as by Ctrl-C.
    Ctrl-C raises Interrupted after saving; `ff.resume` goes on.

    For example:

        run = ff.train(workflow="critical_first", red_agent="meander", total_episodes=2_000, out="runs/mine", quiet=True)
        run.evaluation.mean, run.best, run.accepted
    """
    file, grouping = (None if path is None else arguments.check_path("config, units", path) for path in (config, units))
    resolved = TrainConfig.resolve(*TrainConfig.gather(settings, file, grouping))
    name = f"train-{resolved.game.red_agent}-{resolved.seed}"
    folder = layout.unused_folder(name) if out is None else arguments.check_path("out", out)
    usual = from_policy is None and test_episodes == TEST_EPISODES
    if out is None and usual and not again:
        before = _finished_before(name, resolved, quiet)
        if before is not None:
            return load_training(before)
    _check_trainable(resolved)
    machine_code.announce_compilation()
    start = _starting_weights(resolved, from_policy)
    parent = None if from_policy is None else str(Path(from_policy).resolve())
    options = {"from_policy": parent} | ({} if test_episodes == TEST_EPISODES else {"test_episodes": test_episodes})
    manifest.create_run(folder, layout.Kind.TRAIN, resolved.model_dump(mode="json"), options)
    if not quiet:
        errors.note(f"writing to {folder}")
    return _run(resolved, folder, start, workers, test_episodes, quiet, callback)


def _starting_weights(config: TrainConfig, from_policy: str | Path | None) -> Weights | None:
    if from_policy is None:
        return None
    return trained.load_parent(arguments.check_path("from_policy", from_policy), config.spec).weights


def _check_trainable(config: TrainConfig) -> None:
    """Raise what would keep a training from beginning: an extra or CybORG is not there, or is not what the config says."""
    if config.tensorboard and find_spec("tensorboard") is None:
        raise errors.ConfigError(
            "--tensorboard needs TensorBoard, which is not installed: pip install 'fixfirst[tensorboard]'"
        )
    if config.game.backend == "cyborg":
        make_world(config.game, 1).close()


def _run(
    config: TrainConfig,
    folder: Path,
    start: Weights | None,
    workers: int,
    tested: int,
    quiet: bool,
    callback: Callback | None = None,
) -> TrainRun:
    """Train and evaluate, or raise Interrupted."""
    progress, played = live.ProgressLine(config.total_episodes, quiet=quiet), 0
    again = f"; go on with: {errors.command('resume', folder)}"

    def show(message: str | rows.UpdateRow) -> None:
        nonlocal played
        if isinstance(message, str):
            return progress.say(message)
        played = message.episodes
        progress.point(message.env_reward)
        if progress.due():
            progress.show(played, _in_words(message))
        if callback is not None:
            values = {"return": message.env_reward, **message.plotted()}
            interrupt.requested |= bool(callback(Reached(folder, played, config.total_episodes, 0, values)))

    def stop(done: int) -> None:
        """Stop the test if that is asked for: on CybORG it takes minutes, and nothing of it is worth waiting for."""
        if interrupt:
            raise errors.Interrupted(f"interrupted in the test{again}")
        if progress.due():
            progress.show(played, f"{done:,} of {tested:,} test episodes")

    board = RunFiles(folder).tensorboard if config.tensorboard else None
    begin = Begin(start, num_workers=workers or None)
    with driver.working(folder, progress) as interrupt:
        if not (RunFiles(folder).policy_json.exists() and RunFiles(folder).result.exists()):  # else killed after its end
            with train_in(folder, config, show, interrupt, begin, tensorboard=board, workers=workers) as training:
                if training is None:
                    raise errors.Interrupted(f"interrupted{f' after {played:,} episodes' if played else ''}{again}")
                evaluation = training.evaluate("test", tested, on_pass=stop)
                facts = {"accepted": training.passes_gate(), "episodes": training.episodes}
                driver.conclude(folder, {"evaluation": asdict(evaluation), **facts})
        return load_training(folder)


def _finished_before(name: str, config: TrainConfig | SearchConfig, quiet: bool) -> Path | None:
    """Return a finished run that has the very result of this config, and say so; None if there is none, or none may count.

    Code and policies of users may change under the same name, and CybORG is not ours: with these, everything is run again.
    """
    game = config.training.game if isinstance(config, SearchConfig) else config.game
    if (
        game.backend == "cyborg"
        or not all(mixture.is_built_in for mixture in game.mixtures)
        or getattr(config, "from_policy", None) is not None
    ):
        return None
    folder = manifest.finished_like(name, config.model_dump(mode="json"))
    if folder is not None and not quiet:
        errors.note(f"{folder} has this answer; --again to repeat")
    return folder


def _in_words(update: rows.UpdateRow) -> str:
    """Return an update in one line."""
    parts = [f"return {update.env_reward:.1f}"]
    if update.compliance is not None:
        parts.append(f"compliance {100 * update.compliance:.1f} %")
    if update.contested_share is not None:
        parts.append(f"contested {100 * update.contested_share:.0f} %")
    return ", ".join([*parts, f"KL {update.approx_kl:.4f}"])


_MOST_PAGES = 12  # searches of a study that have a page each; of more, `fixfirst report` writes those that are wanted


@overload
def search(*, seeds: Literal[1] = 1, **settings: Unpack["typed.SearchSettings"]) -> SearchRun: ...
@overload
def search(*, seeds: int, **settings: Unpack["typed.SearchSettings"]) -> SearchRun | StudyRun: ...
@arguments.checked()
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
    file, grouping = (None if path is None else arguments.check_path("config, units", path) for path in (config, units))
    configs = search_configs(settings, file, grouping, seeds)
    folder = layout.unused_folder(study.study_name(configs)) if out is None else arguments.check_path("out", out)
    execution = Execution(workers, executor, ray_address, cpus_per_trial)
    if out is None and len(configs) == 1 and not again:
        before = _finished_before(study.study_name(configs), configs[0], quiet)
        if before is not None:
            return SearchRun(study.open_study(before).searches[0])

    def begin() -> study.Study:
        begun = study.begin_study(configs, folder)
        if not quiet:
            errors.note(f"writing to {folder}")
        return begun

    return _run_study(configs, begin, execution, report=report, quiet=quiet, callback=callback)


def _run_study(
    configs: Sequence[SearchConfig],
    make_study: Callable[[], study.Study],
    execution: Execution,
    *,
    report: bool,
    quiet: bool,
    callback: Callback | None = None,
) -> SearchRun | StudyRun:
    """Run the searches. What they need comes before the folder: without it there is nothing to begin."""
    for each in {config.training.game: config.training for config in configs}.values():
        _check_trainable(each)
    compile_kernel()
    with jobs.interrupts() as interrupt, closing(_make_scheduler(execution, configs, interrupt, quiet=quiet)) as scheduler:
        begun = make_study()

        def follow(run: Path, used: int, number: int, update: rows.UpdateRow) -> None:
            if callback is not None:
                reached = Reached(run, used, view.total, number, {"return": update.env_reward})
                interrupt.requested |= bool(callback(reached))

        with live.SearchView(several=len(begun.searches) > 1, quiet=quiet, follow=follow) as view:
            to_run = begun.unfinished if len(begun.searches) > 1 else begun.searches
            finished = study.run_searches(to_run, scheduler, view, interrupt, begun.folder)
    if not finished:
        raise errors.Interrupted(f"interrupted; go on with: {errors.command('resume', begun.folder)}")
    runs = tuple(SearchRun(search) for search in begun.searches)
    result = runs[0] if len(runs) == 1 else StudyRun(begun.folder, runs)
    if report:
        _write_pages(result, quiet)
    return result


def _make_scheduler(
    execution: Execution, configs: Sequence[SearchConfig], interrupt: object, *, quiet: bool
) -> jobs.Scheduler:
    """Make the scheduler that was asked for, or the one that fits the machine and the jobs that searches have at a time."""
    # Worlds of other backends have processes of their own: unless asked for, there are no workers beside them.
    plain = all(config.training.game.backend == "simulator" for config in configs)
    if execution.executor == "ray":
        from fixfirst.adapters import ray  # an extra

        cpus, address = execution.cpus_per_trial or (1 if plain else 0), execution.ray_address or "local"
        return ray.join_cluster(address, workers=execution.workers, cpus_per_job=cpus, interrupt=interrupt, quiet=quiet)
    at_a_time = sum(config.round_size if config.separate else config.trainings for config in configs)
    workers = execution.workers or (min(jobs.available_cores(), at_a_time) if plain else 1)
    return jobs.local_scheduler(workers, interrupt, own_processes=execution.executor == "process")


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


@arguments.checked()
def resume(
    run: str | Path,
    *,
    workers: int = 0,
    executor: Literal["inline", "process", "ray"] | None = None,
    ray_address: str | None = None,
    cpus_per_trial: int | None = None,
    cyborg: str | Path | None = None,
    report: bool = True,
    quiet: bool = False,
) -> "AnyRun":
    """Go on with an interrupted run; it ends with the same files as one that was never interrupted.

    run: a run directory, or the folder of a study: all of its searches that are not finished. cyborg: the checkout, for a
    run that plays in CybORG. The rest as in `ff.search`. Where versions or the machine are others than when the run was
    begun, stderr says so: the bytes may then differ.

    For example:

        run = ff.resume("runs/first", quiet=True)  # as `ff.search` or `ff.train` would have ended
    """
    folder = arguments.check_path("run", run)
    document = manifest.read_manifest(folder)
    kind, execution = document["kind"], Execution(workers, executor, ray_address, cpus_per_trial)
    if changes := manifest.changed_since(document):
        errors.note(f"{folder} was begun elsewhere, so numbers may differ: {'; '.join(changes)}")
    checkout = None if cyborg is None else str(cyborg)
    if kind == layout.Kind.TRAIN:
        config, options = TrainConfig.resolve({"cyborg": checkout}, manifest.read_config(folder)), document["options"]
        _check_trainable(config)
        machine_code.announce_compilation()
        start, tested = _starting_weights(config, options["from_policy"]), options.get("test_episodes", TEST_EPISODES)
        return _run(config, folder, start, execution.workers, tested, quiet)
    if kind == layout.Kind.LEAGUE:
        from fixfirst.api import league  # only leagues need it

        return league.resume_league(folder, quiet=quiet)
    begun = study.open_study(folder, checkout)
    configs = [search.config for search in begun.searches]
    return _run_study(configs, lambda: begun, execution, report=report, quiet=quiet)


def compile_kernel() -> None:
    """Have the machine code on disk before several processes want it at the same time."""
    world = World(Game(), 1)
    world.reset(0)
    world.step(np.zeros(1, np.int64))


def load_run(path: str | Path) -> "AnyRun":
    """Open a run directory, or the folder of a study, as an object. It may be running, finished or interrupted.

    For example:

        run = ff.load_run("runs/first")  # a SearchRun, TrainRun, StudyRun or LeagueRun
    """
    folder = arguments.check_path("a run", path)
    kind = manifest.read_manifest(folder)["kind"]
    if kind == layout.Kind.TRAIN:
        return load_training(folder)
    if kind == layout.Kind.LEAGUE:
        from fixfirst.api import league  # nobody else waits for it

        return league.load_league(folder)
    searches = tuple(SearchRun(search) for search in study.open_study(folder).searches)
    return StudyRun(folder, searches) if kind == layout.Kind.STUDY else searches[0]
