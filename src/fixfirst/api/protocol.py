"""`fixfirst evaluate`: a policy or a baseline on CAGE2's protocol, as a table, JSON or CSV."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fixfirst.cyborg.backends import Backend
from fixfirst.errors import ConfigError
from fixfirst.game.network import VariantName
from fixfirst.game.world import red_agent_name
from fixfirst.learner.checkpoint import load_policy
from fixfirst.orders.compliance import Rule
from fixfirst.orders.workflow import Workflow
from fixfirst.play.baselines import BASELINES, make_baseline
from fixfirst.play.evaluation import PROTOCOL_PURPOSE, PROTOCOL_REDS, PROTOCOL_STEPS, Evaluation, difference, evaluate
from fixfirst.play.rollout import Player, PolicyTable
from fixfirst.reporter.screen import Progress
from fixfirst.runs.files import write_atomically


def make_player(what: str, workflow: str | None, greedy: bool) -> tuple[Player, tuple[Workflow, ...]]:
    """A baseline by name, or the policy in a file or run, with the workflows it is judged against."""
    if what in BASELINES:
        orders: tuple[Workflow, ...] = () if workflow is None else (Workflow.parse(workflow),)
        return make_baseline(what, orders), orders
    if not Path(what).exists():
        raise ConfigError(f"{what!r} is neither a file or run nor a baseline ({', '.join(BASELINES)})")
    policy = load_policy(what)
    orders = policy.orders(workflow)
    player = PolicyTable(policy.probabilities, orders, greedy=greedy)
    if policy.scheme is None and workflow is not None:  # it cannot follow an order, but can be judged by one
        return player, (Workflow.parse(workflow),)
    return player, orders


def run_protocol(
    what: str,
    *,
    workflow: str | None = None,
    greedy: bool = False,
    red_agents: Sequence[str] = PROTOCOL_REDS,
    steps: Sequence[int] = PROTOCOL_STEPS,
    episodes: int = 1_000,
    variant: VariantName = "current",
    green: bool = False,
    rule: Rule = "no_higher",
    count_foothold: bool = False,
    seed: int = 0,
    backend: Backend = "simulator",
    cyborg: str | None = None,
    quiet: bool = True,
) -> list[Evaluation]:
    """Every red agent at every length, on held-out episodes. Unless quiet, stderr shows how far it is."""
    if episodes < 2:
        raise ConfigError(f"episodes must be at least 2 for a standard error, got {episodes}")
    player, orders = make_player(what, workflow, greedy)
    rows: list[Evaluation] = []
    settings = [(red_agent_name(red), length) for red in red_agents for length in steps]
    with Progress(episodes * len(settings), quiet=quiet) as progress:
        for red, length in settings:
            before, name = episodes * len(rows), f"{red}, {length} steps on {backend}"

            def on_pass(done: int, before: int = before, name: str = name) -> None:
                if progress.due():
                    progress.show(before + done, name)

            evaluation = evaluate(
                player,
                red_agent=red,
                steps=length,
                episodes=episodes,
                seed=seed,
                purpose=PROTOCOL_PURPOSE,
                workflows=orders,
                rule=rule,
                count_foothold=count_foothold,
                variant=variant,
                green=green,
                backend=backend,
                cyborg=cyborg,
                on_pass=on_pass,
            )
            rows.append(evaluation)
    return rows


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
        f"{ours[0].episodes:,} episodes on the simulator, {theirs[0].episodes:,} on CybORG, variant {ours[0].variant}"
    )
    return "\n".join(lines)


COLUMNS = ("red_agent", "steps", "variant", "episodes", "mean", "standard_error", "low", "high")
RATES = ("compliance", "contested", "effectiveness", "response")


def table(rows: Sequence[Evaluation]) -> str:
    """For people: a line per setting, then the sum that the challenge ranks by."""
    lines = [f"{'red agent':10} {'steps':>5} {'return':>9} {'± s.e.':>7} {'95 % interval':>20}  compliance"]
    for row in rows:
        interval = f"[{row.low:.2f}, {row.high:.2f}]"
        kept = "" if row.compliance is None else f"  {row.compliance.compliance}, contested {row.compliance.contested}"
        lines.append(f"{row.red_agent:10} {row.steps:5} {row.mean:9.2f} {row.standard_error:7.2f} {interval:>20}{kept}")
    total, error = sum(row.mean for row in rows), sum(row.standard_error**2 for row in rows) ** 0.5
    lines.append(
        f"{'sum':10} {'':5} {total:9.2f} {error:7.2f}   ({rows[0].episodes:,} episodes each, variant {rows[0].variant})"
    )
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
        [*COLUMNS, *(f"{rate}{part}" for rate in RATES for part in ("", "_low", "_high")), "repairs_per_episode"]
    )
    for row in rows:
        values: list[Any] = [getattr(row, column) for column in COLUMNS]
        for rate in RATES:
            shown = None if row.compliance is None else getattr(row.compliance, rate)
            values += ["", "", ""] if shown is None else [shown.value, shown.low, shown.high]
        writer.writerow([*values, "" if row.compliance is None else row.compliance.repairs_per_episode])
    return text.getvalue()
