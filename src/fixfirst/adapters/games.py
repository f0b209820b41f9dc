"""In which game defenders play: the scenario and the variant that suit them, unless others are asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

from fixfirst.adapters.defenders import Defender, Say
from fixfirst.adapters.players import PolicyLike, scenario_of
from fixfirst.base import errors
from fixfirst.game import scenario_names
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import Scenario
from fixfirst.orders.compliance import Judging


def requested_scenario(settings: Mapping[str, Any], policy: PolicyLike) -> Scenario | None:
    """Return the scenario that was asked for; None: whatever the policy was trained on.

    A reward alone is put in the place of the one that the policy was trained for.
    """
    scenario, *changes = (settings.get(name) for name in ("scenario", "images", "reward"))
    if scenario is None and changes == [None, None]:
        return None
    return scenario_names.scenario_of(scenario_of(policy) if scenario is None else scenario, *changes)


def game_and_judging(settings: Mapping[str, Any]) -> tuple[Game, Judging]:
    """Build what is played and how it is judged from settings by name."""
    of_game, of_judging = Game.model_fields, Judging.model_fields
    if unknown := next((name for name in settings if name not in {**of_game, **of_judging}), None):
        raise errors.ConfigError(f"unknown setting {unknown!r}; known are {', '.join((*of_game, *of_judging))}")
    game, judging = ({name: settings[name] for name in names if name in settings} for names in (of_game, of_judging))
    return Game(**game), Judging(**judging)


def settings_by_variant(defenders: Sequence[Defender], given: Mapping[str, Any], say: Say) -> list[dict[str, Any]]:
    """Return the settings to play with: those given, in the first defender's scenario, and unless given, in its variant.

    Defenders of different variants are played in each of these. A line says so, also where one plays elsewhere because
    that was asked for. On CybORG, the variant is what it is.
    """
    if given.get("backend") == "cyborg":
        return [{**given, **_scenario_of(defenders[0])}]
    asked = {name: value for name, value in {**given, **_scenario_of(defenders[0])}.items() if value is not None}
    homes: dict[str, str] = {}  # by variant, who was made for it
    for defender in defenders:
        variant = defender.trained_variant
        if variant is not None and asked.get("variant", variant) != variant:
            say(f"{defender.name} was made for variant {variant}; it is played in {asked['variant']}, as asked")
        elif variant is not None and variant not in homes:
            homes[variant] = f"{defender.name} was made for variant {variant}"
    if len(homes) > 1:
        say(f"{', '.join(homes.values())}: both are played in each")
    return [asked | {"variant": variant} for variant in homes] or [asked]


def game_of_attackers(settings: Mapping[str, Any], defender: Defender) -> Game:
    """Return what attackers of a defender play: in the variant of its training unless another is given."""
    asked = {name: value for name, value in {**settings, **_scenario_of(defender)}.items() if value is not None}
    game, _ = game_and_judging({"variant": defender.trained_variant or "current"} | asked)
    if game.backend != "simulator":
        raise errors.ConfigError(f"attackers are trained on the simulator, not on {game.backend}")
    return game


def _scenario_of(defender: Defender) -> dict[str, Any]:
    """Return a defender's scenario as settings; its images and its reward are part of it."""
    return {"scenario": defender.scenario, "images": None, "reward": None}
