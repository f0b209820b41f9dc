"""Files that may come from anybody, and files of a run that a bad disk spoilt: one line says so, or all is right."""

import copy
import gzip
import hashlib
import json
import os
import random
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from forks import Trouble, in_process
from jobs import ALONE, Job
from storms import notes

import fixfirst as ff
from fixfirst.game.attacker_files import SHIPPED

ROOT = Path(__file__).parent.parent.parent
RECORDING, TABLE = ROOT / "tests" / "conformance" / "sleep.jsonl.gz", ROOT / "examples" / "shop.csv"
FEW = ["--episodes", "2", "--steps", "2", "--red-agent", "sleep"]
UNITS = "[units]\nback = ['Op_Server0', 'Op_Host0']\n"
WEB = {  # an image of one's own
    "System info": {"OSType": "LINUX"},
    "Processes": [{"PID": 1, "Process Name": "sshd", "Username": "root", "Connections": [{"local_port": 22}]}],
    "User Info": [{"Username": "root", "Bruteforceable": True}],
}
NASTY = (b"", b"\xff\xfe", b"\x00", b"[" * 20_000, b"1e999", b"-inf", b"nan", b"1e308", b"-1", b"9" * 5000, b"\x1b[2J")
NASTY += (b"a" * 200_000, b"null", b'"', b",", b"\n", b"[]", b"true", b"../..", b"1_0", b"5", b"x = " + b"[" * 20_000)
NASTY += (b"{}", b"0", b"1", b"-0.0", b"\r", b"\xe2\x80\xae", b"{" * 50_000, b'"a.' * 3000, b"0x10", b"1e-400", b"9" * 11)
STRANGE = (None, True, False, 0, -1, 1, 2.5, 10**30, 1e300, "", "x", "\x1b[2J", "../..", [], {}, [[]], {"a": 1}, "9" * 500)
MOST_SECONDS = 60.0  # a command on such a file takes less, on the busiest machine
RARELY = {"course": 1, "study": 2, "league": 2}  # how often a kind of run is taken, of those that take long; else 4


def damage(rng: random.Random, folder: Path, made: list[Job]) -> Iterator[Trouble]:
    """A recording, a settings file, a policy, a network, an attacker, or one file of a run, in turns."""
    alone = [job for job in made if job.name in ALONE and job.name != "exploit"]  # its attacker is damaged below
    trained = [job for job in alone if job.read]
    files = scenario_files(folder)
    weights = [RARELY.get(job.name, 4) for job in alone]
    recording = folder / "recording.jsonl"
    recording.write_bytes(b"".join(gzip.decompress(RECORDING.read_bytes()).splitlines(keepends=True)[:2]))
    while True:
        job = rng.choices(alone, weights)[0]
        notes[f"of {job.name}"] += 1
        yield _run(rng, folder, job)
        yield rng.choices((_recording, _settings, _policy), (3, 1, 6))[0](rng, folder, rng.choice(trained))
        notes["of networks"] += 1
        yield _scenario(rng, folder, rng.choice(files))
        notes["of attackers"] += 1
        yield _attacker(rng, folder)


def _run(rng: random.Random, folder: Path, job: Job) -> Trouble:
    """One file of a finished run is damaged, or is something else: whoever reads it is told in a line."""
    out = folder / "damaged" / "run"
    shutil.rmtree(out.parent, ignore_errors=True)
    shutil.copytree(job.reference, out)
    path = rng.choice([path for path in sorted(out.rglob("*")) if path.is_file() and path.name != ".lock"])
    if rng.random() < 0.7:
        path.write_bytes(mutated(rng, path.read_bytes()))
    else:
        replace(rng, path)
    commands = [["runs", str(out.parent)], ["report", str(out), "--out", str(folder / "page.html")]]
    commands += [[*command[:1], str(out), *command[1:]] for command in _uses(folder)]
    command = rng.choices(commands, (6, 1, 3, 2, 1, 1))[0]
    wrong = in_process(command, most_s=MOST_SECONDS)
    return wrong and f"{job.name}, {path.relative_to(out)}, {command[0]}: {wrong}"


def _uses(folder: Path) -> list[list[str]]:
    """What can be done with a policy, without the name of it."""
    export = ["export", "--to", "numpy", "--out", str(folder / "p.npz")]
    return [["evaluate", *FEW, "--quiet"], ["watch", *FEW, "--text"], export, ["compare", "sleep", *FEW, "--quiet"]]


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
    """A policy by itself, damaged or forged."""
    source = rng.choice(sorted(job.reference.rglob("policy.json"))).parent
    out = _forged(rng, folder / "policy", source / "policy.json")
    command = rng.choices(_uses(folder), (3, 2, 1, 1))[0]
    wrong = in_process([command[0], str(out), *command[1:]], most_s=MOST_SECONDS)
    return wrong and f"forged policy: {wrong}"


