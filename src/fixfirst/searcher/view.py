"""What searches tell whoever watches them."""

from pathlib import Path
from typing import Protocol

from fixfirst.runs.rows import Trial
from fixfirst.searcher.jobs import Message
from fixfirst.searcher.strategy import Choice
from fixfirst.settings.search import SearchConfig


class Watched(Protocol):
    """What a watcher may know of a search, of either kind."""

    folder: Path
    config: SearchConfig

    @property
    def used(self) -> int:
        """Training episodes so far."""
        ...

    @property
    def rule(self) -> str:
        """What it has found; empty while there is no answer, and of the published kind."""
        ...


class View(Protocol):
    """Shows searches, one or several."""

    def begin(self, search: Watched) -> None:
        """A search is to be run, or goes on."""

    def end(self, search: Watched) -> None:
        """A search has ended."""

    def chosen(self, search: Watched, number: int, choice: Choice) -> None:
        """A trial begins: the training of one order."""

    def recorded(self, search: Watched, trial: Trial) -> None:
        """A trial is done."""

    def round_begins(self, search: Watched, number: int, orders: int, best: tuple[str, float] | None) -> None:
        """A round begins, in which all trainings are given some orders. best: the best order so far, and what it earns."""

    def measuring(self, search: Watched, what: str, count: int) -> None:
        """Something begins after the search's own training, of which there is so much to do."""

    def progress(self, search: Watched, number: int, message: Message) -> None:
        """A training complains, or says how far it is."""
