"""Files of runs, policies, attackers, networks, recordings and settings, damaged by a bad disk, editor or person."""

import copy
import gzip
import hashlib
import json
import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from forks import Trouble, in_process
from jobs import ALONE, OTHER_SEED, Job, contents, difference
from storms import notes

import fixfirst as ff
from fixfirst.game.attacker_files import SHIPPED

ROOT = Path(__file__).parent.parent.parent
RECORDING, TABLE = ROOT / "tests" / "conformance" / "sleep.jsonl.gz", ROOT / "examples" / "shop.csv"
FEW = ["--episodes", "2", "--steps", "2", "--red-agent", "sleep"]
UNITS = (
    '[units]\nfront = ["User0", "User1", "User2", "User3", "User4"]\nback = ["Enterprise0", "Enterprise1", "Enterprise2", '
)
UNITS += '"Op_Server0", "Op_Host0", "Op_Host1", "Op_Host2", "Defender"]\n'
WEB = {  # an image of one's own
    "System info": {"OSType": "LINUX"},
    "Processes": [{"PID": 1, "Process Name": "sshd", "Username": "root", "Connections": [{"local_port": 22}]}],
    "User Info": [{"Username": "root", "Bruteforceable": True}],
}
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


MOST_SECONDS = 60.0  # a command on such a file takes less, on the busiest machine
RARELY = {"course": 1, "study": 2, "league": 2}  # how often a kind of run is taken, of those that take long; else 4


def damage(rng: random.Random, folder: Path, made: list[Job]) -> Iterator[Trouble]:
    """One file of a run, of a policy, a recording or a settings file is damaged: one line that says so, or all is right."""
    alone = [job for job in made if job.name in ALONE and job.name != "exploit"]  # its attacker is damaged below
    trained = [job for job in alone if job.read]
    files = scenario_files(folder)
    weights = [RARELY.get(job.name, 4) for job in alone]
    recording = folder / "recording.jsonl"
    recording.write_bytes(b"".join(gzip.decompress(RECORDING.read_bytes()).splitlines(keepends=True)[:2]))
    while True:
        job = rng.choices(alone, weights)[0]
        notes[f"of {job.name}"] += 1
        yield _run(rng, folder, job, job.stage(rng.randrange(STAGES), STAGES))
        yield rng.choices((_recording, _settings, _policy, _arrays), (3, 1, 3, 3))[0](rng, folder, rng.choice(trained))
        notes["of networks"] += 1
        yield _scenario(rng, folder, rng.choice(files))
        notes["of attackers"] += 1
        yield _attacker(rng, folder)


def _run(rng: random.Random, folder: Path, job: Job, stage: Path) -> Trouble:
    out = folder / "damaged" / "run"
    shutil.rmtree(out.parent, ignore_errors=True)
    shutil.copytree(stage, out)
    if rng.random() < 0.3:  # as if it was interrupted before its end
        for name in ("result.json", "answer.json", "runtime.csv", "best/policy.json"):
            (out / name).unlink(missing_ok=True)
    path = rng.choice([path for path in sorted(out.rglob("*")) if path.is_file() and path.name != ".lock"])
    name = str(path.relative_to(out))
    before = path.read_bytes()
    how = rng.choices((mutated, resealed, replaced, foreign), (10, 6, 4, 4))[0]
    if how is mutated:
        path.write_bytes(mutated(rng, before))
    elif how is resealed and (sealed := resealed(rng, path, before)) is not None:
        path.write_bytes(sealed)
    elif how is foreign and (other := job.other / moved(name)).is_file():
        path.write_bytes(other.read_bytes())
    else:
        how = replaced(rng, path)
    if path.is_file() and not path.is_symlink() and path.stat().st_size == len(before) and path.read_bytes() == before:
        return None
    commands = [["runs", str(out.parent)], job.resume(out), ["evaluate", str(out), *FEW, "--quiet"]]
    commands += [["watch", str(out), *FEW, "--text"], ["report", str(out), "--out", str(folder / "page.html")]]
    commands += [
        ["compare", str(out), "sleep", *FEW, "--quiet"],
        ["export", str(out), "--to", "numpy", "--out", str(folder / "p.npz")],
    ]
    command = rng.choices(commands, (8, 6, 3, 2, 1, 1, 1))[0]
    wrong = in_process(command, most_s=MOST_SECONDS)
    if wrong is None and command[0] == "resume" and not refused(job, out):
        left = [path.name for path in out.rglob(".*.tmp")]
        wrong = f"left {left[0]}" if left else None if how is resealed else silent(job, out, name)
    return f"{job.name}, {name}, {command[0]}, {how.__name__}: {wrong}" if wrong else None


