"""The scenario: a network with all that is on it, what blue can do there, as one frozen value.

Every other table of the project (bit masks, the kernel's arrays, memories, action sets) is computed from a `Scenario`; the
built-in one is `CAGE2`. What it is made of is in `parts.py`; the rules that act on it are in `rules.py`, and in words in
`docs/model.md`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from fixfirst.base import arguments, errors
from fixfirst.game import (
    documents,
    machine_table,
    new_scenario,
    notes,
    parts,
    reward as rewards,
    scenario_reading,
    scenario_writing,
)
from fixfirst.game.images import ImageFolder
from fixfirst.game.parts import BlueAction, Decoy, ExploitKind, Finding, Host, Image, Subnet

SHIPPED_SCENARIOS = ("cage2", "cage1", "tiny", "flat", "office")  # scenarios that come with fixfirst
SHIPPED_FOLDER = Path(__file__).with_name("scenarios")


@dataclass(frozen=True)
class Scenario:
    """A network, what can be done in it, and what is at stake. A host's position in `hosts` is its id everywhere.

    Two are equal if they play alike, whatever they are called. `fixfirst.CAGE2` is the built-in one.

    For example:

        office = ff.Scenario.load("office")  # or a scenario file of CybORG: "lab.yaml"
        office.hosts, office.subnets, office.actions, office.start, office.target
        print(*office.notes, sep="\\n")  # what its names mean for those who play
        text = office.to_yaml()  # a file for CybORG
    """

    # The same in every scenario
    exploits: ClassVar[tuple[ExploitKind, ...]] = parts.EXPLOITS
    exploit_names: ClassVar[tuple[str, ...]] = tuple(exploit.name for exploit in parts.EXPLOITS)
    ports: ClassVar[tuple[int, ...]] = parts.PORTS  # those that matter one by one

    name: str = field(compare=False)
    subnets: tuple[Subnet, ...]  # in the order in which Meander explores them: by their first hosts
    hosts: tuple[Host, ...]
    unit_types: tuple[str, ...]  # in the order of their ids; () where names and subnets give none
    start: str  # red's foothold: it holds this host from the start, for ever
    known: tuple[Finding, ...]  # what red knows at the start, in the order of hosts
    ot_cost: float  # per step with the target's OT service stopped
    verbs: tuple[str, ...] = parts.CAGE2_VERBS  # of blue, in the order of its action table
    decoys: tuple[Decoy, ...] = parts.DECOYS  # those that are among the verbs
    green_hosts: tuple[str, ...] | None = ()  # of parts.GREEN_NAMES, those green can scan, as hosts go; None: no green
    red_before_green: bool = False  # chances are drawn in this order
    own_reward: bool = False  # costs, and what follows, are not those of CAGE2 (`reward.py`)
    restore_cost: float = parts.RESTORE_COST
    detection: float = parts.P_DETECTED  # how often a reverse shell is seen where blue watches
    steps: int | None = None  # length of an episode unless another is asked for; None: the usual
    map_rows: tuple[tuple[str, ...], ...] = field(default=(), compare=False)  # as pictures show hosts; () = by subnet
    remarks: tuple[str, ...] = field(default=(), compare=False)  # what its reader noticed

    @classmethod
    def load(cls, path: str | Path, images: str | Path | None = None) -> "Scenario":
        """Read a scenario file of CybORG, or one of SHIPPED_SCENARIOS by its name. images: a folder of own ones."""
        file = arguments.check_path("scenario", path)
        if str(path) == CAGE2.name:
            return CAGE2
        if str(path) in SHIPPED_SCENARIOS and not file.is_file():  # a folder of that name is none
            file = SHIPPED_FOLDER / f"{path}.yaml"
        folder = None if images is None else ImageFolder(arguments.check_path("images", images))
        return cls.from_document(documents.read_yaml(file), file.stem, str(file), folder)

    @classmethod
    def from_document(
        cls, document: Any, name: str, file: str | None = None, images: Mapping[str, Image] | None = None
    ) -> "Scenario":
        """Make one from the contents of a scenario file. file: what errors call it."""
        loaded = cls(**scenario_reading.fields_from(document, name, file or name, images))
        if rewards.TABLE in document:
            loaded = rewards.with_reward(loaded, document[rewards.TABLE], file or name, rewards.TABLE)
        is_cage2 = loaded.without_reward == CAGE2.without_reward
        return replace(loaded, map_rows=CAGE2.map_rows) if is_cage2 else loaded

    @classmethod
    def from_table(cls, path: str | Path, say: Callable[[str], None] = print) -> "Scenario":
        """Make one from a CSV file of machines: name, subnet, image (or os and services), value, leads_to, role, watched.

        say: is given a line for everything that the table does not say and that was guessed.
        """
        file = arguments.check_path("a table", path)
        return cls(file.stem, **machine_table.fields_from(file, say))

    @classmethod
    def generate(
        cls,
        seed: int,
        hosts: int | tuple[int, int] = (8, 30),
        subnets: int | tuple[int, int] = (2, 4),
        values: new_scenario.Values = "usual",
    ) -> "Scenario":
        """Draw a random network on which B_line and Meander play as CybORG's. hosts, subnets: the fewest and the most.

        values: usual (much as in CAGE2), or any, to tell value and place apart. The same seed gives the same network,
        everywhere and for ever.
        """
        fields = new_scenario.generated(seed, hosts, subnets, values)
        return cls(f"generated{new_scenario.GENERATOR}-{seed}", **fields)

    @classmethod
    def check(cls, value: Any) -> "Scenario":
        """Return the scenario itself; raise ConfigError if it is something else, such as its name."""
        if not isinstance(value, cls):
            how = f"load it: ff.Scenario.load({value!r})" if isinstance(value, str) else "use ff.Scenario.load(FILE)"
            raise errors.ConfigError(f"scenario must be a Scenario, got {value!r}; {how}")
        return value

    def with_reward(self, path: str | Path) -> "Scenario":
        """Return it with the reward of a YAML file: hosts, service, restore, detection, steps (docs/scenarios.md)."""
        file = arguments.check_path("reward", path)
        changed = rewards.with_reward(self, documents.read_yaml(file), str(file))
        return replace(changed, name=f"{self.name}+{file.stem}")

    @cached_property
    def without_reward(self) -> "Scenario":
        """The same network with nothing at stake: equal where two scenarios differ in their rewards only."""
        return replace(
            self,
            hosts=tuple(replace(host, value=0.0) for host in self.hosts),
            ot_cost=0.0,
            restore_cost=parts.RESTORE_COST,
            detection=parts.P_DETECTED,
            steps=None,
            own_reward=False,
        )

    def document(self) -> dict[str, Any]:
        """Return the contents of a complete scenario file."""
        return scenario_writing.document_of(self)

    def to_yaml(self) -> str:
        """Return a complete scenario file, as CybORG reads it."""
        return self._file

    @cached_property
    def _file(self) -> str:  # a search writes it with every round: 7 % of its time, if it were made anew
        import yaml

        return str(yaml.safe_dump(self.document(), sort_keys=False, allow_unicode=True, width=120))

    def as_dict(self) -> dict[str, str]:
        """Return it for the files of runs and policies: whole, so that they can be read where its own file is not."""
        return {"name": self.name, "digest": self.digest, "file": self.to_yaml()}

    @classmethod
    def from_dict(cls, values: Any) -> "Scenario":
        """Read what `as_dict` returned."""
        texts = isinstance(values, dict) and all(isinstance(values.get(key), str) for key in ("name", "digest", "file"))
        if not texts:
            raise errors.ScenarioError(f"a scenario in a file is a name, a digest and a file, got {values!r:.60}")
        name = values["name"]
        loaded = cls.from_document(documents.parse_yaml(values["file"], name), name)
        if loaded.digest != values["digest"]:
            raise errors.ScenarioError(f"{name}: its file does not have the digest {values['digest']!r:.60}")
        return loaded

    @property
    def label(self) -> str:
        """Its name and the beginning of its digest, for errors."""
        return self.name if self is CAGE2 else f"{self.name} ({self.digest[:4]}...)"

    def in_words(self, variant: str = "") -> str:
        """Return the world in words, for texts: the variant, the scenario unless it is CAGE2, and a reward of its own."""
        own = "" if self == CAGE2 else f"scenario {self.label}"
        return ", ".join(filter(None, (variant, own, self.stakes)))

    @property
    def stakes(self) -> str:
        """What is at stake in one line; "" where the reward is CAGE2's."""
        if not self.own_reward:
            return ""
        costs = f"Restore {self.restore_cost:g} and a stopped service {self.ot_cost:g} points"
        length = "" if self.steps is None else f"; episodes of {self.steps} steps"
        hosts = f"hosts up to {max(host.value for host in self.hosts):g}"
        return f"not CAGE2's reward: {costs}, {hosts}, shells seen with {self.detection:g}{length}"

    @cached_property
    def num_hosts(self) -> int:
        return len(self.hosts)

    @cached_property
    def listed(self) -> tuple[int, ...]:
        """The hosts of blue's observation, four bits each."""
        return tuple(index for index, host in enumerate(self.hosts) if host.listed)

    @property
    def observation_bits(self) -> int:
        return parts.BITS_PER_HOST * len(self.listed)

    @property
    def words_shape(self) -> tuple[int, ...]:
        """The shape of one observation in words of 64 bits: () for one word, else (W,)."""
        words = -(-self.observation_bits // 64)
        return () if words == 1 else (words,)

    @cached_property
    def host_names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts)

    @cached_property
    def host_ids(self) -> Mapping[str, int]:
        """Host name -> id."""
        return MappingProxyType({name: index for index, name in enumerate(self.host_names)})

    @cached_property
    def subnet_names(self) -> tuple[str, ...]:
        return tuple(subnet.name for subnet in self.subnets)

    @cached_property
    def subnet_ids(self) -> Mapping[str, int]:
        """Subnet name -> number."""
        return MappingProxyType({name: index for index, name in enumerate(self.subnet_names)})

    @property
    def start_id(self) -> int:
        return self.host_ids[self.start]

    @property
    def target(self) -> str | None:
        """The host whose OT service Impact stops: agents know it by its name."""
        return parts.TARGET_NAME if parts.TARGET_NAME in self.host_ids else None

    @property
    def target_id(self) -> int:
        """The target's id, or -1."""
        return self.host_ids.get(parts.TARGET_NAME, -1)

    @property
    def can_stop_service(self) -> bool:
        """Whether its target runs the service that Impact stops."""
        return self.target is not None and self.hosts[self.target_id].image.runs_ot

    @cached_property
    def actions(self) -> tuple[BlueAction, ...]:
        """What each action id stands for: in the order of verbs, one of Sleep and of Monitor, one per host of all others."""
        return tuple(
            BlueAction(verb, host)
            for verb in self.verbs
            for host in ((None,) if verb in parts.FREE_VERBS else self.host_names)
        )

    @property
    def num_actions(self) -> int:
        return len(self.actions)

    @cached_property
    def _action_ids(self) -> dict[tuple[str, str | None], int]:
        return {(action.verb, action.host): index for index, action in enumerate(self.actions)}

    def action_id(self, verb: str, host: str | None = None) -> int:
        """Return the id of an action: CAGE2.action_id("Restore", "Op_Server0") == 139."""
        if (verb, host) not in self._action_ids:
            name = verb if host is None else f"{verb} {host}"
            near = errors.did_you_mean(name, map(str, self.actions))
            raise errors.ActionError(f"{name!r} is no action in {self.name}{near}")
        return self._action_ids[verb, host]

    @cached_property
    def sleep_id(self) -> int:
        """The action that does nothing: Sleep, else Monitor, else the first one."""
        return next((self.action_id(verb) for verb in parts.FREE_VERBS if verb in self.verbs), 0)

    @cached_property
    def repaired_hosts(self) -> tuple[int, ...]:
        """[A] the host that each action removes red from or restores, or -1."""
        repairs = (action.host if action.verb in parts.REPAIR_VERBS else None for action in self.actions)
        return tuple(-1 if host is None else self.host_ids[host] for host in repairs)

    @property
    def misinform(self) -> tuple[Decoy, ...]:
        """What the verb Misinform may place."""
        return parts.MADE_UP if "Misinform" in self.verbs else ()

    def ports_mask(self, *ports: int) -> int:
        """Return the set of these port numbers as a bit mask: bit p is the p-th of `ports`."""
        return sum(1 << self.ports.index(port) for port in set(ports))

    def name_mask(self, word: str) -> int:
        """Return the set of all hosts whose name contains a word, as a bit mask: bit h is host h."""
        return sum(1 << number for number, name in enumerate(self.host_names) if word in name)

    @property
    def home(self) -> str:
        """The host in whose subnet B_line begins: User0 where red knows its subnet, else where red starts."""
        knows = any(finding.host == parts.HOME_NAME and finding.subnet for finding in self.known)
        return parts.HOME_NAME if knows else self.start

    @cached_property
    def b_line_first(self) -> tuple[int, ...]:
        """Whom B_line draws its first victim from: home's neighbours; none: home itself, without a draw."""
        home = self.hosts[self.host_ids[self.home]]
        return tuple(i for i, host in enumerate(self.hosts) if host.subnet == home.subnet and host is not home)

    @cached_property
    def b_line_ways(self) -> tuple[tuple[int, int, int], ...]:
        """[H] this host, whom B_line attacks after it, and then: the third in that one's subnet, else the last."""
        seconds = [self.b_line_goes_on(host)[0] for host in self.hosts]
        lists = [self.subnets[self.hosts[second].subnet].hosts[:3] for second in seconds]
        return tuple((h, second, self.host_ids[lists[h][-1]]) for h, second in enumerate(seconds))

    def b_line_goes_on(self, host: Host) -> tuple[int, bool]:
        """Return whom B_line attacks after a host, and whether CybORG's B_line finds it, too.

        That is an Enterprise host whose address is there, else another, else the host itself.
        """
        findings = {finding.host: finding for finding in host.reveals}
        named = [name for name in (host.name, *(n for n in findings if n != host.name)) if parts.GATE_WORD in name]
        if named and named[0] in findings and findings[named[0]].address:
            return self.host_ids[named[0]], True
        others = [name for name, finding in findings.items() if name != host.name and finding.address]
        return self.host_ids[others[0] if others else host.name], False

    def exact(self, red_agent: str) -> bool:
        """Return whether a red agent always plays as CybORG's; where not, `notes` says when it goes its own way."""
        fallbacks = {"b_line": notes.b_line_fallbacks, "meander": notes.meander_fallbacks}
        if red_agent == "b_line" and self.target is None:
            return False
        return not any(fallbacks[red_agent](self)) if red_agent in fallbacks else True

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What to know of it, in sentences: which gate opens when, what cannot happen, which name means what."""
        return tuple(notes.notes_of(self))

    @cached_property
    def by_variant(self) -> Mapping[parts.VariantName, "Scenario"]:
        """The scenario as each of parts.VARIANTS has it."""
        variants = {}
        for name, variant in parts.VARIANTS.items():
            hosts = (replace(host, image=variant.images.get(host.image, host.image)) for host in self.hosts)
            decoys = (replace(d, opens=variant.decoy_opens.get(d.name, d.opens)) for d in self.decoys)
            variants[name] = replace(self, hosts=tuple(hosts), decoys=tuple(decoys))
        return variants

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides how it is played: equal for equal scenarios, whatever they are called."""
        facts = asdict(self)
        for name in ("name", "map_rows", "remarks", "decoys"):  # decoys follow from the verbs
            del facts[name]
        for host in facts["hosts"]:
            del host["image"]["name"]
        if not self.own_reward:
            for name in ("own_reward", "restore_cost", "detection", "steps"):
                del facts[name]
        return hashlib.sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def __hash__(self) -> int:
        return hash(self.host_names)  # quick: groupings and orders are keys of many dictionaries

    def __repr__(self) -> str:
        return f"<Scenario {self.name}: {self.num_hosts} hosts>"

    def __reduce__(self) -> Any:
        if self is CAGE2:
            return "CAGE2"  # the same object in every process
        return Scenario, tuple(getattr(self, each.name) for each in fields(self))


