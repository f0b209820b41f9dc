"""Evaluations for people and programs: a table, two worlds side by side, the leaderboard, CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fixfirst.base.errors import ConfigError
from fixfirst.play.comparison import Paired
from fixfirst.play.evaluation import Evaluation, difference
from fixfirst.play.leaderboard import COLUMNS, PUBLISHED, SOURCE, LeaderboardScore, column_name
from fixfirst.reporter.screen import folded
from fixfirst.runs.files import write_atomically


def side_by_side(ours: Sequence[Evaluation], theirs: Sequence[Evaluation], margin: float) -> str:
    """The same policy in both worlds, with the difference and the verdict of two one-sided tests."""
    head = f"{'red agent':10} {'steps':>5} {'simulator':>16} {'CybORG':>16} {'difference, 95 % interval':>30}"
    lines = [f"{head}  verdict at ±{margin:g}"]
    for a, b in zip(ours, theirs, strict=True):
        gap = difference(a, b, margin)
        shown = f"{gap.mean:+.2f} [{gap.low:+.2f}, {gap.high:+.2f}]"
        verdict = "equivalent" if gap.equivalent else f"not shown; these episodes would show ±{gap.smallest_margin:.2f}"
        earned = [f"{row.mean:.2f} ± {row.standard_error:.2f}" for row in (a, b)]
        lines.append(f"{a.red_agent:10} {a.steps:5} {earned[0]:>16} {earned[1]:>16} {shown:>30}  {verdict}")
        if a.compliance is not None and b.compliance is not None:
            lines.append(f"{'':10} {'':5} compliance: simulator {a.compliance.compliance}, CybORG {b.compliance.compliance}")
    lines.append(
        f"{theirs[0].episodes:,} episodes of each on CybORG and {ours[0].episodes:,} on the simulator, where they cost "
        f"nothing and make the difference more precise; variant {ours[0].variant}"
    )
    return "\n".join(lines)


def comparison_text(rows: Sequence[Paired], first: str, second: str, seed: int, width: int = 240) -> str:
    """Two policies: the difference against each red agent, what it means, and their worst episodes."""
    lines = [f"A: {first}", f"B: {second}"]
    lines.append(f"{'red agent':10} {'steps':>5} {'A':>9} {'B':>9} {'B - A':>9} {'95 % interval':>20}")
    for row in rows:
        interval = f"[{row.low:+.2f}, {row.high:+.2f}]"
        lines.append(f"{row.red_agent:10} {row.steps:5} {row.first:9.2f} {row.second:9.2f} {row.mean:+9.2f} {interval:>20}")
    lines += [_verdict(row) for row in rows]
    lines.append(f"{rows[0].episodes:,} episodes against each, the same for both, variant {rows[0].variant}")
    for name, attribute in (("A", "worst_of_first"), ("B", "worst_of_second")):
        for row in rows:
            told = "; ".join(f"{e.number}: A {e.first:.1f}, B {e.second:.1f}" for e in getattr(row, attribute))
            lines.append(f"worst of {name} against {row.red_agent}, episode {told}")
    more = f" --seed {seed}" if seed else ""
    worst = f"--number {rows[0].worst_of_first[0].number} --red-agent {rows[0].red_agent} --variant {rows[0].variant}"
    lines.append(f"next: fixfirst watch {first} --beside {second} {worst}{more}")
    return folded(lines, width)


def _verdict(row: Paired) -> str:
    """What an interval means, and what common luck was worth."""
    if row.independent_episodes is None:
        return f"{row.red_agent}: they earn the same in every episode"
    luck = f"two evaluations would need {row.independent_episodes:,} episodes each to be as sure"
    if row.different:
        return f"{row.red_agent}: {'B' if row.mean > 0 else 'A'} is better by {abs(row.mean):.2f}; {luck}"
    return f"{row.red_agent}: not told apart, the difference is below {max(-row.low, row.high):.2f}; {luck}"


def standing_table(standing: LeaderboardScore, name: str, width: int = 240) -> str:
    """Six columns and their total, beside the published ones; with less room, a line for each of the six."""
    ours = standing.columns
    label = max(len(name), *(len(row.name) for row in PUBLISHED))
    lines = _upright(standing, name) if width < label + 65 else _across(standing, name, label)
    for row in PUBLISHED:
        lead = standing.lead(row)
        lines.append(f"total less that of {row.name}: {lead.mean:+.2f} [{lead.low:+.2f}, {lead.high:+.2f}]")
    played = f"{ours[0].episodes:,} episodes against each, variant {ours[0].variant}"
    lines.append(f"B: b_line, M: meander, with the steps of an episode; {played}")
    lines.append(f"published: {SOURCE}")
    return folded(lines, width)


def _upright(standing: LeaderboardScore, name: str) -> list[str]:
    """A line per column."""
    lines = [
        f"{'':5} {'return':>8} {'± s.e.':>7} {'95 % interval':>18}"
        + "".join(f"{f'({n})':>8}" for n in range(1, len(PUBLISHED) + 1))
    ]
    names = [*(column_name(*column) for column in COLUMNS), "total"]
    ours: list[Any] = [*standing.columns, standing.total]
    theirs = [[*row.columns, row.total] for row in PUBLISHED]
    for column, cell, *published in zip(names, ours, *theirs, strict=True):
        interval, beside = f"[{cell.low:.2f}, {cell.high:.2f}]", "".join(f"{value:8.2f}" for value in published)
        lines.append(f"{column:5} {cell.mean:8.2f} {cell.standard_error:7.2f} {interval:>18}{beside}")
    return [name, *lines, *(f"({number}) {row.name}" for number, row in enumerate(PUBLISHED, start=1))]


def _across(standing: LeaderboardScore, name: str, label: int) -> list[str]:
    """A line per defender."""
    ours, total = standing.columns, standing.total

    def line(first: str, cells: Sequence[float], last: float) -> str:
        return f"{first:{label}} " + "".join(f"{cell:9.2f}" for cell in cells) + f"{last:10.2f}"

    lines = [f"{'':{label}} " + "".join(f"{column_name(*column):>9}" for column in COLUMNS) + f"{'total':>10}"]
    lines.append(line(name, [cell.mean for cell in ours], total.mean))
    lines.append(line("  standard error", [cell.standard_error for cell in ours], total.standard_error))
    lines.append(line("  95 % interval, from", [cell.low for cell in ours], total.low))
    lines.append(line("  to", [cell.high for cell in ours], total.high))
    return [*lines, *(line(row.name, row.columns, row.total) for row in PUBLISHED)]


def standing_document(standing: LeaderboardScore) -> dict[str, Any]:
    """The same for programs."""
    names = [column_name(*column) for column in COLUMNS]
    return {
        "variant": standing.columns[0].variant,
        "episodes": standing.columns[0].episodes,
        "columns": {name: asdict(cell) for name, cell in zip(names, standing.columns, strict=True)},
        "total": standing.total._asdict(),
        "published": [
            {
                "name": row.name,
                "columns": dict(zip(names, row.columns, strict=True)),
                "total": row.total,
                "margin": row.margin,
                "lead": standing.lead(row)._asdict(),
            }
            for row in PUBLISHED
        ],
        "source": SOURCE,
    }


NARROW = 110  # columns that a line with compliance needs
CSV_COLUMNS = ("red_agent", "steps", "variant", "episodes", "mean", "standard_error", "low", "high")
RATES = ("compliance", "contested", "effectiveness", "response")


def evaluation_table(rows: Sequence[Evaluation], width: int = 240) -> str:
    """For people: a line per setting, then the sum that the challenge ranks by. With less room, three lines per setting."""
    lines = [f"{'red agent':10} {'steps':>5} {'return':>9} {'± s.e.':>7} {'95 % interval':>20}  compliance"]
    narrow = width < NARROW
    for row in rows:
        interval = f"[{row.low:.2f}, {row.high:.2f}]"
        kept = ""
        if row.compliance is not None:
            rates = f"{row.compliance.compliance}", f"contested {row.compliance.contested}"
            kept = "".join(f"\n{'':18}{rate}" for rate in rates) if narrow else f"  {', '.join(rates)}"
        lines.append(f"{row.red_agent:10} {row.steps:5} {row.mean:9.2f} {row.standard_error:7.2f} {interval:>20}{kept}")
    total, error = sum(row.mean for row in rows), sum(row.standard_error**2 for row in rows) ** 0.5
    facts = f"({rows[0].episodes:,} episodes each, variant {rows[0].variant})"
    whole = f"{'sum':10} {'':5} {total:9.2f} {error:7.2f}"
    lines += [whole, facts] if narrow else [f"{whole}   {facts}"]
    return "\n".join(lines)


def write_csv(path: Path, rows: Sequence[Evaluation]) -> None:
    """The table as a CSV file."""
    try:
        write_atomically(path, as_csv(rows).encode())
    except OSError as e:
        raise ConfigError(f"{path}: cannot be written ({e.strerror})") from e


def as_csv(rows: Sequence[Evaluation]) -> str:
    """One line per setting; empty where there is no order to keep to."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [*CSV_COLUMNS, *(f"{rate}{part}" for rate in RATES for part in ("", "_low", "_high")), "repairs_per_episode"]
    )
    for row in rows:
        values: list[Any] = [getattr(row, column) for column in CSV_COLUMNS]
        for rate in RATES:
            shown = None if row.compliance is None else getattr(row.compliance, rate)
            values += ["", "", ""] if shown is None else [shown.value, shown.low, shown.high]
        writer.writerow([*values, "" if row.compliance is None else row.compliance.repairs_per_episode])
    return text.getvalue()
