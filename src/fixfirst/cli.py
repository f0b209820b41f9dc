"""The command line. Bad input: one line on stderr, exit code 2. A traceback is a bug."""

import json
import os
import sys
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

# One thread per process: at these sizes spinning thread pools lose badly. Set before NumPy starts its pool.
for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")

from cyclopts import App, CycloptsError, Parameter

from fixfirst import __version__
from fixfirst.cage2.compiled import announce_compilation
from fixfirst.cyborg.checkout import find_cyborg
from fixfirst.cyborg.recorder import Recording
from fixfirst.errors import ConfigError, FixfirstError
from fixfirst.network import VariantName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fixfirst.cage2.conformance import Report
    from fixfirst.executor import Executor
    from fixfirst.experiment import Search
    from fixfirst.runs import Run
    from fixfirst.search_config import SearchConfig
    from fixfirst.study import Study
    from fixfirst.train_run import TrainResult

# Each command imports what it needs: PyTorch takes seconds, and `--help` should not wait for it.

app = App(
    name="fixfirst",
    version=__version__,
    help="When an attacker holds machines of several kinds, which kind should the defender fix first?",
)

Json = Annotated[bool, Parameter(name="--json", negative="", help="One JSON document on stdout instead of a table.")]
Cyborg = Annotated[Path | None, Parameter(help="A checkout of cage-challenge-2. Default: FIXFIRST_CYBORG, or installed.")]
Settings = Annotated[Recording, Parameter(name="*")]


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


def welcome() -> int:
    """Say what this is, what is here, and what to do first."""
    from fixfirst import runs

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


def newest_first(folder: Path) -> "list[Run]":
    """The runs of a folder, described."""
    from fixfirst import runs

    return sorted((runs.describe(run) for run in runs.find_runs(folder)), key=lambda run: run.created, reverse=True)


@app.command(name="runs")
def runs_command(folder: Path = Path("runs"), /, *, as_json: Json = False) -> int:
    """List runs: what they looked for, whether they are running, finished or interrupted, the best order, and the time.

    Parameters
    ----------
    folder
        Where to look.
    """
    from fixfirst import runs
    from fixfirst.progress import results

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


@app.command(name="conform")
def conform(files: Annotated[list[Path], Parameter(negative="")], /, *, as_json: Json = False) -> int:
    """Replay recorded CybORG episodes through the simulator and compare every step.

    Exit code 0: all equal; 1: something differs; 2: a file cannot be read.

    Parameters
    ----------
    files
        Recordings (.jsonl or .jsonl.gz, see docs/conformance.md), e.g. tests/conformance/*.jsonl.gz
    """
    from fixfirst.cage2 import conformance

    announce_compilation()
    total = conformance.Report()
    rows = []
    for path in files:
        report = conformance.Report()
        conformance.replay_file(path, report)
        total.add(report)
        rows.append({"file": path.name, **_counts(report)})
        if not as_json:
            _row(**rows[-1])
    first = total.mismatches[0] if total.mismatches else None
    if as_json:
        document = {**_counts(total), "first_mismatch": vars(first) if first else None, "files": rows}
        print(json.dumps(document, indent=2))
    else:
        _row("total", **_counts(total))
        for coincidence in total.coincidences:
            print(f"coincidence of process ids, which the model leaves out: {coincidence}")
        if first:
            print(f"first mismatch: {first}")
    return 1 if first else 0


def _counts(report: "Report") -> dict[str, Any]:
    mismatches, coincidences = len(report.mismatches), len(report.coincidences)
    return {"episodes": report.episodes, "steps": report.steps, "mismatches": mismatches, "coincidences": coincidences}


def _row(file: str, episodes: int, steps: int, mismatches: int, coincidences: int) -> None:
    note = f" {coincidences:3,} coincidences" if coincidences else ""
    print(f"{file:36} {episodes:6,} episodes {steps:8,} steps {mismatches:5,} mismatches{note}", flush=True)


@app.command(name="record")
def record_command(*, out: Path, cyborg: Cyborg = None, settings: Settings = Recording(), as_json: Json = False) -> int:  # noqa: B008  frozen
    """Play CybORG, write down every step and every chance decision; then `fixfirst conform FILE` replays it.

    Parameters
    ----------
    out
        The recording to write, .jsonl.gz or .jsonl.
    """
    from fixfirst.cyborg.recorder import record

    summary = record(find_cyborg(cyborg), out, settings, say=_log)
    if as_json:
        print(json.dumps(asdict(summary), indent=2))
    else:
        who = f"{summary.cyborg.variant} ({summary.cyborg.commit or summary.cyborg.version})"
        print(f"{summary.file}: {summary.episodes:,} episodes, {summary.steps:,} steps of CybORG, variant {who}")
    return 0