ENTERPRISE, OPERATIONAL, USER = range(3)  # the subnets of CAGE2


def _knows(host: str, *addresses: str, ot_service: bool = False) -> tuple[Finding, ...]:
    """Return what red finds on a host of CAGE2: the host's own subnet, and addresses of others. Hosts go by their names."""
    findings = (*map(Finding, addresses), Finding(host, subnet=True, ot_service=ot_service))
    return tuple(sorted(findings, key=lambda finding: finding.host))


CAGE2 = Scenario(
    name="cage2",
    subnets=(
        Subnet("Enterprise", ("Enterprise0", "Enterprise1", "Enterprise2", "Defender")),
        Subnet("Operational", ("Op_Server0", "Op_Host0", "Op_Host1", "Op_Host2"), "gated"),
        Subnet("User", ("User0", "User1", "User2", "User3", "User4")),
    ),
    unit_types=("user", "op_host", "op_server", "enterprise", "defender"),
    hosts=(
        Host("Defender", ENTERPRISE, "defender", parts.IMAGES["Velociraptor_Server"], 0.1),
        Host("Enterprise0", ENTERPRISE, "enterprise", parts.IMAGES["Gateway"], 1.0, _knows("Enterprise0")),
        Host("Enterprise1", ENTERPRISE, "enterprise", parts.IMAGES["Internal"], 1.0, _knows("Enterprise1")),
        Host("Enterprise2", ENTERPRISE, "enterprise", parts.IMAGES["Internal"], 1.0, _knows("Enterprise2", "Op_Server0")),
        Host("Op_Host0", OPERATIONAL, "op_host", parts.IMAGES["Gateway"], 0.1, _knows("Op_Host0")),
        Host("Op_Host1", OPERATIONAL, "op_host", parts.IMAGES["Gateway"], 0.1, _knows("Op_Host1")),
        Host("Op_Host2", OPERATIONAL, "op_host", parts.IMAGES["Gateway"], 0.1, _knows("Op_Host2")),
        Host("Op_Server0", OPERATIONAL, "op_server", parts.IMAGES["OP_Server"], 1.0, _knows("Op_Server0", ot_service=True)),
        Host("User0", USER, "user", parts.IMAGES["windows_user_host1"], 0.0, _knows("User0")),
        Host("User1", USER, "user", parts.IMAGES["windows_user_host1"], 0.1, _knows("User1", "Enterprise1")),
        Host("User2", USER, "user", parts.IMAGES["windows_user_host2"], 0.1, _knows("User2", "Enterprise1")),
        Host("User3", USER, "user", parts.IMAGES["linux_user_host1"], 0.1, _knows("User3", "Enterprise0")),
        Host("User4", USER, "user", parts.IMAGES["linux_user_host2"], 0.1, _knows("User4", "Enterprise0")),
    ),
    start="User0",
    known=(Finding("User0", subnet=True, name=True),),
    ot_cost=10.0,
    green_hosts=("Enterprise0", "Enterprise1", "Enterprise2", "User0", "User1", "User2", "User3", "User4"),
    map_rows=(  # red comes in at the top and works its way down; hosts that lead to each other stand near each other
        ("User0", "User1", "User2", "User3", "User4"),
        ("Defender", "Enterprise1", "Enterprise2", "Enterprise0"),
        ("Op_Host0", "Op_Host1", "Op_Server0", "Op_Host2"),
    ),
)