def refused(job: Job, out: Path) -> bool:
    """Can a run not be gone on with? Then all of it stays as it is."""
    complained = in_process(job.resume(out), (0,))
    return complained is not None and "is finished" not in str(complained)


def silent(job: Job, out: Path, damaged: str) -> Trouble:
    """A run was gone on with although a file was damaged: is anything else another than it would have been?

    The file itself may still lie there as it is, if nobody needed it and whoever reads it is told; but no ledger may.
    """
    expected, found = job.expected, contents(out)
    known = set() if damaged.endswith(LEDGERS) else {damaged}
    return difference(_but(expected, known), _but(found, known))


def _but(found: dict[str, object], names: set[str]) -> dict[str, object]:
    return {name: held for name, held in found.items() if name not in names and not name.startswith("tb/")}


def _recording(rng: random.Random, folder: Path, job: Job) -> Trouble:
    recorded = folder / f"mutated.{rng.choice(('jsonl', 'jsonl.gz'))}"
    data = (folder / "recording.jsonl").read_bytes()
    recorded.write_bytes(mutated(rng, data) if recorded.suffix == ".jsonl" else _packed(rng, data))
    return in_process(["conform", str(recorded)], (0, 1, 2), MOST_SECONDS)


def _packed(rng: random.Random, data: bytes) -> bytes:
    """A compressed file that is damaged, holds something damaged, or far more than one would think."""
    how, packed = rng.randrange(8), gzip.compress(data, 1)
    if how == 0:
        return gzip.compress(mutated(rng, data), 1)
    if how == 1:  # several in one, the last of them damaged
        return packed + gzip.compress(data, 1) + mutated(rng, packed)
    if how == 2:
        return packed + rng.choice(NASTY)
    if how == 3:  # a line of 64 MB
        return packed + gzip.compress(bytes(64 * 2**20), 1)
    return mutated(rng, packed)


def _settings(rng: random.Random, folder: Path, job: Job) -> Trouble:
    """A --config or a --units file. The budget is refused in any case, or the run would be made."""
    out, path = folder / "unmade", folder / "settings.toml"
    shutil.rmtree(out, ignore_errors=True)
    units = rng.random() < 0.3
    path.write_bytes(mutated(rng, UNITS.encode() if units else job.settings.read_bytes()))
    said = ["--units", str(path), "--config", str(job.settings)] if units else ["--config", str(path)]
    said += ["--league", "--updates", "0"] if job.name == "league" else ["--total-episodes", "1"]
    wrong = in_process([job.command, *said, "--out", str(out), "--quiet"], (2,), MOST_SECONDS)
    return wrong or (f"{job.name}: refused settings left a folder" if out.exists() else None)


def _policy(rng: random.Random, folder: Path, job: Job) -> Trouble:
    """A policy by itself, forged: hashes are those of what it says."""
    out = _a_policy(rng, folder, job)
    path = out / "policy.json"
    path.write_bytes(resealed(rng, path, path.read_bytes()) or b"")
    return _played(rng, folder, out, "forged policy")


def _arrays(rng: random.Random, folder: Path, job: Job) -> Trouble:
    """The arrays of a policy, forged: its document has their hash."""
    out = _a_policy(rng, folder, job)
    arrays, path = out / "policy.safetensors", out / "policy.json"
    arrays.write_bytes(hostile(rng, arrays.read_bytes()))
    document = json.loads(path.read_bytes()) | {"sha256": hashlib.sha256(arrays.read_bytes()).hexdigest()}
    path.write_text(json.dumps(with_seal(document)))
    return _played(rng, folder, out, "forged arrays")


def scenario_files(folder: Path) -> list[Path]:
    """Networks as people write them: shipped ones, one that was drawn, a table of machines."""
    drawn = [ff.Scenario.load(name) for name in ("tiny", "cage2", "office")] + [ff.Scenario.generate(9, hosts=12)]
    files = [folder / f"{scenario.name}-{number}.yaml" for number, scenario in enumerate(drawn)]
    for scenario, file in zip(drawn, files, strict=True):
        file.write_text(scenario.to_yaml())
    (folder / "images").mkdir()
    (folder / "images" / "images.yaml").write_text("Web: {path: web}\n")
    (folder / "images" / "web.yaml").write_text(yaml.safe_dump({"Test_Host": WEB}))
    document = yaml.safe_load(files[0].read_text())
    document["Hosts"]["User1"]["image"] = "Web"
    (folder / "web-tiny.yaml").write_text(yaml.safe_dump(document))
    return [*files, TABLE, folder / "images" / "images.yaml", folder / "images" / "web.yaml"]


