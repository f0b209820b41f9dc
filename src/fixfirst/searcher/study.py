"""A study: the same search under several seeds and red agents, as one job; and what its seeds say together.

runs/<study>/study.json, and beside it one ordinary run directory per search, <red agent>-<seed>/. A single search is a study
of one, whose folder is its run directory.

**Across seeds.** Every seed trains every order anew, after a warm-up of its own and judged on test episodes of its own. So
the spread of an order's returns between seeds is measured, not estimated from neighbouring orders as within one search:

    y_ws   return of order w under seed s, the average of its accepted trials there      n_w   seeds that accepted w
    m_w    mean over those seeds        spread^2 = sum_ws (y_ws - m_w)^2 / freedom       freedom = sum_w (n_w - 1)

The pooled verdict ranks the m_w with standard errors spread / sqrt(n_w) (`ranking.py`). What a seed adds to all orders alike
(its warm-up, its test episodes) is part of the spread: that makes comparisons within a seed too careful, never too bold.
The spread is taken to be the same for all orders. Bad orders vary more, so among the good ones the verdict is again careful.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from fixfirst.errors import ConfigError, RunDirError
from fixfirst.learner.checkpoint import versions
from fixfirst.orders.ranking import Ranking, rank
from fixfirst.orders.workflow import Workflow
from fixfirst.runs.ledger import accepted
from fixfirst.runs.run_dir import FINISHED, STUDY, check_unused, read_manifest, status, write_manifest
from fixfirst.searcher.config import SearchConfig
from fixfirst.searcher.loop import Search, begin_search, open_search

KIND = "study"


@dataclass(frozen=True)
class Study:
    """Searches that are run together."""

    folder: Path
    searches: tuple[Search, ...]

    @property
    def unfinished(self) -> list[Search]:
        return [search for search in self.searches if search.next_budgets() or status(search.folder) != FINISHED]


def member_name(config: SearchConfig) -> str:
    """The folder of a search within its study."""
    return f"{config.red_agent}-{config.seed}".replace(":", "").replace(",", "-")


def begin_study(configs: Sequence[SearchConfig], folder: Path) -> Study:
    """New run directories; study.json comes last, so a folder with it is complete."""
    if len(configs) == 1:
        return Study(folder, (begin_search(configs[0], folder),))
    names = [member_name(config) for config in configs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"a study has each red agent and seed once, got {twice[0]} more often")
    check_unused(folder)
    searches = tuple(begin_search(config, folder / name) for name, config in zip(names, configs, strict=True))
    try:
        write_manifest(folder, KIND, configs[0].seed, versions(), {"searches": names}, file=STUDY)
    except OSError as e:
        raise RunDirError(f"{folder}: cannot be written ({e.strerror})") from e
    return Study(folder, searches)


def open_study(folder: Path) -> Study:
    """A study, or a single search as a study of one."""
    if not (folder / STUDY).exists():
        return Study(folder, (open_search(folder),))
    options = read_manifest(folder, STUDY).get("options")
    names = options.get("searches") if isinstance(options, dict) else None
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and n == Path(n).name for n in names):
        raise RunDirError(f"{folder / STUDY}: damaged, it does not name the searches of this study")
    return Study(folder, tuple(open_search(folder / name) for name in names))


# ---------------------------------------------------------------- across seeds


@dataclass(frozen=True)
class OrderAcrossSeeds:
    """What became of one order under the seeds of a study. Counts are of seeds."""

    workflow: Workflow
    tried: int
    accepted: int
    maybe_best: int  # could not be told from the best of its search
    mean: float | None  # of the accepting seeds' returns
    low: float | None  # 95 % t-interval; needs two of them
    high: float | None


@dataclass(frozen=True)
class BestOfSeed:
    """The first order of one search's ranking; None where none passed the gate."""

    seed: int
    workflow: Workflow | None
    mean: float | None


@dataclass(frozen=True)
class Comparison:
    """The searches against one red agent."""

    red_agent: str
    orders: tuple[OrderAcrossSeeds, ...]  # best mean first; those never accepted last
    best: tuple[BestOfSeed, ...]
    ranking: Ranking | None  # pooled; None where no order was accepted under two seeds
    spread: float | None  # standard deviation between seeds
    freedom: int  # degrees of freedom it was measured with


def compare(searches: Sequence[Search]) -> list[Comparison]:
    """What the seeds of a study say together, for each red agent."""
    agents = dict.fromkeys(search.config.red_agent for search in searches)
    return [_compare([s for s in searches if s.config.red_agent == agent], agent) for agent in agents]


def _compare(searches: Sequence[Search], red_agent: str) -> Comparison:
    tried: Counter[Workflow] = Counter()
    passed: Counter[Workflow] = Counter()
    maybe_best: Counter[Workflow] = Counter()
    returns: dict[Workflow, list[float]] = {}
    best = []
    for search in searches:
        tried.update({search.workflow_of(trial) for trial in search.trials})
        passed.update({search.workflow_of(trial) for trial in accepted(search.trials)})
        found = search.standings()
        rows = () if found is None else found.ranking.rows
        for row in rows:
            returns.setdefault(row.workflow, []).append(row.mean)
        maybe_best.update(row.workflow for row in rows if row.maybe_best)
        seed = search.config.seed
        best.append(BestOfSeed(seed, rows[0].workflow, rows[0].mean) if rows else BestOfSeed(seed, None, None))
    orders = [
        OrderAcrossSeeds(order, tried[order], passed[order], maybe_best[order], *mean_interval(returns.get(order, [])))
        for order in tried
    ]
    orders.sort(key=lambda row: (math.inf if row.mean is None else -row.mean, row.workflow.order))
    spread, freedom = spread_between_seeds(list(returns.values()))
    ranking = None
    if spread is not None:
        means, errors = zip(
            *((np.mean(values), spread / math.sqrt(len(values))) for values in returns.values()), strict=True
        )
        ranking = rank(list(returns), means, errors, [freedom + 1] * len(returns))
    return Comparison(red_agent, tuple(orders), tuple(best), ranking, spread, freedom)


def mean_interval(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Mean of independent values and its 95 % t-interval, as far as there are enough."""
    if not values:
        return None, None, None
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, None, None
    half = float(stdtrit(len(values) - 1, 0.975) * np.std(values, ddof=1) / math.sqrt(len(values)))
    return mean, mean - half, mean + half


def spread_between_seeds(returns: Sequence[Sequence[float]]) -> tuple[float | None, int]:
    """Pooled standard deviation of an order's returns (one sequence per order), and its degrees of freedom."""
    freedom = sum(len(values) - 1 for values in returns)
    if freedom < 1:
        return None, 0
    squares = sum(float(np.sum((np.array(values) - np.mean(values)) ** 2)) for values in returns)
    return math.sqrt(squares / freedom), freedom
