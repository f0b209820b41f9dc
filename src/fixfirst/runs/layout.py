"""Where everything of a run is; nobody else writes a file name down."""

import re
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import overload

from fixfirst.base import arguments, errors
from fixfirst.game.attacker_files import RED_JSON, RED_TENSORS

RUNS = Path("runs")  # where runs go unless told otherwise
WARMUP_KEY = -1  # the warm-up's number, among those of the trials
_DEPTH = 2  # a study holds its runs one level down


class Kind(StrEnum):
    """What a manifest says its folder is."""

    TRAIN = "train"
    SEARCH = "search"
    LEAGUE = "league"
    STUDY = "study"


class _File:
    """A file or folder of a run: its path on an instance of `RunFiles`, its name on the class."""

    def __init__(self, name: str):
        self._name = name

    @overload
    def __get__(self, run: None, owner: type) -> str: ...
    @overload
    def __get__(self, run: "RunFiles", owner: type) -> Path: ...
    def __get__(self, run: "RunFiles | None", owner: type) -> str | Path:
        return self._name if run is None else run.folder / self._name


class RunFiles:
    """The paths of all that a run, a study, a training inside of a search, or a policy may have in its folder."""

    # every run
    config = _File("config.toml")  # the resolved configuration, flat: names as flags have them
    scenario = _File("scenario.yaml")  # a copy of the file, unless CAGE2 is played
    manifest = _File("manifest.json")  # what kind of run, versions, source, seed, machine, command
    runtime = _File("runtime.csv")  # one row per time it was worked on: when, how it ended, for how long
    training_log = _File("training_log.csv")  # one row per update
    episode_log = _File("episodes.csv")  # one row per training episode, if asked for (search)
    tensorboard = _File("tb")  # TensorBoard events, if asked for (train, search --separate)
    page = _File("report.html")  # the page about it, or about all runs of a study
    page_in_markdown = _File("report.md")
    replay = _File("replay.html")  # episodes of its policy, once watched
    why = _File("replays/why.html")  # the same episodes under two orders
    lock = _File(".lock")  # held while somebody works on it
    # train, league, and whatever else trains one policy
    result = _File("result.json")  # the final evaluation
    policy_tensors, policy_json = _File("policy.safetensors"), _File("policy.json")
    entrants = _File("entrants")  # while it runs: folders of all that compete in its tournament
    # train --league
    matrix = _File("league.csv")  # what the defender earned after each round against each attacker
    attackers = _File("attackers")  # every attacker that was frozen
    # search
    answer = _File("answer.json")  # the rule, its price, all orders
    rounds = _File("rounds.csv")  # what each known order earned after each round
    choices = _File("gp_sampling_log.csv")  # one row per choice, with what the strategy believed
    best = _File("best")  # the policy of the best order; without --separate it follows any other, too
    # search --separate
    ledger = _File("trials.csv")  # one row per finished trial; the search resumes from it
    warmup = _File("warmup")  # the policy that the first trials inherit
    warmup_result = _File("warmup/result.json")
    # a study: a manifest that names its searches; they have a folder each
    study = _File("study.json")

    checkpoints = "checkpoint-"  # what the names of checkpoints begin with

    def __init__(self, folder: Path):
        self.folder = folder

    def report(self, form: str) -> Path:
        """Return the page in a format, which is its suffix."""
        return self.folder / f"report.{form}"

    def replay_of(self, name: str) -> Path:
        """Return the page with episodes of an order, or of "trial 3"."""
        return self.folder / "replays" / (re.sub(r"[^\w.]+", "-", name) + ".html")

    def trial(self, number: int) -> Path:
        """Return the folder of a trial: a policy, result.json, training_log.csv, and checkpoints while it runs."""
        return self.folder / "trials" / f"{number:04d}"

    def replicate(self, number: int) -> Path:
        """Return the folder of one training for all orders: policy, checkpoints, result.json; base/: the same before any
        order; exploit/<round>/: with --exploit, the defender after the round, and the attacker of each order.
        """
        return self.folder / "replicates" / str(number)

    def attacker(self, number: int) -> Path:
        """Return the folder of a frozen attacker: red.safetensors, red.json."""
        return self.attackers / f"{number:03d}"


PAGES = (RunFiles.page, RunFiles.page_in_markdown, RunFiles.replay)  # anybody writes them, also while the run goes on
# A folder with one of these is a run, or a part of one.
_MARKS = (RunFiles.manifest, RunFiles.study, RunFiles.result, RunFiles.policy_json, RED_JSON)
_RECORDS = {value._name for value in vars(RunFiles).values() if isinstance(value, _File)} - {*PAGES}


def unused_folder(name: str) -> Path:
    """Return runs/<name>, or runs/<name>-2, -3, ... if there are such runs already."""
    return next(folder for folder in folders_of(name) if not folder.exists())


def folders_of(name: str) -> Iterator[Path]:
    """Yield runs/<name>, runs/<name>-2, -3, ..."""
    plain = plain_name(name)
    yield RUNS / plain
    yield from (RUNS / f"{plain}-{number}" for number in count(2))


def plain_name(name: str) -> str:
    """Return a name for a folder: mixtures in one word, of learned attackers neither their folder nor their hash."""
    return re.sub(r"[^,\s]*/|@[0-9a-f]{8}|:", "", name).replace(",", "-")


def check_output(what: str, value: str | Path, *inputs: object) -> Path:
    """Return the path of a file to write, or refuse it: it would replace an input of the command, or a record of a run."""
    path = arguments.check_path(what, value)
    real = path.resolve()
    if real.is_dir():
        raise errors.ConfigError(f"{what} must be a file, got the folder {str(path)!r}")
    texts = [str(source) for source in inputs if isinstance(source, str | Path)]
    names = {*texts, *(text.rpartition(":")[0] for text in texts)} - {""}  # also the file of my.py:function
    if any(Path(name).resolve() == real for name in names):
        raise errors.ConfigError(f"{what} is {path}, which is read here and would be lost; name another file")
    is_record = real.name in {*_RECORDS, RED_JSON, RED_TENSORS} or real.name.startswith(RunFiles.checkpoints)
    if is_record and any((real.parent / name).exists() for name in _MARKS):
        raise errors.ConfigError(f"{what} is {path}, a file of a run, which would be lost; name another file")
    return path


def find_runs(folder: Path, depth: int = _DEPTH) -> list[Path]:
    """Return the run directories below a folder, by name; a folder that cannot be read has none."""
    runs = []
    with suppress(OSError):
        for child in sorted(folder.iterdir()):
            with suppress(OSError):  # one that cannot be looked into does not hide the others
                if RunFiles(child).manifest.is_file():
                    runs.append(child)
                elif depth > 1 and child.is_dir():
                    runs += find_runs(child, depth - 1)
    return runs
