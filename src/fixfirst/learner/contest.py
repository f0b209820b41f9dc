"""Several that compete in one stage of a training: where each begins, and what those that may go on have earned."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fixfirst.learner.interface import part_of
from fixfirst.learner.openings import Opening
from fixfirst.policy.network import Weights

Tensors = dict[str, np.ndarray]


@dataclass(frozen=True)
class Candidate:
    """A policy after a stage, with the opening it is to have: what they earned, and what is needed to go on."""

    mean: float
    opening: Opening
    tensors: Tensors


@dataclass(frozen=True)
class Contest:
    """Of a stage. Each that competes begins with an opening, from one of the origins: a learner's tensors; none: scratch."""

    entrants: tuple[tuple[Opening, int], ...]
    origins: tuple[Tensors, ...] = ()
    best: tuple[Candidate, ...] = ()  # so far, the best first

    @classmethod
    def from_scratch(cls, opening: Opening, entrants: int) -> "Contest":
        return cls(((opening, 0),) * entrants)

    @classmethod
    def going_on(cls, candidates: Sequence[Candidate]) -> "Contest":
        """Of those that come from another one."""
        origins: list[Tensors] = []
        for candidate in candidates:
            if not any(candidate.tensors is tensors for tensors in origins):
                origins.append(candidate.tensors)
        numbers = {id(tensors): number for number, tensors in enumerate(origins)}
        return cls(tuple((each.opening, numbers[id(each.tensors)]) for each in candidates), tuple(origins))

    def begins(self, place: int) -> tuple[Opening, Tensors | None]:
        """Opening and tensors of one of them; None: from scratch."""
        opening, origin = self.entrants[place]
        return opening, self.origins[origin] if self.origins else None

    def entered(self, candidates: Sequence[Candidate], advance: int) -> "Contest":
        """With some more that have been trained; so many may go on."""
        return replace(self, best=tuple(sorted((*self.best, *candidates), key=lambda each: -each.mean)[:advance]))

    # ---- saving

    def numbers(self) -> dict[str, Any]:
        """All but the tensors, JSON-ready."""
        return {
            "entrants": [[list(opening), origin] for opening, origin in self.entrants],
            "origins": len(self.origins),
            "best": [[candidate.mean, list(candidate.opening)] for candidate in self.best],
        }

    def tensors(self) -> Tensors:
        """By name."""
        groups = {f"origin{place}.": tensors for place, tensors in enumerate(self.origins)}
        groups |= {f"best{place}.": candidate.tensors for place, candidate in enumerate(self.best)}
        return {f"{prefix}{name}": tensor for prefix, group in groups.items() for name, tensor in group.items()}

    @classmethod
    def restored(cls, numbers: dict[str, Any], tensors: Weights) -> "Contest":
        """From what `check_ints` and `tensors` told."""
        best = tuple(
            Candidate(mean, tuple(opening), part_of(tensors, f"best{place}."))
            for place, (mean, opening) in enumerate(numbers["best"])
        )
        origins = tuple(part_of(tensors, f"origin{place}.") for place in range(numbers["origins"]))
        entrants = tuple((tuple(opening), origin) for opening, origin in numbers["entrants"])
        return cls(entrants, origins, best)