@app.command(name="doctor")
def doctor_command(*, cyborg: Cyborg = None, as_json: Json = False) -> int:
    """Say what is installed, how many threads are used, where compiled code is kept, and which CybORG is found."""
    from fixfirst import doctor

    findings = doctor.examine(cyborg)
    print(json.dumps(findings, indent=2) if as_json else doctor.table(findings))
    return 0


@app.command(name="bench")
def bench_command(*, cyborg: Cyborg = None, as_json: Json = False) -> int:
    """Measure the simulator and the worker processes on this machine, and CybORG in the same run where --cyborg says so."""
    from fixfirst import bench

    result = bench.measure(None if cyborg is None else find_cyborg(cyborg), say=_log)
    print(json.dumps(result, indent=2) if as_json else bench.table(result))
    return 0


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
    from fixfirst import settings
    from fixfirst.study import begin_study

    outside = ("where", "seeds", "out", "units", "config", "report", "quiet", "as_json")
    given = {name: value for name, value in locals().items() if name not in (*outside, "outside", "settings", "begin_study")}
    configs = settings.resolve_study(given, config, units, seeds)
    folder = out or _unused_folder(_study_name(configs))
    announce_compilation()
    return _run_study(configs, lambda: begin_study(configs, folder), where, report, quiet, as_json)


def _study_name(configs: "Sequence[SearchConfig]") -> str:
    """search-b_line-0, or study-b_line-meander-0-4."""
    agents = dict.fromkeys(config.red_agent for config in configs)
    seeds = dict.fromkeys(str(seed) for seed in (configs[0].seed, configs[-1].seed))
    return "-".join(["search" if len(configs) == 1 else "study", *agents, *seeds])


def _unused_folder(name: str) -> Path:
    """runs/<name>, or runs/<name>-2, -3, ... if there are such runs already."""
    name = name.replace(":", "").replace(",", "-")
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(folder for folder in (Path("runs") / name for name in names) if not folder.exists())


