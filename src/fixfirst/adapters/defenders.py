"""Defenders, ready to play: with the orders that they follow, in a scenario and a variant that suits them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fixfirst.adapters.agents import Agent
from fixfirst.adapters.players import Named, PolicyLike, agent_of, is_named, load_named, name_of, scenario_of
from fixfirst.base import errors
from fixfirst.game import scenario_names
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders.compliance import Judging
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.play import baselines
from fixfirst.play.turns import Player
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.trained import Policy

Say = Callable[[str], None]  # is given a line that the user should read


class Defender(NamedTuple):
    """A policy, a baseline or an agent, ready to play."""

    player: Player
    orders: tuple[Workflow, ...]  # that it follows and is judged by: the first one, then those that replace it on the way
    policy: Policy | None  # None: a baseline or an agent
    plays_in: Scenario = CAGE2  # a baseline or an agent
    name: str = ""  # in texts

    @property
    def scenario(self) -> Scenario:
        return self.plays_in if self.policy is None else self.policy.spec.scenario

    @property
    def spec(self) -> PolicySpec:
        """What it reads and may choose."""
        return PolicySpec.for_orders((), self.plays_in) if self.policy is None else self.policy.spec

    @property
    def trained_variant(self) -> str | None:
        """The variant it was trained in; None where that is not known, as of a baseline."""
        return None if self.policy is None else self.policy.config.get("variant")


def make_defender(
    policy: PolicyLike,
    workflow: str | None = None,
    greedy: bool = False,
    later: Sequence[str] = (),
    *,
    judged: bool = True,
    say: Say = errors.note,
    scenario: Scenario | None = None,
) -> Defender:
    """Make somebody ready to play by an order. later: orders that replace the first one on the way.

    judged: is it judged by the order, too? say: is given a line if the order is not the policy's own. scenario: in which it
    is to play; unless given, a policy's own, and CAGE2 for all others.
    """

    if isinstance(policy, str) and policy in baselines.BASELINES:
        defender = _defend_by_baseline(policy, workflow, later, scenario or CAGE2)
    elif isinstance(policy, PolicyTable):
        defender = _defend_by_table(policy, workflow, greedy, later)
    elif is_named(policy):
        defender = _defend_by_policy(policy, workflow, greedy, later, judged, say, scenario)
    else:
        agent = agent_of(policy)
        assert agent is not None, "tables and baselines were met before"
        home = scenario or CAGE2 if agent.scenario is None else _under_reward(agent.scenario, scenario)
        defender = _defend_by_agent(agent, workflow, greedy, later, judged, say, home)
    if scenario not in (None, defender.scenario):
        did = "plays in" if defender.policy is None else "trained on"
        raise errors.PolicyError(f"{name_of(policy)}: {did} {defender.scenario.label}, not on {scenario.name}")
    return defender._replace(name=name_of(policy))


def _defend_by_baseline(name: str, workflow: str | None, later: Sequence[str], scenario: Scenario) -> Defender:
    if later and workflow is None:
        raise errors.ConfigError(f"{name} follows no order that could change: give the first one with --workflow")
    texts = [text for text in (workflow, *later) if text is not None]
    orders = tuple(Workflow.parse(text, UnitScheme.by_type(scenario)) for text in texts)
    return Defender(baselines.make_baseline(name, orders, scenario), orders, None, scenario)


def _defend_by_policy(
    policy: Named,
    workflow: str | None,
    greedy: bool,
    later: Sequence[str],
    judged: bool,
    say: Say,
    scenario: Scenario | None,
) -> Defender:
    loaded = load_for(policy, scenario, say)
    if loaded.scheme is None:  # it cannot follow an order, but can be judged by one
        if later:
            raise errors.ConfigError(f"{policy} follows no order, so that none can change: train one with --workflow all")
        if workflow is None:
            return Defender(loaded.player(greedy=greedy), (), loaded)
        does = "is judged by this one" if judged else "plays as it does without"
        say(f"{policy} knows no order; it {does}")
        judge = Workflow.parse(workflow, UnitScheme.by_type(loaded.spec.scenario))
        return Defender(loaded.player(greedy=greedy), (judge,), loaded)
    first = loaded.orders(workflow)
    if workflow is not None and not loaded.follows_any and first != (loaded.workflow,):
        say(f"{policy} was trained for {loaded.workflow}; it is {'told and judged by' if judged else 'told'} another order")
    orders = first + tuple(Workflow.parse(text, loaded.scheme) for text in later)
    return Defender(loaded.player_of(orders, greedy=greedy), orders, loaded)


def load_for(policy: Named, scenario: Scenario | None, say: Say) -> Policy:
    """Load a policy; it can play under another reward than it was trained for, and a line says so."""
    loaded = load_named(policy)
    played = _under_reward(loaded.spec.scenario, scenario)
    if played == loaded.spec.scenario:
        return loaded
    say(f"{name_of(policy)} was trained for the reward of {loaded.spec.scenario.label}; it plays for that of {played.label}")
    return loaded.in_scenario(played)


def _under_reward(home: Scenario, asked: Scenario | None) -> Scenario:
    """Return the scenario that was asked for, if it is the same network with another reward; else the first one."""
    return asked if asked is not None and asked.without_reward == home.without_reward else home


def _defend_by_agent(
    agent: Agent, workflow: str | None, greedy: bool, later: Sequence[str], judged: bool, say: Say, scenario: Scenario
) -> Defender:
    """Make an agent of the user's own ready; only a file that takes an order at every turn can be told one."""
    if agent.may_mix_episodes:
        say(f"{agent.name} has no reset(): it is not told that an episode begins; what it remembers goes on into the next")
    if greedy and not agent.may_draw:
        say(f"{agent.name} decides by itself: greedy changes nothing")
    if agent.scheme is None:
        if later:
            raise errors.ConfigError(f"{agent.name} follows no order, so that none can change")
        if workflow is not None and judged:
            say(f"{agent.name} is told no order; it is judged by this one")
        judge = agent.workflow if workflow is None else Workflow.parse(workflow, UnitScheme.by_type(scenario))
        return Defender(agent.player(greedy=greedy, scenario=scenario), () if judge is None else (judge,), None, scenario)
    if workflow is None:
        raise errors.ConfigError(f"{agent.name} follows any order: say which one (workflow=..., --workflow)")
    orders = tuple(Workflow.parse(text, agent.scheme) for text in (workflow, *later))
    return Defender(agent.player(orders, greedy=greedy, scenario=scenario), orders, None, scenario)


