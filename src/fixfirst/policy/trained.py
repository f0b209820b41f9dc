"""A trained policy, ready to play, and its two files, policy.json and policy.safetensors. Needs no PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from fixfirst.base import arguments, array_files, errors
from fixfirst.game.attacker_files import SHIPPED
from fixfirst.game.base_world import pack
from fixfirst.game.chance import chance_keys
from fixfirst.game.scenario import Scenario
from fixfirst.orders.order import UnitScheme, Workflow
from fixfirst.policy.memories import Memories
from fixfirst.policy.network import LAYERS, Network, shapes
from fixfirst.policy.spec import PolicySpec
from fixfirst.policy.table import PolicyTable, Probabilities, probabilities
from fixfirst.runs import manifest
from fixfirst.runs.layout import RunFiles

NamedOrder = Workflow | str
Orders = NamedOrder | Sequence[NamedOrder]  # one for all environments, or one for each
POLICY = "policy"  # the kind of its files
MOST_ROWS = 100_000  # answers that `act` keeps: of 145 choices, some 60 MB


class _Episodes(NamedTuple):
    """What a policy knows of N environments from call to call."""

    memories: Memories
    steps: np.ndarray  # [N] int64: how far their episodes are


@dataclass(frozen=True, eq=False)  # arrays have no single answer to ==
class Policy:
    """A trained policy, ready to play.

    It remembers by itself what its spec asks for, separately for every environment of the batch that `act` is called with:
    say when episodes begin, with `reset` or with `episode_start`.

    For example:

        policy = ff.load_policy("runs/first")
        envs = ff.make_vec(100)
        obs, info = envs.reset(seed=0)
        policy.reset(100)
        for _ in range(100):
            actions = policy.act(obs, workflow="enterprise_focus")  # [100, 52] -> [100]; an order for all, or a list of 100
            obs, reward, terminated, truncated, info = envs.step(actions)
    """

    weights: dict[str, np.ndarray] = field(repr=False)
    workflow: Workflow | None  # the order it follows; None: it knows no order, or is told one when it plays
    spec: PolicySpec  # what it reads and may choose, its opening
    config: dict[str, Any] = field(repr=False)  # of its training
    facts: dict[str, Any] = field(repr=False)  # versions, hash, and what its makers noted
    _cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        knows = "no order" if self.scheme is None else "any order" if self.follows_any else str(self.workflow)
        return f"Policy({knows}; memory {self.spec.memory.name}, action set {self.spec.action_set.name})"

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: what it remembers goes with it, what it can work out again does not."""
        return self.__dict__ | {"_cache": {name: value for name, value in self._cache.items() if name == "episodes"}}

    def in_scenario(self, scenario: Scenario) -> "Policy":
        """Return it for the same network under another reward: what it reads and chooses is the same."""
        spec = PolicySpec.from_dict(self.spec.as_dict() | {"scenario": Scenario.check(scenario).as_dict()})
        order = None if self.workflow is None or spec.units is None else Workflow.parse(str(self.workflow), spec.units)
        return replace(self, workflow=order, spec=spec)

    def with_favourite(self, order: Workflow) -> "Policy":
        """Return it with an order for those who name none; it follows any other, too."""
        return replace(self, workflow=order, facts=self.facts | {"follows": "any"})

    def save(self, folder: Path, **facts: Any) -> None:
        """Write policy.safetensors and policy.json. facts: what is noted beside its own facts, or in their place."""
        document = {"workflow": None if self.workflow is None else str(self.workflow), **self.spec.as_dict()}
        document |= {"inputs": self.spec.inputs, "actions": self.spec.actions, "versions": manifest.versions()}
        noted = {name: fact for name, fact in self.facts.items() if name not in document}
        folder.mkdir(parents=True, exist_ok=True)
        array_files.write_pair(RunFiles(folder).policy_json, POLICY, document | noted | facts, self.weights)

    @property
    def scheme(self) -> UnitScheme | None:
        """The unit types whose order it reads; None: it knows no order."""
        return self.spec.units

    @property
    def follows_any(self) -> bool:
        """Was it trained on many orders, even if it carries one for those who name none?"""
        return self.scheme is not None and (self.workflow is None or self.facts.get("follows") == "any")

    @property
    def draws(self) -> bool:
        """Is it meant to draw its actions? A league's defender is: attackers use it if they know what it will do."""
        return bool(self.facts.get("notes", {}).get("league"))

    @property
    def probabilities(self) -> Probabilities:
        """inputs [M, 52 + memory and workflow bits] -> probabilities [M, choices]."""
        answer = probabilities(self.network)
        return lambda inputs: answer(_bits("inputs", inputs, self.spec.inputs))

    @property
    def network(self) -> Network:
        """Its weights as the compiled code reads them: without checks, so they must be those of its spec."""
        array_files.check_tensors("the weights of this policy", self.weights, shapes(self.spec.inputs, self.spec.actions))
        return Network.of(self.weights)

    def player(self, *orders: NamedOrder, greedy: bool = False) -> PolicyTable:
        """Return it as a player of rollouts. It follows these orders, which environments have by number; or its own."""
        parsed = [order for named in orders or (None,) for order in self.orders(named)]
        return PolicyTable(self.network, parsed, spec=self.spec, greedy=greedy)

    def assign(self, workflow: Orders | None, num_envs: int) -> tuple[tuple[Workflow, ...], np.ndarray]:
        """Return the different orders that are to be followed, and the number [N] of each environment's among them."""
        arguments.check_int("num_envs", num_envs, 0)
        if workflow is None:
            return self.orders(), np.zeros(num_envs, np.int64)
        if self.scheme is None:
            raise errors.ConfigError("this policy knows no order: leave out workflow")
        if isinstance(workflow, Workflow | str):
            return self.orders(workflow), np.zeros(num_envs, np.int64)
        each = _one_each(workflow, num_envs)
        numbers = {order: number for number, order in enumerate(dict.fromkeys(each))}
        parsed = tuple(order for named in numbers for order in self.orders(named))
        return parsed or (Workflow.from_number(0, self.scheme),), np.array([numbers[order] for order in each], np.int64)

    def reset(self, num_envs: int = 1) -> None:
        """Episodes begin in this many environments: nothing is remembered."""
        count = arguments.check_int("num_envs", num_envs, 0)
        self._cache["episodes"] = _Episodes(Memories(self.spec, count), np.zeros(count, np.int64))

    def act(
        self,
        obs: np.ndarray,
        *,
        episode_start: np.ndarray | None = None,
        workflow: Orders | None = None,
        greedy: bool = False,
        seed: int = 0,
        step: int | None = None,
    ) -> np.ndarray:
        """Actions [N] of the world for observations [N, 52] (or one for one), which count as taken.

        episode_start [N] bool: where an episode begins with this observation. workflow: the order to follow instead of its
        own, or a list of N, one for each environment; at the next step it may be another. Drawn actions are a pure function
        of (seed, step, position in the batch), and the step is counted unless it is given.
        """
        batch = _bits("observations", obs, self.spec.scenario.observation_bits, "; what a policy remembers it keeps itself")
        orders, assigned = self.assign(workflow, len(batch))
        player = self._player(orders, greedy)
        episodes = self._episodes(len(batch), episode_start)
        words = pack(batch)
        keys = np.empty(len(words), np.uint64)
        chance_keys(arguments.check_seed("seed", seed, bits=63), 0, keys)
        steps = episodes.steps if step is None else np.full(len(words), arguments.check_int("step", step, 0), np.int64)
        numbers = np.array([player.number_of(order) for order in orders] or [0], np.int64)
        _, _, actions = player.choose(episodes.memories, words, numbers[assigned], keys, steps)
        episodes.steps[:] += 1
        return actions if np.ndim(obs) == 2 else actions[0]

    def _player(self, orders: tuple[Workflow, ...], greedy: bool) -> PolicyTable:
        """Return the player of earlier calls: it comes to know every order, and forgets answers when there are many."""
        player: PolicyTable | None = self._cache.get(greedy)
        if player is None or player.table.filled[0] > MOST_ROWS:
            player = self._cache[greedy] = self.player(*orders, greedy=greedy)
        return player

    def _episodes(self, num_envs: int, episode_start: np.ndarray | None) -> _Episodes:
        """Return what is known of so many environments; in some of them, an episode begins."""
        starts = np.zeros(num_envs, np.bool_)
        if episode_start is not None:
            starts |= _mask(episode_start, num_envs)
        remembers = bool(self.spec.memory.groups or self.spec.masks or self.spec.opening)
        episodes: _Episodes | None = self._cache.get("episodes")
        if episodes is None or (len(episodes.steps) != num_envs and (starts.all() or not remembers)):
            self.reset(num_envs)
            episodes = cast(_Episodes, self._cache["episodes"])
        if len(episodes.steps) != num_envs:
            raise errors.PolicyError(
                f"this policy remembers {len(episodes.steps)} environments and got {num_envs} observations; "
                f"begin new episodes with reset({num_envs})"
            )
        episodes.memories.forget(starts)
        episodes.steps[starts] = 0
        return episodes

    def to_torch(self) -> Any:
        """A PyTorch module with its weights: `.actor` (logits) and `.critic` (values) of inputs [M, 52 + workflow bits]."""
        try:
            import torch  # an extra that takes seconds to import
        except ModuleNotFoundError as e:
            raise errors.ConfigError(
                "to_torch() needs PyTorch, which is not installed: pip install 'fixfirst[torch]'"
            ) from e
        net = torch.nn.ModuleDict()
        for part in ("actor", "critic"):
            layers = []
            for number in LAYERS:
                rows, columns = self.weights[f"{part}.{number}.weight"].shape
                layers += [torch.nn.Linear(columns, rows), torch.nn.Tanh()]
            net[part] = torch.nn.Sequential(*layers[:-1])
        net.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in self.weights.items()})
        return net

    def orders(self, workflow: NamedOrder | None = None) -> tuple[Workflow, ...]:
        """Return the order to play by: the given one, else its own; empty for a policy that knows none."""
        if self.scheme is None:
            return ()
        chosen = workflow if workflow is not None else self.workflow
        if chosen is None:
            raise errors.ConfigError("this policy follows any order: say which one (workflow=..., --workflow)")
        order = chosen if isinstance(chosen, Workflow) else Workflow.parse(chosen, self.scheme)
        if order.scheme != self.scheme:
            raise errors.WorkflowError(
                f"this policy orders {', '.join(self.scheme.names)}, not {', '.join(order.scheme.names)}"
            )
        return (order,)


