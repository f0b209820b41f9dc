"""`fixfirst search`, `resume`: the main job, and going on with it."""

import json
import os
import sys
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from fixfirst import __version__
from fixfirst.cli.shared import Json, app, log, unused_folder
from fixfirst.cli.train import tell_training
from fixfirst.errors import ConfigError, RunDirError
from fixfirst.game.compiled import announce_compilation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fixfirst.searcher.config import SearchConfig
    from fixfirst.searcher.executors.inline import Executor
    from fixfirst.searcher.loop import Search
    from fixfirst.searcher.study import Study


@dataclass(frozen=True)
class Where:
    """Where trials run; the result does not depend on it."""

    workers: int = 0
    """Trials side by side; 0 = as many as there are cores and trials; 1 = in this process."""

    executor: Literal["inline", "process", "ray"] | None = None
    """inline (this process), process (worker processes; default with several workers) or ray (a cluster, docs/scale.md)."""

    ray_address: str | None = None
    """With --executor ray: local (default: a cluster of this machine alone), auto, or the address of a running cluster."""

    cpus_per_trial: int | None = None
    """With --executor ray: CPUs a trial asks for. Default 1; with --backend cyborg or workers, all of the smallest node."""

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise ConfigError(f"--workers must be at least 0, got {self.workers}")
        if self.executor == "inline" and self.workers > 1:
            raise ConfigError(f"--executor inline runs one trial at a time, --workers {self.workers} asks for more")
        if self.executor != "ray" and (self.ray_address, self.cpus_per_trial) != (None, None):
            raise ConfigError("--ray-address and --cpus-per-trial need --executor ray")
        if self.cpus_per_trial is not None and self.cpus_per_trial < 1:
            raise ConfigError(f"--cpus-per-trial must be at least 1, got {self.cpus_per_trial}")
        if self.workers and self.ray_address not in (None, "local"):
            raise ConfigError("--workers is for this machine; how many trials run on a Ray cluster follows from its CPUs")


Place = Annotated[Where, Parameter(name="*")]


