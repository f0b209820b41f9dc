"""A study: the same search in several scenarios, against several red agents, under several seeds, as one job.

runs/<study>/study.json, and beside it one ordinary run directory per search, <red agent>-<seed>/, or, unless CAGE2 is
played, <scenario>-<red agent>-<seed>/. A single search is a study of one, whose folder is its run directory. What they find
together: `stats/agreement.py`, and of the published way `stats/across_seeds.py`.

Each search is a plan of jobs (`base/jobs.py`), and all of them share one scheduler. Where jobs do not see our disk, a job
travels with the files it reads, runs there in a scratch folder, and its files come back with its result: only the driver
writes into the run directory.
"""

import re
import shutil
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from fixfirst.base import errors, files, jobs
from fixfirst.game import attacker_files
from fixfirst.game.scenario import CAGE2
from fixfirst.policy import file as policy_file
from fixfirst.runs import layout, manifest, rows
from fixfirst.searcher.jobs import TellJob
from fixfirst.searcher.published import PublishedSearch
from fixfirst.searcher.shared import SharedSearch
from fixfirst.settings.search import SearchConfig

AnySearch = SharedSearch | PublishedSearch
_MOST_NAMED = 3  # scenarios whose names a study's own has


@dataclass(frozen=True)
class Study:
    """Searches that are run together."""

    folder: Path
    searches: tuple[AnySearch, ...]

    @property
    def unfinished(self) -> list[AnySearch]:
        return [
            search
            for search in self.searches
            if not search.is_done or manifest.status(search.folder) != rows.Outcome.FINISHED
        ]


def study_name(configs: Sequence[SearchConfig]) -> str:
    """search-b_line-0, study-b_line-meander-0-4, or study-lab-office-b_line-0."""
    agents = dict.fromkeys(config.training.game.attacker for config in configs)
    scenarios = dict.fromkeys(_scenario_name(config) or CAGE2.name for config in configs)
    if [*scenarios] == [CAGE2.name]:
        scenarios = {}
    elif len(scenarios) > _MOST_NAMED:
        scenarios = {f"{len(scenarios)}-networks": None}
    seeds = dict.fromkeys(str(seed) for seed in (configs[0].seed, configs[-1].seed))
    return "-".join([layout.Kind.SEARCH if len(configs) == 1 else layout.Kind.STUDY, *scenarios, *agents, *seeds])


def member_name(config: SearchConfig) -> str:
    """Return the folder of a search within its study."""
    plain = layout.plain_name(f"{config.training.game.attacker}-{config.seed}")
    return "-".join(part for part in (_scenario_name(config), plain) if part)


def _scenario_name(config: SearchConfig) -> str:
    """Return what folders call a scenario; nothing, where CAGE2 is played."""
    scenario = config.training.game.scenario
    return "" if scenario == CAGE2 else re.sub(r"[^\w.]+", "-", scenario.name).strip("-.") or "network"


def begin_search(config: SearchConfig, folder: Path) -> AnySearch:
    """Make a run directory for a new search."""
    config = with_parent(config)
    manifest.create_run(folder, layout.Kind.SEARCH, config.model_dump(mode="json"), config.seed)
    return _search(config, folder)


def open_search(folder: Path, cyborg: str | None = None) -> AnySearch:
    """A search as its run directory has it, up to the last round that is complete. cyborg: the checkout to play in."""
    if layout.read_manifest(folder)["kind"] != layout.Kind.SEARCH:
        raise errors.RunDirError(f"{folder} is not a run of `fixfirst search`")
    search = _search(SearchConfig.resolve({"cyborg": cyborg}, manifest.read_config(folder)), folder)
    search.reload()
    return search


def _search(config: SearchConfig, folder: Path) -> AnySearch:
    return PublishedSearch(config, folder) if config.separate else SharedSearch(config, folder)


def with_parent(config: SearchConfig) -> SearchConfig:
    """Return the config with the place of the policy that the first trials inherit, which must be one they can."""
    if config.from_policy is None:
        return config
    policy_file.load_parent(Path(config.from_policy), config.trial_role)
    return config.model_copy(update={"from_policy": str(Path(config.from_policy).resolve())})


