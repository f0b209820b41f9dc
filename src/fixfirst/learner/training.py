"""One training, update by update: play whole episodes, judge them, learn from them.

`Training` holds all that changes; `step()` is one update. Everything else follows from the config, so that a training put
back from its checkpoint goes on with the same bytes.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fixfirst.cyborg import world_for
from fixfirst.errors import ConfigError
from fixfirst.game import ACTIONS, RESTORE_COST, BaseWorld
from fixfirst.learner.config import FINALISTS, TrainConfig
from fixfirst.learner.engines import asked_by, make_learner, torch_twin
from fixfirst.learner.interface import Learner, part_of
from fixfirst.learner.networks import soften, widen
from fixfirst.learner.openings import RANDOM_OPENING, is_shown_to_help, promising_openings
from fixfirst.learner.stages import Begin, Stage, stages_of
from fixfirst.orders import Counts, Gate, Judgement, Workflow, delta_reward, judge, penalty_reward
from fixfirst.play import Evaluation, Network, Played, PolicyTable, Role, Rollout, Weights, collect, derive, play
from fixfirst.runs import EpisodeRow, UpdateRow

RESTORES = np.array([action.verb == "Restore" for action in ACTIONS])  # [145]
RESTORES.setflags(write=False)
CONTEST_EPISODES = {Begin.SCRATCH: 2_000, Begin.TRY: 4_000, Begin.FINAL: 8_000}  # fresh, to compare starts, openings


@dataclass(frozen=True)
class Candidate:
    """A start or an opening after its training: what it earned, and what is needed to go on from it."""

    mean: float
    error: float
    opening: tuple[int, ...]
    tensors: dict[str, np.ndarray]


class Look(NamedTuple):
    """The gate's last look at a training."""

    updates: int = -1  # after so many
    confirmations: int = 0  # so far, this one included
    accepted: bool = False


@dataclass(frozen=True)
class Update:
    """What one update did: its row of the training log (rewards are means over its episodes), and its episodes, all [B]."""

    row: UpdateRow
    env_reward: np.ndarray
    alignment: np.ndarray
    counts: Counts | None  # None without a workflow

    def episode_rows(self) -> list[EpisodeRow]:
        """Its episodes as rows of the episode log."""
        row, n = self.row, len(self.env_reward)
        counts = self.counts if self.counts is not None else Counts(*np.zeros((len(Counts._fields), n), int))
        shares = [
            round(c / j, 6) if j else None for c, j in zip(counts.compliant.tolist(), counts.judged.tolist(), strict=True)
        ]
        return [
            EpisodeRow(
                trial=row.trial,
                workflow=row.workflow,
                update=row.update,
                episode=row.episodes - n + 1 + i,
                env_reward=round(env, 1),
                alignment=bonus,
                total_reward=env + bonus,
                compliance=shares[i],
                repairs=int(counts.repairs[i]),
            )
            for i, (env, bonus) in enumerate(zip(self.env_reward.tolist(), self.alignment.tolist(), strict=True))
        ]


