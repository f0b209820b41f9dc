"""`ff.watch`: play episodes of a policy, choose the telling ones, and show them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from urllib.parse import urlencode

import numpy as np

from fixfirst.api.defenders import (
    PolicyLike,
    Say,
    game_and_judging,
    make_defender,
    requested_scenario,
    scenario_of,
    settings_by_variant,
)
from fixfirst.api.evaluate import play_all
from fixfirst.base import arguments, errors
from fixfirst.play import evaluation, rollout
from fixfirst.policy.trained import Policy
from fixfirst.reporter import picture, replay as replays
from fixfirst.reporter.page import open_page as show_page
from fixfirst.reporter.run import Run
from fixfirst.runs import layout
from fixfirst.runs.layout import RunFiles

if TYPE_CHECKING:
    from fixfirst import typed

MOST_REPLAYS = 12  # of the orders of a search: a quarter of a megabyte each
_EPISODES = {"simulator": 200, "workers": 200, "cyborg": 10}  # CybORG plays four episodes a second and core


@arguments.checked()
def watch(
    policy: PolicyLike,
    *,
    out: str | Path | None = None,
    gif: str | Path | None = None,
    open_page: bool = False,
    **options: Unpack["typed.WatchSettings"],
) -> Path:
    """Write a page that replays the worst, median and best of some episodes, and return its path. options: as in `replay`.

    gif: also the first of these episodes as an animation, for talks. For example:

        page = ff.watch("champion", red_agent="b_line", episodes=50, out="replay.html")
    """
    path = page_path(policy, out)
    moving = None if gif is None else picture.check_gif(gif, policy)
    episodes = replay(policy, **options)
    replays.write_replay(path, episodes)
    if moving is not None:
        picture.write_gif(moving, episodes)
    if open_page:
        show_page(path)
    return path


@arguments.checked(steps=1, episodes=0, number=0)
def replay(
    policy: PolicyLike,
    *,
    beside: PolicyLike | None = None,
    beside_workflow: str | None = None,
    workflow: str | None = None,
    then: str | Sequence[str] = (),
    number: int | None = None,
    greedy: bool = False,
    steps: int | None = None,
    episodes: int | None = None,
    seed: int = 0,
    say: Say = errors.note,
    **settings: Any,
) -> dict[str, Any]:
    """Return the worst, median and best of some episodes as one plain document.

    policy, workflow, greedy, say, settings: as in `ff.evaluate`. Red agent and variant, unless given, are those of the
    training; on CybORG, the variant is the one found. The episodes are the first ones of `ff.evaluate` with this seed.
    beside: a second policy in the same episodes, and one more episode, in which the two are furthest apart;
    beside_workflow: its order, if it is another; the page opens where the two part. then: other orders from some step on,
    such as "30: user_priority". number: this episode only.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    seed, scenario = arguments.check_seed("seed", seed), requested_scenario(given, policy)
    if steps is None:
        steps = (scenario or scenario_of(policy)).steps or max(evaluation.PROTOCOL_STEPS)
    later = [_change(text, steps) for text in ([then] if isinstance(then, str) else then)]
    changes = [rollout.Change(step, place) for place, (step, _) in enumerate(later, start=1)]
    if [change.step for change in changes] != sorted({change.step for change in changes}):
        raise errors.ConfigError("orders change one after the other: name the steps of --then in ascending order")
    whom = [policy, *([] if beside is None else [beside])]
    notes = [say, lambda text: None]  # about the first one only
    firsts = [workflow, workflow if beside_workflow is None else beside_workflow]
    defenders = []
    for one, first, note in zip(whom, firsts, notes, strict=False):
        orders = [order for _, order in later]
        defenders.append(make_defender(one, first, greedy, orders, say=note, scenario=scenario))
        scenario = defenders[0].scenario
    home = settings_by_variant(defenders[:1], given, say)[0]
    if beside is not None:
        settings_by_variant(defenders[1:], home, say)  # says so if it was made for another
    game, judging = game_and_judging({**_trained_against(defenders[0].policy, given), **home, "max_steps": steps})
    count = _EPISODES[game.backend] if episodes is None else episodes
    if number is not None:
        if number >= evaluation.MOST_KEPT:
            raise errors.ConfigError(f"number must be in 0..{evaluation.MOST_KEPT - 1}, got {number}")
        count = max(count, number + 1)
    ((_, batches),) = play_all(defenders, [game], episodes=count, seed=seed, keep_turns=True, changes=changes)
    numbers = replays.notable(*batches) if number is None else {"chosen": number}
    documents: list[dict[str, Any]] = []
    names = [defender.name for defender in defenders]
    if len({*names}) < len(names):  # the same policy, told two orders
        names = [f"{name} {letter}" for name, letter in zip(names, "AB", strict=True)]
    for name, defender, batch in zip(names, defenders, batches, strict=True):
        facts = {
            "policy": name,
            "red_agent": game.red_agent,
            "backend": game.backend,
            "steps": steps,
            "seed": seed,
            "greedy": greedy,
            "rule": judging.rule,
        }
        document = replays.replay_document(batch, numbers, facts, judging, defender.spec, beside=bool(documents))
        documents.append(document)
    if beside is None:
        return documents[0]
    return documents[0] | {"beside": documents[1], "start": _parting(numbers, *batches)}


