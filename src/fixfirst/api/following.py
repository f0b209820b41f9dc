"""How far a run is, for a callback of `ff.search` and `ff.train` that follows it and may stop it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path


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


Callback = Callable[[Progress], object]  # what it returns stops the run if it is true