class Training:
    """The state of one training. The optimiser always starts fresh.

    number: of its trial, in the logs. learner: instead of the one that the config asks for.
    """

    def __init__(self, config: TrainConfig, number: int = 0, learner: Learner | None = None):
        self.config, self.number = config, number
        self.workflows = config.workflows
        self.stages = stages_of(config)
        self.updates = 0
        self.episodes = 0
        self.multiplier = config.alignment.weight
        self.latest: Counts | None = None  # of the last update's episodes
        self._field: list[Candidate] = []  # the best of the starts, later of the openings so far
        self._finalists: list[Candidate] = []  # openings that are trained on with for longer
        self._openings: tuple[tuple[int, ...], ...] = ()  # that are tried; the first is none
        self._origin: dict[str, np.ndarray] = {}  # the learner's tensors from which each of them is tried
        self._without: tuple[float, float] | None = None  # what the one without an opening earned, and its error
        self._look = Look()
        self._world: BaseWorld | None = None
        self._sit_down(0, config.role, learner)

    def _sit_down(self, stage: int, role: Role, learner: Learner | None = None) -> None:
        """Be at the beginning of a stage, with fresh weights unless a learner is given."""
        self._stage, self._stage_updates, self._stage_episodes, self.role = stage, 0, 0, role
        names = () if stage == 0 else (stage,)  # each stage has episodes and weights of its own
        self._seeds = {name: derive(self.config.seed, name, *names) for name in ("world", "policy", "weights")}
        self.learner = learner if learner is not None else make_learner(self.stage.ppo, role, self._seeds["weights"])
        self._player = PolicyTable(self.learner.policy, self.workflows, role=role)

    @property
    def stage(self) -> Stage:
        """Where in its course it is."""
        return self.stages[self._stage]

    def _next_stage(self) -> None:
        """From the end of one to the beginning of the next."""
        before, begin, role = self.stage.begin, self.stages[self._stage + 1].begin, self.role
        if len(self.stages) > 1 and before in CONTEST_EPISODES:
            self._compete()
        if begin == Begin.TRY and before != Begin.TRY:
            self._look_for_openings()
        elif begin == Begin.FINAL and before != Begin.FINAL:
            self._finalists, self._field, self._origin = self._finalists_of(self._field), [], {}
        tensors, place = self.learner.tensors(), sum(stage.begin == begin for stage in self.stages[: self._stage + 1])
        if begin == Begin.BEST_START:
            tensors, self._field = self._field[0].tensors, []
            role = replace(role, opening=RANDOM_OPENING) if self.config.course.tried else role
        elif begin == Begin.TRY:
            tensors, role = self._origin, replace(role, opening=self._openings[place])
        elif begin == Begin.FINAL:
            tensors, role = self._finalists[place].tensors, replace(role, opening=self._finalists[place].opening)
        elif begin == Begin.OPENING and self._field:
            tensors, role = self._field[0].tensors, replace(role, opening=self._field[0].opening)
            self._field, self._finalists = [], []
        elif begin == Begin.OPENING:
            role = self.config.opened(role)
        self._sit_down(self._stage + 1, role)
        if begin in (Begin.BEST_START, Begin.FINAL):
            self.learner.restore(tensors)
        elif begin != Begin.SCRATCH:  # with a fresh optimiser
            self._start_from(part_of(tensors, "net."))

    def _compete(self) -> None:
        """What was trained in this stage against the best of those before it, on the same fresh episodes."""
        stage = self.stage.begin
        shown = self.evaluate(stage.value, CONTEST_EPISODES[stage])
        if stage == Begin.TRY and not self.role.opening:
            self._without = shown.mean, shown.standard_error
        tensors = {name: np.array(tensor) for name, tensor in self.learner.tensors().items()}
        self._field.append(Candidate(shown.mean, shown.standard_error, self.role.opening, tensors))
        self._field.sort(key=lambda candidate: -candidate.mean)
        del self._field[FINALISTS if stage == Begin.TRY else 1 :]

    def _finalists_of(self, field: list[Candidate]) -> list[Candidate]:
        """The best openings that were tried; if none is shown to help, none is had."""
        assert self._without is not None
        gain, error = field[0].mean - self._without[0], math.hypot(field[0].error, self._without[1])
        helps = is_shown_to_help(gain, error, len(self._openings) - 1)
        return field if helps else [replace(candidate, opening=()) for candidate in field]

    def _look_for_openings(self) -> None:
        policy, course = self.learner.policy, self.config.course
        assert isinstance(policy, Network)
        game = self.config.game.model_copy(update={"backend": "simulator"})  # thousands of episodes
        self._openings = promising_openings(policy, replace(self.role, opening=()), game, self.config.seed, course.tried)
        self._origin = {name: np.array(tensor) for name, tensor in self.learner.tensors().items()}

    @property
    def world(self) -> BaseWorld:
        """Where it plays; made when it is first needed."""
        if self._world is None:
            self._world = world_for(self.config.game, self.config.ppo.num_envs)
        return self._world

    def close(self) -> None:
        """Give back the world's processes, if it has any."""
        if self._world is not None:
            self._world.close()
        self._world = None

    @property
    def done(self) -> bool:
        """Is there no budget left for another update?"""
        return self._stage == len(self.stages) - 1 and self._stage_is_over

    @property
    def _stage_is_over(self) -> bool:
        stage = self.stage
        return self._stage_episodes + stage.ppo.batch_at(stage.behind + self._stage_episodes) > stage.episodes

    def step(self) -> Update:
        """One update."""
        config, started = self.config, time.perf_counter()
        if self._stage_is_over:
            self._next_stage()
        rollout, opening = self._play(), len(self.role.opening)
        judgement = self._judge(rollout)
        alignment = self._alignment(judgement, rollout.rewards10.shape)
        counts = Counts.of(judgement) if judgement is not None else None
        collected = time.perf_counter()

        stats = self.learner.update(
            rollout.after(opening),  # nothing was chosen there
            (self._rewards(rollout) + alignment)[opening:],
            entropy=self._entropy(counts),
            progress=self._progress,
            seed=derive(config.seed, "batch", self.updates),
        )
        if not self.learner.is_sound:
            raise ConfigError(
                f"training diverged in update {self.updates + 1}; try a learning rate below {config.ppo.learning_rate}"
            )
        self._player.forget()
        self.updates += 1
        self.episodes += len(rollout.assigned)
        self._stage_updates += 1
        self._stage_episodes += len(rollout.assigned)
        self.latest = counts
        multiplier, share = self.multiplier, _pooled(counts)
        self.multiplier = config.alignment.adapted(multiplier, share)
        earned, bonus = float(rollout.returns.mean()), float(alignment.sum(axis=0).mean())
        row = UpdateRow(
            trial=self.number,
            workflow=str(self.workflows[0]) if len(self.workflows) == 1 else config.workflow,
            update=self.updates,
            episodes=self.episodes,
            sampled=self.episodes,
            env_reward=earned,
            alignment=bonus,
            total_reward=earned + bonus,
            compliance=share,
            repairs=None if counts is None else float(counts.repairs.mean()),
            collection_s=collected - started,
            update_s=time.perf_counter() - collected,
            contested_share=None if counts is None else _share(counts.contested, counts.judged),
            multiplier=multiplier,
            approx_kl=stats.approx_kl,
            entropy=stats.entropy,
            policy_loss=stats.policy_loss,
            value_loss=stats.value_loss,
            clip_fraction=stats.clip_fraction,
            distinct_rows=stats.rows,
        )
        return Update(row, rollout.returns, alignment.sum(axis=0), counts)

    @property
    def _progress(self) -> float:
        """Share of the plan's updates that are done."""
        return self.stage.progress(self._stage_updates)

    def _rewards(self, rollout: Rollout) -> np.ndarray:
        """[T, B] the world's rewards as the learner sees them: Restore may be cheaper at first."""
        free = 1.0 - self.stage.ppo.restore_price(self.stage.behind + self._stage_episodes)
        return rollout.rewards10 / 10 + free * RESTORE_COST * RESTORES[rollout.actions]

    def _entropy(self, counts: Counts | None) -> float:
        """The entropy bonus of this update: larger while the order is not kept."""
        config, share = self.config, _pooled(counts)
        bonus = self.stage.ppo.entropy_at(self._progress)
        if config.alignment.kind != "penalty" or share is None or share >= config.alignment.target:
            return bonus
        return max(bonus, config.alignment.explore)

    def play_orders(self, workflows: Sequence[Workflow]) -> None:
        """Train on these orders from now on; they take turns."""
        self.workflows = tuple(workflows)
        self._player = PolicyTable(self.learner.policy, self.workflows, role=self.role)

    def _play(self) -> Rollout:
        ppo, stage = self.stage.ppo, self.stage
        return collect(
            self.world,
            self._player,
            world_seed=self._seeds["world"],
            policy_seed=self._seeds["policy"],
            first_episode=self._stage_episodes // ppo.num_envs,
            passes=ppo.batch_at(stage.behind + self._stage_episodes) // ppo.num_envs,
            workflows=self.workflows,
        )

    def _judge(self, rollout: Rollout) -> Judgement | None:
        if not self.workflows:
            return None
        return judge(rollout.actions, rollout.held, rollout.ranks, self.config.scheme, self.config.judging)

    def _alignment(self, judgement: Judgement | None, shape: tuple[int, ...]) -> np.ndarray:
        kind = self.config.alignment.kind
        if judgement is None or kind in ("none", "shield"):
            return np.zeros(shape)
        if kind == "delta":
            return delta_reward(judgement, self.config.alignment.weight)
        return penalty_reward(judgement, self.multiplier)

    # ---- frozen: inheritance, gate, evaluation

    def inherit(self, weights: Weights) -> None:
        """Start from another policy's weights; it may be of a policy that knows no order.

        A policy that is sure of itself and breaks the new order hardly ever tries what the order asks for, and PPO cannot
        learn from what is never tried; so its preferences are softened first. One that keeps to the order already stays as
        it is.
        """
        config = self.config
        wide = widen(weights, self.role.inputs)
        self._start_from(wide)
        if len(self.workflows) != 1 or config.softening == 1:
            return
        shown = self.evaluate("inherit", config.gate.gate_episodes).compliance
        if shown is None or not config.gate.accepts(shown):
            self._start_from(soften(wide, config.softening))

    def _start_from(self, weights: Weights) -> None:
        self.learner.start_from(weights)
        self._player.forget()

    def passes_gate(self) -> bool:
        """Does the policy keep to its order? This is what `accepted` means, everywhere.

        By the rule `bound`: a cheap look at the training episodes first, then frozen on episodes drawn for this check alone,
        and if these accept it, once more on others that confirm it.
        """
        gate, latest = self.config.gate, self.latest
        if len(self.workflows) != 1 or self.episodes < gate.min_episodes or latest is None:
            return False
        if gate.gate_rule == "latest":
            return gate.accepts_latest(Counts(*(column[-self.config.ppo.num_envs :] for column in latest)))
        share = _pooled(latest)
        if share is None or share < gate.compliance_threshold:
            return False
        if self._look.updates != self.updates:
            self._look = self._look_anew(gate)
        return self._look.accepted

    def _look_anew(self, gate: Gate) -> "Look":
        shown = self.evaluate(f"gate/{self.updates}", gate.gate_episodes).compliance
        if shown is None or not gate.accepts(shown):
            return Look(self.updates, self._look.confirmations, False)
        number = self._look.confirmations + 1
        counts = self._play_frozen(f"confirm/{self.updates}", gate.gate_episodes).counts(self.config.judging)
        return Look(self.updates, number, counts is not None and gate.confirms(counts, number))

    def evaluate(self, purpose: str, episodes: int, seed: int | None = None) -> Evaluation:
        """The frozen policy in its own game, on the episodes of the stream `purpose`."""
        played = self._play_frozen(purpose, episodes, seed)
        return Evaluation.of(played, self.config.game.red_agent, self.config.judging)

    def _play_frozen(self, purpose: str, episodes: int, seed: int | None = None) -> Played:
        config = self.config
        return play(
            self._player,
            config.game,
            episodes=episodes,
            seed=config.seed if seed is None else seed,
            purpose=purpose,
            workflows=self.workflows,
            world=self.world if config.game.backend == "cyborg" else None,  # CybORG takes long to start
        )

    # ---- saving: all that changes, beside the learner's tensors

    def numbers(self) -> dict[str, Any]:
        """The state outside the learner, JSON-ready."""
        return {
            "updates": self.updates,
            "episodes": self.episodes,
            "multiplier": self.multiplier,
            "latest": None if self.latest is None else [column.tolist() for column in self.latest],
            "stage": self._stage,
            "stage_updates": self._stage_updates,
            "stage_episodes": self._stage_episodes,
            "opening": list(self.role.opening),
            "field": [_numbers_of(candidate) for candidate in self._field],
            "finalists": [_numbers_of(candidate) for candidate in self._finalists],
            "openings": [list(opening) for opening in self._openings],
            "without": self._without,
            "trying": bool(self._origin),
            "look": list(self._look),
        }

    def tensors(self) -> dict[str, np.ndarray]:
        """The learner's, those of candidates, and those from which openings are tried."""
        groups = {"origin.": self._origin}
        for name, candidates in (("field", self._field), ("finalist", self._finalists)):
            groups |= {f"{name}{place}.": candidate.tensors for place, candidate in enumerate(candidates)}
        kept = {f"{prefix}{name}": tensor for prefix, group in groups.items() for name, tensor in group.items()}
        return self.learner.tensors() | kept

    def restore(self, tensors: Weights, numbers: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self._sit_down(numbers["stage"], replace(self.role, opening=tuple(numbers["opening"])))
        own = ("net.", "adam.")
        self.learner.restore({name: tensor for name, tensor in tensors.items() if name.startswith(own)})
        self.updates, self.episodes = numbers["updates"], numbers["episodes"]
        self._stage_updates, self._stage_episodes = numbers["stage_updates"], numbers["stage_episodes"]
        self.multiplier = numbers["multiplier"]
        self._field, self._finalists = (
            [
                Candidate(mean, error, tuple(opening), part_of(tensors, f"{name}{place}."))
                for place, (mean, error, opening) in enumerate(numbers[key])
            ]
            for name, key in (("field", "field"), ("finalist", "finalists"))
        )
        self._openings = tuple(tuple(opening) for opening in numbers["openings"])
        self._origin = part_of(tensors, "origin.")
        self._without = None if numbers["without"] is None else tuple(numbers["without"])
        self._look = Look(*numbers["look"])
        latest = numbers["latest"]
        self.latest = None if latest is None else Counts(*(np.array(column) for column in latest))


def _numbers_of(candidate: Candidate) -> list[Any]:
    return [candidate.mean, candidate.error, list(candidate.opening)]


def _pooled(counts: Counts | None) -> float | None:
    return None if counts is None else _share(counts.compliant, counts.judged)


def _share(hits: np.ndarray, trials: np.ndarray) -> float | None:
    total = trials.sum()
    return float(hits.sum() / total) if total else None


def check_trainable(config: TrainConfig) -> None:
    """Raise what would keep a training from beginning: PyTorch or CybORG is not there, or is not what the config says."""
    if config.ppo.uses_torch:
        torch_twin(asked_by(config.ppo))
    if config.game.backend == "cyborg":
        world_for(config.game, 1).close()
