"""What every search has, and who watches it.

A search is a plan of jobs (`base/plans.py`), and knows nothing but its config and its ledger: after any interruption it is
read back from there, goes on, and ends the same, with any number of workers.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fixfirst.base import plans
from fixfirst.runs import sessions
from fixfirst.runs.rows import Trial
from fixfirst.searcher.jobs import Message
from fixfirst.searcher.strategy import Choice
from fixfirst.settings.search import SearchConfig

if TYPE_CHECKING:
    from fixfirst.searcher.published import PublishedSearch
    from fixfirst.searcher.shared import SharedSearch


class Search(Protocol):
    """A search in its folder."""

    config: SearchConfig
    folder: Path

    @property
    def used(self) -> int:
        """Training episodes so far, of all trainings."""

    @property
    def is_done(self) -> bool:
        """Is there nothing left to do?"""

    @property
    def in_words(self) -> str:
        """What it ended with, in a few words; empty before."""

    def reload(self) -> None:
        """Go to the last complete round of the ledger: before the folder was locked, another process may have gone on."""

    def plan(self, view: "View", session: sessions.Session) -> plans.Plan[None]:
        """Return what is left to do."""


class View(Protocol):
    """Shows searches to the user."""

    def begin(self, search: Search) -> None:
        """A search is to be run, or goes on."""

    def end(self, search: Search) -> None:
        """It has ended."""

    def progress(self, search: Search, number: int, message: Message) -> None:
        """A job says how far it is, or what went wrong."""

    def round_begins(self, search: "SharedSearch", number: int, choices: Sequence[Choice]) -> None:
        """A round begins, in which all trainings are given these orders."""

    def measuring(self, search: Search, what: str, count: int) -> None:
        """Something begins after the search's own training, of which there is so much to do."""

    def chosen(self, search: "PublishedSearch", number: int, choice: Choice) -> None:
        """A trial begins: the training of one order."""

    def recorded(self, search: "PublishedSearch", trial: Trial) -> None:
        """A trial is done."""


def gather(tasks: Mapping[int, plans.Task]) -> plans.Plan[dict[int, Any]]:
    """For a plan that waits until all of some jobs have ended: `results = yield from gather(tasks)`."""
    results: dict[int, Any] = {}
    while len(results) < len(tasks):
        key, result = yield {} if results else tasks
        results[key] = result
    return results
