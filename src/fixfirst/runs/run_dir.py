"""The run directory: every file name, column and key of it, and how they are written and read back.

runs/<name>/
  config.toml          the resolved configuration
  manifest.json        what kind of run, versions, seed, machine, command
  runtime.csv          one row per time it was worked on: when, how it ended, for how long
  training_log.csv     one row per update
  episodes.csv         one row per training episode, if asked for
  tb/                  TensorBoard events
                       `train` only:
  result.json          the final evaluation
  policy.safetensors, policy.json, and checkpoint-* while it runs
                       `search` only:
  trials.csv           the ledger: one row per finished trial; the search resumes from it
  gp_sampling_log.csv  one row per choice, with what the strategy believed
  trials/<id>/         policy.safetensors, policy.json, result.json, and checkpoint-* while it runs
  warmup/              the policy that the first trials inherit, and its result.json
  best/                the winner's policy
  report.html

runs/<study>/
  study.json           a manifest that names the searches
  <red agent>-<seed>/  the run directory of each
"""

import csv
import fcntl
import json
import os
import platform
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import IO, Any

import tomli_w

from fixfirst.errors import RunDirError
from fixfirst.runs.files import write_atomically, write_json

SCHEMA = 1
CONFIG, MANIFEST, STUDY, RESULT = "config.toml", "manifest.json", "study.json", "result.json"
TRAINING_LOG, EPISODE_LOG, TENSORBOARD = "training_log.csv", "episodes.csv", "tb"
RUNTIME = "runtime.csv"
LEDGER, CHOICES, TRIALS, BEST, WARMUP, LOCK = "trials.csv", "gp_sampling_log.csv", "trials", "best", "warmup", ".lock"

# The first twelve are the reference system's, in its spelling and order.
TRAINING_COLUMNS = (
    "Workflow_ID",
    "Workflow_Order",
    "Update",
    "Episodes",
    "Total_Episodes_Sampled",
    "Env_Reward",
    "Alignment_Bonus",
    "Total_Reward",
    "Compliance",
    "Avg_Fixes",
    "Collection_Time",
    "Update_Time",
    "Contested_Share",
    "Multiplier",
    "Approx_KL",
    "Entropy",
    "Policy_Loss",
    "Value_Loss",
    "Clip_Fraction",
    "Distinct_Rows",
)
# TensorBoard's names of some of them, as in Stable-Baselines3 where it has them.
PLOTTED = {
    "Env_Reward": "rollout/ep_rew_mean",
    "Alignment_Bonus": "rollout/alignment",
    "Compliance": "rollout/compliance",
    "Avg_Fixes": "rollout/repairs",
    "Contested_Share": "rollout/contested_share",
    "Collection_Time": "time/collection_s",
    "Update_Time": "time/update_s",
    "Multiplier": "train/multiplier",
    "Approx_KL": "train/approx_kl",
    "Entropy": "train/entropy",
    "Policy_Loss": "train/policy_gradient_loss",
    "Value_Loss": "train/value_loss",
    "Clip_Fraction": "train/clip_fraction",
    "Distinct_Rows": "train/distinct_rows",
}
EPISODE_COLUMNS = (
    "Workflow_ID",
    "Workflow_Order",
    "Update",
    "Episode",
    "Env_Reward",
    "Alignment_Bonus",
    "Total_Reward",
    "Compliance",
    "Repairs",
)
# One row per finished trial. All but `seconds` are the same however often the search was interrupted.
TRIAL_COLUMNS = (
    "id",
    "workflow",
    "status",
    "return_mean",
    "return_se",
    "return_low",
    "return_high",
    "compliance",
    "compliance_low",
    "compliance_high",
    "compliance_bound",
    "judged",
    "contested_compliance",
    "contested",
    "effectiveness",
    "response",
    "repairs_per_episode",
    "episodes",
    "updates",
    "parent",
    "policy",
    "policy_sha256",
    "seconds",
)
_CANDIDATE = ("workflow", "ucb", "mean", "std")
CHOICE_COLUMNS = ("iteration", "round", "how", "beta", *_CANDIDATE, *(f"top{i}_{c}" for i in (1, 2, 3) for c in _CANDIDATE))

RUNTIME_COLUMNS = ("started", "outcome", "seconds", "workers", "choosing_seconds")
FINISHED, INTERRUPTED, RUNNING = "finished", "interrupted", "running"


def trial_folder(run: Path, number: int) -> Path:
    return run / TRIALS / f"{number:04d}"


