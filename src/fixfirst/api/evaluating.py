"""`ff.evaluate`: a policy or a baseline on CAGE2's protocol, on episodes it never trained on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fixfirst.api.settings import game_and_judging
from fixfirst.errors import ConfigError
from fixfirst.game import announce_compilation, red_agent_name
from fixfirst.learner import Policy, load_policy
from fixfirst.orders import Workflow
from fixfirst.play import (
    BASELINES,
    PROTOCOL_PURPOSE,
    PROTOCOL_REDS,
    PROTOCOL_STEPS,
    Evaluation,
    Player,
    make_baseline,
)
from fixfirst.play import evaluate as evaluate_player
from fixfirst.reporter import Progress

Named = str | Path | Policy  # a run, a policy's folder or file, a baseline's name, or a policy itself


def evaluate(
    policy: Named,
    *,
    workflow: str | None = None,
    greedy: bool = False,
    red_agent: str | Sequence[str] = PROTOCOL_REDS,
    steps: int | Sequence[int] = PROTOCOL_STEPS,
    episodes: int = 1_000,
    seed: int = 0,
    quiet: bool = False,
    **settings: Any,
) -> list[Evaluation]:
    """Every red agent at every length, on held-out episodes: mean returns with intervals, and compliance.

    policy: a run, a policy folder, a loaded policy, or a baseline (sleep, random, react-restore, react-remove,
    priority-restore). workflow: the order to follow and be judged by, if the policy does not carry one. greedy: the most
    probable action instead of a drawn one. settings: variant, green, backend, cyborg, rule, count_foothold. Unless quiet,
    stderr shows how far it is.
    """
    game, judging = game_and_judging(settings)
    reds = red_agent.split(",") if isinstance(red_agent, str) else red_agent
    lengths = [steps] if isinstance(steps, int) else steps
    games = [
        game.model_copy(update={"red_agent": red_agent_name(red), "max_steps": length}) for red in reds for length in lengths
    ]
    player, orders = make_player(policy, workflow, greedy)
    announce_compilation()
    rows: list[Evaluation] = []
    with Progress(episodes * len(games), quiet=quiet) as progress:
        for played in games:
            before, name = episodes * len(rows), f"{played.red_agent}, {played.max_steps} steps on {played.backend}"

            def on_pass(done: int, before: int = before, name: str = name) -> None:
                if progress.due():
                    progress.show(before + done, name)

            rows.append(
                evaluate_player(
                    player,
                    played,
                    episodes=episodes,
                    seed=seed,
                    purpose=PROTOCOL_PURPOSE,
                    judging=judging,
                    workflows=orders,
                    on_pass=on_pass,
                )
            )
    return rows


def make_player(policy: Named, workflow: str | None, greedy: bool) -> tuple[Player, tuple[Workflow, ...]]:
    """A baseline by name, or a policy, with the workflows it is judged against."""
    if isinstance(policy, str) and policy in BASELINES:
        orders: tuple[Workflow, ...] = () if workflow is None else (Workflow.parse(workflow),)
        return make_baseline(policy, orders), orders
    loaded = load_named(policy)
    orders, player = loaded.orders(workflow), loaded.player(workflow if loaded.scheme is not None else None, greedy=greedy)
    if loaded.scheme is None and workflow is not None:  # it cannot follow an order, but can be judged by one
        return player, (Workflow.parse(workflow),)
    return player, orders


def load_named(policy: Named) -> Policy:
    """The policy itself, or the one in a run, folder or file."""
    if isinstance(policy, Policy):
        return policy
    if not Path(policy).exists():
        raise ConfigError(f"{str(policy)!r} is neither a file or run nor a baseline ({', '.join(BASELINES)})")
    return load_policy(policy)