def _attacker(rng: random.Random, folder: Path) -> Trouble:
    """An attacker by itself, damaged or forged."""
    out = _forged(rng, folder / "attacker", SHIPPED / rng.choice(("noise", "base-attacker", "two-fronts")) / "red.json")
    train = ["--exploit-starts", str(out), "--exploit-episodes", "50", "--episodes", "2", "--steps", "2", "--quiet"]
    wrong = in_process(["evaluate", "sleep", "--exploit", *train], most_s=MOST_SECONDS)
    return wrong and f"forged attacker: {wrong}"


def _forged(rng: random.Random, out: Path, source: Path) -> Path:
    """Return a folder with a document and its arrays, one of them damaged, or other with hashes of what they now are."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    document, arrays = out / source.name, out / source.with_suffix(".safetensors").name
    for path in (document, arrays):
        shutil.copy(source.parent / path.name, path)
    how = rng.randrange(4)
    if how == 0:
        path = rng.choice((document, arrays))
        path.write_bytes(mutated(rng, path.read_bytes()))
    elif how == 1:
        document.write_bytes(sealed(deformed(rng, json.loads(document.read_bytes()))))
    else:
        arrays.write_bytes(hostile(rng, arrays.read_bytes()))
        digest = hashlib.sha256(arrays.read_bytes()).hexdigest()
        document.write_bytes(sealed(json.loads(document.read_bytes()) | {"sha256": digest}))
    return out


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
    strange = file.suffix == ".yaml" and rng.random() < 0.6
    out.write_bytes(strange_yaml(rng, yaml.safe_load(data)) if strange else mutated(rng, data))
    network = str(folder / "web-tiny.yaml") if images else str(out)
    given = ["--scenario", network, *images]
    commands = [["scenario", network, *images], ["watch", "sleep", *given, *FEW, "--text"]]
    commands += [["evaluate", "react-restore", *given, "--episodes", "2", "--steps", "20", "--quiet"]]
    commands += [["scenario", network, *images, "--out", str(folder / "again.yaml")]]
    command = rng.choices(commands, (4, 1, 4, 1))[0]
    (folder / "again.yaml").unlink(missing_ok=True)
    wrong = in_process(command, most_s=MOST_SECONDS)
    return wrong and f"{file.name}, {' '.join(command[:2])}: {wrong}"


def strange_yaml(rng: random.Random, document: dict[str, Any]) -> bytes:
    """A network's file with other values, and sometimes with what YAML can do besides."""
    text = yaml.safe_dump(deformed(rng, document)).encode()
    how = rng.randrange(8)
    if how == 0:  # aliases of aliases
        return b"a: &a [x]\n" + b"".join(b"b%d: &b%d [%b]\n" % (n, n, b", ".join([b"*a"] * 9)) for n in range(9)) + text
    if how == 1:
        return b"self: &s {again: *s}\n" + text
    if how == 2:
        return b"code: !!python/object/apply:os.system [exit]\n" + text
    return text


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


def replace(rng: random.Random, path: Path) -> None:
    """Put something else in the place of a file, or nothing."""
    data = path.read_bytes()
    path.unlink()
    how = rng.randrange(9)
    if how == 0:
        path.mkdir()
    elif how == 1:
        os.mkfifo(path)
    elif how in (2, 3, 4):
        path.symlink_to(("/dev/zero", path.name, "no/such/file")[how - 2])
    elif how == 5:  # as large as no disk, of nothing
        path.write_bytes(data)
        os.truncate(path, 2**40)
    elif how in (6, 7):
        path.write_bytes((b"\xef\xbb\xbf" + data, data.replace(b"\n", b"\r\n"))[how - 6])


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


def sealed(document: dict[str, Any]) -> bytes:
    """A document whose own checksum is that of what it says."""
    rest = {name: value for name, value in document.items() if name != "document_sha256"}
    return json.dumps(
        rest | {"document_sha256": hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()}
    ).encode()


def deformed(rng: random.Random, document: dict[str, Any]) -> dict[str, Any]:
    """A document of which some values, anywhere, are strange ones, or gone."""
    for _ in range(rng.randint(1, 3)):
        waiting, places = [document], []
        while waiting:
            table = waiting.pop()
            keys = table if isinstance(table, dict) else range(len(table)) if isinstance(table, list) else ()
            places += [(table, key) for key in keys]
            waiting += [table[key] for key in keys]
        if places:
            table, key = rng.choice(places)
            if isinstance(table, dict) and rng.random() < 0.2:
                del table[key]
            else:
                table[key] = copy.deepcopy(rng.choice(STRANGE))  # what is put into it must not come back as part of itself
    return document