def _run_study(
    configs: "Sequence[SearchConfig]",
    open_study: "Callable[[], Study]",
    where: Where,
    report: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run the searches and tell the result. The executor comes before the folder: without it there is nothing to begin."""
    from fixfirst.cage2.world import compile_kernel
    from fixfirst.experiment import run_searches
    from fixfirst.search_view import SearchView
    from fixfirst.study_view import StudyView
    from fixfirst.trial import interrupts

    compile_kernel()
    with interrupts() as interrupt, closing(_executor(where, configs, interrupt)) as executor:
        study = open_study()
        with StudyView(quiet=quiet) if len(study.searches) > 1 else SearchView(quiet=quiet) as view:
            to_run = study.unfinished if len(study.searches) > 1 else study.searches
            finished = run_searches(to_run, executor, view, interrupt, study.folder)
    if not finished:
        print(f"fixfirst: interrupted; go on with: fixfirst resume {study.folder}", file=sys.stderr)
        return 130
    page = _report_runs(study, quiet) if report else None
    if len(study.searches) > 1:
        _tell_study(study, page, as_json)
    else:
        _tell_search(study.searches[0], page, as_json)
    return 0


def _report_runs(study: "Study", quiet: bool) -> Path | None:
    """The search is done; whatever may be wrong with its report, it must not look as if the search had failed."""
    from fixfirst.report.build import write_report

    folders = [search.folder for search in study.searches]
    try:
        if len(folders) > 1 and not quiet:
            _log(f"writing {len(folders) + 1} reports")
        pages = [write_report([folder], version=__version__).path for folder in folders]
        if len(folders) == 1:
            return pages[0]
        return write_report(folders, study.folder / pages[0].name, version=__version__).path
    except Exception as e:
        said = " ".join(str(e).split()) or type(e).__name__
        print(f"fixfirst: no report ({said}); try again with: fixfirst report {study.folder}", file=sys.stderr)
        return None


def _tell_search(search: "Search", page: Path | None, as_json: bool) -> None:
    from fixfirst.search_view import print_result

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
    from fixfirst.study import compare
    from fixfirst.study_view import comparison_document, print_study

    if not as_json:
        print_study(study)
        if page is not None:
            print(f"report:      {page}")
        return
    comparisons = [comparison_document(comparison) for comparison in compare(study.searches)]
    runs = [str(search.folder) for search in study.searches]
    document = {"study": str(study.folder), "runs": runs, "red_agents": comparisons}
    print(json.dumps(document | {"report": None if page is None else str(page)}, indent=2))


def _executor(where: Where, configs: "Sequence[SearchConfig]", interrupt: Any) -> "Executor":
    """As asked, or for as many trials as the searches can have side by side."""
    from fixfirst.executor import InlineExecutor
    from fixfirst.process_executor import ProcessExecutor
    from fixfirst.ray_executor import RayExecutor

    plain = all(config.backend == "simulator" for config in configs)  # else worlds have processes of their own
    if where.executor == "ray":
        cpus = where.cpus_per_trial or (1 if plain else 0)
        return RayExecutor(where.ray_address or "local", workers=where.workers, cpus_per_job=cpus, interrupt=interrupt)
    side_by_side = sum(config.round_size for config in configs)
    workers = where.workers or (min(os.cpu_count() or 1, side_by_side) if plain else 1)
    if where.executor == "inline" or (where.executor is None and workers == 1):
        return InlineExecutor(interrupt)
    return ProcessExecutor(workers, interrupt)


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
    from fixfirst.report.build import write_report

    written = write_report(runs, out, figures=figures, form=form, version=__version__, say=_log)
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


@app.command(name="train")
def train(
    *,
    workflow: str | None = None,
    red_agent: str | None = None,
    total_episodes: int | None = None,
    seed: int | None = None,
    out: Path | None = None,
    preset: str | None = None,
    variant: str | None = None,
    n_envs: int | None = None,
    episodes_per_update: int | None = None,
    epochs: int | None = None,
    minibatches: int | None = None,
    returns: str | None = None,
    learning_rate: float | None = None,
    lr_schedule: str | None = None,
    gamma: float | None = None,
    gae_lambda: float | None = None,
    entropy: float | None = None,
    engine: str | None = None,
    alignment: str | None = None,
    alignment_lambda: float | None = None,
    rule: str | None = None,
    count_foothold: bool | None = None,
    compliance_threshold: float | None = None,
    stop_when_compliant: bool | None = None,
    max_steps: int | None = None,
    green: bool | None = None,
    checkpoint_every: int | None = None,
    backend: str | None = None,
    cyborg: Annotated[str | None, Parameter(help="A checkout of cage-challenge-2, for --backend cyborg.")] = None,
    from_policy: Annotated[Path | None, Parameter(name="--from")] = None,
    units: Path | None = None,
    config: Path | None = None,
    tensorboard: bool = True,
    quiet: bool = False,
    as_json: Json = False,
) -> int:
    """Train a defender that keeps to a workflow, and evaluate it on episodes it never saw.

    Settings come from the command line, else FIXFIRST_<NAME>, else --config, else the preset. Ctrl-C stops after the current
    update; `fixfirst resume` goes on.

    Parameters
    ----------
    workflow
        The order to keep to, e.g. "enterprise > op_server > op_host > user > defender" or a named one (critical_first);
        "none": no order (default); "all": one drawn per episode, for a policy that follows any order (hard: start it --from
        a policy that can defend already).
    red_agent
        b_line (default), meander, sleep, or a mixture such as b_line:0.5,meander:0.5.
    total_episodes
        How many episodes to train on (20,000).
    seed
        Same seed, same policy, byte for byte (0).
    out
        Where to write (runs/train-<red agent>-<seed>).
    preset
        default, or a published one: sequential, hybrid, parallel-25, parallel-100, original.
    variant
        current (default), leaderboard or debugged.
    backend
        simulator (default), cyborg (the real thing, in worker processes), or workers (our simulator there).
    n_envs
        Environments side by side.
    episodes_per_update
        What one update learns from; a multiple of --n-envs.
    epochs
        Passes over an update's episodes.
    minibatches
        Parts an epoch is cut into; 1 = all at once.
    returns
        gae or monte_carlo.
    lr_schedule
        constant or linear (down to 0).
    engine
        auto (default), rows or plain: whether equal observations are computed once.
    alignment
        penalty (default), delta or none: the learner's reward for keeping to the order.
    alignment_lambda
        Its weight: of delta, or the multiplier that penalty starts with.
    rule
        no_higher (default), top or fixed_types: when a repair is in order (docs/method.md).
    count_foothold
        Count User0, where red can never be evicted, as needing repair.
    stop_when_compliant
        Stop as soon as the gate is passed.
    from_policy
        A policy or run to start from.
    units
        A TOML file that groups the hosts otherwise than the five types.
    config
        A TOML file with settings, as written to config.toml of every run.
    """
    from fixfirst import settings, train_run

    flags = ("out", "from_policy", "units", "config", "tensorboard", "quiet", "as_json")
    given = {name: value for name, value in locals().items() if name not in (*flags, "flags", "settings", "train_run")}
    resolved = settings.train_config(given, config, units)
    folder = out or _unused_folder(f"train-{resolved.red_agent}-{resolved.seed}")
    announce_compilation()
    result = train_run.start(resolved, folder, from_policy=from_policy, tensorboard=tensorboard, quiet=quiet)
    return _tell_training(result, as_json)


def _tell_training(result: "TrainResult", as_json: bool) -> int:
    from fixfirst import protocol

    if result.evaluation is None:
        return 130
    if as_json:
        print(
            json.dumps(
                {"run": str(result.folder), "accepted": result.accepted, "evaluation": asdict(result.evaluation)}, indent=2
            )
        )
        return 0
    print(protocol.table([result.evaluation]))
    if result.evaluation.compliance is not None:
        print("gate: " + ("passed" if result.accepted else "not passed"))
    print(f"policy: {result.folder}\nnext:   fixfirst evaluate {result.folder}")
    return 0


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
    from fixfirst import train_run
    from fixfirst.run_dir import STUDY, read_manifest
    from fixfirst.study import open_study

    is_training = not (run / STUDY).exists() and read_manifest(run)["kind"] == train_run.KIND
    announce_compilation()
    if not is_training:
        study = open_study(run)
        return _run_study([search.config for search in study.searches], lambda: study, where, report, quiet, as_json)
    return _tell_training(train_run.resume(run, quiet=quiet), as_json)


@app.command(name="evaluate")
def evaluate(
    policy: str,
    /,
    *,
    workflow: str | None = None,
    greedy: bool = False,
    red_agent: str | None = None,
    steps: str | None = None,
    episodes: int = 1_000,
    variant: VariantName = "current",
    green: bool = False,
    rule: Literal["no_higher", "top", "fixed_types"] = "no_higher",
    count_foothold: bool = False,
    seed: int = 0,
    backend: Literal["simulator", "workers", "cyborg", "both"] = "simulator",
    cyborg: Annotated[str | None, Parameter(help="A checkout of cage-challenge-2, for CybORG.")] = None,
    margin: float = 0.5,
    csv: Path | None = None,
    quiet: bool = False,
    as_json: Json = False,
) -> int:
    """A frozen policy on CAGE2's protocol: 30, 50 and 100 steps against b_line, meander and sleep, on held-out episodes.

    Parameters
    ----------
    policy
        A run, a policy folder, or a baseline: sleep, random, react-restore, react-remove, priority-restore (sees the truth
        and restores by --workflow).
    workflow
        The order to follow and be judged by, if the policy does not carry one.
    greedy
        The most probable action instead of a drawn one.
    red_agent
        Only these, separated by commas.
    steps
        Only these lengths, separated by commas.
    backend
        simulator (default), cyborg, workers (our simulator in worker processes), or both: simulator and CybORG side by side,
        with the difference and whether it is shown to be within --margin.
    margin
        With --backend both: how far apart mean returns may be and still count as equivalent.
    csv
        Also write the table to this file.
    quiet
        Show no progress.
    """
    from fixfirst import protocol
    from fixfirst.evaluate import PROTOCOL_REDS, PROTOCOL_STEPS, SIMULATOR_SHARE, Evaluation, difference

    try:
        lengths = PROTOCOL_STEPS if steps is None else tuple(int(part) for part in steps.split(","))
    except ValueError:
        raise ConfigError(f"--steps must be whole numbers separated by commas, got {steps!r}") from None
    announce_compilation()

    def run(where: Literal["simulator", "workers", "cyborg"], episodes: int = episodes) -> list[Evaluation]:
        return protocol.run_protocol(
            policy,
            workflow=workflow,
            greedy=greedy,
            red_agents=PROTOCOL_REDS if red_agent is None else red_agent.split(","),
            steps=lengths,
            episodes=episodes,
            variant=variant,
            green=green,
            rule=rule,
            count_foothold=count_foothold,
            seed=seed,
            backend=where,
            cyborg=cyborg,
            quiet=quiet,
        )

    if backend == "both":
        if margin <= 0:
            raise ConfigError(f"--margin must be above 0, got {margin}")
        theirs = run("cyborg")
        ours = run("simulator", SIMULATOR_SHARE * episodes)  # cheap, and it makes the difference more precise
        gaps = [asdict(difference(a, b, margin)) for a, b in zip(ours, theirs, strict=True)]
        both = [
            {"simulator": a.as_dict(), "cyborg": b.as_dict(), "difference": gap}
            for a, b, gap in zip(ours, theirs, gaps, strict=True)
        ]
        print(json.dumps(both, indent=2) if as_json else protocol.side_by_side(ours, theirs, margin))
        return 0
    rows = run(backend)
    if csv is not None:
        protocol.write_csv(csv, rows)
    print(json.dumps([row.as_dict() for row in rows], indent=2) if as_json else protocol.table(rows))
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
    from fixfirst import watch
    from fixfirst.report import replay

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


def _log(text: str) -> None:
    print(f"fixfirst: {text} ...", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if not arguments:
            return welcome()
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except (CycloptsError, FixfirstError) as e:
        for note in getattr(e, "__notes__", ()):  # the traceback of a worker process
            print(note, file=sys.stderr)
        print(f"fixfirst: {' '.join(str(e).split())}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever reads our output has seen enough; Python must not try again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("fixfirst: interrupted", file=sys.stderr)
        return 130
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
