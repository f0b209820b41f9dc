"""`fixfirst watch`: a defender at work; `fixfirst report`: a run, or several, as one page."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Annotated

from cyclopts import Parameter

from fixfirst.base import errors
from fixfirst.cli.app import Json, Switch, Whole, print_json, say
from fixfirst.cli.flags import GameFlags, GameSettings, JudgingFlags, JudgingSettings, OrderFlag, given
from fixfirst.cli.own_agents import named_agent
from fixfirst.reporter import report
from fixfirst.reporter.page import open_page
from fixfirst.runs.layout import RunFiles

FOLLOW_S = 5.0


@dataclass(frozen=True)
class Played:
    """What is played, by the names that `ff.watch` has for it."""

    workflow: OrderFlag = None
    then: Annotated[list[str] | None, Parameter(negative="")] = None
    """Another order from some step on, e.g. --workflow user_priority --then "30: enterprise_focus"; may be given again."""
    number: Whole | None = None
    """Show this episode only, such as one that `fixfirst compare` names."""
    greedy: bool = False
    """The most probable action instead of a drawn one."""
    red_agent: str | None = None
    """b_line, meander, sleep, late or a mixture; default: the one the policy was trained against."""
    steps: Whole | None = None
    """Length of an episode; default: 100, or that of the scenario's own reward."""
    episodes: Whole | None = None
    """How many to play before choosing (200; on CybORG 10). They are the first of `fixfirst evaluate` with this seed."""
    seed: Whole = 0
    """Other episodes: they are the same for the same seed."""


def watch_command(
    policy: str,
    /,
    *,
    beside: str | None = None,
    played: Annotated[Played, Parameter(name="*")] = Played(),
    game: GameSettings = GameFlags(),
    judging: JudgingSettings = JudgingFlags(),
    out: Path | None = None,
    gif: Path | None = None,
    open_it: Annotated[bool, Parameter(name="--open", negative="--no-open")] = True,
    text: Switch = False,
    as_json: Json = False,
) -> None:
    """Watch a defender at work: the worst, median and best of many episodes, turn by turn on a map of the network.

    Writes replay.html, one page that needs no network, and opens it. What blue saw stands beside what was true, and every
    repair is judged against the order, with the reason.

    Parameters
    ----------
    policy
        A run, a policy folder, champion, a baseline, an ONNX file, or your own agent, as in `fixfirst evaluate`.
    beside
        A second one, in the same episodes: side by side on the page, and the episode in which the two are furthest apart.
    out
        The page, or the folder it goes to; default: beside the policy.
    gif
        Also write the first episode shown (the worst) as an animation to this file, for talks.
    open_it
        Open the page in a browser; only done in a terminal with a display.
    text
        Print the episodes instead of writing a page.
    """
    from fixfirst.api import watch  # --help need not wait for it
    from fixfirst.reporter import picture, replay, screen

    if gif is not None:
        picture.check_gif(gif, policy)
    path = watch.page_path(policy, out)
    other = None if beside is None else named_agent(beside)
    settings = given(played) | given(game) | given(judging)
    document = watch.replay(named_agent(policy), beside=other, say=errors.note, **settings)
    if gif is not None:
        say(f"writing {gif}")
        picture.write_gif(gif, document)
    if as_json:
        print(json.dumps(document))
        return
    if text:
        screen.show(*replay.replay_lines(document, turns=True))
        return
    replay.write_replay(path, document)
    lines = replay.replay_lines(document, turns=False)
    screen.show(*lines, f"page: {path}", *([] if gif is None else [f"animation: {gif}"]))
    if open_it:
        open_page(path)


def report_command(
    runs: Annotated[list[Path], Parameter(negative="")],
    /,
    *,
    out: Path | None = None,
    figures: Path | None = None,
    form: Annotated[report.Format, Parameter(name="--format")] = "html",
    replays: Switch = False,
    follow: Switch = False,
    open_it: Annotated[Switch, Parameter(name="--open")] = False,
    as_json: Json = False,
) -> None:
    """Make one page of a run: the answer with its uncertainty, figures, settings. Several runs are compared.

    Needs only the run directories; what is missing in them, the report says.

    Parameters
    ----------
    runs
        Run directories of `search` or `train`, or folders that hold some.
    out
        Where to write (RUN/report.html, of a study STUDY/report.html; of several runs: report.html).
    figures
        Also write every figure to this folder: SVG, PNG, and CSV with its numbers.
    form
        html: one page that needs no network; md: Markdown, with pictures if --figures is given.
    replays
        First play episodes of each order's defender, for the marks in the figures to link to; a search does so by itself.
    follow
        Write it again every few seconds until the run ends; an open page refreshes itself.
    open_it
        Show it in the browser.
    """
    from fixfirst.api import replays as pages  # --help need not wait for it

    if replays:
        for run in runs:
            pages.write_replays(run)
    elif out is None and len(runs) == 1 and RunFiles(runs[0]).answer.is_file():
        with suppress(errors.FixfirstError, OSError):  # the report says what is wrong with the run, and how to get the page
            pages.write_replays(runs[0], missing=True)
    while True:
        written = report.report(runs, out, figures=figures, form=form)
        document = written.document
        if open_it:
            open_page(written.path)
            open_it = False
        if not follow or not document.running:
            break
        sleep(FOLLOW_S)
    if as_json:
        print_json(
            {
                "report": str(written.path),
                "figures": [str(path) for path in written.figures],
                "runs": [str(path) for path in written.runs],
                "headline": " > ".join(document.headline),
                "answer": document.answer,
                "missing": document.missing,
            }
        )
    else:
        for text in document.missing:
            print(f"missing: {text}")
        print(errors.printable(str(written.path)))