def _defend_by_table(table: PolicyTable, workflow: str | None, greedy: bool, later: Sequence[str]) -> Defender:
    """Make a table ready, which was made for its orders and to draw or not."""
    if later or (greedy and not table.greedy):
        raise errors.ConfigError("a PolicyTable is made with its orders and with greedy=True: give them there")
    orders = table.workflows
    if workflow is not None:
        asked = Workflow.parse(workflow, table.spec.units) if table.spec.units is not None else Workflow.parse(workflow)
        if orders and orders != (asked,):
            raise errors.ConfigError(f"this PolicyTable was made for {orders[0]}: make another one for {asked}")
        orders = (asked,)
    return Defender(table, orders, None, table.spec.scenario)


# ---------------------------------------------------------------- in which game


def requested_scenario(settings: Mapping[str, Any], policy: PolicyLike) -> Scenario | None:
    """Return the scenario that was asked for; None: whatever the policy was trained on.

    A reward alone is put in the place of the one that the policy was trained for.
    """
    scenario, images, reward = (settings.get(name) for name in ("scenario", "images", "reward"))
    if scenario is None and images is None and reward is None:
        return None
    return scenario_names.scenario_of(scenario_of(policy) if scenario is None else scenario, images, reward)


def game_and_judging(settings: Mapping[str, Any]) -> tuple[Game, Judging]:
    """Build what is played and how it is judged from settings by name."""
    known = [*Game.model_fields, *Judging.model_fields]
    if unknown := next((name for name in settings if name not in known), None):
        raise errors.ConfigError(f"unknown setting {unknown!r}; known are {', '.join(known)}")
    parts = [{name: settings[name] for name in model.model_fields if name in settings} for model in (Game, Judging)]
    return Game(**parts[0]), Judging(**parts[1])


def settings_by_variant(defenders: Sequence[Defender], given: Mapping[str, Any], say: Say) -> list[dict[str, Any]]:
    """Return the settings to play with: those given, in the first defender's scenario, and unless given, in its variant.

    Defenders of different variants are played in each of these. A line says so, also where one plays elsewhere because
    that was asked for. On CybORG, the variant is what it is.
    """
    asked = {**given, "scenario": defenders[0].scenario, "images": None, "reward": None}
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


def attacked_game(
    policy: PolicyLike, workflow: str | None, greedy: bool, settings: Mapping[str, Any], say: Say = errors.note
) -> tuple[Defender, Game]:
    """Return a defender, ready to play, and the game in which an attacker meets it."""
    defender = make_defender(policy, workflow, greedy, say=say, scenario=requested_scenario(settings, policy))
    return defender, game_of_attackers(settings, defender)


def game_of_attackers(settings: Mapping[str, Any], defender: Defender) -> Game:
    """Return what attackers of a defender play: in the variant of its training unless another is given."""
    asked = {**settings, "scenario": defender.scenario, "images": None, "reward": None}
    known = {name: value for name, value in asked.items() if value is not None}
    played, _ = game_and_judging({"variant": defender.trained_variant or "current"} | known)
    if played.backend != "simulator":
        raise errors.ConfigError(f"attackers are trained on the simulator, not on {played.backend}")
    return played
