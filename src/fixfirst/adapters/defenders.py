"""Defenders, ready to play: with the orders that they follow, in the scenario in which they play."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fixfirst.adapters.agents import Agent
from fixfirst.adapters.players import PolicyLike, name_of, resolve
from fixfirst.base import errors
from fixfirst.game.game_config import Game
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy import scripts
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable
from fixfirst.policy.trained import Policy
from fixfirst.policy.turns import Player

Say = Callable[[str], None]  # is given a line that the user should read


@dataclass(frozen=True)
class Defender:
    """A policy, a baseline or an agent, ready to play."""

    player: Player
    orders: tuple[Workflow, ...]  # that it follows and is judged by: the first one, then those that replace it on the way
    scenario: Scenario
    policy: Policy | None = None  # None: a baseline, a table or an agent
    name: str = ""  # in texts

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
    name, who = name_of(policy), resolve(policy)
    if isinstance(who, Policy):
        who = in_scenario(who, scenario, say, name)
    home = scenario or CAGE2
    if isinstance(who, Policy | PolicyTable):
        home = who.spec.scenario
    elif isinstance(who, Agent) and who.scenario is not None:
        home = _under_reward(who.scenario, scenario)
    if scenario not in (None, home):
        did = "trained on" if isinstance(who, Policy) else "plays in"
        raise errors.PolicyError(f"{name}: {did} {home.label}, not on {scenario.name}")
    texts = [text for text in (workflow, *later) if text is not None]
    if isinstance(who, PolicyTable):
        return Defender(who, _orders_of_table(who, workflow, greedy, later), home, name=name)
    if isinstance(who, str):
        if later and workflow is None:
            raise errors.ConfigError(f"{name} follows no order that could change: give the first one with --workflow")
        orders = tuple(Workflow.parse(text, UnitScheme.by_type(home)) for text in texts)
        return Defender(scripts.make_baseline(who, orders, home), orders, home, name=name)
    if isinstance(who, Agent) and who.may_mix_episodes:
        say(f"{name} has no reset(): it is not told that an episode begins; what it remembers goes on into the next")
    if isinstance(who, Agent) and greedy and not who.may_draw:
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
    if isinstance(who, Agent):
        return Defender(who.player(orders, greedy=greedy, scenario=home), orders, home, name=name)
    return Defender(who.player(*orders, greedy=greedy), orders, home, who, name)


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


def _orders_of_table(table: PolicyTable, workflow: str | None, greedy: bool, later: Sequence[str]) -> tuple[Workflow, ...]:
    """Return the orders of a table, which was made for them and to draw or not."""
    if later or (greedy and not table.greedy):
        raise errors.ConfigError("a PolicyTable is made with its orders and with greedy=True: give them there")
    if workflow is None:
        return table.workflows
    asked = Workflow.parse(workflow, table.spec.units) if table.spec.units is not None else Workflow.parse(workflow)
    if table.workflows not in ((), (asked,)):
        raise errors.ConfigError(f"this PolicyTable was made for {table.workflows[0]}: make another one for {asked}")
    return (asked,)
