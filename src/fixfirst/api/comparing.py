"""`ff.compare`: are two policies different, and by how much?"""

from collections.abc import Sequence
from typing import Any

from fixfirst.api.evaluating import Named, listed_reds, make_player
from fixfirst.api.settings import game_and_judging
from fixfirst.base.checks import check_bool, check_seed
from fixfirst.base.compile import announce_compilation
from fixfirst.game.game import red_agent_name
from fixfirst.play.comparison import Paired, paired
from fixfirst.play.evaluation import PROTOCOL_PURPOSE, EpisodeBatch, check_enough, play
from fixfirst.play.leaderboard import LEADERBOARD_REDS
from fixfirst.reporter.live import Progress


def compare(
    first: Named,
    second: Named,
    *,
    workflow: str | None = None,
    greedy: bool = False,
    red_agent: str | Sequence[str] = LEADERBOARD_REDS,
    steps: int = 100,
    episodes: int = 2_000,
    seed: int = 0,
    quiet: bool = False,
    **settings: Any,
) -> list[Paired]:
    """Both on the same held-out episodes: for every red agent what the second earns more, with an interval.

    first, second, workflow, greedy, settings and quiet as in `ff.evaluate`; the episodes are its own, too. The intervals of
    all red agents hold together with 95 % confidence.

        for row in ff.compare("runs/first", "champion"):
            print(row.red_agent, row.mean, row.low, row.high, row.different)
    """
    seed = check_seed("seed", seed)
    check_enough(episodes)
    game, _ = game_and_judging(settings | {"max_steps": steps})
    reds = [red_agent_name(red) for red in listed_reds(red_agent)]
    players = [make_player(policy, workflow, greedy) for policy in (first, second)]
    announce_compilation()
    rows: list[Paired] = []
    with Progress(2 * episodes * len(reds), quiet=check_bool("quiet", quiet)) as progress:
        for red in reds:
            against = game.model_copy(update={"red_agent": red})
            played: list[EpisodeBatch] = []
            for player, orders in players:
                before = (2 * len(rows) + len(played)) * episodes

                def on_pass(done: int, before: int = before, red: str = red) -> None:
                    if progress.due():
                        progress.show(before + done, f"{red} on {game.backend}")

                played.append(
                    play(
                        player,
                        against,
                        episodes=episodes,
                        seed=seed,
                        purpose=PROTOCOL_PURPOSE,
                        workflows=orders,
                        on_pass=on_pass,
                    )
                )
            rows.append(paired(played[0], played[1], red, len(reds)))
    return rows
