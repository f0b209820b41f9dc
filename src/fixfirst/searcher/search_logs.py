"""The files that only the driver of a search writes: choices, logs, ledger, TensorBoard."""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from fixfirst.base.errors import RunDirError
from fixfirst.runs.events import TensorBoard
from fixfirst.runs.layout import CHOICES, EPISODE_LOG, LEDGER, TENSORBOARD, TRAINING_LOG, trial_folder
from fixfirst.runs.logs import CsvLog, keep_rows, read_rows
from fixfirst.runs.rows import ChoiceRow, EpisodeRow, Row, Trial, UpdateRow
from fixfirst.searcher.config import SearchConfig
from fixfirst.searcher.strategy import Choice

R = TypeVar("R", bound=Row)


class SearchLogs:
    """Opened for a search with `known` trials that has used so many episodes: what goes beyond them is cut off."""

    def __init__(self, folder: Path, config: SearchConfig, known: int, used: int):
        self._folder = folder
        trials = keep_rows(folder / LEDGER, Trial, lambda row: row.id < known)
        choices = keep_rows(folder / CHOICES, ChoiceRow, lambda row: row.iteration < known)
        updates = keep_rows(folder / TRAINING_LOG, UpdateRow, lambda row: row.trial < known)
        keep_rows(folder / EPISODE_LOG, EpisodeRow, lambda row: row.trial < known)
        _check_whole(folder / CHOICES, (row.iteration for row in choices), dict.fromkeys(range(known), 1))
        _check_whole(folder / TRAINING_LOG, (row.trial for row in updates), {row.id: row.updates or 0 for row in trials})
        self._open = ExitStack()  # closes all of them, also when one cannot be flushed
        self._choices = self._log(CHOICES, ChoiceRow)
        self._training = self._log(TRAINING_LOG, UpdateRow)
        self._episodes = self._log(EPISODE_LOG, EpisodeRow) if config.log_episodes else None
        self._ledger = self._log(LEDGER, Trial)
        self._board = TensorBoard(folder / TENSORBOARD if config.tensorboard else None, used + 1)
        self._open.callback(self._board.close)

    def _log(self, name: str, kind: type[R]) -> CsvLog[R]:
        log = CsvLog(self._folder / name, kind)
        self._open.callback(log.close)
        return log

    def choice(self, number: int, first: int, choice: Choice) -> None:
        """A row that lets a reader redo the choice from the ledger's rows before `first`."""
        self._choices.write(choice_row(number, first, choice))

    def sync_choices(self) -> None:
        self._choices.sync()

    def record(self, trial: Trial, used_before: int) -> None:
        """Logs first, the ledger last: a trial in the ledger is complete."""
        own = trial_folder(self._folder, trial.id)
        for row in read_rows(own / TRAINING_LOG, UpdateRow):
            counted = replace(row, sampled=used_before + row.episodes)
            self._training.write(counted)
            self._board.add(counted)
        self._training.sync()
        if self._episodes is not None:
            for episode in read_rows(own / EPISODE_LOG, EpisodeRow):
                self._episodes.write(episode)
            self._episodes.sync()
        self._ledger.write(trial)
        self._ledger.sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()


def choice_row(number: int, first: int, choice: Choice) -> ChoiceRow:
    """A choice with what the strategy believed. number: of the trial; first: of its round."""
    seen: dict[str, Any] = {"workflow": str(choice.workflow)}
    for place, candidate in enumerate(choice.top, start=1):
        believed = {name: getattr(candidate, name) for name in ("ucb", "mean", "std")}
        seen |= believed if place == 1 else {}
        of_place: dict[str, Any] = {"workflow": str(candidate.workflow), **believed}
        seen |= {f"top{place}_{name}": value for name, value in of_place.items()}
    return ChoiceRow(iteration=number, round=first, how=choice.how, beta=choice.beta, **seen)


def _check_whole(path: Path, numbers: Iterable[int], expected: Mapping[int, int]) -> None:
    """A log is written before the ledger: of every trial in there it has all rows, unless somebody cut it."""
    found = Counter(numbers)
    if cut := [number for number, count in expected.items() if found[number] != count]:
        raise RunDirError(f"{path}: rows of trial {cut[0]} are missing; put them back, or begin a new run")