def _scenario(rng: random.Random, folder: Path, file: Path) -> Trouble:
    """A network's file is damaged: it is refused in one line, or a network that can be played comes of it."""
    data, images = file.read_bytes(), []
    out = folder / f"network{file.suffix}"
    if file.parent.name == "images":
        shutil.rmtree(folder / "own", ignore_errors=True)
        shutil.copytree(file.parent, folder / "own")
        out, images = folder / "own" / file.name, ["--images", str(folder / "own")]
    out.write_bytes(deformed(rng, data) if file.suffix == ".yaml" and rng.random() < 0.6 else mutated(rng, data))
    network = str(folder / "web-tiny.yaml") if images else str(out)
    given = ["--scenario", network, *images]
    commands = [["scenario", network, *images], ["watch", "sleep", *given, *FEW, "--text"]]
    commands += [["evaluate", "react-restore", *given, "--episodes", "2", "--steps", "20", "--quiet"]]
    commands += [["scenario", network, *images, "--out", str(folder / "again.yaml")]]
    command = rng.choices(commands, (4, 1, 4, 1))[0]
    (folder / "again.yaml").unlink(missing_ok=True)
    wrong = in_process(command, most_s=MOST_SECONDS)
    return wrong and f"{file.name}, {' '.join(command[:2])}: {wrong}"


def deformed(rng: random.Random, data: bytes) -> bytes:
    """A value somewhere in a network's file is another, or stands elsewhere, or refers to itself."""
    document = yaml.safe_load(data)
    for _ in range(rng.randint(1, 3)):
        _change(rng, document)
    text = yaml.safe_dump(document).encode()
    how = rng.randrange(8)
    if how == 0:  # aliases of aliases
        return b"a: &a [x]\n" + b"".join(b"b%d: &b%d [%b]\n" % (n, n, b", ".join([b"*a"] * 9)) for n in range(9)) + text
    if how == 1:
        return b"self: &s {again: *s}\n" + text
    if how == 2:
        return b"code: !!python/object/apply:os.system [exit]\n" + text
    return text


def _attacker(rng: random.Random, folder: Path) -> Trouble:
    """An attacker's files are damaged, or forged."""
    out, source = folder / "attacker", SHIPPED / rng.choice(("noise", "base-attacker", "two-fronts"))
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(source, out)
    path = rng.choice(sorted(path for path in out.iterdir() if path.is_file()))
    if path.suffix == ".json" and rng.random() < 0.5:
        path.write_bytes(resealed(rng, path, path.read_bytes()) or b"")
    elif path.suffix == ".json" or rng.random() < 0.5:
        path.write_bytes(mutated(rng, path.read_bytes()))
    else:
        document = out / path.with_suffix(".json").name
        path.write_bytes(hostile(rng, path.read_bytes()))
        sealed = json.loads(document.read_bytes()) | {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        document.write_text(json.dumps(with_seal(sealed)))
    train = ["--exploit-starts", str(out), "--exploit-episodes", "50", "--episodes", "2", "--steps", "2", "--quiet"]
    wrong = in_process(["evaluate", "sleep", "--exploit", *train], most_s=MOST_SECONDS)
    return wrong and f"attacker, {path.name}: {wrong}"


def _a_policy(rng: random.Random, folder: Path, job: Job) -> Path:
    out = folder / "policy"
    shutil.rmtree(out, ignore_errors=True)
    source = rng.choice(sorted(job.reference.rglob("policy.json"))).parent
    out.mkdir()
    for name in ("policy.json", "policy.safetensors"):
        shutil.copy(source / name, out / name)
    return out


def _played(rng: random.Random, folder: Path, out: Path, what: str) -> Trouble:
    commands = [["evaluate", str(out), *FEW, "--quiet"], ["watch", str(out), *FEW, "--text"]]
    commands += [
        ["export", str(out), "--to", "numpy", "--out", str(folder / "p.npz")],
        ["compare", str(out), "sleep", *FEW, "--quiet"],
    ]
    wrong = in_process(rng.choices(commands, (3, 2, 1, 1))[0], most_s=MOST_SECONDS)
    return wrong and f"{what}: {wrong}"


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


def replaced(rng: random.Random, path: Path) -> Callable[..., None]:
    """Something else in the place of a file; how."""
    how = rng.choice((missing, a_folder, a_pipe, a_link, a_loop, nowhere, endless, with_bom, from_windows, in_utf16, twice))
    data = path.read_bytes()
    path.unlink()
    how(path, data)
    return how


def missing(path: Path, data: bytes) -> None:
    pass


def a_folder(path: Path, data: bytes) -> None:
    path.mkdir()


def a_pipe(path: Path, data: bytes) -> None:
    os.mkfifo(path)


def a_link(path: Path, data: bytes) -> None:
    path.symlink_to("/dev/zero")


def a_loop(path: Path, data: bytes) -> None:
    path.symlink_to(path.name)


def nowhere(path: Path, data: bytes) -> None:
    path.symlink_to("no/such/file")


def endless(path: Path, data: bytes) -> None:
    """As large as no disk, of nothing."""
    path.write_bytes(data)
    os.truncate(path, 2**40)


def with_bom(path: Path, data: bytes) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + data)


