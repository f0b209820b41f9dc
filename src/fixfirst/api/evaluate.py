"""`ff.evaluate`, `ff.leaderboard`, `ff.compare`: policies and baselines on episodes that none of them trained on."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from fixfirst.api.defenders import (
    Defender,
    PolicyLike,
    Say,
    game_and_judging,
    make_defender,
    settings_by_variant,
)
from fixfirst.api.replays import PURPOSE
from fixfirst.base import arguments, compile as machine_code, errors
from fixfirst.game.game_config import Game
from fixfirst.game.red_agents import names_listed
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.play import comparison, evaluation, leaderboard as leaderboards
from fixfirst.policy import reds
from fixfirst.reporter import live
from fixfirst.stats.evaluation import Evaluations

if TYPE_CHECKING:
    from fixfirst import typed

_RULES = {"variant": "leaderboard", "green": False}  # of the leaderboard


@arguments.checked(episodes=2)
def evaluate(
    policy: PolicyLike,
    *,
    workflow: str | None = None,
    greedy: bool = False,
    red_agent: str | Sequence[str] = evaluation.PROTOCOL_REDS,
    steps: int | Sequence[int] | None = None,
    episodes: int = 1_000,
    seed: int = 0,
    quiet: bool = False,
    say: Say = errors.note,
    **settings: Unpack["typed.EvaluateSettings"],
) -> Evaluations:
    """Play against every red agent at every length, on held-out episodes: mean returns with intervals, and compliance.

    policy: a run, a policy folder, a loaded policy, or a baseline (sleep, random, react-restore, react-remove,
    priority-restore); or your own agent: a function of observations [N, 52] that returns actions [N], a model of
    Stable-Baselines3, a CybORG agent, an ONNX file (`ff.Agent` lists them). workflow: the order to follow and be judged by,
    if the policy does not carry one. greedy: the most probable action instead of a drawn one. settings: variant, green,
    backend, cyborg, rule, count_foothold; the variant is the one that the policy was made for unless given. Unless quiet,
    stderr shows how far it is. say: is given a line if the order or the variant is not the policy's own.

    For example:

        for row in ff.evaluate("runs/first", red_agent="b_line", steps=(30, 100), episodes=1_000, quiet=True):
            print(row.red_agent, row.steps, row.mean, row.low, row.high, row.compliance)

    The result is a list that also has `to_pandas()`, `to_csv()` and `to_latex()`.
    """
    game_and_judging({**settings, "reward": None})  # refused before anything is loaded; a reward is one of a scenario
    lengths = None if steps is None else [arguments.check_int("steps", length) for length in _list_of("steps", steps)]
    attackers = _reds(red_agent)
    defender = make_defender(policy, workflow, greedy, say=say, settings=settings)
    (home,) = settings_by_variant([defender], settings, say)
    game, judging = game_and_judging(home)
    _tell_reward(game.scenario, say)
    own = (game.scenario.steps,) if game.scenario.steps is not None else evaluation.PROTOCOL_STEPS
    games = [game.against(red, max_steps=n) for red in attackers for n in lengths or own]
    batches = [batch for _, (batch,) in play_all([defender], games, episodes=episodes, seed=seed, quiet=quiet)]
    own_variant, played = defender.trained_variant, batches[0].variant
    if game.backend == "cyborg" and own_variant not in (None, played):
        say(f"{defender.name} was made for variant {own_variant}; this CybORG is {played}")
    rows = Evaluations(evaluation.evaluate(batch, judging) for batch in batches)
    rows.world = game.scenario.in_words()
    return rows


@arguments.checked(episodes=2)
def leaderboard(
    policy: PolicyLike,
    *,
    workflow: str | None = None,
    greedy: bool = False,
    episodes: int = 1_000,
    seed: int = 0,
    quiet: bool = False,
    say: Say = errors.note,
    **settings: Unpack["typed.EvaluateSettings"],
) -> leaderboards.LeaderboardScore:
    """Play the challenge's own table: 30, 50 and 100 steps against b_line and meander in variant leaderboard, and the total.

    policy, workflow, greedy, quiet and say as in `evaluate`. episodes: against each red agent; one of 100 steps counts for
    the shorter columns, too. settings: backend, cyborg, rule, count_foothold.

    For example:

        standing = ff.leaderboard("champion", greedy=True, episodes=1_000, quiet=True)
        print(standing.total)
    """
    for name, value in settings.items():
        if name in ("red_agent", "steps", "max_steps") or _RULES.get(name, value) != value:
            raise errors.ConfigError(
                "the leaderboard is played for 30, 50 and 100 steps against b_line and meander, in variant leaderboard, "
                f"without green: leave out {name} (--{name.replace('_', '-')})"
            )
    game, judging = game_and_judging({**settings, **_RULES, "max_steps": max(evaluation.PROTOCOL_STEPS)})
    if game.scenario != CAGE2:
        raise errors.ConfigError(f"the leaderboard is of CAGE2 and its reward, not of {game.scenario.label}: use evaluate")
    games = [game.against(red) for red in leaderboards.LEADERBOARD_REDS]
    defender = make_defender(policy, workflow, greedy, say=say, settings={"scenario": CAGE2})
    settings_by_variant([defender], {**settings, **_RULES}, say)  # says so if it was made for another
    played = play_all([defender], games, episodes=episodes, seed=seed, quiet=quiet)
    return leaderboards.LeaderboardScore.of({game.attacker: batch for game, (batch,) in played}, judging)


@arguments.checked(episodes=2)
def compare(
    first: PolicyLike,
    second: PolicyLike,
    *,
    workflow: str | None = None,
    greedy: bool = False,
    red_agent: str | Sequence[str] = leaderboards.LEADERBOARD_REDS,
    steps: int | None = None,
    episodes: int = 2_000,
    seed: int = 0,
    quiet: bool = False,
    say: Say = errors.note,
    **settings: Unpack["typed.CompareSettings"],
) -> comparison.Comparisons:
    """Play both on the same held-out episodes: for every red agent what the second earns more, with an interval.

    first, second, workflow, greedy, settings, quiet and say as in `ff.evaluate`; the episodes are its own, too. Two that
    were made for different variants are compared in each of them. All intervals hold together with 95 % confidence.

        for row in ff.compare("runs/first", "champion"):
            print(row.red_agent, row.mean, row.low, row.high, row.different)
    """
    chosen: dict[str, Any] = {**settings} if steps is None else {**settings, "max_steps": steps}
    game_and_judging({**chosen, "reward": None})
    attackers, defenders, where = _reds(red_agent), list[Defender](), chosen
    for policy in (first, second):
        defenders.append(make_defender(policy, workflow, greedy, judged=False, say=say, settings=where))
        where = {"scenario": defenders[0].scenario}
    games = [
        game_and_judging(home)[0].against(red) for home in settings_by_variant(defenders, chosen, say) for red in attackers
    ]
    _tell_reward(defenders[0].scenario, say)
    played = play_all(defenders, games, episodes=episodes, seed=seed, quiet=quiet)
    rows = comparison.Comparisons(comparison.paired(a, b, len(games)) for _, (a, b) in played)
    rows.world = defenders[0].scenario.in_words()
    return rows


def play_all(
    defenders: Sequence[Defender], games: Sequence[Game], *, episodes: int, seed: int, quiet: bool = True, **options: Any
) -> Iterator[tuple[Game, list[evaluation.EpisodeBatch]]]:
    """Yield for each game what every defender played in it, all on the same held-out episodes. options: of `play`.

    Unless quiet, stderr shows how far it is.
    """
    seed, done = arguments.check_seed("seed", seed), 0
    for name, scenario in {} if quiet else dict.fromkeys((name, game.scenario) for game in games for name in game.learned):
        if reds.load_red(name, scenario).spec.picky:  # which scripts and other attackers leave to the game
            errors.note(f"{name} names its exploit: decoys do not fool it")
    machine_code.announce_compilation()
    with live.ProgressLine(episodes * len(games) * len(defenders), quiet=quiet) as progress:
        for game in games:
            batches = []
            for defender in defenders:

                def on_pass(passed: int, before: int = done, game: Game = game) -> None:
                    if progress.due():
                        progress.show(before + passed, f"{game.red_agent}, {game.max_steps} steps on {game.backend}")

                batches.append(
                    evaluation.play(
                        defender.player,
                        game,
                        episodes=episodes,
                        seed=seed,
                        purpose=PURPOSE,
                        workflows=defender.orders,
                        on_pass=on_pass,
                        **options,
                    )
                )
                done += episodes
            yield game, batches


def _reds(red_agent: Any) -> list[str]:
    """Return red agents: one, several in a list, or joined by commas. Weights make it one mixture."""
    return names_listed(red_agent) if isinstance(red_agent, str) else _list_of("red_agent", red_agent)


def _list_of(what: str, values: Any) -> list[Any]:
    """Return a list of one value, or of several in a list or tuple."""
    if isinstance(values, dict | set) or values is None or (isinstance(values, list | tuple) and not values):
        raise errors.ConfigError(f"{what} must be one value or a list of them, got {values!r}")
    return list(values) if isinstance(values, list | tuple) else [values]


def _tell_reward(scenario: Scenario, say: Say) -> None:
    if scenario.own_reward:
        say(f"{scenario.name}: {scenario.stakes}")