@contextmanager
def locked(folder: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Only one process at a time may use a folder; the lock goes with the process, however it ends."""
    with open(folder / LOCK, "w", encoding="utf-8") as file:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise RunDirError(f"{folder} is in use by another process") from None
                time.sleep(0.05)
        yield


class CsvLog:
    """A CSV file that grows by rows; the header is written once. A half-written last line of a crash is cut off."""

    def __init__(self, path: Path, columns: tuple[str, ...]):
        self.path, self.columns = path, columns
        if path.exists():
            _cut_half_line(path)
        is_new = not path.exists() or path.stat().st_size == 0
        self._file: IO[str] = open(path, "a", newline="", encoding="utf-8")  # noqa: SIM115  closed by close()
        self._writer = csv.writer(self._file, lineterminator="\n")
        if is_new:
            self._writer.writerow(columns)
        else:
            _check_header(path, columns)

    def write(self, values: Iterable[Any]) -> None:
        self._writer.writerow(["" if value is None else value for value in values])

    def sync(self) -> None:
        """What was written so far survives a crash."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _cut_half_line(path: Path) -> None:
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        write_atomically(path, data[: data.rfind(b"\n") + 1])


def _check_header(path: Path, columns: tuple[str, ...]) -> None:
    with open(path, newline="", encoding="utf-8") as file:
        header = next(csv.reader(file), [])
    if tuple(header) != columns:
        raise RunDirError(f"{path}: has other columns than this version writes; is it a run of another version?")


def read_csv(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of a log as text by column; a half-written last line is left out."""
    if not path.exists():
        return []
    text = path.read_bytes().decode("utf-8", errors="replace")
    lines = text[: text.rfind("\n") + 1].splitlines()
    if not lines:
        return []
    _check_header(path, columns)
    rows = list(csv.DictReader(lines))
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():  # cells without a column, columns without a cell
            raise RunDirError(f"{path}: line {number} is damaged; it does not have {len(columns)} cells")
    return rows


def keep_rows(path: Path, columns: tuple[str, ...], keep: Callable[[dict[str, str]], bool]) -> None:
    """Rewrite a log with only the rows for which keep(row) holds: those after a checkpoint are played again."""
    rows = read_csv(path, columns)
    kept = [row for row in rows if keep(row)]
    if len(kept) == len(rows):
        return
    lines = [",".join(columns)] + [_csv_line([row[c] for c in columns]) for row in kept]
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def _csv_line(values: list[str]) -> str:
    text = StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue()


# ---------------------------------------------------------------- when it was worked on


class Runtime:
    """A `with` block in which a run is worked on; leaving it adds a row to runtime.csv. A kill leaves no row."""

    def __init__(self, folder: Path, workers: int = 1):
        self._folder, self._workers = folder, workers
        self._choosing_s = 0.0
        self.finished = False

    def __enter__(self) -> "Runtime":
        self._started, self._clock = _now(), time.perf_counter()
        return self

    @contextmanager
    def choosing(self) -> Iterator[None]:
        """What happens inside is the search's own thinking."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._choosing_s += time.perf_counter() - start

    def __exit__(self, *error: object) -> None:
        outcome = FINISHED if self.finished else INTERRUPTED
        seconds = round(time.perf_counter() - self._clock, 3)
        log = CsvLog(self._folder / RUNTIME, RUNTIME_COLUMNS)
        log.write([self._started, outcome, seconds, self._workers, round(self._choosing_s, 3)])
        log.close()


def status(folder: Path) -> str:
    """running, finished or interrupted."""
    if is_locked(folder):
        return RUNNING
    rows = read_csv(folder / RUNTIME, RUNTIME_COLUMNS)
    return rows[-1]["outcome"] if rows else INTERRUPTED


def is_locked(folder: Path) -> bool:
    """Does a process work on it?"""
    try:
        with open(folder / LOCK, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# ---------------------------------------------------------------- config and manifest


def create_run(
    folder: Path, kind: str, config: dict[str, Any], versions: dict[str, str], options: dict[str, Any] | None = None
) -> None:
    """A new run directory with its config and, last, its manifest. A folder that holds anything is refused."""
    try:
        check_unused(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / CONFIG, tomli_w.dumps(without_none(config)).encode())
        write_manifest(folder, kind, config["seed"], versions, options)
    except OSError as e:
        raise RunDirError(f"{folder}: cannot be written ({e.strerror})") from e


def check_unused(folder: Path) -> None:
    """Nothing is ever written over."""
    try:
        if not folder.exists() or not any(folder.iterdir()):
            return
    except OSError as e:
        raise RunDirError(f"{folder}: cannot be written ({e.strerror})") from e
    is_run = (folder / MANIFEST).exists() or (folder / STUDY).exists()
    hint = f"go on with it: fixfirst resume {folder}" if is_run else "choose another --out"
    raise RunDirError(f"{folder} exists already; {hint}")


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as a dict; RunDirError if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as e:
        raise RunDirError(f"{path}: no such file") from e
    except (OSError, ValueError) as e:
        raise RunDirError(f"{path}: cannot be read as TOML ({e})") from e


def without_none(value: Any) -> Any:
    """TOML has no null: a missing key says the same."""
    if isinstance(value, dict):
        return {key: without_none(v) for key, v in value.items() if v is not None}
    return value


def write_manifest(
    folder: Path,
    kind: str,
    seed: int,
    versions: dict[str, str],
    options: dict[str, Any] | None = None,
    file: str = MANIFEST,
) -> None:
    """options: how the run was started, beside its configuration."""
    write_json(
        folder / file,
        {
            "schema": SCHEMA,
            "kind": kind,
            "created": _now(),
            "command": "fixfirst " + " ".join(sys.argv[1:]),
            "seed": seed,
            "options": options or {},
            "versions": versions,
            "machine": {"system": platform.system(), "cpu": platform.machine(), "cores": os.cpu_count()},
        },
    )


def read_manifest(folder: Path, file: str = MANIFEST) -> dict[str, Any]:
    """The manifest of a run of this version; anything else raises RunDirError."""
    path = folder / file
    try:
        manifest = json.loads(path.read_bytes())
    except FileNotFoundError as e:
        raise RunDirError(f"{folder} is not a run directory ({MANIFEST} is missing)") from e
    except (OSError, ValueError) as e:
        raise RunDirError(f"{path}: cannot be read ({e})") from e
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        came = manifest.get("schema") if isinstance(manifest, dict) else None
        raise RunDirError(f"{folder}: is a run of another version (schema {came!r}, this version reads {SCHEMA})")
    if not isinstance(manifest.get("kind"), str):
        raise RunDirError(f"{path}: damaged, it does not say what kind of run this is")
    return manifest
