"""Files of runs, policies, recordings and settings, damaged as a bad disk, a bad editor or a bad person would."""

import csv
import gzip
import hashlib
import io
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forks import Trouble, in_process
from jobs import ALONE, Job, contents, difference

RECORDING = Path(__file__).parent.parent.parent / "tests" / "conformance" / "sleep.jsonl.gz"
FEW = ["--episodes", "2", "--steps", "2", "--red-agent", "sleep"]
UNITS = (
    '[units]\nfront = ["User0", "User1", "User2", "User3", "User4"]\nback = ["Enterprise0", "Enterprise1", "Enterprise2", '
)
UNITS += '"Op_Server0", "Op_Host0", "Op_Host1", "Op_Host2", "Defender"]\n'
NASTY = (b"", b"\xff\xfe", b"\x00", b"[" * 20_000, b"1e999", b"-inf", b"nan", b"1e308", b"-1", b"9" * 5000, b"\x1b[2J")
NASTY += (b"a" * 200_000, b"null", b'"', b",", b"\n", b"[]", b"true", b"../..", b"1_0", b"5", b"x = " + b"[" * 20_000)
NASTY += (
    b"{}",
    b"0",
    b"1",
    b"-0.0",
    b"\r",
    b"\xe2\x80\xae",
    b"{" * 50_000,
    b'"a.' * 3000,
    b"0x10",
    b"1e-400",
    b"99999999999",
)
STRANGE = (None, True, False, 0, -1, 1, 2.5, 10**30, 1e300, "", "x", "\x1b[2J", "../..", [], {}, [[]], {"a": 1}, "9" * 500)
STAGES = 5  # at which a run is damaged
LEDGERS = ("trials.csv", "rounds.csv", "answer.json", "config.toml")  # what a run goes on from, and what it says


def damage(rng: random.Random, folder: Path, made: list[Job]) -> Iterator[Trouble]:
    """One file of a run, of a policy, a recording or a settings file is damaged: one line that says so, or all is right."""
    alone = [job for job in made if job.name in ALONE]
    recording = folder / "recording.jsonl"
    recording.write_bytes(b"".join(gzip.decompress(RECORDING.read_bytes()).splitlines(keepends=True)[:2]))
    while True:
        job = rng.choice(alone)
        yield _run(rng, folder, job, job.stage(rng.randrange(STAGES), STAGES))
        yield rng.choice((_recording, _settings, _policy))(rng, folder, job)


def _run(rng: random.Random, folder: Path, job: Job, stage: Path) -> Trouble:
    out = folder / "damaged" / "run"
    shutil.rmtree(out.parent, ignore_errors=True)
    shutil.copytree(stage, out)
    if rng.random() < 0.3:  # as if it was interrupted before its end
        for name in ("result.json", "answer.json", "runtime.csv", "best/policy.json"):
            (out / name).unlink(missing_ok=True)
    path = rng.choice([path for path in sorted(out.rglob("*")) if path.is_file() and path.name != ".lock"])
    before = path.read_bytes()
    forged = rng.random() < 0.3 and (sealed := resealed(rng, path, before)) is not None
    path.write_bytes(sealed if forged else mutated(rng, before))
    if path.read_bytes() == before:
        return None
    commands = [["runs", str(out.parent)], job.resume(out), ["evaluate", str(out), *FEW, "--quiet"]]
    commands += [["watch", str(out), *FEW, "--text"], ["report", str(out), "--out", str(folder / "page.html")]]
    commands += [
        ["compare", str(out), "sleep", *FEW, "--quiet"],
        ["export", str(out), "--to", "numpy", "--out", str(folder / "p.npz")],
    ]
    command = rng.choices(commands, (8, 6, 3, 2, 1, 1, 1))[0]
    wrong = in_process(command)
    if wrong is None and not forged and command[0] == "resume":
        wrong = silent(job, out, str(path.relative_to(out)))
    return f"{job.name}, {path.relative_to(out)}, {command[0]}{', forged' if forged else ''}: {wrong}" if wrong else None


def silent(job: Job, out: Path, damaged: str) -> Trouble:
    """If a run can be gone on with although a file was damaged: is anything else another than it would have been?

    The file itself may still lie there as it is, if nobody needed it and whoever reads it is told; but no ledger may.
    """
    complained = in_process(job.resume(out), (0,))
    if complained is not None and "is finished" not in str(complained):
        return None
    expected, found = job.expected, contents(out)
    known = set() if damaged.endswith(LEDGERS) else {damaged}
    return difference(_but(expected, known), _but(found, known))


def _but(found: dict[str, object], names: set[str]) -> dict[str, object]:
    return {name: held for name, held in found.items() if name not in names and not name.startswith("tb/")}


def _recording(rng: random.Random, folder: Path, job: Job) -> Trouble:
    recorded = folder / f"mutated.{rng.choice(('jsonl', 'jsonl.gz'))}"
    data = (folder / "recording.jsonl").read_bytes()
    recorded.write_bytes(mutated(rng, data) if recorded.suffix == ".jsonl" else mutated(rng, gzip.compress(data, 1)))
    return in_process(["conform", str(recorded)], (0, 1, 2))


