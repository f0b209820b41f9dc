"""The verbs: what a person asks for, from Python (`import fixfirst as ff`) or from the command line, a function each.

Here the rooms meet: a search ends with a report, an evaluation finds its policy in a run. The commands are thin shells over
these functions.
"""

from typing import TYPE_CHECKING

from fixfirst.faces import offers

if TYPE_CHECKING:
    from fixfirst.api.blue_agent import BlueAgent
    from fixfirst.api.comparing import compare
    from fixfirst.api.evaluating import carried_order, evaluate, knows_orders, leaderboard
    from fixfirst.api.exporting import export
    from fixfirst.api.playing import rollout
    from fixfirst.api.reporting import report
    from fixfirst.api.resuming import resume
    from fixfirst.api.run_objects import SearchRun, StudyRun, TrainRun, load_run
    from fixfirst.api.searching import search
    from fixfirst.api.training import train
    from fixfirst.api.watching import page_path, replay, watch, write_replays
else:
    __getattr__, __dir__ = offers(__name__)
