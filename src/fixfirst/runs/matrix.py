"""The matrix of a league, round by round: what scripts, known attackers and fresh ones take from its defender."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from fixfirst.runs.rows import AttackerKind, MatrixRow


@dataclass(frozen=True)
class Round:
    """How the defender stood after a round. All numbers are its returns; nearer 0 is better."""

    round: int
    updates: int
    scripts: Mapping[str, float]
    attackers: int  # that were frozen by then
    known: MatrixRow | None  # the one of earlier rounds that takes most
    fresh: MatrixRow | None  # of those that learned against the defender as it is: a lower bound of what can be taken

    @classmethod
    def of(cls, number: int, rows: Sequence[MatrixRow]) -> "Round":
        """Sum up the rows of one round."""
        learned = [row for row in rows if row.kind != AttackerKind.SCRIPT]
        fresh = [row for row in learned if row.kind == AttackerKind.RESPONSE and row.born == number]
        return cls(
            round=number,
            updates=rows[0].updates,
            scripts={row.attacker: row.mean for row in rows if row.kind == AttackerKind.SCRIPT},
            attackers=len(learned),
            known=_worst(row for row in learned if row not in fresh),
            fresh=_worst(fresh),
        )

    @property
    def worst(self) -> MatrixRow | None:
        """The attacker that takes most."""
        return _worst(row for row in (self.known, self.fresh) if row is not None)

    def in_words(self) -> str:
        """Return it in one line."""
        parts = [f"{name} {mean:.1f}" for name, mean in self.scripts.items()]
        if self.known is not None:
            parts.append(f"the worst of {self.attackers} attackers {self.known.mean:.1f}")
        if self.fresh is not None:
            parts.append(f"a fresh one {self.fresh.mean:.1f}")
        return f"round {self.round}, {self.updates} updates: {', '.join(parts)}"


def _worst(rows: Iterable[MatrixRow]) -> MatrixRow | None:
    return min(rows, key=lambda row: row.mean, default=None)


def rounds_of(rows: Sequence[MatrixRow]) -> list[Round]:
    """Return the rounds that a matrix holds, in their order."""
    return [Round.of(number, list(group)) for number, group in groupby(rows, key=lambda row: row.round)]
