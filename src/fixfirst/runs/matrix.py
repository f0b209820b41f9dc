"""The matrix of a league, round by round: what scripts, known attackers and fresh ones take from its defender."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fixfirst.runs.rows import MatrixRow

SCRIPT, LIVE, RESPONSE = "script", "live", "response"


@dataclass(frozen=True)
class Round:
    """How the defender stood after a round. All numbers are its returns; nearer 0 is better."""

    round: int
    updates: int
    scripts: Mapping[str, float]
    attackers: int  # that were frozen by then
    known: MatrixRow | None  # the one of earlier rounds that takes most
    fresh: MatrixRow | None  # of those that learned against the defender as it is: a lower bound of what can be taken

    @property
    def worst(self) -> MatrixRow | None:
        """The attacker that takes most."""
        return min((row for row in (self.known, self.fresh) if row is not None), key=lambda row: row.mean, default=None)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        rows = {"known": self.known, "fresh": self.fresh}
        return {
            "round": self.round,
            "updates": self.updates,
            "scripts": dict(self.scripts),
            "attackers": self.attackers,
        } | {name: None if row is None else row.values() for name, row in rows.items()}

    def in_words(self) -> str:
        """Return it in one line."""
        parts = [f"{name} {mean:.1f}" for name, mean in self.scripts.items()]
        if self.known is not None:
            parts.append(f"the worst of {self.attackers} attackers {self.known.mean:.1f}")
        if self.fresh is not None:
            parts.append(f"a fresh one {self.fresh.mean:.1f}")
        return f"round {self.round}, {self.updates} updates: {', '.join(parts)}"


def complete_rounds(rows: Sequence[MatrixRow]) -> list[MatrixRow]:
    """Return the rows without those of a round that is being written; ValueError if no league would write them.

    Rounds follow each other, and whoever is met in one is met in all that follow, in the same order, scripts first.
    """
    rounds = _by_round(rows)
    met = [[(row.attacker, row.kind, row.born) for row in here] for here in rounds.values()]
    if len(met) > 1 and len(met[-1]) < len(met[-2]):
        met.pop()
    orderly = list(rounds) == list(range(1, len(rounds) + 1)) and all(
        after[: len(before)] == before for before, after in pairwise(met)
    )
    new = [kind for here in met[1:] for _, kind, _ in here[len(met[0]) :]]  # scripts are met from the first round on
    if (
        not orderly
        or any(kind not in (SCRIPT, LIVE, RESPONSE) for here in met[:1] for _, kind, _ in here)
        or {*new} - {LIVE, RESPONSE}
    ):
        raise ValueError("its rows are not those of a league")
    if met and (len(set(met[-1])) < len(met[-1]) or len(met[-1]) * len(met) > _MOST_CELLS):
        raise ValueError(f"its rows name somebody twice, or make a table of more than {_MOST_CELLS:,} cells")
    return [row for number, here in rounds.items() if number <= len(met) for row in here]


_MOST_CELLS = 1_000_000  # a league of 18 rounds has 2,500


def _by_round(rows: Sequence[MatrixRow]) -> dict[int, list[MatrixRow]]:
    found: dict[int, list[MatrixRow]] = {}
    for row in rows:
        found.setdefault(row.round, []).append(row)
    return found


def rounds_of(rows: Sequence[MatrixRow]) -> list[Round]:
    """Return the rounds that a matrix holds, in their order."""
    found = []
    for number, here in sorted(_by_round(rows).items()):
        learned = [row for row in here if row.kind != SCRIPT]
        fresh = [row for row in learned if row.kind == RESPONSE and row.born == number]
        known = [row for row in learned if not (row.kind == RESPONSE and row.born == number)]
        found.append(
            Round(
                round=number,
                updates=here[0].updates,
                scripts={row.attacker: row.mean for row in here if row.kind == SCRIPT},
                attackers=len(learned),
                known=min(known, key=lambda row: row.mean, default=None),
                fresh=min(fresh, key=lambda row: row.mean, default=None),
            )
        )
    return found