def _bits(what: str, values: Any, number: int, hint: str = "") -> np.ndarray:
    """[N, number] of 0 and 1, from that or from one row: compiled code looks up weights by them, and checks nothing."""
    rows = np.atleast_2d(arguments.as_array(what, values, errors.PolicyError))
    if rows.ndim != 2 or rows.shape[1] != number or rows.dtype.kind not in "biuf" or not np.isin(rows, (0, 1)).all():
        raise errors.PolicyError(f"{what} must be [N, {number}] bits, got shape {rows.shape}{hint}")
    return rows


def _one_each(workflow: Any, num_envs: int) -> list[NamedOrder]:
    """[N] orders."""
    right = f"workflow must be an order such as 'user > ...', or a list with one for each of {num_envs} environments"
    if not isinstance(workflow, Sequence) and np.ndim(workflow) != 1:
        raise errors.WorkflowError(f"{right}, got {workflow!r}")
    each: list[Any] = list(workflow)
    wrong = [order for order in each if not isinstance(order, Workflow | str)]
    if wrong or len(each) != num_envs:
        raise errors.WorkflowError(f"{right}, got {repr(wrong[0]) if wrong else len(each)}")
    return each


def _mask(values: Any, num_envs: int) -> np.ndarray:
    """[N] bool: one for all, or one each."""
    array = arguments.as_array("episode_start", values, errors.PolicyError)
    if array.dtype != np.bool_ or array.reshape(-1).shape not in ((1,), (num_envs,)):
        raise errors.PolicyError(f"episode_start must be {num_envs} booleans, got {values!r}")
    return array.reshape(-1)


