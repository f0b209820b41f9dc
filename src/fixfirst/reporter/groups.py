"""Runs that differ only in their seed, and what tells groups of them apart."""

from collections.abc import Sequence
from dataclasses import dataclass

from fixfirst.reporter.run import Run

# Those that name a group of runs first, and those whose values need no name beside them.
_FIRST = ("kind", "red_agent", "strategy", "workflow", "total_episodes", "variant", "preset", "inherit", "round_size")
_SELF_EXPLAINING = ("kind", "red_agent", "strategy")


@dataclass(frozen=True)
class RunGroup:
    """Runs that differ only in their seed, by seed."""

    label: str  # what tells it from the other groups
    runs: tuple[Run, ...]


def group_runs(runs: Sequence[Run]) -> tuple[list[RunGroup], list[str]]:
    """Group runs that differ only in their seed, and say what was left out: a seed counts once."""
    by_settings: dict[str, list[Run]] = {}
    repeated = []
    for run in runs:
        group = by_settings.setdefault(repr(sorted(run.result_settings.items())), [])
        twin = next((other for other in group if other.seed == run.seed), None)
        if twin is None:
            group.append(run)
        else:
            repeated.append(f"{run.name} has the configuration and seed of {twin.name}; it is left out of the comparison.")
    groups = [sorted(group, key=lambda run: (str(run.seed), run.name)) for group in by_settings.values()]
    labels = _labels([group[0].result_settings for group in groups])
    return [RunGroup(label, tuple(group)) for label, group in zip(labels, groups, strict=True)], repeated


def differing_settings(settings: Sequence[dict[str, str]]) -> list[str]:
    """Return settings that differ between these; one that only some kinds of runs have must differ among those."""
    keys = dict.fromkeys(key for group in settings for key in group)
    differing = [key for key in keys if len({group[key] for group in settings if key in group}) > 1]
    return sorted(differing, key=lambda key: _FIRST.index(key) if key in _FIRST else len(_FIRST))


def _labels(settings: Sequence[dict[str, str]]) -> list[str]:
    """Name the groups by as few settings as tell them apart."""
    parts: list[list[str]] = [[] for _ in settings]
    for key in differing_settings(settings):
        named = "" if key in _SELF_EXPLAINING else f"{key} "
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
