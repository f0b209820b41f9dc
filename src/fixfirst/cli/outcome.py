"""What a finished run prints: its result, and what to do next."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from fixfirst.base import errors
from fixfirst.cli.app import print_json
from fixfirst.runs import layout

if TYPE_CHECKING:
    from fixfirst.api.run_objects import LeagueRun, SearchRun, StudyRun, TrainRun


def tell(run: "SearchRun | StudyRun | TrainRun | LeagueRun", report: bool, as_json: bool) -> None:
    """Print a run. report: has it a page, which is named?"""
    from fixfirst.api import run_objects  # --help need not wait for it
    from fixfirst.reporter import results

    if isinstance(run, run_objects.TrainRun):
        _tell_training(run, as_json)
    elif isinstance(run, run_objects.LeagueRun):
        _tell_league(run, as_json)
    else:
        searches = [run.search] if isinstance(run, run_objects.SearchRun) else [member.search for member in run.searches]
        page = run.folder / f"{layout.REPORT}.html"
        named = page if report and page.exists() else None
        if as_json:
            print_json(results.searches_document(searches, run.folder, named))
        else:
            results.print_searches(searches, run.folder, named)


def _tell_training(run: "TrainRun", as_json: bool) -> None:
    from fixfirst.reporter import results
    from fixfirst.stats.evaluation import Evaluations

    assert run.evaluation is not None  # it is finished
    if as_json:
        print_json({"run": str(run.folder), "accepted": run.accepted, "evaluation": asdict(run.evaluation)})
        return
    rows = Evaluations([run.evaluation])
    rows.world = run.config.game.scenario.in_words()
    results.print_evaluations(rows)
    if run.evaluation.compliance is not None:
        print("gate: " + ("passed" if run.accepted else "not passed"))
    print(f"policy: {run.folder}\nnext:   {errors.command('evaluate', run.folder)}")


def _tell_league(run: "LeagueRun", as_json: bool) -> None:
    if as_json:
        print_json({"run": str(run.folder), "rounds": [standing.as_dict() for standing in run.rounds]})
        return
    for standing in run.rounds:
        print(standing.in_words())
    page, attack = errors.command("report", run.folder), errors.command("evaluate", run.folder, "--exploit")
    print(f"policy: {run.folder}\nnext:   {page}, {attack}")