def begin_study(configs: Sequence[SearchConfig], folder: Path) -> Study:
    """New run directories; study.json comes last, so a folder with it is complete."""
    if len(configs) == 1:
        return Study(folder, (begin_search(configs[0], folder),))
    names = [member_name(config) for config in configs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise errors.ConfigError(f"a study has each scenario, red agent and seed once, got {twice[0]} more often")
    configs = [with_parent(config) for config in configs]  # before there is a folder
    with manifest.new_run_folder(folder, names):
        searches = tuple(begin_search(config, folder / name) for name, config in zip(names, configs, strict=True))
        manifest.write_manifest(folder, layout.Kind.STUDY, configs[0].seed, {"searches": names})
    return Study(folder, searches)


def open_study(folder: Path, cyborg: str | None = None) -> Study:
    """Return a study, or a single search as a study of one. cyborg: as in `open_search`."""
    if not (folder / layout.STUDY).exists():
        return Study(folder, (open_search(folder, cyborg),))
    options = layout.read_manifest(folder, layout.STUDY).get("options")
    names = options.get("searches") if isinstance(options, dict) else None
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and _is_member(n) for n in names):
        raise errors.RunDirError(f"{folder / layout.STUDY}: damaged, it does not name the searches of this study")
    searches = tuple(open_search(folder / name, cyborg) for name in names)
    for name, search in zip(names, searches, strict=True):
        if member_name(search.config) != name:
            raise errors.RunDirError(f"{folder / name}: is the search {member_name(search.config)}; was it moved?")
    return Study(folder, searches)


def _is_member(name: str) -> bool:
    """Could a search of a study be called so? A study names folders of its own, none elsewhere."""
    return re.fullmatch(r"\w[\w.-]*", name) is not None


# ---------------------------------------------------------------- running searches


class PlanOfJobs(Protocol):
    """What the driver asks of a search. All that a search knows follows from its ledger."""

    folder: Path

    def reload(self) -> None:
        """Read the ledger again: between opening and locking the folder, somebody may have gone on with the search."""

    def plan(self, view: Any, session: manifest.Session, opened: ExitStack) -> jobs.Plan:
        """Return the search as a plan of jobs. opened: closed at the end, however it comes."""


def make_scheduler(execution: jobs.Execution, configs: Sequence[SearchConfig], interrupt: object) -> jobs.Scheduler:
    """Make the scheduler that was asked for, or the one that fits the machine and the jobs that searches have at a time."""
    # Worlds of other backends have processes of their own: unless asked for, there are no workers beside them.
    plain = all(config.training.game.backend == "simulator" for config in configs)
    if execution.executor == "ray":
        from fixfirst.adapters import ray  # an extra

        cpus = execution.cpus_per_trial or (1 if plain else 0)
        address = execution.ray_address or "local"
        return ray.RayScheduler(address, workers=execution.workers, cpus_per_job=cpus, interrupt=interrupt)
    at_a_time = sum(config.side_by_side for config in configs)
    workers = execution.workers or (min(jobs.available_cores(), at_a_time) if plain else 1)
    if execution.executor == "inline" or (execution.executor is None and workers == 1):
        return jobs.InlineScheduler(interrupt)
    return jobs.ProcessScheduler(workers, interrupt)


def run_searches(
    searches: Sequence[PlanOfJobs], scheduler: jobs.Scheduler, view: Any, interrupt: object, folder: Path
) -> bool:
    """Run searches until their budgets are used, jobs of different searches side by side; none depends on another.

    view: shows them to the user. False if interrupted: `resume` of `folder`, their run directory or that of their study,
    then goes on from the same place.
    """
    ended = []

    def work_on(search: PlanOfJobs) -> jobs.Plan:
        """Hold a search's folder while it is worked on: of many, most are finished, or have not begun."""
        with ExitStack() as opened:
            opened.enter_context(manifest.locked(search.folder))
            search.reload()
            session = manifest.Session(search.folder, scheduler.workers)
            plan = search.plan(view, session, opened)  # refuses what is damaged, before the session leaves a row
            opened.enter_context(session)
            yield from plan
        view.end(search)
        ended.append(session.finished)

    def show(index: int, number: int, message: Any) -> None:
        view.progress(searches[index], number, message)

    for search in searches:
        view.begin(search)
    with errors.writing(folder, f"; mend that, then: {errors.command('resume', folder)}"):
        plans = [work_on(search) for search in searches]
        jobs.run_plans(plans, scheduler if scheduler.shares_disk else _Remote(scheduler), show, interrupt)
    return len(ended) == len(searches) and all(ended)


# ---------------------------------------------------------------- jobs that do not see our disk