@app.command(name="search")
def search(
    *,
    n_envs: int | None = None,
    total_episodes: int | None = None,
    red_agent: str | None = None,
    max_episodes: int | None = None,
    compliance_threshold: float | None = None,
    alignment: str | None = None,
    alignment_lambda: float | None = None,
    gp_beta: float | None = None,
    gp_beta_schedule: bool | None = None,
    inherit: str | None = None,
    preset: str | None = None,
    strategy: str | None = None,
    round_size: int | None = None,
    n_workflows: int | None = None,
    warmup_episodes: int | None = None,
    min_episodes: int | None = None,
    where: Place = Where(),  # noqa: B008  frozen
    seed: int | None = None,
    seeds: int = 1,
    out: Path | None = None,
    variant: str | None = None,
    rule: str | None = None,
    count_foothold: bool | None = None,
    test_episodes: int | None = None,
    backend: str | None = None,
    cyborg: Annotated[str | None, Parameter(help="A checkout of cage-challenge-2, for --backend cyborg.")] = None,
    from_policy: Annotated[str | None, Parameter(name="--from")] = None,
    units: Path | None = None,
    log_episodes: bool | None = None,
    tensorboard: bool | None = None,
    config: Path | None = None,
    report: bool = True,
    quiet: bool = False,
    as_json: Json = False,
) -> int:
    """Find the best order: try workflows until the episode budget is used, rank them, and say how sure we are.

    Settings come from the command line, else FIXFIRST_<NAME>, else --config, else the preset. Ctrl-C stops cleanly;
    `fixfirst resume` goes on and ends with the same bytes.

    Parameters
    ----------
    n_envs
        Environments side by side in each training.
    total_episodes
        Training episodes of the whole search (100,000).
    red_agent
        b_line (default), meander, sleep, CybORG's names for them, or a mixture such as b_line:0.5,meander:0.5. A plain list
        (b_line,meander) is a study: one search each.
    max_episodes
        Training episodes of one workflow, at most.
    compliance_threshold
        A workflow counts once the policy's compliance is this high with 95 % confidence (0.95).
    alignment
        penalty (default), delta or none: the learner's reward for keeping to the order.
    alignment_lambda
        Its weight: of delta, or the multiplier that penalty starts with.
    gp_beta
        How much the search likes uncertainty: it tries the largest mean + beta * std (2).
    gp_beta_schedule
        Let beta grow with the number of choices, as the theory of GP-UCB has it, instead of --gp-beta.
    inherit
        Whose weights a trial starts from: last (accepted, default), nearest, best, none.
    preset
        default, or a published one: sequential, hybrid, parallel-25, parallel-100.
    strategy
        gp_ucb (default), random or exhaustive.
    round_size
        Trials that run side by side. Part of the result, unlike --workers.
    n_workflows
        Stop after so many trials.
    warmup_episodes
        Training without an order that the first trials inherit (20,000, at most a third of the budget, which includes it).
    min_episodes
        Training episodes of one workflow before the gate may end it (2,000).
    seed
        Same seed, same ledger and policies (0).
    seeds
        A study: the same search under so many seeds, counted from --seed, and what they say together.
    out
        Where to write (runs/search-<red agent>-<seed>, a study: runs/study-<red agents>-<seeds>).
    variant
        current (default), leaderboard or debugged.
    backend
        simulator (default), cyborg (the real thing, in worker processes), or workers (our simulator there).
    test_episodes
        Held-out episodes each trained policy is judged on (1,000).
    from_policy
        A policy for the first trials to start from, e.g. one trained with --workflow all.
    units
        A TOML file that groups the hosts otherwise than the five types.
    log_episodes
        Write one row per training episode to episodes.csv.
    config
        A TOML file with settings, as written to config.toml of every run.
    report
        End with a page about the run, as `fixfirst report` writes it.
    """
    from fixfirst.api import settings
    from fixfirst.searcher.study import begin_study

    outside = ("where", "seeds", "out", "units", "config", "report", "quiet", "as_json")
    given = {name: value for name, value in locals().items() if name not in (*outside, "outside", "settings", "begin_study")}
    configs = settings.resolve_study(given, config, units, seeds)
    folder = out or unused_folder(study_name(configs))
    announce_compilation()
    return _run_study(configs, lambda: begin_study(configs, folder), where, report, quiet, as_json)


def study_name(configs: "Sequence[SearchConfig]") -> str:
    """search-b_line-0, or study-b_line-meander-0-4."""
    agents = dict.fromkeys(config.red_agent for config in configs)
    seeds = dict.fromkeys(str(seed) for seed in (configs[0].seed, configs[-1].seed))
    return "-".join(["search" if len(configs) == 1 else "study", *agents, *seeds])


@app.command(name="resume")
def resume(
    run: Path,
    /,
    *,
    where: Place = Where(),  # noqa: B008  frozen
    report: bool = True,
    quiet: bool = False,
    as_json: Json = False,
) -> int:
    """Go on with an interrupted run. It ends with the same bytes as one that was never interrupted.

    Parameters
    ----------
    run
        A run directory, or the folder of a study: all of its searches that are not finished.
    report
        As in `fixfirst search`.
    """
    from fixfirst.learner import train_run
    from fixfirst.runs.run_dir import STUDY, read_manifest
    from fixfirst.searcher.loop import KIND
    from fixfirst.searcher.study import open_study

    kind = KIND if (run / STUDY).exists() else read_manifest(run)["kind"]
    if kind not in (KIND, train_run.KIND):
        raise RunDirError(f"{run} is not a run of `fixfirst train` or `fixfirst search`")
    announce_compilation()
    if kind == KIND:
        study = open_study(run)
        return _run_study([search.config for search in study.searches], lambda: study, where, report, quiet, as_json)
    return tell_training(train_run.resume(run, quiet=quiet), as_json)


