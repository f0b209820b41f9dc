"""Files from elsewhere: whatever lies there, reading it ends soon, in bounded memory, and says what is wrong in a line."""

import json
import os
import stat
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from fixfirst.base import files as reading
from fixfirst.base.errors import LONGEST_MESSAGE, RunDirError
from fixfirst.base.files import (
    MB,
    pack_arrays,
    parse_json,
    read_document,
    read_file,
    read_json,
    read_toml,
    unpack_arrays,
    write_atomically,
    write_document,
)
from fixfirst.runs.rows import CsvLog, MatrixRow, SessionRow, Trial, ValueRow, read_rows


@pytest.mark.parametrize(
    ("read", "content", "says"),
    [
        (read_json, b"[" * 20_000, "nested more than 32 deep"),
        (read_json, b"[" * 40 + b"]" * 40, "nested more than 32 deep"),
        (read_json, b'{"a": NaN}', "NaN is not a number"),
        (read_json, b'{"seed": 1, "seed": 2}', "a name stands twice in a table"),
        (read_json, b"\xef\xbb\xbf{}", "BOM"),
        (read_json, b"\xff\xfe", "can't decode"),
        (read_json, b"1" * 5_000, "4300"),
        (read_toml, b"a = " + b"[" * 20_000, "nested more than 32 deep"),
        (read_toml, b"a" + b".a" * 500_000 + b" = 1", "nested more than 32 deep"),
        (read_toml, b"a = {b" + b' . "a"' * 100_000 + b" = 1}", "nested more than 32 deep"),
        (read_toml, b"\xff", "can't decode"),
    ],
)
def test_documents_that_make_no_sense(tmp_path, read, content, says):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=says):
        read(tmp_path / "file")


def test_a_log_that_is_too_large_is_not_gone_on_with(tmp_path):
    with open(tmp_path / "runtime.csv", "wb") as file:
        file.truncate(17 * reading.MB)
    with pytest.raises(RunDirError, match=r"runtime.csv: damaged .more than 16 MB"):
        CsvLog(tmp_path / "runtime.csv", SessionRow)


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # nobody will ever write into it
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(OSError, match=r"Not a regular file|Is a directory"):
            read_file(path)


def test_what_is_too_large_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b" " * 100)
    with pytest.raises(ValueError, match="more than"):
        read_file(tmp_path / "file", limit=99)
    monkeypatch.setattr(reading, "LARGEST_DOCUMENT", 99)
    with pytest.raises(ValueError, match="more than"):
        read_json(tmp_path / "file")


def test_a_file_that_only_says_it_is_large_takes_no_memory(tmp_path):
    """Half a terabyte of nothing; and a ledger is never as large as a log of all episodes may be."""
    bounds = (("trials.csv", 2**39, Trial, 4), ("rounds.csv", 17 * reading.MB, ValueRow, 16))
    for name, size, kind, bound in (*bounds, ("league.csv", 9 * reading.MB, MatrixRow, 8)):
        with open(tmp_path / name, "wb") as file:
            file.truncate(size)
        tracemalloc.start()
        with pytest.raises(RunDirError, match=rf"damaged .more than {bound} MB"):
            read_rows(tmp_path / name, kind)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < reading.MB


def test_a_small_file_takes_its_own_size_of_memory_however_large_it_might_be(tmp_path):
    """One of 1 kB that might have a gigabyte."""
    (tmp_path / "small").write_bytes(bytes(1_000))
    tracemalloc.start()
    assert len(read_file(tmp_path / "small")) == 1_000
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < reading.MB


def test_a_file_that_grows_while_it_is_read_is_read_to_its_end_or_to_the_limit(tmp_path, monkeypatch):
    """It was empty when its size was asked for."""
    (tmp_path / "log").write_bytes(bytes(3 * reading.MB))
    before = os.stat(os.devnull)
    as_asked = os.stat_result((stat.S_IFREG, *before[1:6], 0, *before[7:]))
    monkeypatch.setattr(reading.os, "fstat", lambda _: as_asked)
    assert len(read_file(tmp_path / "log")) == 3 * reading.MB
    with pytest.raises(ValueError, match="more than 2 MB"):
        read_file(tmp_path / "log", 2 * reading.MB)


def test_a_message_is_one_printable_line_of_bounded_length_that_keeps_its_end():
    error = RunDirError(f"\x1b[2J\x07{'x' * 100_000}\n\n what to do")
    assert str(error).isprintable() and len(str(error)) < LONGEST_MESSAGE + 10 and str(error).endswith("x what to do")