Files = dict[str, bytes]
# All that a job may leave in its folder. The names come from another machine: nothing else is written.
_PLAIN = (layout.POLICY_TENSORS, layout.POLICY_JSON, layout.TRAINING_LOG, layout.EPISODE_LOG, layout.RESULT)
_RED = (attacker_files.RED_TENSORS, attacker_files.RED_JSON)
_CHECKPOINT = rf"{layout.CHECKPOINT_PREFIX}(\d{{8}}|last)\.(json|safetensors)"
_BELOW = rf"({layout.ENTRANTS}|{layout.ATTACKERS})/\d{{1,4}}/"
JOB_FILES = re.compile(rf"({_BELOW})?({'|'.join(map(re.escape, (*_PLAIN, *_RED)))}|{_CHECKPOINT})")


@dataclass(frozen=True)
class RemoteJob:
    """A job with all that it reads: its parent's policy, attackers, and what its folder holds of an interrupted attempt."""

    run: jobs.Job
    argument: Any  # a job of `jobs.py`
    parent: Files
    attackers: tuple[Files, ...]
    begun: Files
    versions: dict[str, str]  # of what sent it; other ones would give other bytes


def pack_job(run: jobs.Job, argument: Any) -> RemoteJob:
    """Add the files to a job."""
    parent: Files = {}
    if (policy := getattr(argument, "parent_policy", None)) is not None:
        folder = policy_file.policy_folder(policy)
        parent = {name: (folder / name).read_bytes() for name in (layout.POLICY_TENSORS, layout.POLICY_JSON)}
    attackers = [{name: (red / name).read_bytes() for name in _RED} for red in getattr(argument, "attackers", ())]
    argument.folder.mkdir(parents=True, exist_ok=True)
    with manifest.locked(argument.folder, wait_s=jobs.ORPHAN_WAIT_S):
        return RemoteJob(run, argument, parent, tuple(attackers), _read_files(argument.folder), manifest.versions())


def run_remote(job: RemoteJob, tell: TellJob, interrupt: object) -> tuple[Any, Files]:
    """Run a job in a scratch folder of this machine; return its result and the files it left."""
    for name, version in manifest.versions().items():
        if version != job.versions.get(name):
            raise errors.ConfigError(
                f"the cluster has {name} {version}, the driver {job.versions.get(name)}: results would differ; "
                "install the same versions everywhere"
            )
    with TemporaryDirectory(prefix="fixfirst-") as scratch:
        folder, parent = Path(scratch) / "trial", Path(scratch) / "parent"
        _write_files(folder, job.begun)
        _write_files(parent, job.parent)
        reds = [Path(scratch) / f"red-{number}" for number in range(len(job.attackers))]
        for place, red in zip(reds, job.attackers, strict=True):
            _write_files(place, red)
        places: dict[str, Any] = {"folder": folder} | ({"parent_policy": parent} if job.parent else {})
        places |= {"attackers": tuple(reds)} if reds else {}
        return job.run(replace(job.argument, **places), tell, interrupt), _read_files(folder)


def collect_files(folder: Path, sent: Files) -> None:
    """Write the files of a job that ran elsewhere into its own folder, as if it had run there."""
    odd = [name for name in sent if not JOB_FILES.fullmatch(name)]
    if odd:
        raise errors.RunDirError(f"{folder}: the cluster sent a file that no trial writes ({odd[0]!r})")
    with manifest.locked(folder, wait_s=jobs.ORPHAN_WAIT_S):
        for old in _read_files(folder).keys() - sent.keys():
            (folder / old).unlink()
        if not any(name.startswith(layout.ENTRANTS) for name in sent):
            shutil.rmtree(folder / layout.ENTRANTS, ignore_errors=True)
        _write_files(folder, sent)


def _read_files(folder: Path) -> Files:
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if JOB_FILES.fullmatch(name)}


def _write_files(folder: Path, sent: Files) -> None:
    """The result last: with it the folder is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in sorted(sent, key=lambda name: name == layout.RESULT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        files.write_atomically(folder / name, sent[name])


class _Remote:
    """A scheduler whose jobs do not see our disk, as one whose jobs do."""

    shares_disk = True

    def __init__(self, scheduler: jobs.Scheduler):
        self._scheduler, self.workers = scheduler, scheduler.workers
        self._folders: dict[Hashable, Path] = {}
        self.cancel, self.close = scheduler.cancel, scheduler.close

    def submit(self, key: Hashable, job: jobs.Job, argument: Any) -> None:
        self._folders[key] = argument.folder
        self._scheduler.submit(key, run_remote, pack_job(job, argument))

    def wait(self, on_progress: jobs.OnProgress) -> jobs.Finished | None:
        ended = self._scheduler.wait(on_progress)
        if ended is None or ended.died is not None or ended.result is None:
            return ended
        result, sent = ended.result
        collect_files(self._folders[ended.key], sent)
        return replace(ended, result=result)
