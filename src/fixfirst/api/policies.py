"""Who plays: a policy by its name, a baseline or a user's own agent, made ready to play; `ff.export` and `ff.rollout`."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np

from fixfirst.adapters import agents
from fixfirst.base import arguments, errors
from fixfirst.game import attacker_files
from fixfirst.game.scenario import CAGE2, Scenario
from fixfirst.game.simulator import World
from fixfirst.orders import repairs
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.play import baselines
from fixfirst.play.rollout import Player, Trajectory, play_steps
from fixfirst.policy import file as policy_file, remembering, table
from fixfirst.policy.file import Policy, load_policy
from fixfirst.policy.spec import PolicySpec, bits_of
from fixfirst.policy.table import PolicyTable
from fixfirst.runs import layout

if TYPE_CHECKING:
    from fixfirst.adapters.envs import VecCage2
    from fixfirst.adapters.export import Target

Named = str | Path | Policy  # a run, a policy's folder or file, a baseline's name, or a policy itself
# Also an ONNX file, a table, or an agent of the user's own, as `Agent` takes it.
Who = Named | PolicyTable | agents.Agent | Callable[..., Any] | agents.Acts | agents.Predicts | agents.PlaysOneGame
Say = Callable[[str], None]  # is given a line that the user should read


def load_named(policy: Named) -> Policy:
    """Return the policy itself, or the one in a run, folder or file."""
    if isinstance(policy, Policy):
        return policy
    path = arguments.check_path("a policy", policy)
    if not path.exists() and str(path) in attacker_files.shipped_reds():
        raise errors.ConfigError(f"{path} is an attacker, not a defender: name it with --red-agent")
    if not path.exists() and str(path) not in policy_file.shipped_policies():
        shipped = ", ".join(policy_file.shipped_policies()) or "there is none"
        known = f"a baseline ({', '.join(baselines.BASELINES)}), nor a policy that comes with fixfirst ({shipped})"
        hint = errors.did_you_mean(str(path), (*baselines.BASELINES, *policy_file.shipped_policies()))
        raise errors.ConfigError(f"{str(path)!r} is neither a file or run nor {known}{hint}")
    return load_policy(path)


class Defender(NamedTuple):
    """A policy, a baseline or an agent, ready to play."""

    player: Player
    orders: tuple[Workflow, ...]  # that it follows and is judged by: the first one, then those that replace it on the way
    policy: Policy | None  # None: a baseline or an agent
    plays_in: Scenario = CAGE2  # a baseline or an agent

    @property
    def scenario(self) -> Scenario:
        return self.plays_in if self.policy is None else self.policy.spec.scenario

    @property
    def spec(self) -> PolicySpec:
        """What it reads and may choose."""
        return PolicySpec.for_orders((), self.plays_in) if self.policy is None else self.policy.spec

    @property
    def made_for(self) -> dict[str, Any]:
        """The variant it was trained in, as a setting of a game; nothing where that is not known, as of a baseline."""
        return {} if self.policy is None else made_for(self.policy)


def made_for(policy: Policy) -> dict[str, Any]:
    """Return the settings of a game that a policy was trained for and plays in, unless asked otherwise."""
    known = {name: policy.config.get(name) for name in ("variant",)}
    return {name: value for name, value in known.items() if value is not None}


def games_made_for(
    names: Sequence[Who], defenders: Sequence[Defender], given: Mapping[str, Any], say: Say
) -> list[dict[str, Any]]:
    """Return the settings to play with: those given and, for the rest, what the defenders were made for.

    Defenders made for different games are played in each of these. A line says so, also where one plays elsewhere because
    that was asked for. On CybORG, the variant is what it is.
    """
    if given.get("backend") == "cyborg":
        return [dict(given)]
    asked = {name: value for name, value in given.items() if value is not None}
    homes, said = [], []
    for name, defender in zip(names, defenders, strict=True):
        home, title = defender.made_for, name_of(name)
        for what, value in home.items():
            if asked.get(what, value) != value:
                say(f"{title} was made for {what} {value}; it is played in {asked[what]}, as asked")
        wanted = {**home, **asked}
        if home and wanted not in homes:
            homes.append(wanted)
            said.append(f"{title} was made for {' '.join(f'{what} {value}' for what, value in home.items())}")
    if len(homes) > 1:
        say(f"{', '.join(said)}: both are played in each")
    return homes or [asked]


def name_of(policy: Who) -> str:
    """Return what a player is called in texts."""
    if isinstance(policy, str | Path):
        return str(policy)
    agent = agent_of(policy)
    return "a policy" if agent is None else agent.name


def agent_of(policy: Who) -> agents.Agent | None:
    """Return the agent that a user hands in; None if it is a policy, a baseline or a table. Imports nothing by name."""
    if isinstance(policy, agents.Agent):
        return policy
    if isinstance(policy, str | Path):
        return agents.Agent(policy) if Path(policy).suffix == agents.ONNX and Path(policy).is_file() else None
    return None if isinstance(policy, Policy | PolicyTable) else agents.Agent(policy)


def home_of(policy: Who) -> Scenario:
    """Return the scenario in which somebody plays unless another is asked for: that of its training, else CAGE2."""
    if isinstance(policy, PolicyTable):
        return policy.spec.scenario
    if _is_named(policy):
        return load_named(policy).spec.scenario
    agent = None if isinstance(policy, str) and policy in baselines.BASELINES else agent_of(policy)
    return (None if agent is None else agent.scenario) or CAGE2


def takes_best_actions(policy: Who, greedy: bool | None) -> bool:
    """Return whether a defender under attack takes its most probable actions.

    Unless asked for, all do but a league's, which has learned to draw them. What is no policy acts as it does.
    """
    if isinstance(policy, PolicyTable):
        return policy.greedy and greedy is not False
    if agent_of(policy) is not None:
        return False
    if greedy is None and _is_named(policy):
        return not load_named(policy).draws
    return greedy is None or bool(greedy)


def make_defender(
    policy: Who,
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
    defender = _defender(policy, workflow, greedy, later, judged, say, scenario)
    if scenario not in (None, defender.scenario):
        did = "plays in" if defender.policy is None else "trained on"
        raise errors.PolicyError(f"{name_of(policy)}: {did} {defender.scenario.label}, not on {scenario.name}")
    return defender


def _defender(
    policy: Who, workflow: str | None, greedy: bool, later: Sequence[str], judged: bool, say: Say, asked: Scenario | None
) -> Defender:
    scenario = asked or CAGE2
    if isinstance(policy, str) and policy in baselines.BASELINES:
        if later and workflow is None:
            raise errors.ConfigError(f"{policy} follows no order that could change: give the first one with --workflow")
        texts = [text for text in (workflow, *later) if text is not None]
        orders = tuple(Workflow.parse(text, UnitScheme.by_type(scenario)) for text in texts)
        return Defender(baselines.make_baseline(policy, orders, scenario), orders, None, scenario)
    if isinstance(policy, PolicyTable):
        return _defend_by_table(policy, workflow, greedy, later)
    if not _is_named(policy):
        agent = agent_of(policy)
        assert agent is not None, "tables and baselines have returned"
        home = scenario if agent.scenario is None else _under_reward(agent.scenario, asked)
        return _defend_by_agent(agent, workflow, greedy, later, judged, say, home)
    loaded = _in_scenario(policy, asked, say)
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


def _under_reward(home: Scenario, asked: Scenario | None) -> Scenario:
    """Return the scenario that was asked for, if it is the same network with another reward; else the first one."""
    return asked if asked is not None and asked.without_reward == home.without_reward else home


def _in_scenario(policy: Named, asked: Scenario | None, say: Say) -> Policy:
    """Load a policy; it can play under another reward than it was trained for, and a line says so."""
    loaded = load_named(policy)
    played = _under_reward(loaded.spec.scenario, asked)
    if played == loaded.spec.scenario:
        return loaded
    say(f"{name_of(policy)} was trained for the reward of {loaded.spec.scenario.label}; it plays for that of {played.label}")
    return loaded.in_scenario(played)


def _defend_by_agent(
    agent: agents.Agent, workflow: str | None, greedy: bool, later: Sequence[str], judged: bool, say: Say, scenario: Scenario
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


# ---------------------------------------------------------------- export


def export(policy: Named, to: "Target" = "onnx", out: str | Path | None = None, *, workflow: str | None = None) -> Path:
    """Write a policy as one file for ONNX, PyTorch or NumPy, and return its path.

    policy: a run, a policy's folder or file, or a loaded one. out: beside the policy unless given. workflow: the order it
    will always follow; without it, a policy that follows any is given one at every turn. Memory, masks, opening and shield
    are in the file: see `docs/export.md`.

        ff.export("runs/first", "onnx", "policy.onnx")
    """
    from fixfirst.adapters import export as formats  # nobody else waits for it

    if not isinstance(to, str) or to not in formats.SUFFIXES:
        raise errors.ConfigError(f"a policy is exported to {', '.join(formats.SUFFIXES)}, not {to!r}")
    if isinstance(policy, str) and policy in baselines.BASELINES:
        raise errors.ConfigError(f"{policy} is a baseline: it has no network to export")
    loaded = load_named(policy)
    path = _default_path(policy, formats.SUFFIXES[to]) if out is None else layout.check_output("out", out, policy)
    _ = loaded.network  # its weights are finite, and those of its spec
    with errors.writing(path, error=errors.ConfigError):
        formats.export_policy(loaded, path, to, workflow)
    return path


def _default_path(policy: Named, suffix: str) -> Path:
    """Return a path in the run's folder, or here under the policy's name."""
    if isinstance(policy, Policy):
        return Path(f"policy{suffix}")
    path = Path(policy)
    if not path.exists():  # one that comes with fixfirst
        return Path(f"{path.name}{suffix}")
    return (path if path.is_dir() else path.parent) / f"policy{suffix}"


# ---------------------------------------------------------------- rollout


class Steps(NamedTuple):
    """T steps of N environments. Row t is before action t; what has T + 1 rows ends with what came after the last one."""

    packed_obs: np.ndarray  # [T + 1, N], or [T + 1, N, W]: uint64, observations, bit i = observation i
    held_sets: np.ndarray  # [T + 1, N] int16 or int64: hosts red truly holds, bit h = host h
    actions: np.ndarray  # [T, N] int16
    rewards: np.ndarray  # [T, N] float64
    truncated: np.ndarray  # [T, N] bool: the episode ended with this step
    scenario: Scenario = CAGE2

    @property
    def observations(self) -> np.ndarray:
        """[T + 1, N, 52] int8, as `envs.step` shows them."""
        bits = self.scenario.observation_bits
        return (
            bits_of(self.packed_obs.reshape(self.held_sets.size, -1), bits)
            .astype(np.int8)
            .reshape(*self.held_sets.shape, bits)
        )

    @property
    def held(self) -> np.ndarray:
        """[T + 1, N, 13] bool: does red hold the host?"""
        return (self.held_sets[..., None] >> np.arange(self.scenario.num_hosts) & 1).astype(np.bool_)


def rollout(
    envs: "VecCage2",
    policy: Who,
    steps: int,
    *,
    seed: int = 0,
    greedy: bool = False,
    workflow: policy_file.Orders | None = None,
    say: Say = errors.note,
) -> Steps:
    """Play on from where the environments stand, and leave them where they are then, as if stepped.

    policy: a loaded one, a run, or a policy's folder or file, all of which play in compiled code; or a baseline or an agent
    of your own, as in `ff.evaluate`, which is asked at every step. One with a memory begins without any, so reset the
    environments first; or make them with its memory and action set: then what they remember goes on, too. seed: of its
    actions; greedy: the most probable action instead of a drawn one. workflow: the order to follow instead of its own, or a
    list with one for each environment. say: is given a line if the policy was made for another variant. Episodes end and
    begin as the environments' autoreset mode says; in the mode `next_step` the action after an end is not played, and earns
    0.

    For example:

        envs = ff.make_vec(1000, red_agent="meander")
        envs.reset(seed=0)
        played = ff.rollout(envs, "champion", steps=100)
        played.rewards.sum(axis=0)  # [1000] returns
        played.observations, played.actions, played.held  # [101, 1000, 52], [100, 1000], [101, 1000, 13]
    """
    from fixfirst.adapters.envs import VecCage2  # here, because evaluating needs no Gymnasium

    if not isinstance(envs, VecCage2) or not isinstance(envs.world, World):
        raise errors.ConfigError(
            f"rollout() plays in compiled code: make the environments with ff.make_vec(...) on the simulator, got {envs!r}"
        )
    count, number = arguments.check_int("steps", steps), arguments.check_seed("seed", seed, bits=63)
    track = Trajectory.empty(count, envs.num_envs, envs.world.scenario)
    if _is_named(policy):
        loaded = _in_scenario(policy, envs.world.scenario, say)
        if loaded.spec.scenario != envs.world.scenario:
            trained, played = loaded.spec.scenario.label, envs.world.scenario.name
            raise errors.PolicyError(f"{name_of(policy)}: trained on {trained}, not on {played}")
        if (variant := made_for(loaded).get("variant", envs.world.variant)) != envs.world.variant:
            say(f"the policy was made for variant {variant}; the environments play {envs.world.variant}")
        orders, assigned = loaded.assign(workflow, envs.num_envs)
        player: Player = loaded.player_of(orders, greedy=greedy)
    elif isinstance(workflow, str | None):
        defender = make_defender(policy, workflow, greedy, scenario=envs.world.scenario)
        player, assigned = defender.player, np.zeros(envs.num_envs, np.int64)
    else:
        raise errors.ConfigError(f"{name_of(policy)} takes one order for all environments, got {workflow!r}")
    if isinstance(player, PolicyTable) and player.network is not None:
        play_steps(envs.world, player, assigned, number, track, _shared_memories(envs, player.spec))
    else:
        _play_on(envs, player, assigned, number, track)
    return Steps(track.packed_obs, track.held, track.actions, track.rewards10 / 10, track.ended, envs.world.scenario)


def _is_named(policy: Who) -> TypeGuard[Named]:
    """Return whether this is a policy of ours, or names one."""
    if isinstance(policy, str | Path):
        return policy not in baselines.BASELINES and agent_of(policy) is None
    return isinstance(policy, Policy)


def _play_on(envs: "VecCage2", player: Player, assigned: np.ndarray, seed: int, track: Trajectory) -> None:
    """Play as `play_steps` does, with somebody who is asked at every step."""
    world, n, spec = envs.world, envs.num_envs, getattr(player, "spec", PolicySpec.for_orders((), envs.world.scenario))
    shared = _shared_memories(envs, spec) is not None
    memories = envs.memories if shared else remembering.Memories(spec, n)
    keys, fresh, steps, access = np.empty(n, np.uint64), np.empty(n, np.uint64), np.zeros(n, np.int64), []
    starts = np.ones(n, np.bool_)
    for t in range(len(track.actions)):
        track.packed_obs[t], had_ended = world.packed_obs, world.ended.copy()
        access.append(world.access.copy())
        if starts.any():
            table.chance_keys(seed, t, fresh)
            keys[starts], steps[starts] = fresh[starts], 0
        if isinstance(player, agents.AgentPlayer):
            actions = player.choose_with(memories, track.packed_obs[t], assigned, keys, t, starts)
        elif isinstance(player, PolicyTable):
            actions = player.choose_with(memories, track.packed_obs[t], assigned, keys, steps)[2]
        else:
            actions = player.act(track.packed_obs[t], access[t], assigned, keys, t)
        world.step(actions)
        steps += 1
        starts = had_ended if envs.autoreset_mode.name == "NEXT_STEP" else world.ended.copy()
        memories.forget(starts)
        track.choices[t] = track.actions[t] = actions
        track.rewards10[t], track.ended[t] = world.rewards10, world.ended
    track.packed_obs[-1] = world.packed_obs
    track.held[:] = repairs.held_mask(np.array([*access, world.access]))


def _shared_memories(envs: "VecCage2", spec: PolicySpec) -> np.ndarray | None:
    """Return what the environments remember, if they do it for a player like this one; None if they remember nothing."""
    mine = envs.memories
    if mine.idle:
        return None
    if (mine.spec.memory, mine.spec.action_set) != (spec.memory, spec.action_set):
        raise errors.ConfigError(
            f"the environments have the memory {mine.spec.memory} and the action set {mine.spec.action_set}, the policy has "
            f"{spec.memory} and {spec.action_set}; make them with the policy's, or with neither"
        )
    return mine.records