def _settings(rng: random.Random, folder: Path, job: Job) -> Trouble:
    """A --config or a --units file. The budget is refused in any case, or the run would be made."""
    out, path = folder / "unmade", folder / "settings.toml"
    shutil.rmtree(out, ignore_errors=True)
    units = rng.random() < 0.3
    path.write_bytes(mutated(rng, UNITS.encode() if units else job.settings.read_bytes()))
    said = ["--units", str(path), "--config", str(job.settings)] if units else ["--config", str(path)]
    wrong = in_process([job.command, *said, "--out", str(out), "--quiet", "--total-episodes", "1"], (2,))
    return wrong or (f"{job.name}: refused settings left a folder" if out.exists() else None)


def _policy(rng: random.Random, folder: Path, job: Job) -> Trouble:
    """A policy by itself, forged: hashes are those of what it says."""
    out = folder / "policy"
    shutil.rmtree(out, ignore_errors=True)
    source = next(iter(sorted(job.reference.rglob("policy.json")))).parent
    out.mkdir()
    for name in ("policy.json", "policy.safetensors"):
        shutil.copy(source / name, out / name)
    path = out / "policy.json"
    path.write_bytes(resealed(rng, path, path.read_bytes()) or b"")
    commands = [["evaluate", str(out), *FEW, "--quiet"], ["watch", str(out), *FEW, "--text"]]
    commands += [
        ["export", str(out), "--to", "numpy", "--out", str(folder / "p.npz")],
        ["compare", str(out), "sleep", *FEW, "--quiet"],
    ]
    wrong = in_process(rng.choices(commands, (3, 2, 1, 1))[0])
    return wrong and f"forged policy: {wrong}"


# ---------------------------------------------------------------- mutations


def mutated(rng: random.Random, data: bytes) -> bytes:
    """A file as a bad disk, a bad editor or a bad person leaves it."""
    start = rng.randrange(len(data) + 1)
    end = min(len(data), start + rng.choice((1, 2, 8, 100)))
    how = rng.randrange(9)
    if how == 0 and data:  # a flipped bit
        place = rng.randrange(len(data))
        return data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :]
    if how == 1:
        return data[:start]
    if how == 2:
        return data[:start] + data[end:]
    if how == 3:
        return data[:end] + data[start:]
    if how == 4:
        return data[:start] + rng.choice(NASTY) + data[end:]
    if how == 5:  # another digit
        digits = [place for place, byte in enumerate(data) if 48 <= byte < 58]
        place = rng.choice(digits) if digits else 0
        return data[:place] + str(rng.randrange(10)).encode() + data[place + 1 :]
    if how == 6:  # a line twice, gone, or elsewhere
        lines = data.splitlines(keepends=True) or [b""]
        line = lines.pop(rng.randrange(len(lines)))
        return b"".join(rng.choice((lines, [*lines, line], [line, *lines], [line, line, *lines])))
    if how == 7:  # a block of zeros, as some file systems leave after a crash
        return data[:start] + bytes(end - start) + data[end:]
    cells = data.replace(b"=", b",").replace(b":", b",").split(b",")  # a whole value
    cell = rng.choice(cells)
    return data.replace(cell, rng.choice(NASTY), 1) if cell.strip() else rng.choice(NASTY)


def resealed(rng: random.Random, path: Path, data: bytes) -> bytes | None:
    """A value somewhere inside is another, and the file's own checksum is that of what it now says; None: no such file."""
    if path.suffix == ".json":
        document = json.loads(data)
        _change(rng, document)
        if "document_sha256" in document:
            rest = {name: value for name, value in document.items() if name != "document_sha256"}
            document["document_sha256"] = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
        return json.dumps(document).encode()
    if path.name in ("trials.csv", "rounds.csv") and data.count(b"\n") > 1:
        from fixfirst.runs import Trial, ValueRow

        kind = Trial if path.name == "trials.csv" else ValueRow
        rows = list(csv.DictReader(io.StringIO(data.decode())))
        row = rng.choice(rows)
        row[rng.choice([name for name in row if name != "check"])] = str(rng.choice((0, 1, -1, 7, 1e9, "x", "", 10**15)))
        try:
            row["check"] = kind.read({name: value for name, value in row.items() if name != "check"}).checksum()
        except ValueError:
            row["check"] = "0" * 12
        text = io.StringIO()
        writer = csv.DictWriter(text, row, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue().encode()
    return None


def _change(rng: random.Random, document: Any) -> None:
    """One value of a document, anywhere; its sums are put right by others."""
    places = [(document, key) for key in document if key not in ("sha256", "document_sha256")]
    found = []
    while places:
        table, key = places.pop()
        found.append((table, key))
        inner = table[key]
        places += [
            (inner, k) for k in (inner if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ())
        ]
    table, key = rng.choice(found)
    if isinstance(table, dict) and rng.random() < 0.2:
        del table[key]
    else:
        table[key] = rng.choice(STRANGE)
