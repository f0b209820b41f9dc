"""The numbers a report adds to what a run recorded: all pure functions.

n tried orders of U unit types, with mean returns y [n] and pair signs S [n, P], P = U (U - 1) / 2.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.runs import manifest
from fixfirst.runs.rows import Trial
from fixfirst.runs.run import Run
from fixfirst.stats import intervals, pricing
from fixfirst.stats.ranking import Ranking

COURSE_POINTS = 200  # of a course, at most
# Those that name a group of runs first, and those whose values need no name beside them.
TELLING = ("kind", "red_agent", "strategy", "workflow", "total_episodes", "variant", "preset", "inherit", "round_size")
SELF_EXPLAINING = ("kind", "red_agent", "strategy")

# ---------------------------------------------------------------- which precedence matters


@dataclass(frozen=True)
class PairEffect:
    """What it is worth to rank unit type `first` above `second`, all other pairs being equal."""

    first: str
    second: str
    tried: int  # orders with `first` above `second`
    reversed: int  # orders the other way round
    effect: float | None  # difference of returns; None: what was tried does not show it
    low: float | None
    high: float | None


def pair_effects(workflows: Sequence[Workflow], returns: Sequence[float]) -> list[PairEffect]:
    """Fit returns to pair signs by least squares, y = a + S b + misfit; an effect is 2 b, turned so that it is not negative.

    A pair's effect is known only if its column is not a combination of the others on the orders tried. Intervals (each
    95 %) take the misfit for noise: evaluation, training, and whatever is not a sum over pairs. With no misfit left to judge
    by, there are none.
    """
    scheme, y = workflows[0].scheme, np.array(returns, np.float64)
    signs = np.array([workflow.pair_signs() for workflow in workflows], np.float64)
    design = np.column_stack([np.ones(len(y)), signs])
    inverse = np.linalg.pinv(design)
    coefficients = inverse @ y
    known = np.abs(inverse @ design - np.eye(design.shape[1])).max(axis=1) < 1e-8  # rows of the identity: estimable
    freedom = len(y) - np.linalg.matrix_rank(design)
    half = np.full(len(coefficients), np.nan)
    if freedom > 0:
        variance = np.square(y - design @ coefficients).sum() / freedom
        half = intervals.two_sided(freedom) * np.sqrt(variance * np.square(inverse).sum(axis=1))

    effects = []
    for column, (a, b) in enumerate(combinations(scheme.names, 2), start=1):
        above, below = int((signs[:, column - 1] > 0).sum()), int((signs[:, column - 1] < 0).sum())
        effect, width = 2 * float(coefficients[column]), 2 * float(half[column])
        if effect < 0:
            a, b, above, below, effect = b, a, below, above, -effect
        if not known[column] or np.isnan(width):
            effects.append(PairEffect(a, b, above, below, None, None, None))
        else:
            effects.append(PairEffect(a, b, above, below, effect, effect - width, effect + width))
    return sorted(effects, key=lambda e: (e.effect is None, -(e.effect or 0.0), e.first, e.second))


def shared_precedences(ranking: Ranking) -> list[tuple[str, str, int]]:
    """Return the pairs that all orders rank alike which may be best, and how many ranked orders have them the other way.

    Only pairs that were tried both ways: (above, below, orders the other way round).
    """
    rows = ranking.rows
    signs = np.array([row.workflow.pair_signs() for row in rows])
    may = np.array([row.maybe_best for row in rows])
    shared = []
    for column, (a, b) in enumerate(combinations(rows[0].workflow.scheme.names, 2)):
        of_best = set(signs[may, column].tolist())
        others = int((signs[:, column] != signs[may, column][0]).sum())
        if len(of_best) == 1 and others:
            shared.append((a, b, others) if of_best == {1} else (b, a, others))
    return shared


@dataclass(frozen=True)
class PositionMeans:
    """Mean return of the orders with a unit type at a position."""

    scheme: UnitScheme
    mean: np.ndarray  # [U, U] by unit id and position; NaN: not tried
    orders: np.ndarray  # [U, U] how many


def position_means(workflows: Sequence[Workflow], returns: Sequence[float]) -> PositionMeans:
    """Return plain means: what else differs between the orders is not taken out."""
    scheme = workflows[0].scheme
    total, orders = np.zeros((scheme.size, scheme.size)), np.zeros((scheme.size, scheme.size), int)
    positions = np.arange(scheme.size)
    for workflow, value in zip(workflows, returns, strict=True):
        total[list(workflow.order), positions] += value
        orders[list(workflow.order), positions] += 1
    mean = np.divide(total, orders, out=np.full(total.shape, np.nan), where=orders > 0)
    return PositionMeans(scheme, mean, orders)


# ---------------------------------------------------------------- the course of a search


def episodes_used(run: Run) -> list[int]:
    """Return the training episodes of the run after each trial, warm-up included."""
    return (run.warmup_episodes + np.cumsum([trial.episodes for trial in run.trials])).astype(int).tolist()


def best_so_far(trials: Sequence[Trial]) -> list[float | None]:
    """Return the highest accepted return up to each trial; None before there is one."""
    best: float | None = None
    course = []
    for trial in trials:
        if trial.accepted and (best is None or trial.earned > best):
            best = trial.earned
        course.append(best)
    return course


def lineage_episodes(run: Run, trial: Trial) -> int:
    """Return the training episodes a trial's weights have seen: its own, its ancestors' and the warm-up's."""
    by_id = {row.id: row for row in run.trials}
    total, seen = run.warmup_episodes, set()
    row: Trial | None = trial
    while row is not None and row.id not in seen:
        seen.add(row.id)
        total += row.episodes
        row = None if row.parent is None else by_id.get(row.parent)
    return total