def shipped_policies() -> list[str]:
    """Return the names of the policies that come with fixfirst."""
    return sorted(folder.parent.name for folder in SHIPPED.glob(f"*/{RunFiles.policy_json}"))


def load_policy(path: str | Path) -> Policy:
    """From a folder with policy.json (or with best/), from the file itself, or one that comes with fixfirst by its name.

    For example:

        policy = ff.load_policy("champion")
        action = policy.act(np.zeros(52), greedy=True)
    """
    folder = policy_folder(arguments.check_path("a policy", path))
    facts, tensors = array_files.read_pair(RunFiles(folder).policy_json, POLICY)
    if odd := [name for name in ("config", "versions", "notes") if not isinstance(facts.get(name, {}), dict)]:
        raise errors.PolicyError(f"{RunFiles(folder).policy_json}: damaged (its {odd[0]} is not a table)")
    try:
        spec, order = PolicySpec.from_dict(facts), facts["workflow"]
        workflow = None if order is None or spec.units is None else Workflow.parse(order, spec.units)
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        raise errors.PolicyError(f"{RunFiles(folder).policy_json}: damaged ({e})") from e
    array_files.check_tensors(RunFiles(folder).policy_tensors, tensors, shapes(spec.inputs, spec.actions))
    return Policy(tensors, workflow, spec, manifest.flat_settings(facts.get("config", {})), facts)


