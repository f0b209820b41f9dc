"""`ff.train`: one training with its run directory, logs and final evaluation; and going on with one."""

from dataclasses import asdict
from pathlib import Path
from typing import Unpack

from fixfirst.api.following import Callback, Progress as Reached, finished_before, say_where
from fixfirst.api.run_objects import TrainRun, load_training
from fixfirst.base import checks, compile as machine_code, errors, jobs, typed
from fixfirst.learner import checkpoint, training_run
from fixfirst.learner.config import TrainConfig
from fixfirst.learner.settings import gather_settings, resolve
from fixfirst.learner.tournament import train_in
from fixfirst.learner.training import check_trainable
from fixfirst.policy import file as policy_file
from fixfirst.policy.network import Weights
from fixfirst.reporter import live
from fixfirst.runs import layout, manifest, rows

TEST_EPISODES = 1_000


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
    **settings: Unpack[typed.TrainSettings],
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
    file, grouping = (None if path is None else checks.check_path("config, units", path) for path in (config, units))
    resolved = resolve(TrainConfig, *gather_settings(TrainConfig, settings, file, grouping))
    name, quiet = f"train-{resolved.game.red_agent}-{resolved.seed}", checks.check_bool("quiet", quiet)
    folder = layout.unused_folder(name) if out is None else checks.check_path("out", out)
    tested = checks.check_int("test_episodes", test_episodes, 2)
    usual = from_policy is None and tested == TEST_EPISODES
    if out is None and usual and not checks.check_bool("again", again):
        before = finished_before(name, resolved, quiet)
        if before is not None:
            return load_training(before)
    processes = checks.check_int("workers", workers, 0)
    check_trainable(resolved)
    machine_code.announce_compilation()
    start = _starting_weights(resolved, from_policy)
    parent = None if from_policy is None else str(Path(from_policy).resolve())
    options = {"from_policy": parent} | ({} if tested == TEST_EPISODES else {"test_episodes": tested})
    manifest.create_run(folder, layout.Kind.TRAIN, resolved.model_dump(mode="json"), resolved.seed, options)
    say_where(folder, quiet)
    return _run(resolved, folder, start, processes, tested, quiet, callback)


def resume_training(folder: Path, cyborg: str | None = None, *, workers: int = 0, quiet: bool = False) -> TrainRun:
    """Go on with an interrupted training; it ends with the same files as one that was not interrupted."""
    parent, tested = _options(folder)
    config = resolve(TrainConfig, {"cyborg": cyborg}, manifest.read_config(folder))
    check_trainable(config)
    machine_code.announce_compilation()
    return _run(config, folder, _starting_weights(config, parent), workers, tested, quiet)


def _options(folder: Path) -> tuple[str | None, int]:
    """The policy that a training was started from, and the episodes it is judged on."""
    options = layout.read_manifest(folder).get("options")
    options = options if isinstance(options, dict) else {}
    parent, tested = options.get("from_policy"), options.get("test_episodes", TEST_EPISODES)
    if not isinstance(parent, str | None) or type(tested) is not int or not 2 <= tested <= checks.MOST:
        raise errors.RunDirError(f"{folder / layout.MANIFEST}: damaged, its options make no sense")
    return parent, tested


def _starting_weights(config: TrainConfig, from_policy: str | Path | None) -> Weights | None:
    if from_policy is None:
        return None
    return policy_file.load_parent(checks.check_path("from_policy", from_policy), config.spec).weights


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
    board = folder / layout.TENSORBOARD if config.tensorboard else None
    with errors.writing(folder, f"; mend that, then: {errors.command('resume', folder)}"), manifest.locked(folder):
        if (folder / layout.POLICY_JSON).exists() and (folder / layout.RESULT).exists():
            return _close(folder)
        with (
            manifest.Session(folder) as session,
            jobs.interrupts() as interrupt,
            live.ProgressLine(config.total_episodes, quiet=quiet) as progress,
        ):
            played = 0

            def show(message: str | rows.UpdateRow) -> None:
                nonlocal played
                if isinstance(message, str):
                    return progress.say(message)
                played = message.episodes
                progress.point(message.env_reward)
                if progress.due():
                    progress.show(played, _in_words(message))
                if callback is not None:
                    values = {"return": message.env_reward, **dict(message.plotted())}
                    interrupt.requested |= bool(callback(Reached(folder, played, config.total_episodes, 0, values)))

            begin = training_run.Begin(start, num_workers=workers or None)
            with train_in(folder, config, show, interrupt, begin, tensorboard=board, workers=workers) as trained:
                if trained is None:
                    after = f" after {played:,} episodes" if played else ""
                    raise errors.Interrupted(f"interrupted{after}; go on with: {errors.command('resume', folder)}")

                def stop(done: int) -> None:
                    """On CybORG the test takes minutes: nothing of it is worth waiting for."""
                    if interrupt:
                        raise errors.Interrupted(f"interrupted in the test; go on with: {errors.command('resume', folder)}")
                    if progress.due():
                        progress.show(played, f"{done:,} of {tested:,} test episodes")

                shown = trained.training.evaluate("test", tested, on_pass=stop)
                facts = {"accepted": trained.accepted, "episodes": trained.training.episodes}
                training_run.conclude(folder, {"evaluation": asdict(shown), **facts})
                session.finished = True
                return TrainRun(folder, config, shown, trained.accepted)


def _close(folder: Path) -> TrainRun:
    """A training that has its result: a kill may have come before all was cleared and noted."""
    if manifest.is_finished(folder):
        raise errors.RunDirError(f"{folder} is finished; see {folder / layout.RESULT}")
    trained = load_training(folder)  # refused if the result is not that of this run: then nothing is noted
    with manifest.Session(folder) as session:
        checkpoint.delete_checkpoints(folder)
        session.finished = True
    return trained


def _in_words(update: rows.UpdateRow) -> str:
    """An update in one line."""
    parts = [f"return {update.env_reward:.1f}"]
    if update.compliance is not None:
        parts.append(f"compliance {100 * update.compliance:.1f} %")
    if update.contested_share is not None:
        parts.append(f"contested {100 * update.contested_share:.0f} %")
    return ", ".join([*parts, f"KL {update.approx_kl:.4f}"])
