"""One training of a defender in its folder, with its logs; and whether there is what it needs."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fixfirst.base import errors
from fixfirst.learner.driver import Driver
from fixfirst.learner.training import Training
from fixfirst.play.rollout import make_world
from fixfirst.policy.network import Weights
from fixfirst.runs import rows
from fixfirst.runs.layout import RunFiles
from fixfirst.runs.tensorboard import TensorBoard
from fixfirst.settings.training import TrainConfig

Message = str | rows.UpdateRow  # what went wrong and was dealt with, or an update: its `episodes` are all that were played
Tell = Callable[[Message], None]


@dataclass(frozen=True)
class Begin:
    """How a training begins; the same for all that compete in a tournament."""

    start: Weights | None = None  # else from scratch
    number: int = 0  # of its trial, in the logs
    log: bool = True  # write a row per update
    log_episodes: bool = False  # and a row per episode
    num_workers: int | None = None  # processes of CybORG; nothing depends on it


def train_on(
    training: Training, folder: Path, begin: Begin, tell: Tell, interrupt: object, tensorboard: Path | None = None
) -> bool:
    """Train from the folder's newest good checkpoint on; return False if interrupted, as opposed to trained to the end."""
    with Driver(folder, training, training.identity, tell, training.config.checkpoint_every) as run:
        log = episode_log = None
        if begin.log:
            log = run.open_log(RunFiles.training_log, rows.UpdateRow, lambda row: row.update, training.updates)
        if begin.log_episodes:
            episode_log = run.open_log(RunFiles.episode_log, rows.EpisodeRow, lambda row: row.update, training.updates)
        with closing(TensorBoard(tensorboard, training.episodes + 1)) as board:
            for update in run.steps(interrupt):
                if log is not None:
                    log.write(update.row)
                if episode_log is not None:
                    for episode in update.episode_rows():
                        episode_log.write(episode)
                board.add(update.row)
                tell(update.row)
        return not run.interrupted


def check_trainable(config: TrainConfig) -> None:
    """Raise what would keep a training from beginning: an extra or CybORG is not there, or is not what the config says."""
    if config.tensorboard and find_spec("tensorboard") is None:
        raise errors.ConfigError(
            "--tensorboard needs TensorBoard, which is not installed: pip install 'fixfirst[tensorboard]'"
        )
    if config.game.backend == "cyborg":
        make_world(config.game, 1).close()
