"""Showing a search: a live picture on a terminal, plain lines elsewhere, and the final table. Progress goes to stderr."""

import time
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from fixfirst.orders.ranking import Ranking
from fixfirst.reporter.screen import Screen, budget_bar, duration, fitting_table, results, sparkline
from fixfirst.runs.ledger import ACCEPTED, Trial, accepted
from fixfirst.searcher.loop import WARMUP_KEY, Search
from fixfirst.searcher.strategy import Choice

SHOWN_ROWS = 8
PLAIN_EVERY_S = 10.0


class SearchView(Screen):
    """What the user sees while a search runs."""

    def __init__(self, *, quiet: bool = False):
        super().__init__(quiet=quiet)
        self._running: dict[int, list[tuple[int, float, float | None]]] = {}
        self._orders: dict[int, str] = {}
        self._decision = ""
        self._used_before = 0

    # ---- what the search reports (see `experiment.View`)

    def begin(self, search: Search) -> None:
        self._started = time.monotonic()
        self._used_before = search.used if search.trials else 0
        if search.trials:
            used = f"{search.used:,} of {search.config.total_episodes:,} episodes used"
            self.say(f"going on after {len(search.trials)} trials, {used}")

    def chosen(self, search: Search, number: int, choice: Choice) -> None:
        self._running.pop(WARMUP_KEY, None)
        self._running[number], self._orders[number] = [], str(choice.workflow)
        self._decision = in_words(number, choice)
        self.line(self._decision)

    def progress(self, search: Search, number: int, message: Any) -> None:
        kind, content = message
        if kind == "complaint":
            self.say(content)
            return
        self._orders.setdefault(number, "learning to defend, no order yet")
        self._running.setdefault(number, []).append(content)
        if self._live is not None:
            self._live.update(self._picture(search))
        elif time.monotonic() - self._said > PLAIN_EVERY_S:
            episodes, reward, compliance = content
            kept = "" if compliance is None else f", compliance {100 * compliance:.1f} %"
            self.line(f"{trial_name(number)}: {episodes:,} episodes, return {reward:.1f}{kept}; {self._time_left(search)}")

    def recorded(self, search: Search, trial: Trial) -> None:
        self._running.pop(int(trial["id"]), None)
        budget = f"{search.used:,}/{search.config.total_episodes:,} episodes used, {self._time_left(search)}"
        self.line(f"{trial_in_words(trial)}; {budget}")
        if self._live is not None:
            self._live.update(self._picture(search))

    # ---- the live picture

    def _picture(self, search: Search) -> Group:
        used = self._used(search)
        total = search.config.total_episodes
        head = budget_bar(used, total, f"{used:,}/{total:,}, {self._time_left(search)}")
        lines: list[Any] = [head, Text(self._decision, style="dim", no_wrap=True, overflow="ellipsis")]
        for number, curve in self._running.items():
            lines.append(Text(curve_in_words(number, self._orders[number], curve), no_wrap=True, overflow="ellipsis"))
        found = search.standings()
        if found is not None:
            lines.append(ranking_table(search, found.ranking, self._console.width, SHOWN_ROWS))
        return Group(*lines)

    def _used(self, search: Search) -> int:
        """Episodes used so far, with those of running trials."""
        running = sum(curve[-1][0] for curve in self._running.values() if curve)
        return running if WARMUP_KEY in self._running else search.used + running  # `search.used` has the warm-up as done

    def _time_left(self, search: Search) -> str:
        used = self._used(search)
        done = used - self._used_before
        if not done:
            return "time left unknown"
        seconds = (time.monotonic() - self._started) * (search.config.total_episodes - used) / done
        return f"{duration(seconds)} left"


def trial_name(number: int) -> str:
    return "warm-up" if number == WARMUP_KEY else f"trial {number}"


def in_words(number: int, choice: Choice) -> str:
    """Why an order was chosen."""
    if not choice.top:
        return f"trial {number}: {choice.workflow} ({choice.how})"
    best = choice.top[0]
    return f"trial {number}: {choice.workflow} (expects {best.mean:.1f} ± {best.std:.1f}, so at best {best.ucb:.1f})"


