"""`fixfirst train`: one training with its run directory, logs and final evaluation, and going on after an interruption."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.errors import ConfigError, RunDirError
from fixfirst.learner.checkpoint import POLICY_JSON, config_of, load_policy, versions
from fixfirst.learner.config import TrainConfig
from fixfirst.learner.taught import Trained, evaluate_training, interrupts, run_training
from fixfirst.learner.training import Training, UpdateRow
from fixfirst.play.evaluation import Evaluation
from fixfirst.reporter.screen import Progress
from fixfirst.runs.files import write_json
from fixfirst.runs.run_dir import (
    CONFIG,
    PLOTTED,
    RESULT,
    TENSORBOARD,
    TRAINING_COLUMNS,
    TRAINING_LOG,
    CsvLog,
    Runtime,
    create_run,
    keep_rows,
    locked,
    read_manifest,
    read_toml,
)

TEST_EPISODES = 1_000
KIND = "train"


@dataclass(frozen=True)
class TrainResult:
    """What came of a run: its folder, and the evaluation unless it was interrupted."""

    folder: Path
    evaluation: Evaluation | None
    accepted: bool


def start(
    config: TrainConfig, folder: Path, *, from_policy: Path | None = None, tensorboard: bool = True, quiet: bool = False
) -> TrainResult:
    """Train in a new run directory."""
    inherited = starting_weights(config, from_policy)
    options = {"tensorboard": tensorboard, "from_policy": None if from_policy is None else str(from_policy.resolve())}
    create_run(folder, KIND, config.model_dump(mode="json"), versions(), options)
    return _run(config, folder, inherited, tensorboard, quiet)


def resume(folder: Path, *, quiet: bool = False) -> TrainResult:
    """Go on with an interrupted run; it ends with the same bytes as one that was not interrupted."""
    manifest = read_manifest(folder)
    if manifest.get("kind") != KIND:
        raise RunDirError(f"{folder} is not a run of `fixfirst train`")
    config = config_of(read_toml(folder / CONFIG))
    if (folder / POLICY_JSON).exists() and (folder / RESULT).exists():
        raise RunDirError(f"{folder} is finished; see {folder / RESULT}")
    options = manifest.get("options") or {}
    from_policy = options.get("from_policy")
    inherited = starting_weights(config, None if from_policy is None else Path(from_policy))
    return _run(config, folder, inherited, options.get("tensorboard", True), quiet)


def starting_weights(config: TrainConfig, from_policy: Path | None) -> dict[str, np.ndarray] | None:
    """The weights a training inherits, if any: of a policy with the same unit types, or of one that knows no order."""
    if from_policy is None:
        return None
    policy = load_policy(from_policy)
    if policy.scheme not in (None, config.scheme):
        wanted = "no order" if config.scheme is None else f"the unit types {', '.join(config.scheme.names)}"
        known = ", ".join(policy.scheme.names)
        raise ConfigError(f"{from_policy}: knows the unit types {known}, the training needs a policy that knows {wanted}")
    return policy.weights


def _run(
    config: TrainConfig, folder: Path, inherited: dict[str, np.ndarray] | None, tensorboard: bool, quiet: bool
) -> TrainResult:
    progress = Progress(config.total_episodes, quiet=quiet)
    log: list[Log] = []

    def on_restore(training: Training, complaints: list[str]) -> None:
        for complaint in complaints:
            progress.say(complaint)
        if complaints:
            progress.say(
                f"going on from update {training.updates}, the newest good checkpoint"
                if training.updates
                else "starting over"
            )
        log.append(Log(folder, training, tensorboard))

    def on_update(row: UpdateRow) -> None:
        log[0].write(row)
        progress.point(row.env_reward)
        if progress.due():
            progress.show(row.episodes, describe(row))

    try:
        with locked(folder), Runtime(folder) as runtime:
            try:
                with interrupts() as interrupt, progress:
                    trained = run_training(
                        config,
                        folder,
                        start=inherited,
                        on_restore=on_restore,
                        on_update=on_update,
                        before_checkpoint=lambda: log[0].sync(),
                        interrupt=interrupt,
                    )
            finally:
                for open_log in log:
                    open_log.close()
            result = _finish(folder, trained, progress)
            runtime.finished = not trained.interrupted
            return result
    except OSError as e:
        raise RunDirError(f"{folder}: cannot be written ({e.strerror}); free the way, then: fixfirst resume {folder}") from e


def _finish(folder: Path, trained: Trained, progress: Progress) -> TrainResult:
    if trained.interrupted:
        progress.say(f"interrupted after {trained.training.episodes:,} episodes; go on with: fixfirst resume {folder}")
        return TrainResult(folder, None, False)
    evaluation = evaluate_training(trained.training, "test", TEST_EPISODES)
    trained.training.close()
    shown = evaluation.compliance
    accepted = shown is not None and trained.training.config.gate.accepts(shown)
    write_json(
        folder / RESULT, {"evaluation": asdict(evaluation), "accepted": accepted, "episodes": trained.training.episodes}
    )
    return TrainResult(folder, evaluation, accepted)


def describe(row: UpdateRow) -> str:
    """An update in one line."""
    parts = [f"return {row.env_reward:.1f}"]
    if row.compliance is not None:
        parts.append(f"compliance {100 * row.compliance:.1f} %")
    if row.contested_share is not None:
        parts.append(f"contested {100 * row.contested_share:.0f} %")
    return ", ".join([*parts, f"KL {row.stats.approx_kl:.4f}"])


class Log:
    """training_log.csv and TensorBoard of one training, cut back to the update it goes on from."""

    def __init__(self, folder: Path, training: Training, tensorboard: bool):
        self._training = training
        self._names = (0, str(training.workflows[0]) if len(training.workflows) == 1 else training.config.workflow)
        keep_rows(folder / TRAINING_LOG, TRAINING_COLUMNS, lambda row: int(row["Update"]) <= training.updates)
        self._csv = CsvLog(folder / TRAINING_LOG, TRAINING_COLUMNS)
        self._add: Callable[[str, float, int], Any] | None = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter  # a slow import that not everybody needs

            self._writer = SummaryWriter(str(folder / TENSORBOARD), purge_step=training.episodes + 1)
            self._add = self._writer.add_scalar

    def write(self, row: UpdateRow) -> None:
        values = training_values(row, *self._names, total_episodes=row.episodes)
        self._csv.write(values)
        for column, value in zip(TRAINING_COLUMNS, values, strict=True):
            if self._add is not None and column in PLOTTED and value is not None:
                self._add(PLOTTED[column], value, row.episodes)

    def sync(self) -> None:
        self._csv.sync()

    def close(self) -> None:
        self._csv.close()
        if self._add is not None:
            self._writer.close()


def training_values(row: UpdateRow, workflow_id: int, workflow: str, total_episodes: int) -> list[Any]:
    """The values of TRAINING_COLUMNS."""
    stats = row.stats
    numbers = (row.env_reward, row.alignment, row.total_reward, row.compliance, row.repairs, row.collect_s, row.update_s)
    more = (row.contested_share, row.multiplier, stats.approx_kl, stats.entropy, stats.policy_loss, stats.value_loss)
    rounded = [None if x is None or x != x else round(x, 6) for x in (*numbers, *more, stats.clip_fraction)]
    return [workflow_id, workflow, row.update, row.episodes, total_episodes, *rounded, stats.rows]