def load_parent(path: Path, spec: PolicySpec) -> Policy:
    """A policy whose weights a training can inherit: of the same memory, action set and unit types, or of none of these."""
    policy, scheme = load_policy(path), spec.units
    for what, have, need in (
        ("memory", policy.spec.memory.name, spec.memory.name),
        ("action set", policy.spec.action_set.name, spec.action_set.name),
    ):
        if have != need:
            raise errors.ConfigError(f"{path}: has the {what} {have}, the training needs a policy with {need}")
    if policy.scheme not in (None, scheme):
        wanted = "no order" if scheme is None else f"the unit types {', '.join(scheme.names)}"
        raise errors.ConfigError(
            f"{path}: knows the unit types {', '.join(policy.scheme.names)}, the training needs a policy that knows {wanted}"
        )
    if policy.scheme is not None and _keeping(policy.spec) != _keeping(spec):
        raise errors.ConfigError(
            f"{path}: keeps its order by {_keeping(policy.spec)}, the training by {_keeping(spec)} (--keep)"
        )
    return policy


def _keeping(spec: PolicySpec) -> str:
    """Name the way in which an order is kept."""
    if not spec.shield:
        return "rewards only"
    return "a shield" if spec.keeping == "shield" else f"a shield by {spec.keeping}"


def policy_folder(path: Path) -> Path:
    """The folder that holds a policy's two files; of a name for which there is no file, the one that comes with fixfirst."""
    if not path.exists() and str(path) in shipped_policies():
        return SHIPPED / str(path)
    folder = path.parent if path.name in (RunFiles.policy_json, RunFiles.policy_tensors) else path
    for candidate in (folder, RunFiles(folder).best):
        if RunFiles(candidate).policy_json.exists():
            return candidate
    if folder.exists():
        missing = f"{RunFiles.policy_json} is missing: name a finished run, of a study one of its searches"
        raise errors.PolicyError(f"{path}: holds no policy ({missing})")
    shipped = shipped_policies()
    near = errors.did_you_mean(str(path), shipped)
    why = f"there is no such file or run; {', '.join(shipped)} come with fixfirst{near}"
    raise errors.PolicyError(f"{path}: holds no policy ({why})")
