"""One training in a folder: updates, checkpoints, the gate, the policy file. Killed and run again, it ends the same."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np

from fixfirst.learner.checkpoint import delete_checkpoints, restore_checkpoint, save_checkpoint, save_policy
from fixfirst.learner.config import TrainConfig
from fixfirst.learner.networks import num_inputs, probabilities, soften, weights_of, widen
from fixfirst.learner.ppo import PRESETS
from fixfirst.learner.training import Training, UpdateRow
from fixfirst.orders.compliance import Compliance
from fixfirst.play.evaluation import Evaluation, evaluate
from fixfirst.play.rollout import PolicyTable

SEED_PRESETS = tuple(name for name in PRESETS if name != "default")  # they stop by their own rule


@dataclass(frozen=True)
class Trained:
    """How a training ended."""

    training: Training
    accepted: bool  # passed the gate; always False where there is none
    interrupted: bool


class Interrupt:
    """Ctrl-C or a polite kill: noted, and acted on after the current update."""

    def __init__(self) -> None:
        self.requested = False

    def __bool__(self) -> bool:
        return self.requested


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    """While open, the first SIGINT or SIGTERM is noted; a second SIGINT stops at once."""
    interrupt = Interrupt()

    def note(number: int, frame: FrameType | None) -> None:
        if interrupt.requested:
            raise KeyboardInterrupt
        interrupt.requested = True

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_training(
    config: TrainConfig,
    folder: Path,
    *,
    start: dict[str, np.ndarray] | None = None,
    on_restore: Callable[[Training, list[str]], None] = lambda training, complaints: None,
    on_update: Callable[[UpdateRow], None] = lambda row: None,
    before_checkpoint: Callable[[], None] = lambda: None,
    interrupt: Interrupt | None = None,
) -> Trained:
    """Train from the folder's newest good checkpoint, or from `start`, until the budget is used or the gate is passed.

    `start` may be of a policy that knows no order.
    """
    training = Training(config)
    try:
        return _run_training(training, folder, start, on_restore, on_update, before_checkpoint, interrupt)
    except BaseException:
        training.close()
        raise


def _run_training(
    training: Training,
    folder: Path,
    start: dict[str, np.ndarray] | None,
    on_restore: Callable[[Training, list[str]], None],
    on_update: Callable[[UpdateRow], None],
    before_checkpoint: Callable[[], None],
    interrupt: Interrupt | None,
) -> Trained:
    config = training.config
    if start is not None:
        inherit(training, start)
    on_restore(training, restore_checkpoint(folder, training))
    accepted = config.stop_when_compliant and training.updates > 0 and gate_passed(training)
    while not training.done and not accepted and not interrupt:
        on_update(training.step())
        accepted = config.stop_when_compliant and gate_passed(training)
        if training.updates % config.checkpoint_every == 0:
            before_checkpoint()
            save_checkpoint(folder, training)
    if training.done and not config.stop_when_compliant:
        accepted = gate_passed(training)
    interrupted = bool(interrupt) and not training.done and not accepted
    before_checkpoint()
    if interrupted:
        save_checkpoint(folder, training)
    else:
        save_policy(folder, training, {"accepted": accepted})
        delete_checkpoints(folder)
    return Trained(training, accepted, interrupted)


def inherit(training: Training, weights: dict[str, np.ndarray]) -> None:
    """Start a training from another policy's weights.

    A policy that is sure of itself and breaks the new order hardly ever tries what the order asks for, and PPO cannot learn
    from what is never tried; so its preferences are softened first. One that keeps to the order already stays as it is.
    """
    config = training.config
    wide = widen(weights, num_inputs(config.scheme))
    training.start_from(wide)
    if len(training.workflows) != 1 or config.preset in SEED_PRESETS or config.softening == 1:
        return
    shown = evaluate_training(training, "inherit", config.gate_episodes).compliance
    if shown is None or not config.gate.accepts(shown):
        training.start_from(soften(wide, config.softening))


def gate_passed(training: Training) -> bool:
    """Does the policy keep to its order? A cheap look at the training episodes first, then frozen on episodes of its own."""
    if len(training.workflows) != 1 or training.episodes < training.config.min_episodes:
        return False
    if training.config.preset in SEED_PRESETS:
        return training.passes_seed_gate()
    if not training.looks_compliant():
        return False
    return training.config.gate.accepts(gate_evidence(training))


def gate_evidence(training: Training) -> Compliance:
    """Compliance of the frozen policy on episodes drawn for this check alone."""
    config = training.config
    purpose = f"gate/{training.updates}"
    shown = evaluate_training(training, purpose, config.gate_episodes).compliance
    assert shown is not None  # it has a workflow
    return shown


def evaluate_training(training: Training, purpose: str, episodes: int, seed: int | None = None) -> Evaluation:
    """The frozen policy in its own world, on the episodes of the stream `purpose`."""
    config = training.config
    return evaluate(
        PolicyTable(probabilities(weights_of(training.net)), training.workflows),
        red_agent=config.red_agent,
        steps=config.max_steps,
        variant=config.variant,
        green=config.green,
        episodes=episodes,
        seed=config.seed if seed is None else seed,
        purpose=purpose,
        workflows=training.workflows,
        rule=config.rule,
        count_foothold=config.count_foothold,
        backend=config.backend,
        world=training.world if config.backend == "cyborg" else None,  # CybORG takes long to start
    )