# ---------------------------------------------------------------- documents of ours


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda text: text.replace("-14.5", "-14.6"), "its document_sha256 is not that of its contents"),
        (lambda text: text.replace("document_sha256", "document_sha257"), "its document_sha256 is not"),
        (lambda text: text.replace("result", "answer"), "its document_sha256 is not"),
        (lambda text: "[1]", "it is not a table"),
    ],
)
def test_a_changed_document_is_noticed(tmp_path, damage, says):
    write_document(tmp_path / "file", "result", {"mean": -14.5}, run="abc")
    text = (tmp_path / "file").read_text()
    (tmp_path / "file").write_text(" ".join(text.split()))
    assert read_document(tmp_path / "file", "result", "abc")["mean"] == -14.5  # its layout does not matter
    for kind, run, why in (("answer", "abc", "it is not a answer"), ("result", "abd", "it is of another run")):
        with pytest.raises(ValueError, match=why):
            read_document(tmp_path / "file", kind, run)
    (tmp_path / "file").write_text(damage(text))
    with pytest.raises(ValueError, match=says):
        read_document(tmp_path / "file", "result", "abc")


@pytest.mark.parametrize("text", ["8.3303792268004288", "1.50", "1e5", "-0", "0.1e1", "-0.00"])
def test_a_number_that_fixfirst_would_write_otherwise_is_damage_in_its_own_files(text):
    """8.3303792268004288 is the number 8.330379226800428."""
    assert parse_json(text.encode()) == float(text)
    with pytest.raises(ValueError, match=f"{text} is a number that fixfirst would write otherwise"):
        parse_json(text.encode(), own=True)
    for value in (8.330379226800428, 1e16, 1e-7, -0.0, 5, -3, 1.5):
        assert parse_json(json.dumps(value).encode(), own=True) == value


@pytest.mark.parametrize("place", ["", ".", "./", "folder", "folder/.."])
def test_a_folder_is_not_written_over(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(Path(place), b"")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


# ---------------------------------------------------------------- arrays


def test_arrays_are_packed_as_the_formats_own_library_packs_them():
    shapes = {"b": (3, 2), "a": (), "ä.weight": (0, 4), "actor.0.bias": (5,)}
    kept = {name: np.random.default_rng(1).normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    assert pack_arrays(kept) == safetensors.numpy.save(kept)
    assert pack_arrays({}) == safetensors.numpy.save({})
    back = unpack_arrays(pack_arrays(kept))
    assert {name: (array.tolist(), array.shape) for name, array in back.items()} == {
        name: (array.tolist(), array.shape) for name, array in kept.items()
    }


def packed(header, body=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def one(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "it has no header"),
        (b"\xff" * 16, "it has no header"),
        (packed([1]), "it has no header"),
        (packed(b"{"), "Expecting"),
        (packed(b'{"a": {}, "a": {}}'), "a name stands twice"),
        (packed({}, b"1234"), "its end belongs to no array"),
        ((9 * 2**20).to_bytes(8, "little") + b"[" * 9 * 2**20, "its header has more than 8 MB"),
        (packed({"a": one()}, b"123"), "its array 'a' makes no sense"),
        (packed({"a": one()}, b"12345"), "its end belongs to no array"),
        (packed({"a": one(), "b": one()}, b"1234"), "its array 'b' makes no sense"),  # one place, two arrays
        (packed({"a": one(offsets=(4, 8))}, b"12345678"), "its array 'a' makes no sense"),
        (packed({"a": one(shape=(-1, -1))}, b"1234"), "its array 'a' makes no sense"),
        (packed({"a": one(shape=(True,))}, b"1234"), "its array 'a' makes no sense"),
        (packed({"a": one(shape=[1] * 100)}, b"1234"), "its array 'a' makes no sense"),
        (packed({"a": one(shape="1")}, b"1234"), "its array 'a' makes no sense"),
        (packed({"a": one(dtype="BF16", offsets=(0, 2))}, b"12"), "its array 'a' makes no sense, or is of a type"),
        (packed({"a": one(dtype=["F32"])}, b"1234"), "its array 'a' makes no sense"),
        (packed({"a": 3}, b"1234"), "its array 'a' makes no sense"),
        (packed({"a": one(offsets=(0, "4"))}, b"1234"), "its array 'a' makes no sense"),
        (packed({"a": one(offsets=(0.0, 4.0))}, b"1234"), "its array 'a' makes no sense"),
    ],
)
def test_what_is_no_safetensors_file_is_refused(data, says):
    with pytest.raises(ValueError, match=says):
        unpack_arrays(data)


@pytest.mark.skipif(sys.platform != "linux", reason="counts its memory as Linux tells it")
def test_too_little_memory_for_arrays_is_an_error_like_any_other():
    """Python's own, not the end of the process."""
    code = f"""
import resource
from fixfirst.base.files import pack_arrays
import numpy as np
kept = {{"a": np.zeros(30 * 2**20, np.float32)}}
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + {MB}, -1))
try:
    pack_arrays(kept)
except MemoryError:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr
