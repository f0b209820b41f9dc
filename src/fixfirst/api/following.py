"""What is said of a run before and while it goes on: where it is, whether it was run before, how far it is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fixfirst.base import errors
from fixfirst.game.state import RedAgent
from fixfirst.learner.config import TrainConfig
from fixfirst.runs import manifest
from fixfirst.searcher.config import SearchConfig


@dataclass(frozen=True)
class Progress:
    """How far a run is, after an update of a training.

    For example:

        def follow(progress):
            print(progress.training, progress.episodes, progress.values["return"])
            return progress.episodes >= 1_000  # True: stop, as Ctrl-C would

        try:
            ff.train(workflow="none", total_episodes=2_000, out="runs/followed", quiet=True, callback=follow)
        except ff.Interrupted:
            ff.resume("runs/followed", quiet=True)
    """

    folder: Path  # of the run
    episodes: int  # trained so far, by all trainings of the run
    total_episodes: int
    training: int  # which of them this is about; 0 if there is only one
    values: Mapping[str, float]  # "return" of the update's episodes; of `ff.train`, all that training_log.csv has


def finished_before(name: str, config: TrainConfig | SearchConfig, quiet: bool) -> Path | None:
    """Return a finished run that has the very result of this config, and say so; None if there is none, or none may count.

    Code and policies of users may change under the same name, and CybORG is not ours: with these, everything is run again.
    """
    game = config.training.game if isinstance(config, SearchConfig) else config.game
    named = [game.red_agent] if isinstance(game.red_agent, str) else game.red_agent
    reds = {part.partition(":")[0].strip().upper() for text in named for part in text.split(",")}
    if game.backend == "cyborg" or not reds <= set(RedAgent.__members__) or getattr(config, "from_policy", None) is not None:
        return None
    folder = manifest.finished_like(name, config.model_dump(mode="json"))
    if folder is not None and not quiet:
        errors.note(f"{folder} has this answer; --again to repeat")
    return folder


def say_where(folder: Path, quiet: bool) -> None:
    """Say where a run is written, first of all."""
    if not quiet:
        errors.note(f"writing to {folder}")


Callback = Callable[[Progress], object]  # what it returns stops the run if it is true
