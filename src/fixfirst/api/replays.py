"""Pages with episodes of a finished search: of each order's defender, and of two orders that differ in what matters most."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from fixfirst.base import compile as machine_code, errors
from fixfirst.game.game_config import Game
from fixfirst.orders.compliance import Judging
from fixfirst.play import evaluation
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.trained import Policy, load_policy
from fixfirst.reporter import replay as replay_page
from fixfirst.reporter.run import Run

PURPOSE = "protocol"  # the stream of seeds that defenders are played on
EPISODES = {"simulator": 200, "workers": 200, "cyborg": 10}  # CybORG plays four episodes a second and core
_MOST_REPLAYS = 12  # of the orders of a search: a quarter of a megabyte each


def write_replays(folder: Path, *, missing: bool = False) -> None:
    """Write a page with episodes for each order of a finished search, the best first and the worst one.

    And one with the same episodes under two orders that differ in the swap that matters most; where only what is missing is
    to be written, this page alone, which a report of the search links to.
    """
    run = Run(folder)
    if missing and run.files.why.exists():
        return
    machine_code.announce_compilation()
    pages: list[tuple[Path, Path, Sequence[str | None]]] = []  # its file, a policy, and the orders it is to follow
    if run.answer is not None:
        pages = [(run.files.replay_of(order.workflow), folder, [order.workflow]) for order in run.answer.orders]
    elif run.ranked_trials is not None:
        ranks = {row.workflow: rank for rank, row in enumerate(run.ranked_trials.ranking.rows)}
        accepted = [trial for trial in run.trials if trial.accepted and trial.policy is not None]
        accepted.sort(key=lambda trial: ranks[run.workflow_of(trial)])
        pages = [(run.files.replay_of(f"trial {trial.id}"), run.files.trial(trial.id), [None]) for trial in accepted]
    if len(pages) > _MOST_REPLAYS:
        pages = [*pages[: _MOST_REPLAYS - 1], pages[-1]]
    if missing:
        pages = []
    if run.answer is not None and run.answer.telling_orders is not None:
        pages.append((run.files.why, folder, run.answer.telling_orders))
    for page, policy, orders in pages:
        if page.parent.is_symlink():
            raise errors.RunDirError(f"{page.parent}: is a link; pages of a run are written into the run only")
        page.parent.mkdir(exist_ok=True)
        replay_page.write_replay(page, _play(str(policy), load_policy(policy), orders))


def _play(name: str, policy: Policy, orders: Sequence[str | None]) -> dict[str, Any]:
    """Return the document of episodes that a policy plays as it was trained, under one order or under two side by side."""
    scenario, trained = policy.spec.scenario, {key: policy.config.get(key) for key in ("red_agent", "variant")}
    settings = {key: value for key, value in trained.items() if value is not None}
    game = Game(scenario=scenario, max_steps=scenario.steps or max(evaluation.PROTOCOL_STEPS), **settings)
    batches = []
    for order in orders:
        follow = policy.orders(order)
        batches.append(
            evaluation.play(
                policy.player(*follow),
                game,
                episodes=EPISODES["simulator"],
                seed=0,
                purpose=PURPOSE,
                workflows=follow,
                keep_turns=True,
            )
        )
    return describe([name] * len(batches), [policy.spec] * len(batches), batches, game, Judging())


def describe(
    names: Sequence[str],
    specs: Sequence[PolicySpec],
    batches: Sequence[evaluation.EpisodeBatch],
    game: Game,
    judging: Judging,
    *,
    number: int | None = None,
    seed: int = 0,
    greedy: bool = False,
) -> dict[str, Any]:
    """Return telling episodes of a player, or of two in the same episodes, as one plain document.

    number: this episode only. Two are told apart by letters where they have one name.
    """
    numbers = replay_page.notable(*batches) if number is None else {"chosen": number}
    if len({*names}) < len(names):
        names = [f"{name} {letter}" for name, letter in zip(names, "AB", strict=True)]
    documents: list[dict[str, Any]] = []
    for name, spec, batch in zip(names, specs, batches, strict=True):
        facts = {
            "policy": name,
            "red_agent": game.red_agent,
            "backend": game.backend,
            "steps": game.steps,
            "seed": seed,
            "greedy": greedy,
            "rule": judging.rule,
        }
        documents.append(replay_page.replay_document(batch, numbers, facts, judging, spec, beside=bool(documents)))
    if len(documents) == 1:
        return documents[0]
    return documents[0] | {"beside": documents[1], "start": _parting(numbers, *batches)}


def _parting(numbers: Mapping[str, int], first: evaluation.EpisodeBatch, second: evaluation.EpisodeBatch) -> str:
    """Return the address of the turn from which on two players pay differently, in the episode that differs most."""
    label = max(numbers, key=lambda name: abs(float(second.returns[numbers[name]] - first.returns[numbers[name]])))
    number = numbers[label]
    differ = np.flatnonzero(first.rollout.rewards10[:, number] != second.rollout.rewards10[:, number])
    return urlencode({"e": label, "t": int(differ[0]) + 1 if len(differ) else 0})
