"""What commands print in the end: the answer of a search, a ranking, what seeds say together; or the same as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from fixfirst.base import errors
from fixfirst.base.tables import Table, plain
from fixfirst.reporter.screen import Copied, Strong, show
from fixfirst.reporter.texts import NOTHING_PASSED, some, verdict_in_words, verdict_over_seeds
from fixfirst.runs.layout import RunFiles
from fixfirst.stats import across_seeds
from fixfirst.stats.network_facts import NetworkFacts

if TYPE_CHECKING:
    from fixfirst.searcher.published import PublishedSearch
    from fixfirst.searcher.search import Search
    from fixfirst.searcher.shared import SharedSearch
    from fixfirst.stats.agreement import Agreement

_MOST_ANSWERS = 12  # searches of a study whose tables are printed; of more, a line each
_MOST_ROWS = 24  # of a table of orders
_Parts = list[str | Table]


def print_searches(searches: "Sequence[Search]", folder: Path, page: Path | None = None) -> None:
    """Print the final tables, and what to do next. folder: of the search, or of the study; page: the report, if any."""
    together: _Parts = []
    if not searches[0].config.separate:
        shared = cast("Sequence[SharedSearch]", searches)
        parts = _answers(shared)
        if len(searches) > 1:
            what = _together(shared)
            together = ["", Strong(f"{what.rule}."), *_sentences(what.sentences)]
    else:
        separate = cast("Sequence[PublishedSearch]", searches)
        parts = _ranking(separate[0]) if len(searches) == 1 else _seeds(separate, folder)
    report = [] if page is None else [Copied(f"report:      {page}")]
    show(*parts, *report, *together)


def searches_document(searches: "Sequence[Search]", folder: Path, page: Path | None = None) -> dict[str, Any]:
    """Return the same for JSON."""
    report = {"report": None if page is None else str(page)}
    if not searches[0].config.separate:
        shared = cast("Sequence[SharedSearch]", searches)
        documents = [{"run": str(s.folder), **s.answer.document()} for s in shared if s.answer is not None]
        if len(searches) == 1:
            return documents[0] | report
        together = _together(shared)
        words: dict[str, Any] = {"rule": together.rule, "sentences": list(together.sentences)}
        if together.survey is not None:
            words |= {"networks": together.survey.document()}
        return {"study": str(folder), **words, "runs": documents} | report
    separate = cast("Sequence[PublishedSearch]", searches)
    if len(searches) > 1:
        compared = [_comparison_document(c) for c in across_seeds.compare_seeds([search.result for search in separate])]
        return {"study": str(folder), "runs": [str(s.folder) for s in separate], "red_agents": compared} | report
    (search,) = separate
    ranked = search.standings
    rows = [] if ranked is None else [asdict(row) | {"workflow": str(row.workflow)} for row in ranked.ranking.rows]
    trials = [asdict(trial) for trial in search.trials]
    return {"run": str(search.folder), "episodes": search.used, "ranking": rows, "trials": trials} | report


def _comparison_document(comparison: across_seeds.Comparison) -> dict[str, Any]:
    return {
        "red_agent": comparison.red_agent,
        "seeds": [
            {"seed": seed, "workflow": row and str(row.workflow), "mean": row and row.mean}
            for seed, row in comparison.best.items()
        ],
        "spread": comparison.spread,
        "freedom": comparison.freedom,
        "verdict": verdict_over_seeds(comparison),
        "orders": [
            {
                "workflow": row["order"],
                **{name: row[name] for name in ("tried", "accepted", "maybe_best", "mean", "low", "high")},
                "pooled_maybe_best": row["maybe_best_of_all"],
            }
            for row in comparison.orders.dicts()
        ],
    }


def _together(searches: "Sequence[SharedSearch]") -> "Agreement":
    """Say what those that are finished find together."""
    from fixfirst.stats.agreement import Agreement  # only several searches need it

    finished = [search for search in searches if search.answer is not None]
    answers = [search.answer for search in finished if search.answer is not None]
    return Agreement.of(answers, [NetworkFacts.of(search.config.scheme) for search in finished])


def _answers(searches: "Sequence[SharedSearch]") -> _Parts:
    """Return the rule, what does not matter, the swaps, the orders, of every search."""
    finished = [(search, search.answer) for search in searches if search.answer is not None]
    if len(finished) > _MOST_ANSWERS:
        lines = [f"{search.folder.name}: {answer.sentences[0]}" for search, answer in finished]
        return [*lines, Copied(f"next:        {errors.command('report', searches[0].folder)}")]
    parts: _Parts = []
    for search, answer in finished:
        parts += ["", Copied(f"{search.folder.name}:")] if len(finished) > 1 else []
        parts += _sentences(answer.sentences)
        for table in answer.tables():
            parts += _beginning(table)
        if answer.adaptive is not None:
            parts += [f"{answer.adaptive.lead}:", answer.adaptive.swaps_table()]
            parts += _beginning(answer.adaptive.orders_table(answer))
        where = search.config.training.game.where
        parts.append(Copied(f"{answer.episodes:,} training episodes, {where}; {answer.trainings}"))
    best = RunFiles(searches[0].folder).best
    policies = f"policies:    {searches[0].folder.parent}/*/{RunFiles.best} (each follows any order)"
    policy = policies if len(searches) > 1 else f"policy:      {best} (follows any order)"
    return [*parts, Copied(policy), Copied(f"next:        {errors.command('evaluate', best)}")]


def _sentences(sentences: Sequence[str]) -> _Parts:
    """Return what a person should read, the first sentence strong."""
    return [text if number else Strong(text) for number, text in enumerate(sentences)]


def _beginning(table: Table) -> _Parts:
    """Return a table of orders, which is cut off somewhere."""
    more = len(table.rows) - _MOST_ROWS
    return [replace(table, rows=table.rows[:_MOST_ROWS]), *([f"... and {more} more; --json lists all"] if more > 0 else [])]


def _ranking(search: "PublishedSearch") -> _Parts:
    """Return what a search with a training per order says."""
    ranked, game, best = search.standings, search.config.training.game, RunFiles(search.folder).best
    tried = f"{some(len(search.trials), 'trial')}, {some(len({t.workflow for t in search.trials}), 'order')} tried"
    parts: _Parts = [f"{tried}, {search.used:,} training episodes, red agent {game.red_agent}, {game.where}"]
    if ranked is None:
        return [*parts, NOTHING_PASSED]
    parts += _beginning(search.table())
    if others := [trial for trial in search.trials if not trial.accepted]:
        names = ", ".join(sorted({trial.workflow for trial in others}))
        parts.append(f"{some(len(others), 'trial')} did not pass the gate: {names}")
    spread = f"{ranked.spread:.2f} between two trainings of one order, estimated from neighbouring orders"
    parts += [verdict_in_words(ranked.ranking), f"Intervals allow for {spread}."]
    return [*parts, Copied(f"best policy: {best}"), Copied(f"next:        {errors.command('evaluate', best)}")]


def _seeds(searches: "Sequence[PublishedSearch]", folder: Path) -> _Parts:
    """Return what several of them say together."""
    used, trials = (sum(counts) for counts in zip(*((s.used, len(s.trials)) for s in searches), strict=True))
    variant = searches[0].config.training.game.variant
    parts: _Parts = [f"{len(searches)} searches, {trials} trials, {used:,} training episodes, variant {variant}"]
    for each in across_seeds.compare_seeds([search.result for search in searches]):
        parts += ["", Strong(f"red agent {each.red_agent}, {len(each.best)} seeds")]
        for seed, best in each.best.items():
            what = "no order passed the gate" if best is None else f"{plain(best.mean)}  {best.workflow}"
            parts.append(f"seed {seed}: best {what}")
        parts += [*_beginning(each.orders), verdict_over_seeds(each)]
    following = errors.command("evaluate", searches[0].folder)
    return [*parts, Copied(f"policies: {folder}/*/{RunFiles.best}"), Copied(f"next:     {following}")]
