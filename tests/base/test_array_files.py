"""Named arrays in files: as the format's own library writes them, read in bounded memory, or refused in one line."""

import json
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy

from fixfirst.base.array_files import pack_arrays, unpack_arrays
from fixfirst.base.files import MB


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
        (packed([1]), "it has no header"),
        (packed(b"{"), "Expecting"),
        (packed({}, b"1234"), "its end belongs to no array"),
        ((9 * 2**20).to_bytes(8, "little") + b"[" * 9 * 2**20, "its header has more than 8 MB"),
        (packed({"a": one()}, b"123"), "its array 'a' makes no sense"),
        (packed({"a": one(), "b": one()}, b"1234"), "its array 'b' makes no sense"),  # one place, two arrays
        (packed({"a": one(offsets=(4, 8))}, b"12345678"), "its array 'a' makes no sense"),
        (packed({"a": one(shape=(-1, -1))}, b"1234"), "its array 'a' makes no sense"),
        (packed({"a": one(shape=(True,))}, b"1234"), "its array 'a' makes no sense"),
        (packed({"a": one(shape=[1] * 100)}, b"1234"), "its array 'a' makes no sense"),
        (packed({"a": one(dtype="BF16", offsets=(0, 2))}, b"12"), "its array 'a' makes no sense, or is of a type"),
        (packed({"a": one(dtype=["F32"])}, b"1234"), "its array 'a' makes no sense"),
        (packed({"a": 3}, b"1234"), "its array 'a' makes no sense"),
        (packed({"a": one(offsets=(0, "4"))}, b"1234"), "its array 'a' makes no sense"),
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
from fixfirst.base.array_files import pack_arrays
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
