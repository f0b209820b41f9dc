"""Telling: on the terminal while something runs, and afterwards as tables, pages, Markdown and replays.

Works from files and plain values alone; importing it brings neither PyTorch nor matplotlib.
"""

from typing import TYPE_CHECKING

from fixfirst.faces import offers

if TYPE_CHECKING:
    from fixfirst.reporter.animation import write_gif
    from fixfirst.reporter.answer_view import AnswerView
    from fixfirst.reporter.build import Format, WrittenReport, write_report
    from fixfirst.reporter.evaluations import (
        comparison_text,
        evaluation_table,
        side_by_side,
        standing_document,
        standing_table,
        write_csv,
    )
    from fixfirst.reporter.live import SearchView
    from fixfirst.reporter.overview import advice, runs_table
    from fixfirst.reporter.page import open_page
    from fixfirst.reporter.replay import episode_line, headline, replay_text, write_replay
    from fixfirst.reporter.screen import Progress, fitted, results
    from fixfirst.reporter.search_results import print_searches, searches_document
else:
    __getattr__, __dir__ = offers(__name__)