def trial_in_words(trial: Trial) -> str:
    """What became of a trial."""
    if trial.get("return_mean") is None:
        return f"trial {trial['id']}: {trial['status']}"
    kept = "no judged repair" if trial["compliance"] is None else f"compliance {100 * trial['compliance']:.1f} %"
    earned = f"return {trial['return_mean']:.2f} ± {trial['return_se']:.2f}"
    return f"trial {trial['id']}: {trial['status']}, {earned}, {kept}, {trial['episodes']:,} episodes"


def curve_in_words(number: int, order: str, curve: list[tuple[int, float, float | None]]) -> str:
    """A running trial: its order, its returns as a sparkline, its latest numbers."""
    if not curve:
        return f"{trial_name(number)} begins: {order}"
    episodes, reward, compliance = curve[-1]
    kept = "" if compliance is None else f", compliance {100 * compliance:.0f} %"
    return f"{trial_name(number)} {sparkline([r for _, r, _ in curve])} {reward:.1f}{kept}, {episodes:,} episodes: {order}"


def ranking_table(search: Search, ranking: Ranking, width: int, limit: int | None = None) -> Table:
    """Orders by return with simultaneous 95 % intervals, compliance, and which cannot be told from the best."""
    by_order: dict[str, Trial] = {}
    for trial in accepted(search.trials):
        if trial["return_mean"] > by_order.get(trial["workflow"], {"return_mean": -float("inf")})["return_mean"]:
            by_order[trial["workflow"]] = trial
    columns: dict[str, list[str]] = {
        "": [],
        "order": [],
        "return": [],
        "95 % interval": [],
        "compliance": [],
        "contested": [],
    }
    for place, row in enumerate(ranking.rows[:limit], start=1):
        trial = by_order[str(row.workflow)]
        columns[""].append(f"{place}{'*' if row.maybe_best else ' '}")
        columns["order"].append(str(row.workflow))
        columns["return"].append(f"{row.mean:.2f}")
        columns["95 % interval"].append(f"[{row.low:.2f}, {row.high:.2f}]")
        columns["compliance"].append(percent(trial["compliance"]))
        columns["contested"].append(percent(trial["contested_compliance"]))
    return fitting_table(columns, width)


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def print_result(search: Search) -> None:
    """The final table on stdout, and what to do next."""
    console = results()
    found, tried = search.standings(), len({trial["workflow"] for trial in search.trials})
    others = [trial for trial in search.trials if trial["status"] != ACCEPTED]
    facts = f"{search.used:,} training episodes, red agent {search.config.red_agent}, variant {search.config.variant}"
    console.print(f"{len(search.trials)} trials, {tried} orders tried, {facts}", soft_wrap=True)
    if found is None:
        console.print("No order passed the gate: raise --total-episodes or --max-episodes, or lower --compliance-threshold.")
        return
    console.print(ranking_table(search, found.ranking, console.width))
    if others:
        names = ", ".join(sorted({trial["workflow"] for trial in others}))
        console.print(f"{len(others)} trials did not pass the gate: {names}", soft_wrap=True)
    console.print(verdict_in_words(found.ranking), soft_wrap=True)
    console.print(
        f"Intervals allow for {found.spread:.2f} between two trainings of one order, estimated from neighbouring orders."
    )
    console.print(
        f"best policy: {search.folder / 'best'}\nnext:        fixfirst evaluate {search.folder / 'best'}", soft_wrap=True
    )


def verdict_in_words(ranking: Ranking) -> str:
    """How sure we are of the winner."""
    best, confidence = ranking.rows[0], f"{100 * ranking.confidence:.0f} %"
    earned = f"return {best.mean:.2f} [{best.low:.2f}, {best.high:.2f}]"
    if len(ranking.rows) == 1:
        return f"Only one order passed the gate: {best.workflow}, return {best.mean:.2f}."
    if ranking.winner is not None:
        return f"Best order ({confidence} confidence): {best.workflow}, {earned}."
    alike = len(ranking.maybe_best)
    return (
        f"{alike} of {len(ranking.rows)} orders (marked *) cannot be told from the best at {confidence} confidence; "
        f"highest: {best.workflow}, {earned}."
    )