def _parting(numbers: Mapping[str, int], first: evaluation.EpisodeBatch, second: evaluation.EpisodeBatch) -> str:
    """Return the address of the turn from which on two players pay differently, in the episode that differs most."""
    label = max(numbers, key=lambda name: abs(float(second.returns[numbers[name]] - first.returns[numbers[name]])))
    number = numbers[label]
    differ = np.flatnonzero(first.rollout.rewards10[:, number] != second.rollout.rewards10[:, number])
    return urlencode({"e": label, "t": int(differ[0]) + 1 if len(differ) else 0})


def _trained_against(policy: Policy | None, given: dict[str, Any]) -> dict[str, Any]:
    """Return the red agent a policy was trained against; CybORG's variant is what it is."""
    red = None if policy is None else policy.config.get("red_agent")
    return ({} if red is None else {"red_agent": red}) | ({"variant": None} if given.get("backend") == "cyborg" else {})


def _change(text: str, steps: int) -> tuple[int, str]:
    """Read the step and the order of "30: user > enterprise > ..."."""
    step, colon, order = text.partition(":")
    if not colon or not step.strip().isdecimal() or not 2 <= int(step) <= steps or not order.strip():
        raise errors.ConfigError(f'--then must look like "30: user_priority", with a step of 2..{steps}, got {text!r}')
    return int(step), order.strip()


def page_path(policy: PolicyLike, out: str | Path | None) -> Path:
    """Return where the page goes: where the user says, else beside the policy, else here."""
    if out is not None:
        path = arguments.check_path("out", out)
        is_page = path.is_file() or (path.suffix and not path.is_dir())
        # A browser shows a page without a suffix as text.
        return layout.check_output("out", path if is_page else RunFiles(path).replay, policy)
    if not isinstance(policy, str | Path) or not Path(policy).exists():
        return Path(RunFiles.replay)
    path = Path(policy)
    return RunFiles(path if path.is_dir() else path.parent).replay


def write_replays(folder: Path) -> None:
    """Write a page with episodes for each order of a finished search, the best first and the worst one.

    And one with the same episodes under two orders that differ in the swap that matters most.
    """
    run = Run(folder)
    whom: list[tuple[str, Path, str | None]] = []  # name, policy, order
    if run.answer is not None:
        whom = [(order.workflow, folder, order.workflow) for order in run.answer.orders]
    elif run.ranked_trials is not None:
        places = {row.workflow: place for place, row in enumerate(run.ranked_trials.ranking.rows)}
        accepted = [trial for trial in run.trials if trial.accepted and trial.policy is not None]
        accepted.sort(key=lambda trial: places[run.workflow_of(trial)])
        whom = [(f"trial {trial.id}", RunFiles(folder).trial(trial.id), None) for trial in accepted]
    if len(whom) > MOST_REPLAYS:
        whom = [*whom[: MOST_REPLAYS - 1], whom[-1]]
    for name, policy, order in whom:
        replays.write_replay(_replay_path(folder, name), replay(policy, workflow=order))
    _write_why(run)


def write_missing_why(folder: Path) -> None:
    """Write the page with the same episodes under two orders of a finished search, if its report has none to link to."""
    if not RunFiles(folder).replay_of(layout.WHY_PAGE).exists():
        _write_why(Run(folder))


def _write_why(run: Run) -> None:
    pair = None if run.answer is None else run.answer.telling_orders
    if pair is not None:
        (good, bad), folder = pair, run.folder
        replays.write_replay(
            _replay_path(folder, layout.WHY_PAGE), replay(folder, workflow=good, beside=folder, beside_workflow=bad)
        )


def _replay_path(folder: Path, name: str) -> Path:
    """Return the page of a run with this name, in a folder that is there."""
    page = RunFiles(folder).replay_of(name)
    if page.parent.is_symlink():
        raise errors.RunDirError(f"{page.parent}: is a link; pages of a run are written into the run only")
    page.parent.mkdir(exist_ok=True)
    return page
