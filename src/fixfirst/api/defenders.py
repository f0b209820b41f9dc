"""Who defends: named as users name it, ready to play by its orders, in the scenario and the variant that suit it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Union

from fixfirst.base import arguments, errors
from fixfirst.game import attacker_files, game_config
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders.compliance import Judging
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy import scripts, trained
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.trained import Policy
from fixfirst.policy.turns import Player

if TYPE_CHECKING:
    from fixfirst.adapters import agents

Named = str | Path | Policy  # a run, a policy's folder or file, a baseline's name, or a policy itself
# Also an ONNX file, a table, or an agent of the user's own, as `Agent` takes it.
PolicyLike = Union[
    Named, PolicyTable, "agents.Agent", Callable[..., Any], "agents.Acts", "agents.Predicts", "agents.PlaysOneGame"
]
Say = Callable[[str], None]  # is given a line that the user should read


def load_named(policy: Named) -> Policy:
    """Return the policy itself, or the one in a run, folder or file."""
    if isinstance(policy, Policy):
        return policy
    path, shipped = arguments.check_path("a policy", policy), trained.shipped_policies()
    name = str(path)
    if not path.exists() and name in scripts.BASELINES:
        raise errors.ConfigError(f"{name} is a baseline: it has no network to export or to go on from")
    if not path.exists() and name in attacker_files.shipped_reds():
        raise errors.ConfigError(f"{name} is an attacker, not a defender: name it with --red-agent")
    if not path.exists() and name not in shipped:
        raise errors.ConfigError(
            f"{name!r} is neither a file or run nor a baseline ({', '.join(scripts.BASELINES)}), nor a policy that comes "
            f"with fixfirst ({', '.join(shipped)}){errors.did_you_mean(name, (*scripts.BASELINES, *shipped))}"
        )
    return trained.load_policy(path)


def resolve(policy: PolicyLike) -> "str | Policy | PolicyTable | agents.Agent":
    """Return who is named: a baseline by its name, a policy, a table, or an agent. Imports nothing by name."""
    if isinstance(policy, Policy | PolicyTable) or (isinstance(policy, str) and policy in scripts.BASELINES):
        return policy
    if isinstance(policy, str | Path) and not (Path(policy).suffix == ".onnx" and Path(policy).is_file()):
        return load_named(policy)
    from fixfirst.adapters.agents import Agent  # nobody else waits for it

    return policy if isinstance(policy, Agent) else Agent(policy)


def name_of(policy: PolicyLike) -> str:
    """Return what a player is called in texts."""
    if isinstance(policy, str | Path):
        return str(policy)
    who = resolve(policy)
    return "a policy" if isinstance(who, str | Policy | PolicyTable) else who.name


def takes_best_actions(who: "str | Policy | PolicyTable | agents.Agent", greedy: bool | None) -> bool:
    """Return whether a defender takes its most probable actions.

    Unless asked for, all do but a league's, which has learned to draw them, and what is no policy: that acts as it does.
    """
    if greedy is not None:
        return bool(greedy) and (isinstance(who, str | Policy | PolicyTable) or who.may_draw)
    if isinstance(who, PolicyTable):
        return who.greedy
    return not who.draws if isinstance(who, Policy) else isinstance(who, str)


@dataclass(frozen=True)
class Defender:
    """A policy, a baseline or an agent, ready to play."""

    player: Player
    orders: tuple[Workflow, ...]  # that it follows and is judged by: the first one, then those that replace it on the way
    scenario: Scenario
    greedy: bool  # does it take its most probable actions?
    name: str  # in texts
    policy: Policy | None = None  # None: a baseline, a table or an agent

    @property
    def spec(self) -> PolicySpec:
        """What it reads and may choose."""
        return PolicySpec.for_orders((), self.scenario) if self.policy is None else self.policy.spec

    @property
    def trained_variant(self) -> str | None:
        """The variant it was trained in; None where that is not known, as of a baseline."""
        return None if self.policy is None else Game(variant=self.policy.config.get("variant")).variant


def make_defender(
    policy: PolicyLike,
    workflow: str | None = None,
    greedy: bool | None = False,
    later: Sequence[str] = (),
    *,
    judged: bool = True,
    say: Say = errors.note,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Defender:
    """Make somebody ready to play by an order. later: orders that replace the first one on the way.

    greedy: None is as `takes_best_actions` has it. judged: is it judged by the order, too? say: is given a line if the
    order is not the policy's own. settings: scenario, images and reward say where it is to play; unless given, a policy
    plays in its own scenario, and all others in CAGE2. A reward alone is put in the place of the scenario's own.
    """
    name, who = name_of(policy), resolve(policy)
    best = takes_best_actions(who, greedy)
    own = who.spec.scenario if isinstance(who, Policy | PolicyTable) else None if isinstance(who, str) else who.scenario
    asked, *changes = (settings.get(setting) for setting in ("scenario", "images", "reward"))
    given = asked is not None or changes != [None, None]
    scenario = game_config.scenario_named(asked if asked is not None else own or CAGE2, *changes) if given else None
    home = scenario or CAGE2
    if isinstance(who, Policy):
        who = in_scenario(who, scenario, say, name)
    if isinstance(who, Policy | PolicyTable):
        home = who.spec.scenario
    elif not isinstance(who, str) and who.scenario is not None:
        home = _under_reward(who.scenario, scenario)
    if scenario not in (None, home):
        did = "trained on" if isinstance(who, Policy) else "plays in"
        raise errors.PolicyError(f"{name}: {did} {home.label}, not on {scenario.name}")
    texts = [text for text in (workflow, *later) if text is not None]
    if isinstance(who, PolicyTable):
        return Defender(who, _orders_of_table(who, workflow, greedy, later), home, best, name)
    if isinstance(who, str):
        if later and workflow is None:
            raise errors.ConfigError(f"{name} follows no order that could change: give the first one with --workflow")
        orders = tuple(Workflow.parse(text, UnitScheme.by_type(home)) for text in texts)
        return Defender(scripts.make_baseline(who, orders, home), orders, home, best, name)
    if not isinstance(who, Policy):
        if who.may_mix_episodes:
            say(f"{name} has no reset(): it is not told that an episode begins; what it remembers goes on into the next")
        if greedy and not who.may_draw:
            say(f"{name} decides by itself: greedy changes nothing")
    if who.scheme is None:
        if later:
            raise errors.ConfigError(f"{name} follows no order, so that none can change")
        if workflow is not None:
            say(f"{name} knows no order; it {'is judged by this one' if judged else 'plays as it does without'}")
        judges = [who.workflow] if workflow is None else [Workflow.parse(workflow, UnitScheme.by_type(home))]
        orders = tuple(order for order in judges if order is not None)
    elif isinstance(who, Policy):
        first = who.orders(workflow)
        if workflow is not None and not who.follows_any and first != (who.workflow,):
            say(f"{name} was trained for {who.workflow}; it is {'told and judged by' if judged else 'told'} another order")
        orders = first + tuple(Workflow.parse(text, who.scheme) for text in later)
    elif workflow is None:
        raise errors.ConfigError(f"{name} follows any order: say which one (workflow=..., --workflow)")
    else:
        orders = tuple(Workflow.parse(text, who.scheme) for text in texts)
    if isinstance(who, Policy):
        return Defender(who.player(*orders, greedy=best), orders, home, best, name, who)
    return Defender(who.player(orders, greedy=best, scenario=home), orders, home, best, name)


def in_scenario(policy: Policy, scenario: Scenario | None, say: Say, name: str) -> Policy:
    """Return a policy under the reward it is to play for; a line says so if it was trained for another."""
    home, played = policy.spec.scenario, _under_reward(policy.spec.scenario, scenario)
    if played == home:
        return policy
    say(f"{name} was trained for the reward of {home.label}; it plays for that of {played.label}")
    return policy.in_scenario(played)


def _under_reward(home: Scenario, asked: Scenario | None) -> Scenario:
    """Return the scenario that was asked for, if it is the same network with another reward; else the first one."""
    return asked if asked is not None and asked.without_reward == home.without_reward else home


def _orders_of_table(
    table: PolicyTable, workflow: str | None, greedy: bool | None, later: Sequence[str]
) -> tuple[Workflow, ...]:
    """Return the orders of a table, which was made for them and to draw or not."""
    if later or (greedy and not table.greedy):
        raise errors.ConfigError("a PolicyTable is made with its orders and with greedy=True: give them there")
    if workflow is None:
        return table.workflows
    asked = Workflow.parse(workflow, table.spec.units) if table.spec.units is not None else Workflow.parse(workflow)
    if table.workflows not in ((), (asked,)):
        raise errors.ConfigError(f"this PolicyTable was made for {table.workflows[0]}: make another one for {asked}")
    return (asked,)


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
    asked = {**given, "scenario": defenders[0].scenario, "images": None, "reward": None}  # which are part of it
    if given.get("backend") == "cyborg":
        return [asked]
    asked = {name: value for name, value in asked.items() if value is not None}
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
    (asked,) = settings_by_variant([defender], settings, say=lambda text: None)
    game, _ = game_and_judging(asked)
    if game.backend != "simulator":
        raise errors.ConfigError(f"attackers are trained on the simulator, not on {game.backend}")
    return game
