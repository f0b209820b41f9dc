"""`ff.watch`: play episodes of a policy, choose the telling ones, and show them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from fixfirst.api.defenders import (
    PolicyLike,
    Say,
    game_and_judging,
    make_defender,
    settings_by_variant,
)
from fixfirst.api.evaluate import play_all
from fixfirst.api.replays import EPISODES, describe
from fixfirst.base import arguments, errors
from fixfirst.play import evaluation, rollout
from fixfirst.reporter import picture, replay as replay_page
from fixfirst.reporter.page import open_page as show_page
from fixfirst.runs import layout
from fixfirst.runs.layout import RunFiles

if TYPE_CHECKING:
    from fixfirst import typed

_MOST_KEPT = 10_000  # episodes whose turns are all kept


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
    replay_page.write_replay(path, episodes)
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
    seed = arguments.check_seed("seed", seed)
    later = [_change(text) for text in ([then] if isinstance(then, str) else then)]
    changes = [rollout.Change(step, rank) for rank, (step, _) in enumerate(later, start=1)]
    if [change.step for change in changes] != sorted({change.step for change in changes}):
        raise errors.ConfigError("orders change one after the other: name the steps of --then in ascending order")
    orders = [order for _, order in later]
    first = make_defender(policy, workflow, greedy, orders, say=say, settings=given)
    steps = steps or first.scenario.steps or max(evaluation.PROTOCOL_STEPS)
    if changes and changes[-1].step > steps:
        raise errors.ConfigError(f"--then must name a step of 2..{steps}, got {changes[-1].step}")
    (home,), defenders = settings_by_variant([first], given, say), [first]
    if beside is not None:
        other = workflow if beside_workflow is None else beside_workflow
        defenders.append(make_defender(beside, other, greedy, orders, say=lambda text: None, settings=home))
        settings_by_variant(defenders[1:], home, say)  # says so if it was made for another
    red = None if first.policy is None else first.policy.config.get("red_agent")  # as it was trained, unless given
    usual = ({} if red is None else {"red_agent": red}) | ({"variant": None} if given.get("backend") == "cyborg" else {})
    game, judging = game_and_judging({**usual, **home, "max_steps": steps})
    count = EPISODES[game.backend] if episodes is None else episodes
    if number is not None:
        if number >= _MOST_KEPT:
            raise errors.ConfigError(f"number must be in 0..{_MOST_KEPT - 1}, got {number}")
        count = max(count, number + 1)
    if not 1 <= count <= _MOST_KEPT:
        raise errors.ConfigError(f"episodes must be in 1..{_MOST_KEPT}, got {count}")
    ((_, batches),) = play_all(defenders, [game], episodes=count, seed=seed, keep_turns=True, changes=changes)
    names, specs = [defender.name for defender in defenders], [defender.spec for defender in defenders]
    return describe(names, specs, batches, game, judging, number=number, seed=seed, greedy=greedy)


def _change(text: str) -> tuple[int, str]:
    """Read the step and the order of "30: user > enterprise > ..."."""
    step, colon, order = text.partition(":")
    if not colon or not step.strip().isdecimal() or int(step) < 2 or not order.strip():
        raise errors.ConfigError(f'--then must look like "30: user_priority", with a step of 2 or more, got {text!r}')
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
