"""A study: the same search in several scenarios, against several red agents, under several seeds, as one job.

runs/<study>/study.json, and beside it one ordinary run directory per search, <red agent>-<seed>/, or, unless CAGE2 is
played, <scenario>-<red agent>-<seed>/. A single search is a study of one, whose folder is its run directory. What they find
together: `stats/agreement.py`, and of the published way `stats/across_seeds.py`.

All searches share one scheduler of jobs.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fixfirst.base import errors, jobs, plans
from fixfirst.game.scenario import CAGE2
from fixfirst.policy import trained
from fixfirst.runs import layout, manifest, sessions
from fixfirst.runs.layout import RunFiles
from fixfirst.searcher.search import Search, View
from fixfirst.searcher.shared import SharedSearch
from fixfirst.settings.search import SearchConfig

_MOST_NAMED = 3  # scenarios whose names a study's own has


@dataclass(frozen=True)
class Study:
    """Searches that are run together."""

    folder: Path
    searches: tuple[Search, ...]

    @property
    def unfinished(self) -> list[Search]:
        """Those that are to be run, or to be run on."""
        return [search for search in self.searches if not (search.is_done and sessions.is_finished(search.folder))]


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


def begin_study(configs: Sequence[SearchConfig], folder: Path) -> Study:
    """Begin the run directories of searches, and the folder of the study, if there are several."""
    for config in configs:
        if config.from_policy is not None:  # checked before there is a folder
            trained.load_parent(Path(config.from_policy), config.trial_role)
    if len(configs) == 1:
        return Study(folder, (_begin_search(configs[0], folder),))
    names = [member_name(config) for config in configs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise errors.ConfigError(f"a study has each scenario, red agent and seed once, got {twice[0]} more often")
    with manifest.create_study(folder, configs[0].seed, names):
        searches = tuple(_begin_search(config, folder / name) for name, config in zip(names, configs, strict=True))
    return Study(folder, searches)


def _begin_search(config: SearchConfig, folder: Path) -> Search:
    if config.from_policy is not None:  # `resume` may be called elsewhere
        config = config.model_copy(update={"from_policy": str(Path(config.from_policy).resolve())})
    manifest.create_run(folder, layout.Kind.SEARCH, config.model_dump(mode="json"))
    return _search(config, folder)


def open_study(folder: Path, cyborg: str | None = None) -> Study:
    """Return a study, or a single search as a study of one. cyborg: the checkout to play in."""
    if not RunFiles(folder).study.exists():
        return Study(folder, (open_search(folder, cyborg),))
    names = manifest.read_manifest(folder)["options"]["searches"]
    return Study(folder, tuple(open_search(folder / name, cyborg) for name in names))


def open_search(folder: Path, cyborg: str | None = None) -> Search:
    """A search as its run directory has it, up to the last round that is complete."""
    if manifest.read_manifest(folder)["kind"] != layout.Kind.SEARCH:
        raise errors.RunDirError(f"{folder} is not a run of `fixfirst search`")
    search = _search(SearchConfig.resolve({"cyborg": cyborg}, manifest.read_config(folder)), folder)
    search.reload()
    return search


def _search(config: SearchConfig, folder: Path) -> Search:
    if not config.separate:
        return SharedSearch(config, folder)
    from fixfirst.searcher.published import PublishedSearch  # most searches are not of that kind

    return PublishedSearch(config, folder)


def run_searches(searches: Sequence[Search], scheduler: jobs.Scheduler, view: View, interrupt: object, folder: Path) -> bool:
    """Run searches until their budgets are used, jobs of different searches side by side; none depends on another.

    False if interrupted: `resume` of `folder`, their run directory or that of their study, then goes on.
    """
    ended = []

    def work_on(search: Search) -> plans.Plan[None]:
        """Hold a search's folder while it is worked on: of many, most are finished, or have not begun."""
        with sessions.locked(search.folder):
            search.reload()
            with sessions.Session(search.folder, scheduler.workers) as session:
                yield from search.plan(view, session)
                session.finished = True
        view.end(search)
        ended.append(search)

    for search in searches:
        view.begin(search)
    with errors.writing(folder, f"; fix this, then run: {errors.command('resume', folder)}"):
        work = [work_on(search) for search in searches]
        plans.run_plans(work, scheduler, lambda i, number, text: view.progress(searches[i], number, text), interrupt)
    return len(ended) == len(searches)
