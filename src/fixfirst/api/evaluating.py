"""`ff.evaluate` and `ff.leaderboard`: a policy or a baseline on CAGE2's protocol, on episodes it never trained on."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fixfirst.api.settings import game_and_judging
from fixfirst.base.checks import check_bool, check_int, check_path, check_seed
from fixfirst.base.compile import announce_compilation
from fixfirst.base.errors import ConfigError, did_you_mean, quoted
from fixfirst.game.game import red_agent_name
from fixfirst.orders.order import Workflow
from fixfirst.play.baselines import BASELINES, make_baseline
from fixfirst.play.evaluation import (
    PROTOCOL_PURPOSE,
    PROTOCOL_REDS,
    PROTOCOL_STEPS,
    EpisodeBatch,
    Evaluation,
    check_enough,
    evaluate as evaluate_player,
    play,
)
from fixfirst.play.leaderboard import LEADERBOARD_REDS, LeaderboardScore, leaderboard_score
from fixfirst.play.rollout import Player
from fixfirst.policy.file import Policy, load_policy, shipped_policies
from fixfirst.policy.table import PolicyTable
from fixfirst.reporter.live import Progress

Named = str | Path | Policy  # a run, a policy's folder or file, a baseline's name, or a policy itself

_RULES = {"variant": "leaderboard", "green": False}  # of the leaderboard


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

    For example:

        for row in ff.evaluate("runs/first", red_agent="b_line", steps=(30, 100), episodes=1_000, quiet=True):
            print(row.red_agent, row.steps, row.mean, row.low, row.high, row.compliance)
    """
    game, judging = game_and_judging(settings)
    check_enough(episodes)
    seed = check_seed("seed", seed)
    reds = listed_reds(red_agent)
    lengths = [check_int("steps", length) for length in list_of("steps", steps)]
    games = [
        game.model_copy(update={"red_agent": red_agent_name(red), "max_steps": length}) for red in reds for length in lengths
    ]
    player, orders = make_player(policy, workflow, greedy)
    announce_compilation()
    rows: list[Evaluation] = []
    with Progress(episodes * len(games), quiet=check_bool("quiet", quiet)) as progress:
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


def leaderboard(
    policy: Named,
    *,
    workflow: str | None = None,
    greedy: bool = False,
    episodes: int = 1_000,
    seed: int = 0,
    quiet: bool = False,
    **settings: Any,
) -> LeaderboardScore:
    """The challenge's own table: 30, 50 and 100 steps against b_line and meander in variant leaderboard, and their total.

    policy, workflow, greedy and quiet as in `evaluate`. episodes: against each red agent; one of 100 steps counts for the
    shorter columns, too. settings: backend, cyborg, rule, count_foothold.

    For example:

        standing = ff.leaderboard("champion", greedy=True, episodes=1_000, quiet=True)
        print(standing.total)
    """
    for name, value in settings.items():
        if name in ("red_agent", "steps", "max_steps") or _RULES.get(name, value) != value:
            raise ConfigError(
                "the leaderboard is played for 30, 50 and 100 steps against b_line and meander, in variant leaderboard, "
                f"without green: leave out {name} (--{name.replace('_', '-')})"
            )
    game, judging = game_and_judging(settings | _RULES | {"max_steps": max(PROTOCOL_STEPS)})
    check_enough(episodes)
    seed = check_seed("seed", seed)
    player, orders = make_player(policy, workflow, greedy)
    announce_compilation()
    played: dict[str, EpisodeBatch] = {}
    with Progress(episodes * len(LEADERBOARD_REDS), quiet=check_bool("quiet", quiet)) as progress:
        for red in LEADERBOARD_REDS:

            def on_pass(done: int, before: int = episodes * len(played), red: str = red) -> None:
                if progress.due():
                    progress.show(before + done, f"{red} on {game.backend}")

            played[red] = play(
                player,
                game.model_copy(update={"red_agent": red}),
                episodes=episodes,
                seed=seed,
                purpose=PROTOCOL_PURPOSE,
                workflows=orders,
                on_pass=on_pass,
            )
    return leaderboard_score(played, judging)


def listed_reds(red_agent: Any) -> list[Any]:
    """Red agents by name: one, several in a list, or joined by commas."""
    return red_agent.split(",") if isinstance(red_agent, str) else list_of("red_agent", red_agent)


def list_of(what: str, values: Any) -> list[Any]:
    """One value, or several in a list or tuple."""
    if isinstance(values, dict | set) or values is None:
        raise ConfigError(f"{what} must be one value or a list of them, got {quoted(values)}")
    return list(values) if isinstance(values, list | tuple) else [values]


def make_player(
    policy: Named, workflow: str | None, greedy: bool, later: Sequence[str] = ()
) -> tuple[Player, tuple[Workflow, ...]]:
    """A baseline by name, or a policy, with the workflows it is judged against. later: those it is told on the way."""
    greedy = check_bool("greedy", greedy)
    if isinstance(policy, str) and policy in BASELINES:
        if later and workflow is None:
            raise ConfigError(f"{policy} follows no order that could change: give the first one with --workflow")
        orders = tuple(Workflow.parse(text) for text in (workflow, *later) if text is not None)
        return make_baseline(policy, orders), orders
    loaded = load_named(policy)
    if later:
        if loaded.scheme is None:
            raise ConfigError(f"{policy} follows no order, so that none can change: train one with --workflow all")
        orders = loaded.orders(workflow) + tuple(Workflow.parse(text, loaded.scheme) for text in later)
        return PolicyTable(loaded.network, orders, spec=loaded.spec, greedy=greedy), orders
    orders, player = loaded.orders(workflow), loaded.player(workflow if loaded.scheme is not None else None, greedy=greedy)
    if loaded.scheme is None and workflow is not None:  # it cannot follow an order, but can be judged by one
        return player, (Workflow.parse(workflow),)
    return player, orders


def carried_order(policy: Named) -> Workflow | None:
    """The one order a policy was trained for; None for baselines and policies that follow any, or know none."""
    if isinstance(policy, str) and policy in BASELINES:
        return None
    loaded = load_named(policy)
    return None if loaded.follows_any else loaded.workflow


def knows_orders(policy: Named) -> bool:
    """Can it follow an order? So can the baseline that restores by one; the others are what they are."""
    return (isinstance(policy, str) and policy in BASELINES) or load_named(policy).scheme is not None


def load_named(policy: Named) -> Policy:
    """The policy itself, or the one in a run, folder or file."""
    if isinstance(policy, Policy):
        return policy
    policy = check_path("a policy", policy)
    if not policy.exists() and str(policy) not in shipped_policies():
        shipped = ", ".join(shipped_policies()) or "there is none"
        known = f"a baseline ({', '.join(BASELINES)}), nor a policy that comes with fixfirst ({shipped})"
        hint = did_you_mean(str(policy), (*BASELINES, *shipped_policies()))
        raise ConfigError(f"{str(policy)!r} is neither a file or run nor {known}{hint}")
    return load_policy(policy)