@dataclass(frozen=True)
class Curve:
    """A curve of updates, thinned to bins, all [m]: mean, lowest and highest update of each."""

    episodes: np.ndarray
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def thinned(episodes: np.ndarray, values: np.ndarray, groups: np.ndarray, most: int) -> Curve:
    """Thin a curve to about `most` bins of consecutive updates; none spans two groups (trials). NaN values are left out."""
    known = np.isfinite(values)
    episodes, values, groups = episodes[known], values[known], groups[known]
    if not len(values):
        return Curve(*np.empty((4, 0)))
    size = -(-len(values) // most)
    changes = np.flatnonzero(np.diff(groups)) + 1
    starts = np.concatenate(
        [np.arange(a, b, size) for a, b in zip([0, *changes], [*changes, len(values)], strict=True)]
    ).astype(int)
    counts = np.diff([*starts, len(values)])
    return Curve(
        np.add.reduceat(episodes, starts) / counts,
        np.add.reduceat(values, starts) / counts,
        np.minimum.reduceat(values, starts),
        np.maximum.reduceat(values, starts),
    )


# ---------------------------------------------------------------- where the time went


@dataclass(frozen=True)
class TimeUse:
    """Worker-seconds by what they were spent on."""

    parts: tuple[tuple[str, float], ...]
    wall_s: float | None  # None where it was not recorded
    workers: int | None

    @property
    def total(self) -> float:
        return sum(seconds for _, seconds in self.parts)


def time_use(run: Run) -> TimeUse:
    """Add up the training log, the trials' seconds and the sessions.

    While the search chooses, every worker waits, so choosing counts once per worker. What the recorded seconds leave of
    wall time times workers is waiting: for the other trials of a round, for the warm-up, for processes to start.
    """
    collecting = float(np.nansum(run.updates.collection_s))
    updating = float(np.nansum(run.updates.update_s))
    parts = []
    if run.warmup_document is not None:
        parts.append(("warm-up", float(run.warmup_document["seconds"])))
    parts += [("playing training episodes", collecting), ("updating the policy", updating)]
    if run.is_search:
        trials = sum(trial.seconds or 0.0 for trial in run.trials)
        parts.append(("gate, evaluation, files", max(0.0, trials - collecting - updating)))
    if not run.sessions:
        return TimeUse(_longer_than_nothing(parts), None, None)
    wall = sum(session.seconds for session in run.sessions)
    if run.is_search:
        parts.append(("choosing orders", sum(session.choosing_seconds * session.workers for session in run.sessions)))
    rest = sum(session.seconds * session.workers for session in run.sessions) - sum(seconds for _, seconds in parts)
    parts.append(("waiting" if run.is_search else "gate, evaluation, files", max(0.0, rest)))
    return TimeUse(_longer_than_nothing(parts), wall, max(session.workers for session in run.sessions))


def _longer_than_nothing(parts: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    return tuple((name, seconds) for name, seconds in parts if seconds > 0)


# ---------------------------------------------------------------- several runs


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ only in their seed, by seed."""

    label: str  # what tells it from the other groups
    runs: tuple[Run, ...]


def final_return(run: Run) -> float | None:
    """Return what a run is judged by: the best order's return, or the trained policy's."""
    if run.answer is not None:
        return run.answer.orders[0].mean
    if run.is_search:
        return None if run.ranked_trials is None else run.ranked_trials.ranking.rows[0].mean
    return None if run.result is None else run.result.mean


def group_runs(runs: Sequence[Run]) -> tuple[list[RunGroup], list[str]]:
    """Group runs that differ only in their seed, and say what was left out: a seed counts once."""
    groups: dict[str, list[Run]] = {}
    repeated = []
    for run in runs:
        group = groups.setdefault(repr(sorted(manifest.result_settings(run.kind, run.config).items())), [])
        twin = next((other for other in group if other.seed == run.seed), None)
        if twin is None:
            group.append(run)
        else:
            repeated.append(f"{run.name} has the configuration and seed of {twin.name}; it is left out of the comparison.")
    found = [sorted(group, key=lambda run: (str(run.seed), run.name)) for group in groups.values()]
    labels = _labels([manifest.result_settings(group[0].kind, group[0].config) for group in found])
    return [RunGroup(label, tuple(group)) for label, group in zip(labels, found, strict=True)], repeated


def differing_settings(settings: Sequence[dict[str, str]]) -> list[str]:
    """Return settings that differ between these; one that only some kinds of runs have must differ among those."""
    keys = dict.fromkeys(key for group in settings for key in group)
    differing = [key for key in keys if len({group[key] for group in settings if key in group}) > 1]
    return sorted(differing, key=lambda key: TELLING.index(key) if key in TELLING else len(TELLING))


def _labels(settings: Sequence[dict[str, str]]) -> list[str]:
    """Name the groups by as few settings as tell them apart."""
    parts: list[list[str]] = [[] for _ in settings]
    for key in differing_settings(settings):
        named = "" if key in SELF_EXPLAINING else f"{key} "
        words = [f"{named}{group[key]}" if key in group else "" for group in settings]
        if len({(*p, word) for p, word in zip(parts, words, strict=True)}) > len(set(map(tuple, parts))):
            for p, word in zip(parts, words, strict=True):
                p += [word] if word else []
    labels: list[str] = []
    for group, p in zip(settings, parts, strict=True):
        label = ", ".join(p) or group["kind"]
        same = sum(label == other.split(" #")[0] for other in labels)
        labels.append(f"{label} #{same + 1}" if same else label)
    return labels


@dataclass(frozen=True)
class GroupCourse:
    """Best return so far of a group's searches against training episodes, all [m]: mean over seeds and its t-interval."""

    label: str
    seeds: int
    episodes: np.ndarray
    mean: np.ndarray
    low: np.ndarray  # of a single seed: its own return
    high: np.ndarray
    range: tuple[float, float]  # the lowest and the highest return of any seed


def group_course(group: RunGroup) -> GroupCourse | None:
    """Return the course from where every run has an accepted order to where the first run ends; None if there is none."""
    steps = []
    for run in group.runs:
        known = [(e, b) for e, b in zip(episodes_used(run), best_so_far(run.trials), strict=True) if b is not None]
        if not known:
            return None
        steps.append(np.array(known))
    start, end = max(step[0, 0] for step in steps), min(step[-1, 0] for step in steps)
    grid = np.unique(np.concatenate([step[:, 0] for step in steps]))
    grid = grid[(grid >= start) & (grid <= end)]
    if not len(grid):
        return None
    grid = grid[np.unique(np.linspace(0, len(grid) - 1, COURSE_POINTS).astype(int))]
    values = np.stack([step[np.searchsorted(step[:, 0], grid, side="right") - 1, 1] for step in steps], axis=1)
    mean, low, high = zip(*map(intervals.mean_interval, values), strict=True)
    if len(group.runs) == 1:
        low = high = mean
    found = float(values.min()), float(values.max())
    return GroupCourse(group.label, len(group.runs), grid, np.array(mean), np.array(low), np.array(high), found)


# ---------------------------------------------------------------- the trainings of a search with one network


@dataclass(frozen=True)
class TrainingCourse:
    """What one training of a search earned after each round under its best order, and its own price of one swap."""

    number: int
    is_dropped: bool  # before the last round
    episodes: tuple[int, ...]  # with orders, of this training
    best: tuple[float, ...]
    prices: tuple[float, ...]  # NaN where it is not known


def training_courses(run: Run, episodes: Sequence[int], swap: tuple[str, str] | None) -> list[TrainingCourse]:
    """Return the course of every training. episodes: of one training after each round. swap: the one to be priced."""
    known: dict[int, dict[int, dict[str, float]]] = {}
    for row in run.rounds:
        known.setdefault(row.replicate, {}).setdefault(row.round, {})[row.workflow] = row.mean
    last, relevant = max((row.round for row in run.rounds), default=0), range(run.scheme.size)
    workflows = {text: Workflow.parse(text, run.scheme) for text in {row.workflow for row in run.rounds}}
    found = []
    for number, rounds in sorted(known.items()):
        prices = []
        for means in rounds.values():
            orders = [workflows[text] for text in means]
            price = float("nan")
            for each in pricing.price_swaps(orders, np.array([list(means.values())]), relevant) if swap else ():
                if swap in ((each.first, each.second), (each.second, each.first)):
                    price = each.price if swap == (each.first, each.second) else -each.price
            prices.append(price)
        after = tuple(episodes[place - 1] for place in rounds if place <= len(episodes))
        best = tuple(max(means.values()) for means in rounds.values())
        size = len(after)
        found.append(TrainingCourse(number, last not in rounds, after, best[:size], tuple(prices[:size])))
    return [course for course in found if course.episodes]
