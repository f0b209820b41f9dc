"""The report of a league."""

from collections.abc import Sequence

from fixfirst.base.tables import Column, Table, plain
from fixfirst.reporter import curves, texts
from fixfirst.reporter.document import Document, Section, run_document
from fixfirst.reporter.run import Run
from fixfirst.reporter.verdicts import some
from fixfirst.runs import matrix

WORST, FRESH = "worst known attacker", "best fresh response"


def league_report(run: Run) -> Document:
    """Build the report of a league."""
    rounds = matrix.rounds_of(run.matrix)
    last, worst = rounds[-1], rounds[-1].worst
    merits = [(plain(mean), f"return against {name}") for name, mean in last.scripts.items()]
    if worst is not None:
        who = "a fresh response" if worst is last.fresh else f"attacker {worst.attacker} of round {worst.born}"
        merits.insert(0, (plain(worst.mean), f"return against the attacker that takes most, {who}: a lower bound"))
    table = _course(rounds)
    figure = curves.course(
        "league",
        table,
        (*last.scripts, WORST, FRESH),
        "What scripts, known attackers and fresh ones leave the defender after each round.",
        unit="round {}",
        x="round",
        y="return of the defender",
    )
    return run_document(
        run,
        question="How much does this defender lose to attackers who learn?",
        lead="",
        headline=(f"A defender of a league, {some(last.round, 'round')}, {some(last.attackers, 'attacker')}",),
        figures_of_merit=tuple(merits),
        answer=(f"After {last.in_words()}.",),
        sections=[
            Section("Round by round", texts.LEAGUE_COURSE, (figure,), (table,)),
            Section("Every defender and every attacker", (texts.LEAGUE_MATRIX,), tables=(_matrix(run),)),
        ],
    )


def _course(rounds: Sequence[matrix.Round]) -> Table:
    """Return a row per round."""
    rows = []
    for each in rounds:
        known, fresh = (None if row is None else row.mean for row in (each.known, each.fresh))
        start = None if each.fresh is None else each.fresh.start or None
        rows.append((each.round, each.updates, *each.scripts.values(), each.attackers, known, fresh, start))
    columns = ("round", "updates", *rounds[0].scripts, "attackers", WORST, FRESH, "which began from")
    return Table(columns, tuple(rows), tuple(Column(name, name) for name in columns), "Round by round")


def _matrix(run: Run) -> Table:
    """Return a row per attacker, with what it leaves the defender after each round."""
    numbers = sorted({row.round for row in run.matrix})
    means = {(row.attacker, row.round): row.mean for row in run.matrix}
    rows = []
    for row in {row.attacker: row for row in run.matrix}.values():
        kind = row.kind if row.born == 0 else f"{row.kind} of round {row.born}, from {row.start}"
        rows.append((row.attacker, kind, *(means.get((row.attacker, number)) for number in numbers)))
    columns = ("attacker", "what it is", *(f"after {number}" for number in numbers))
    return Table(columns, tuple(rows), title="Every defender and every attacker")