def from_windows(path: Path, data: bytes) -> None:
    path.write_bytes(data.replace(b"\n", b"\r\n") + b"\r\n")


def in_utf16(path: Path, data: bytes) -> None:
    path.write_bytes(data.decode("latin-1").encode("utf-16"))


def twice(path: Path, data: bytes) -> None:
    path.write_bytes(data + data)


def foreign(path: Path, data: bytes) -> None:
    """The same file of a run that differs in its seed only."""


def moved(name: str) -> str:
    """Where the run of another seed has a file: the searches of a study are named by their seeds."""
    return name.replace("b_line-0/", f"b_line-{OTHER_SEED}/").replace("b_line-1/", f"b_line-{OTHER_SEED + 1}/")


def hostile(rng: random.Random, data: bytes) -> bytes:
    """A file of arrays that says of itself what is not so: sizes, types, shapes, places; or holds what is no number."""
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
    name = rng.choice([name for name in header if name != "__metadata__"])
    array, how = header[name], rng.randrange(10)
    if how == 0:
        return struct.pack("<Q", rng.choice((0, 1, 7, length - 1, length + 1, 2**31, 2**63, 2**64 - 1))) + data[8:]
    if how == 1:
        array["data_offsets"] = rng.choice(
            ([0, 0], [0, 4], [8, 4], [0, 2**62], [-4, 0], [len(body), len(body) + 4], [0], [], "x")
        )
    elif how == 2:
        array["shape"] = rng.choice(
            ([], [0], [0, 64], [-1], [2**31, 2**31], [2**62, 4], [1.5], [[1]], None, [1] * 65, array["shape"][::-1])
        )
    elif how == 3:
        array["dtype"] = rng.choice(("F64", "F16", "BF16", "I8", "BOOL", "F8_E4M3", "x", "", None, 5, "U64"))
    elif how == 4:
        start, end = array["data_offsets"]
        place = rng.randrange(start, end, 4)
        body[place : place + 4] = struct.pack("<f", rng.choice((float("nan"), float("inf"), -float("inf"))))
    elif how == 5:
        del header[name]
    elif how == 6:
        header[rng.choice(("x", "", "\x1b[2J", "a" * 5_000, "../x"))] = header.pop(name)
    elif how == 7:
        header["__metadata__"] = rng.choice(({"a": 1}, [], {"x": "y" * 100_000}, None))
    elif how == 8:  # two arrays in one place
        other = rng.choice([other for other in header if other != "__metadata__"])
        array["data_offsets"] = header[other]["data_offsets"]
    else:
        del body[rng.randrange(len(body)) :]
    text = json.dumps(header).encode() + b" " * rng.choice((0, 0, 3, 8, 100_000))
    return struct.pack("<Q", len(text)) + text + body


def with_seal(document: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in document.items() if name != "document_sha256"}
    return rest | {"document_sha256": hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()}


def resealed(rng: random.Random, path: Path, data: bytes) -> bytes | None:
    """A value somewhere inside is another, and the file's own checksum is that of what it now says; None: no such file."""
    if path.suffix == ".json":
        document = json.loads(data)
        _change(rng, document)
        return json.dumps(with_seal(document) if "document_sha256" in document else document).encode()
    if path.suffix == ".csv" and data.count(b"\n") > 1:
        return _chained(rng, path, data)
    return None


def _chained(rng: random.Random, path: Path, data: bytes) -> bytes:
    """A log with another value in one cell, and the checksums of what it now says."""
    from fixfirst.runs.layout import run_hash_of

    header, *lines = data.splitlines(keepends=True)
    rows = [line.rpartition(b",")[0] for line in lines]
    cells = rows[number := rng.randrange(len(rows))].split(b",")
    cells[rng.randrange(len(cells))] = rng.choice((b"0", b"1", b"-1", b"7", b"1e9", b"x", b"", b"1" + b"0" * 15))
    rows[number] = b",".join(cells)
    checksum = hashlib.sha256((run_hash_of(path.parent) or "").encode() + b"\n" + header).hexdigest()[:12].encode()
    text = header
    for row in rows:
        checksum = hashlib.sha256(checksum + b"\n" + row).hexdigest()[:12].encode()
        text += b"%b,%b\n" % (row, checksum)
    return text


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
    if not found:
        return
    table, key = rng.choice(found)
    if isinstance(table, dict) and rng.random() < 0.2:
        del table[key]
    else:
        table[key] = copy.deepcopy(rng.choice(STRANGE))  # what is put into it must not come back as part of itself