def _run_study(
    configs: "Sequence[SearchConfig]",
    open_study: "Callable[[], Study]",
    where: Where,
    report: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run the searches and tell the result. The executor comes before the folder: without it there is nothing to begin."""
    from fixfirst.game.world import compile_kernel
    from fixfirst.learner.taught import interrupts
    from fixfirst.reporter.live_search import SearchView
    from fixfirst.reporter.live_study import StudyView
    from fixfirst.searcher.loop import run_searches

    compile_kernel()
    with interrupts() as interrupt, closing(_executor(where, configs, interrupt)) as executor:
        study = open_study()
        with StudyView(quiet=quiet) if len(study.searches) > 1 else SearchView(quiet=quiet) as view:
            to_run = study.unfinished if len(study.searches) > 1 else study.searches
            finished = run_searches(to_run, executor, view, interrupt, study.folder)
    if not finished:
        print(f"fixfirst: interrupted; go on with: fixfirst resume {study.folder}", file=sys.stderr)
        return 130
    runs = [search.folder for search in study.searches]
    page = report_runs(study.folder, runs, quiet) if report else None
    if len(study.searches) > 1:
        _tell_study(study, page, as_json)
    else:
        _tell_search(study.searches[0], page, as_json)
    return 0


def _executor(where: Where, configs: "Sequence[SearchConfig]", interrupt: Any) -> "Executor":
    """As asked, or for as many trials as the searches can have side by side."""
    from fixfirst.searcher.executors.inline import InlineExecutor
    from fixfirst.searcher.executors.process import ProcessExecutor
    from fixfirst.searcher.executors.ray import RayExecutor

    plain = all(config.backend == "simulator" for config in configs)  # else worlds have processes of their own
    if where.executor == "ray":
        cpus = where.cpus_per_trial or (1 if plain else 0)
        return RayExecutor(where.ray_address or "local", workers=where.workers, cpus_per_job=cpus, interrupt=interrupt)
    side_by_side = sum(config.round_size for config in configs)
    workers = where.workers or (min(os.cpu_count() or 1, side_by_side) if plain else 1)
    if where.executor == "inline" or (where.executor is None and workers == 1):
        return InlineExecutor(interrupt)
    return ProcessExecutor(workers, interrupt)


def report_runs(folder: Path, runs: "Sequence[Path]", quiet: bool = False) -> Path | None:
    """A page about each run and, if there are several, one in `folder` about all of them, which is returned.

    The search is done; whatever may be wrong with its report, it must not look as if the search had failed.
    """
    from fixfirst.reporter.build import write_report

    try:
        if len(runs) > 1 and not quiet:
            log(f"writing {len(runs) + 1} reports")
        pages = [write_report([run], version=__version__).path for run in runs]
        return pages[0] if len(runs) == 1 else write_report(runs, folder / pages[0].name, version=__version__).path
    except Exception as e:
        said = " ".join(str(e).split()) or type(e).__name__
        print(f"fixfirst: no report ({said}); try again with: fixfirst report {folder}", file=sys.stderr)
        return None


def _tell_search(search: "Search", page: Path | None, as_json: bool) -> None:
    from fixfirst.reporter.live_search import print_result

    if not as_json:
        print_result(search)
        if page is not None:
            print(f"report:      {page}")
        return
    found = search.standings()
    rows = [] if found is None else [asdict(row) | {"workflow": str(row.workflow)} for row in found.ranking.rows]
    document = {"run": str(search.folder), "episodes": search.used, "ranking": rows, "trials": search.trials}
    print(json.dumps(document | {"report": None if page is None else str(page)}, indent=2))


def _tell_study(study: "Study", page: Path | None, as_json: bool) -> None:
    from fixfirst.reporter.live_study import comparison_document, print_study
    from fixfirst.searcher.study import compare

    if not as_json:
        print_study(study)
        if page is not None:
            print(f"report:      {page}")
        return
    comparisons = [comparison_document(comparison) for comparison in compare(study.searches)]
    runs = [str(search.folder) for search in study.searches]
    document = {"study": str(study.folder), "runs": runs, "red_agents": comparisons}
    print(json.dumps(document | {"report": None if page is None else str(page)}, indent=2))
