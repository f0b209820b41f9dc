"""`ff.exploit`, `ff.train_red`: attackers that learn, and what they take."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixfirst.api.defenders import (
    Defender,
    Named,
    PolicyLike,
    Say,
    game_of_attackers,
    make_defender,
)
from fixfirst.base import arguments, compile as machine_code, errors
from fixfirst.game import attacker_files, parts, red_view
from fixfirst.learner import driver, red_training
from fixfirst.play import evaluation
from fixfirst.policy import reds, trained
from fixfirst.policy.network import Weights
from fixfirst.reporter import live, reasons
from fixfirst.runs import layout, manifest
from fixfirst.runs.layout import RunFiles
from fixfirst.settings.league import RED_PPO
from fixfirst.stats.evaluation import Evaluation

STARTS = ("scratch", reds.BASE, *reds.KNOWN, "last")
EPISODES = 10_000
_TEST_EPISODES = 1_000
CHECKPOINT_EVERY = 50  # updates


@dataclass(frozen=True)
class Exploit:
    """What the best attacker found takes: a lower bound of what can be taken.

    For example:

        ff.exploit("react-restore", train_episodes=50, episodes=50, quiet=True).mean
    """

    mean: float  # what blue earns against it, on fresh episodes
    low: float  # 95 % interval
    high: float
    episodes: int
    variant: parts.VariantName
    steps: int
    greedy: bool
    picky: bool
    tried: tuple[tuple[str, float], ...]  # every training: where it began, what blue earned against it; the best first
    habits: tuple[str, ...]  # in words
    red: reds.RedPolicy

    def as_dict(self) -> dict[str, Any]:
        """Return all but the attacker, which is a file of its own."""
        return {name: value for name, value in vars(self).items() if name != "red"}

    def in_words(self, scripts: Sequence[Evaluation]) -> list[str]:
        """Return lines: what scripts and the attacker take, how hard it was to find, and what it does."""
        beside = ", ".join(f"against {row.red_agent} {row.mean:.1f}" for row in scripts)
        tried = ", ".join(f"{start} {mean:.1f}" for start, mean in self.tried)
        who = "An attacker who learns and names its exploit" if self.picky else "An attacker who learns"
        return [
            f"{beside[:1].upper()}{beside[1:]}.",
            f"{who} takes {self.mean:.1f} [{self.low:.1f}, {self.high:.1f}]: a lower bound.",
            f"Best of {len(self.tried)} trainings: {tried}.",
            " ".join(self.habits),
            f"{self.episodes:,} fresh episodes of {self.steps} steps, variant {self.variant}, "
            f"the policy plays {'its most probable action' if self.greedy else 'drawn actions'}",
        ]


@arguments.checked(episodes=2, train_episodes=50)
def exploit(
    policy: PolicyLike,
    *,
    workflow: str | None = None,
    greedy: bool | None = None,
    picky: bool = False,
    starts: Sequence[str] | None = None,
    train_episodes: int = EPISODES,
    episodes: int = _TEST_EPISODES,
    seed: int = 0,
    out: str | Path | None = None,
    quiet: bool = False,
    say: Say = lambda text: None,
    **settings: Any,
) -> Exploit:
    """Train attackers against a defender that stays as it is, and play the best of them on fresh episodes.

    policy and workflow as in `ff.evaluate`. greedy: the defender takes its most probable action; unless given, all do but
    those of a league, which have learned to draw. picky: the attacker names its exploit. starts: where trainings begin:
    scratch, last (what was found before, in the run's folder), or attackers by name or path; the best of them goes on.
    train_episodes: of each start. out: where the attacker is written; RUN/exploit unless given, nowhere for what is no
    run. settings: variant (that of the policy's training unless given), green, max_steps.

    For example:

        best = ff.exploit("champion", train_episodes=1_000, episodes=200, quiet=True)
        best.mean, best.low, best.high, best.tried, best.habits
    """
    number = arguments.check_seed("seed", seed, bits=63)
    defender = make_defender(policy, workflow, greedy, say=say, settings=settings)
    game = game_of_attackers(settings, defender)
    spec = red_view.RedSpec(game.scenario, picky)
    folder = _folder(policy, defender) if out is None else arguments.check_path("out", out)
    begins = _begin(STARTS if starts is None else starts, folder, spec, must=starts is not None)
    opponent = red_training.Opponent(defender.player, defender.orders)
    machine_code.announce_compilation()
    whole = red_training.episodes_of(len(begins), train_episodes)
    with live.ProgressLine(whole, quiet=quiet) as progress:  # interrupted, it leaves nothing behind

        def tell(done: int, mean: float) -> None:
            if progress.due():
                progress.show(done, f"attackers learn, return {mean:.1f}")

        attempts = red_training.best_response(opponent, game, spec, begins, episodes=train_episodes, seed=number, tell=tell)
    best = attempts[0].weights
    duel = red_training.play_red(opponent, best, spec, game, episodes=episodes, seed=number, purpose="exploit")
    taken = evaluation.evaluate(evaluation.EpisodeBatch(duel.blue, game))
    where: dict[str, Any] = {"variant": game.variant, "steps": game.steps, "greedy": defender.greedy}
    numbers: dict[str, Any] = {"mean": taken.mean, "low": taken.low, "high": taken.high}
    tried = tuple((attempt.start, round(attempt.mean, 2)) for attempt in attempts)
    facts = {"against": [defender.name], **where, "seed": number, "tried": [list(attempt) for attempt in tried], **numbers}
    red = reds.RedPolicy(dict(best), spec, facts)
    if folder is not None:
        with errors.writing(folder):
            red.save(folder)
    habits = reasons.describe_duel(duel, spec)
    return Exploit(**where, **numbers, episodes=episodes, picky=picky, tried=tried, habits=habits, red=red)


@arguments.checked(total_episodes=RED_PPO.episodes_per_update)
def train_red(
    against: str | Sequence[Named],
    *,
    out: str | Path | None = None,
    picky: bool = False,
    start: str | Path | None = None,
    total_episodes: int = EPISODES,
    greedy: bool | None = None,
    seed: int = 0,
    quiet: bool = False,
    **settings: Any,
) -> reds.RedPolicy:
    """Train an attacker against one or several defenders that stay as they are, and write red.safetensors and red.json.

    against: runs, policies or baselines, in a list or joined by commas; they take turns. out: runs/red-SEED unless given;
    begun again with the same settings, an interrupted training goes on there. start: an attacker to begin with. greedy
    as in `ff.exploit`. settings: variant, green, max_steps.

    For example:

        red = ff.train_red("champion", total_episodes=1_000, out="runs/red", quiet=True)
    """
    if not isinstance(against, str | list | tuple) or not against:
        raise errors.ConfigError(f"against: defenders in a list or joined by commas, got {against!r}")
    names = against.split(",") if isinstance(against, str) else list(against)
    number, defenders = (
        arguments.check_seed("seed", seed, bits=63),
        [make_defender(names[0], None, greedy, settings=settings)],
    )
    game = game_of_attackers(settings, defenders[0])
    defenders += [make_defender(name, None, greedy, settings={"scenario": game.scenario}) for name in names[1:]]
    spec = red_view.RedSpec(game.scenario, picky)
    folder = layout.RUNS / f"red-{number}" if out is None else arguments.check_path("out", out)
    if (folder / attacker_files.RED_JSON).exists():
        driver.delete_checkpoints(folder)  # a kill may have come between
        raise errors.RunDirError(f"{folder} is finished; see {folder / attacker_files.RED_JSON}")
    first = None if start is None else _load_start(start, spec)
    config = {
        "against": [str(name) for name in names],
        "greedy": [defender.greedy for defender in defenders],
        "picky": spec.picky,
        "start": None if first is None else first.facts.get("sha256"),
        "episodes": total_episodes,
        "seed": number,
        "game": game.model_dump(mode="json"),
    }
    training = red_training.RedTraining(
        [red_training.Opponent(defender.player, defender.orders) for defender in defenders],
        game,
        spec,
        episodes=total_episodes,
        seed=number,
        start=None if first is None else first.weights,
    )
    identity = {"config": manifest.flat_settings(config)}  # as checkpoints are read
    machine_code.announce_compilation()
    progress = live.ProgressLine(total_episodes, quiet=quiet)
    with (
        driver.working(folder, progress, is_run=False) as interrupt,
        driver.Driver(folder, training, identity, progress.say, CHECKPOINT_EVERY) as run,
    ):
        for mean in run.steps(interrupt):
            progress.point(mean)
            if progress.due():
                progress.show(training.episodes, f"return {mean:.1f}")
        if run.interrupted:
            raise errors.Interrupted(f"interrupted after {training.updates} updates; run the same command to continue")
        facts = {"config": config, "against": config["against"], "episodes": training.episodes}
        reds.RedPolicy(training.learner.weights, spec, facts).save(folder)
    return reds.load_red(folder, spec.scenario)


def _folder(policy: PolicyLike, defender: Defender) -> Path | None:
    """Return where the attacker of a run belongs; None for all that is no run."""
    if not isinstance(policy, str | Path) or not Path(policy).exists() or defender.policy is None:
        return None
    folder = trained.policy_folder(Path(policy))
    return (folder.parent if folder.name == RunFiles.best else folder) / attacker_files.EXPLOIT


def _load_start(name: str | Path, spec: red_view.RedSpec) -> reds.RedPolicy:
    """Return the attacker that a training begins with."""
    red = reds.load_red(name, spec.scenario)
    if red.spec != spec:
        raise errors.ConfigError(f"start {name}: {'names its' if red.spec.picky else 'does not name its'} exploit (--picky)")
    return red


def _begin(starts: Sequence[str], folder: Path | None, spec: red_view.RedSpec, *, must: bool) -> dict[str, Weights | None]:
    """Return the weights of every start by its name. Without `must`, those that are not there or do not fit are left out."""
    if not isinstance(starts, list | tuple) or not starts or not all(isinstance(name, str) for name in starts):
        raise errors.ConfigError(f"starts are scratch, last, or attackers by name, in a list, got {starts!r}")
    begins: dict[str, Weights | None] = {}
    for name in starts:
        try:
            source = (folder or "nowhere") if name == "last" else name
            begins[name] = None if name == "scratch" else _load_start(source, spec).weights
        except (errors.PolicyError, errors.ConfigError):
            if must:
                raise
    return begins
