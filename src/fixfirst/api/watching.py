"""`fixfirst watch`: play episodes of a policy, choose the telling ones, and show them."""

import contextlib
import os
import sys
import webbrowser
from pathlib import Path
from typing import Any

from fixfirst.api.protocol import make_player
from fixfirst.cyborg.backends import Backend
from fixfirst.errors import ConfigError, PolicyError
from fixfirst.game.network import VariantName
from fixfirst.game.world import check_variant, red_agent_spec
from fixfirst.learner.checkpoint import load_policy
from fixfirst.orders.compliance import Rule
from fixfirst.play import episodes as episode
from fixfirst.play.baselines import BASELINES
from fixfirst.reporter import replay
from fixfirst.runs.files import write_atomically

PAGE = "replay.html"
EPISODES = {"simulator": 200, "workers": 200, "cyborg": 10}  # CybORG plays four episodes a second and core


def watch(
    what: str,
    *,
    workflow: str | None = None,
    greedy: bool = False,
    red_agent: str | None = None,
    variant: VariantName | None = None,
    steps: int = 100,
    episodes: int | None = None,
    seed: int = 0,
    rule: Rule = "no_higher",
    count_foothold: bool = False,
    backend: Backend = "simulator",
    cyborg: str | None = None,
) -> dict[str, Any]:
    """The worst, median and best of some episodes as one plain document.

    Red agent and variant, unless given, are those of the training; on CybORG, the variant is the one found.
    """
    player, orders = make_player(what, workflow, greedy)
    trained_red, trained_variant = ("b_line", None) if what in BASELINES else _trained_in(what)
    if backend == "cyborg":  # is what it is
        trained_variant = None
    red = red_agent_spec(red_agent or trained_red)
    played = episode.play(
        player,
        episodes=EPISODES[backend] if episodes is None else episodes,
        steps=steps,
        red_agent=red,
        variant=variant or trained_variant,
        seed=seed,
        workflows=orders,
        backend=backend,
        cyborg=cyborg,
    )
    told = [episode.tell(played, label, number, rule, count_foothold) for label, number in episode.notable(played).items()]
    facts = {
        "policy": what,
        "red_agent": red,
        "backend": backend,
        "steps": steps,
        "seed": seed,
        "greedy": greedy,
        "rule": rule,
    }
    return episode.document(played, told, facts)


def _trained_in(what: str) -> tuple[str, VariantName | None]:
    """The red agent and the variant a policy was trained in; files are not trusted to name ones that exist."""
    config = load_policy(what).config
    if not isinstance(config, dict):
        raise PolicyError(f"{what}: damaged (its config is not a table)")
    variant = config.get("variant")
    return str(config.get("red_agent", "b_line")), None if variant is None else check_variant(variant)


def page_path(what: str, out: Path | None) -> Path:
    """Where the page goes: where the user says, else beside the policy, else here."""
    if out is not None:
        return out / PAGE if out.is_dir() else out
    path = Path(what)
    return (path if path.is_dir() else path.parent) / PAGE if path.exists() else Path(PAGE)


def write_page(path: Path, document: dict[str, Any]) -> None:
    """Write the replay page."""
    try:
        write_atomically(path, replay.page(document).encode())
    except OSError as e:
        raise ConfigError(f"{path}: cannot be written ({e.strerror}); choose another place with --out") from e


def open_page(path: Path) -> None:
    """Show a page in the browser, where there is one to show it and someone to see it."""
    display = sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if sys.stdout.isatty() and display:
        with contextlib.suppress(webbrowser.Error, OSError):  # the path is printed anyway
            webbrowser.open(path.resolve().as_uri())
