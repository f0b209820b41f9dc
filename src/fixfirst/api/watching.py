"""`ff.watch`: play episodes of a policy, choose the telling ones, and show them."""

from pathlib import Path
from typing import Any

from fixfirst.api.evaluating import Named, load_named, make_player
from fixfirst.api.settings import game_and_judging
from fixfirst.errors import PolicyError
from fixfirst.game import a_path, announce_compilation, seed_number, whole, yes_or_no
from fixfirst.learner import Policy
from fixfirst.play import BASELINES, PROTOCOL_PURPOSE, PolicyTable, Role, document, notable, play, tell
from fixfirst.reporter import open_page as show_page
from fixfirst.reporter import write_replay
from fixfirst.runs import REPLAY, setting

EPISODES = {"simulator": 200, "workers": 200, "cyborg": 10}  # CybORG plays four episodes a second and core


def watch(policy: Named, *, out: str | Path | None = None, open_page: bool = False, **options: Any) -> Path:
    """Write a page that replays the worst, median and best of some episodes; its path. options: as in `replay`."""
    place, open_page = None if out is None else a_path("out", out), yes_or_no("open_page", open_page)
    told = replay(policy, **options)
    path = page_path(policy, place)
    write_replay(path, told)
    if open_page:
        show_page(path)
    return path


def replay(
    policy: Named,
    *,
    workflow: str | None = None,
    greedy: bool = False,
    steps: int = 100,
    episodes: int | None = None,
    seed: int = 0,
    **settings: Any,
) -> dict[str, Any]:
    """The worst, median and best of some episodes as one plain document.

    policy, workflow, greedy, settings: as in `ff.evaluate`. Red agent and variant, unless given, are those of the training;
    on CybORG, the variant is the one found. The episodes are the first ones of `ff.evaluate` with this seed.
    """
    seed, steps, greedy = seed_number("seed", seed), whole("steps", steps), yes_or_no("greedy", greedy)
    given = {name: value for name, value in settings.items() if value is not None}
    trained = {} if isinstance(policy, str) and policy in BASELINES else _trained_in(policy)
    if given.get("backend") == "cyborg":  # is what it is
        trained["variant"] = None
    game, judging = game_and_judging({**trained, **given, "max_steps": steps})
    count = EPISODES[game.backend] if episodes is None else whole("episodes", episodes, 0)
    player, orders = make_player(policy, workflow, greedy)
    announce_compilation()
    played = play(player, game, episodes=count, seed=seed, purpose=PROTOCOL_PURPOSE, workflows=orders, keep_turns=True)
    role = player.role if isinstance(player, PolicyTable) else Role()
    told = [tell(played, label, number, judging, role.memory) for label, number in notable(played).items()]
    facts = {
        "policy": str(policy) if not isinstance(policy, Policy) else "a policy",
        "red_agent": game.red_agent,
        "backend": game.backend,
        "steps": steps,
        "seed": seed,
        "greedy": greedy,
        "rule": judging.rule,
        "memory": role.memory.name,
        "opening": [role.action_set.names[choice] for choice in role.opening],
    }
    return document(played, told, facts)


def _trained_in(policy: Named) -> dict[str, Any]:
    """The red agent and the variant a policy was trained in; files are not trusted to name ones that exist."""
    config = load_named(policy).config
    if not isinstance(config, dict):
        raise PolicyError(f"{policy}: damaged (its config is not a table)")
    found = {name: setting(config, name) for name in ("red_agent", "variant")}
    return {name: value for name, value in found.items() if value is not None}


def page_path(policy: Named, out: Path | None) -> Path:
    """Where the page goes: where the user says, else beside the policy, else here."""
    if out is not None:
        return out / REPLAY if out.is_dir() else out
    if isinstance(policy, Policy) or not Path(policy).exists():
        return Path(REPLAY)
    path = Path(policy)
    return (path if path.is_dir() else path.parent) / REPLAY
