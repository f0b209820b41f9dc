"""Every file name and kind of a run directory, nobody else writes one down; and which run a folder holds.

runs/<name>/
  config.toml          the resolved configuration, flat: names as flags have them
  manifest.json        what kind of run, versions, seed, machine, command
  runtime.csv          one row per time it was worked on: when, how it ended, for how long
  training_log.csv     one row per update
  episodes.csv         one row per training episode, if asked for (search)
  tb/                  TensorBoard events, if asked for (train, search --separate)
  report.html          the page about it; replay.html: episodes of its policy, once watched; replays/: of its orders
  exploit/             red.safetensors, red.json: the attacker that takes most of its policy, once looked for
  .lock                held while somebody works on it
                       `train` only:
  result.json          the final evaluation
  policy.safetensors, policy.json, and checkpoint-* while it runs; also of `train --league`
  entrants/<n>/        while it runs: each that competes in its tournament, with a log, checkpoints and a result of its own
                       `train --league` only, beside result.json and the policy:
  league.csv           the matrix: what the defender earned after each round against each attacker
  attackers/<n>/       red.safetensors, red.json: every attacker that was frozen
                       `search` only:
  answer.json          the rule, its price, all orders; rounds.csv: what each known order earned after each round
  replicates/<r>/      one training for all orders: policy, checkpoint-*, result.json; base/: the same before any order;
                       exploit/<round>/: with --exploit, the defender after the round, and the attacker of each order
  best/                the policy of the best order; it follows any other, too
                       `search --separate` only, beside gp_sampling_log.csv and best/:
  trials.csv           the ledger: one row per finished trial; the search resumes from it
  gp_sampling_log.csv  one row per choice, with what the strategy believed
  trials/<id>/         policy.safetensors, policy.json, result.json, training_log.csv, and checkpoint-* while it runs
  warmup/              the policy that the first trials inherit, and its result.json

runs/<study>/
  study.json           a manifest that names the searches
  <red agent>-<seed>/  the run directory of each
  report.html          all of them compared
  .lock                held while it is begun
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from fixfirst.base import arguments, errors, files
from fixfirst.game.attacker_files import RED_JSON, RED_TENSORS

SCHEMA = 2  # of a run directory; what version 1 wrote can be looked at

RUNS = Path("runs")  # where runs go unless told otherwise


class Kind(StrEnum):
    """What a manifest says its folder is."""

    TRAIN = "train"
    SEARCH = "search"
    LEAGUE = "league"
    STUDY = "study"


CONFIG, MANIFEST, STUDY, RESULT = "config.toml", "manifest.json", "study.json", "result.json"
SCENARIO = "scenario.yaml"  # a copy of the file, unless CAGE2 is played
RUNTIME, TRAINING_LOG, EPISODE_LOG, TENSORBOARD = "runtime.csv", "training_log.csv", "episodes.csv", "tb"
LEDGER, CHOICES, TRIALS, WARMUP, BEST = "trials.csv", "gp_sampling_log.csv", "trials", "warmup", "best"
MATRIX, ATTACKERS = "league.csv", "attackers"
ANSWER, ROUNDS, REPLICATES = "answer.json", "rounds.csv", "replicates"
POLICY_TENSORS, POLICY_JSON = "policy.safetensors", "policy.json"
CHECKPOINT_PREFIX, ENTRANTS = "checkpoint-", "entrants"
WARMUP_KEY = -1  # the warm-up's number, among those of the trials
REPORT, REPLAY, REPLAYS = "report", "replay.html", "replays"  # a report's suffix is its format
PAGES = (f"{REPORT}.html", f"{REPORT}.md", REPLAY)  # written by whoever wants to read them, also while the run goes on
WHY_PAGE = "why"  # the replay with the same episodes under two orders
LOCK = ".lock"
WARMUP_RESULT = f"{WARMUP}/{RESULT}"
_DEPTH = 2  # a study holds its runs one level down
_MARKS = (MANIFEST, STUDY, RESULT, POLICY_JSON, RED_JSON)  # a folder with one of these is a run, or a part of one
_RECORDS = {  # what only the run itself may write
    *_MARKS,
    *(CONFIG, SCENARIO, RUNTIME, TRAINING_LOG, EPISODE_LOG, LEDGER, CHOICES, MATRIX, ANSWER, ROUNDS, LOCK),
    *(POLICY_TENSORS, RED_TENSORS),
}


def trial_folder(run: Path, number: int) -> Path:
    return run / TRIALS / f"{number:04d}"


def replay_file(name: str) -> str:
    """Return the page with episodes of an order, or of "trial 3", below a run directory."""
    plain = re.sub(r"[^\w.]+", "-", name)
    return f"{REPLAYS}/{plain}.html"


def attacker_folder(run: Path, number: int) -> Path:
    return run / ATTACKERS / f"{number:03d}"


def replicate_folder(run: Path, number: int) -> Path:
    return run / REPLICATES / str(number)


def unused_folder(name: str) -> Path:
    """runs/<name>, or runs/<name>-2, -3, ... if there are such runs already."""
    folder, number = folder_of(name), 1
    while folder.exists():
        number += 1
        folder = folder_of(name, number)
    return folder


def folder_of(name: str, number: int = 1) -> Path:
    """runs/<name>; of further runs of this name, runs/<name>-2, -3, ..."""
    return RUNS / f"{plain_name(name)}{'' if number == 1 else f'-{number}'}"


def plain_name(name: str) -> str:
    """Return a name for a folder: mixtures in one word, of learned attackers neither their folder nor their hash."""
    return re.sub(r"[^,\s]*/|@[0-9a-f]{8}|:", "", name).replace(",", "-")


def check_output(what: str, value: str | Path, *inputs: object) -> Path:
    """Return the path of a file to write, or refuse it: it would replace an input of the command, or a record of a run."""
    path = arguments.check_path(what, value)
    real = path.resolve()
    if real.is_dir():
        raise errors.ConfigError(f"{what} must be a file, got the folder {str(path)!r}")
    for source in inputs:
        names = (
            [source] if isinstance(source, Path) else [source, source.rpartition(":")[0]] if isinstance(source, str) else []
        )
        if any(name and Path(name).resolve() == real for name in names):
            raise errors.ConfigError(f"{what} is {path}, which is read here and would be lost; name another file")
    is_record = real.name in _RECORDS or real.name.startswith(CHECKPOINT_PREFIX)
    if is_record and any((real.parent / name).exists() for name in _MARKS):
        raise errors.ConfigError(f"{what} is {path}, a file of a run, which would be lost; name another file")
    return path


def read_manifest(folder: Path, file: str = MANIFEST) -> dict[str, Any]:
    """Return the manifest of a run that this version can look at; anything else raises RunDirError."""
    path = folder / file
    try:
        manifest = files.read_json(path)
        schema = manifest.get("schema") if isinstance(manifest, dict) else None
        if schema not in (1, SCHEMA):
            raise errors.RunDirError(
                f"{folder}: is a run of another version (schema {schema!r}, this version reads {SCHEMA})"
            )
        if schema == SCHEMA:
            files.verify_checksum(manifest)
        if manifest.get("kind") not in list(Kind):
            raise ValueError("it does not say what kind of run this is")
        return dict(manifest)
    except FileNotFoundError as e:
        raise errors.RunDirError(f"{folder}: is not a run directory ({MANIFEST} is missing)") from e
    except (OSError, ValueError) as e:
        raise errors.RunDirError(f"{path}: cannot be read ({e})") from e


def kind_of(folder: Path) -> Kind:
    """Return what a folder is; anything that is no run raises RunDirError."""
    if (folder / STUDY).exists():
        return Kind.STUDY
    kind = read_manifest(folder)["kind"]
    if kind == Kind.STUDY:
        raise errors.RunDirError(f"{folder} is not a run of `fixfirst train` or `fixfirst search`")
    return Kind(kind)


def find_runs(folder: Path, depth: int = _DEPTH) -> list[Path]:
    """Return the run directories below a folder, by name; a folder that cannot be read has none."""
    return list(_find(folder, depth))


def _find(folder: Path, depth: int) -> Iterator[Path]:
    try:
        children = sorted(folder.iterdir())
    except OSError:
        return
    for child in children:
        with suppress(OSError):  # one that cannot be looked into does not hide the others
            if (child / MANIFEST).is_file():
                yield child
            elif depth > 1 and child.is_dir():
                yield from _find(child, depth - 1)
