"""`fixfirst report`, `watch`, `runs`, and `fixfirst` alone: what there is to see."""

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from fixfirst import __version__
from fixfirst.cli.shared import Json, app, log
from fixfirst.errors import ConfigError
from fixfirst.game.compiled import announce_compilation
from fixfirst.game.network import VariantName

if TYPE_CHECKING:
    from fixfirst.runs.listing import Run


@app.command(name="report")
def report(
    runs: Annotated[list[Path], Parameter(negative="")],
    /,
    *,
    out: Path | None = None,
    figures: Path | None = None,
    form: Annotated[Literal["html", "md"], Parameter(name="--format")] = "html",
    open_it: Annotated[bool, Parameter(name="--open", negative="")] = False,
    as_json: Json = False,
) -> int:
    """Make one page of a run: the answer with its uncertainty, figures, settings. Several runs are compared.

    Needs only the run directories; what is missing in them, the report says.

    Parameters
    ----------
    runs
        Run directories of `search` or `train`, or folders that hold some.
    out
        Where to write (RUN/report.html; of several runs: report.html).
    figures
        Also write every figure to this folder: SVG, PNG, and CSV with its numbers.
    form
        html: one page that needs no network; md: Markdown, with pictures if --figures is given.
    open_it
        Show it in the browser.
    """
    from fixfirst.reporter.build import write_report

    written = write_report(runs, out, figures=figures, form=form, version=__version__, say=log)
    document = written.document
    if as_json:
        facts = {
            "report": str(written.path),
            "figures": [str(path) for path in written.figures],
            "runs": [str(path) for path in written.runs],
            "headline": " > ".join(document.headline),
            "answer": document.answer,
            "missing": document.missing,
        }
        print(json.dumps(facts, indent=2))
    else:
        for text in document.missing:
            print(f"missing: {text}")
        print(written.path)
    if open_it:
        import webbrowser

        webbrowser.open(written.path.resolve().as_uri())
    return 0


@app.command(name="watch")
def watch_command(
    policy: str,
    /,
    *,
    workflow: str | None = None,
    greedy: bool = False,
    red_agent: str | None = None,
    variant: VariantName | None = None,
    steps: int = 100,
    episodes: int | None = None,
    seed: int = 0,
    rule: Literal["no_higher", "top", "fixed_types"] = "no_higher",
    count_foothold: bool = False,
    backend: Literal["simulator", "workers", "cyborg"] = "simulator",
    cyborg: Annotated[str | None, Parameter(help="A checkout of cage-challenge-2, for --backend cyborg.")] = None,
    out: Path | None = None,
    open_page: Annotated[bool, Parameter(name="--open", negative="--no-open")] = True,
    text: Annotated[bool, Parameter(negative="")] = False,
    as_json: Json = False,
) -> int:
    """Watch a defender at work: the worst, median and best of many episodes, turn by turn on a map of the network.

    Writes replay.html, one page that needs no network, and opens it. What blue saw stands beside what was true, and every
    repair is judged against the order, with the reason.

    Parameters
    ----------
    policy
        A run, a policy folder, or a baseline, as in `fixfirst evaluate`.
    workflow
        The order to follow and be judged by, if the policy does not carry one.
    greedy
        The most probable action instead of a drawn one.
    red_agent
        b_line, meander, sleep or a mixture; default: the one the policy was trained against.
    variant
        current, leaderboard or debugged; default: the one the policy was trained in (on CybORG: the one it is).
    steps
        Length of an episode.
    episodes
        How many to play before choosing (200; on CybORG 10). They are the first ones of `fixfirst evaluate` with this seed.
    backend
        simulator (default), cyborg (the real thing), or workers (our simulator in worker processes).
    out
        The page, or the folder it goes to; default: beside the policy.
    open_page
        Open the page in a browser; only done in a terminal with a display.
    text
        Print the episodes instead of writing a page.
    """
    from fixfirst.api import watching as watch
    from fixfirst.reporter import replay

    announce_compilation()
    document = watch.watch(
        policy,
        workflow=workflow,
        greedy=greedy,
        red_agent=red_agent,
        variant=variant,
        steps=steps,
        episodes=episodes,
        seed=seed,
        rule=rule,
        count_foothold=count_foothold,
        backend=backend,
        cyborg=cyborg,
    )
    if as_json or text:
        print(json.dumps(document) if as_json else replay.text(document))
        return 0
    path = watch.page_path(policy, out)
    watch.write_page(path, document)
    print("\n".join([replay.headline(document), *map(replay.episode_line, document["episodes"]), f"page: {path}"]))
    if open_page:
        watch.open_page(path)
    return 0


@app.command(name="runs")
def runs_command(folder: Path = Path("runs"), /, *, as_json: Json = False) -> int:
    """List runs: what they looked for, whether they are running, finished or interrupted, the best order, and the time.

    Parameters
    ----------
    folder
        Where to look.
    """
    from fixfirst.reporter.screen import results
    from fixfirst.runs import listing as runs

    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; runs are written to ./runs unless --out says otherwise")
    found = newest_first(folder)
    if as_json:
        print(json.dumps([asdict(run) | {"folder": str(run.folder)} for run in found], indent=2))
    elif not found:
        print(f"no runs in {folder}; begin with: fixfirst search")
    else:
        results().print(runs.table(found))
    return 0


def newest_first(folder: Path) -> "list[Run]":
    """The runs of a folder, described."""
    from fixfirst.runs import listing as runs

    return sorted((runs.describe(run) for run in runs.find_runs(folder)), key=lambda run: run.created, reverse=True)


def welcome() -> int:
    """Say what this is, what is here, and what to do first."""
    from fixfirst.runs import listing as runs

    here = newest_first(runs.RUNS)
    print(f"fixfirst {__version__}: {app.help}\n")
    if here:
        states = ", ".join(f"{count} {state}" for state, count in Counter(run.status for run in here).items())
        print(f"{len(here)} run{'s'[: len(here) > 1]} here ({states}); `fixfirst runs` lists them.")
    print("Next:" if here else "First:")
    steps = runs.advice(here)
    width = max(len(command) for command, _ in steps)
    for command, why in steps:
        print(f"  {command:{width}}  {why}")
    print("\nAll commands: fixfirst --help; all about one: fixfirst search --help")
    return 0
