"""The report of a league: how its defender stood after every round, and the matrix of defenders and attackers."""

from fixfirst.reporter import figures
from fixfirst.reporter.document import Document, Draw, PageTable, Section, make_table, run_document
from fixfirst.reporter.texts import num, some
from fixfirst.runs import matrix
from fixfirst.runs.run import Run

_COURSE_TEXT = (
    "A league trains one defender against scripts, attackers of the past, and attackers that learn beside it. At the end of "
    "every round some attackers learn against the defender as it is then, playing its most probable actions. What the best "
    "of these fresh responses takes is a lower bound of what can be taken; it joins the others for the next round.",
    "The league has converged when a fresh response takes no more than the worst attacker that is known.",
)
_MATRIX_TEXT = (
    "A row is an attacker, a column the defender after a round; a number is the defender's return, on the same episodes for "
    "all. live: it learned beside the defender; response: against the defender at the end of its round. Each began from "
    "scratch, from an attacker of the past, or from one that comes with fixfirst. Below its own round a row shows whether "
    "the defender has learned to answer it."
)


def league_report(run: Run, draw: Draw) -> Document:
    """Build the report of a league."""
    rounds = matrix.rounds_of(run.matrix)
    last, worst = rounds[-1], rounds[-1].worst
    answer = [f"After {last.in_words()}."]
    merits = [(num(mean), f"return against {name}") for name, mean in last.scripts.items()]
    if worst is not None:
        told = "a fresh response" if worst is last.fresh else f"attacker {worst.attacker} of round {worst.born}"
        merits.insert(0, (num(worst.mean), f"return against the attacker that takes most, {told}: a lower bound"))
    return run_document(
        run,
        question="How much does this defender lose to attackers who learn?",
        lead="",
        headline=(f"A defender of a league, {some(last.round, 'round')}, {some(last.attackers, 'attacker')}",),
        figures_of_merit=tuple(merits),
        answer=tuple(answer),
        sections=[
            Section("Round by round", _COURSE_TEXT, (draw(lambda: figures.league_course(rounds)),), (_course(rounds),)),
            Section("Every defender and every attacker", (_MATRIX_TEXT,), tables=(_matrix(run),)),
        ],
    )


def _course(rounds: list[matrix.Round]) -> PageTable:
    scripts = list(rounds[0].scripts)
    columns = ("round", "updates", *scripts, "attackers", "worst known", "fresh response", "which began from")
    lines = []
    for one in rounds:
        known, fresh = (None if row is None else row.mean for row in (one.known, one.fresh))
        start = "-" if one.fresh is None else one.fresh.start or "-"
        lines.append((one.round, one.updates, *one.scripts.values(), one.attackers, known, fresh, start))
    return make_table("Round by round", columns, lines)


def _matrix(run: Run) -> PageTable:
    numbers = sorted({row.round for row in run.matrix})
    cells = {(row.attacker, row.round): row.mean for row in run.matrix}
    lines = []
    for row in {row.attacker: row for row in run.matrix}.values():
        kind = row.kind if row.born == 0 else f"{row.kind} of round {row.born}, from {row.start}"
        lines.append((row.attacker, kind, *(cells.get((row.attacker, number)) for number in numbers)))
    columns = ("attacker", "what it is", *(f"after {number}" for number in numbers))
    return make_table("Every defender and every attacker", columns, lines)
