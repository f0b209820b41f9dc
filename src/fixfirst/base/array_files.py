"""Named arrays in the safetensors format, and a JSON document beside them that holds both hashes. Never pickles.

The format is little: the length of a header in 8 bytes, the header (JSON: type, shape and place of each array), the arrays'
bytes. It is read and written here, with Python and NumPy alone, so that too little memory is an error like any other.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fixfirst.base import files
from fixfirst.base.errors import PolicyError
from fixfirst.base.files import LARGEST_DOCUMENT, MB, sha256

_SCHEMA = 1
_TYPES = {"F64": np.float64, "F32": np.float32, "I64": np.int64, "I32": np.int32, "U8": np.uint8}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays in the safetensors format: by name, as the format's own library writes those of one type."""
    header, parts, end = {}, [], 0
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        parts.append(array.tobytes())
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the arrays begin at a multiple of 8
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def unpack_arrays(data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of a file in the safetensors format; ValueError if it is none. Every byte belongs to one array."""
    first = 8 + int.from_bytes(data[:8], "little")
    if 8 + LARGEST_DOCUMENT < first <= len(data):
        raise ValueError(f"its header has more than {LARGEST_DOCUMENT // MB} MB")
    header = files.parse_json(data[8:first]) if first <= len(data) else None
    if not isinstance(header, dict):
        raise ValueError("it has no header")
    arrays, place = {}, first
    for name, facts in header.items():
        if name == "__metadata__":
            continue
        try:
            kind, shape, (begin, end) = np.dtype(_TYPES[facts["dtype"]]), facts["shape"], facts["data_offsets"]
            fits = all(type(size) is int and size >= 0 for size in shape) and first + begin == place <= len(data)
            if not fits or end - begin != math.prod(shape) * kind.itemsize or first + end > len(data):
                raise ValueError
            arrays[name] = np.frombuffer(data[place : first + end], kind).reshape(shape)
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"its array {name[:60]!r} makes no sense, or is of a type that is not read here") from None
        place = first + end
    if place != len(data):
        raise ValueError("its end belongs to no array")
    return arrays


def write_pair(json_path: Path, kind: str, document: dict[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
    """Write arrays, and a JSON document with their hash and its own: a flipped bit in either is noticed.

    A document that is there already goes first: a kill leaves the pair, or none, but never two files that do not fit.
    """
    data = pack_arrays(tensors)
    json_path.unlink(missing_ok=True)
    files.write_atomically(json_path.with_suffix(".safetensors"), data)
    own = {"schema": _SCHEMA, "sha256": sha256(data)}
    files.write_document(json_path, kind, own | document | own)  # also if the document was read from such a pair


def read_pair(json_path: Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a JSON document and the arrays whose hash it holds."""
    tensor_path = json_path.with_suffix(".safetensors")
    try:
        document = files.read_document(json_path, kind)
        data = files.read_file(tensor_path)
    except FileNotFoundError as e:
        raise PolicyError(f"{e.filename}: is missing") from e
    except (OSError, ValueError) as e:
        raise PolicyError(f"{json_path}: cannot be read ({e})") from e
    if document.get("schema") != _SCHEMA:
        raise PolicyError(f"{json_path}: has schema {document.get('schema')!r}, this version reads {_SCHEMA}")
    if document.get("sha256") != sha256(data):
        raise PolicyError(f"{tensor_path}: damaged (its sha256 is not the one in {json_path.name})")
    try:
        return document, unpack_arrays(data)
    except ValueError as e:
        raise PolicyError(f"{tensor_path}: is not a safetensors file of NumPy arrays ({e})") from e


def check_tensors(path: Path | str, arrays: Mapping[str, np.ndarray], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Raise PolicyError unless the arrays have these names and shapes, are float32, and finite."""
    if set(arrays) != set(expected):
        odd = sorted(set(arrays) ^ set(expected))
        raise PolicyError(f"{path}: holds the wrong arrays ({', '.join(odd[:3])}{' ...' if len(odd) > 3 else ''})")
    for name in expected:  # in this order, so that the message does not depend on how the file has them
        array = arrays[name]
        if array.shape != expected[name] or array.dtype != np.float32:
            raise PolicyError(f"{path}: {name} is {array.dtype} {array.shape}, expected float32 {expected[name]}")
        if not np.isfinite(array).all():
            raise PolicyError(f"{path}: {name} holds values that are not finite")
