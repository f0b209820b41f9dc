"""Named arrays on disk: safetensors, and a JSON document beside them that holds both hashes. Never pickles.

Every file is treated as untrusted: hash, names, shapes and types are checked before anything is used.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fixfirst.base.errors import PolicyError
from fixfirst.base.files import MB, read_file, read_json
from fixfirst.runs.files import CHECKSUM, sha256, verify_checksum, with_checksum, write_atomically, write_json

SCHEMA = 1
LARGEST_ARRAYS = 64 * MB  # a checkpoint of the widest networks has one


def write_pair(
    json_path: Path, tensor_path: Path, kind: str, document: dict[str, Any], tensors: Mapping[str, np.ndarray]
) -> None:
    """Arrays, and a JSON document with their hash and its own: a flipped bit in either is noticed."""
    data = save({name: np.asarray(array, order="C") for name, array in tensors.items()})
    document = {"schema": SCHEMA, "kind": kind, "sha256": sha256(data), **document}
    write_atomically(tensor_path, data)
    write_json(json_path, with_checksum(document))


def read_pair(json_path: Path, tensor_path: Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A JSON document and the arrays whose hash it holds."""
    try:
        document = read_json(json_path, own=True)
        data = read_file(tensor_path, LARGEST_ARRAYS)
    except FileNotFoundError as e:
        raise PolicyError(f"{e.filename}: is missing") from e
    except (OSError, ValueError) as e:
        raise PolicyError(f"{json_path}: cannot be read ({e})") from e
    if not isinstance(document, dict) or document.get("kind") != kind:
        raise PolicyError(f"{json_path}: is not a {kind} of fixfirst")
    if document.get("schema") != SCHEMA:
        raise PolicyError(f"{json_path}: has schema {document.get('schema')!r}, this version reads {SCHEMA}")
    if document.get("sha256") != sha256(data):
        raise PolicyError(f"{tensor_path}: damaged (its sha256 is not the one in {json_path.name})")
    try:
        if CHECKSUM not in document:
            raise ValueError(f"it has no {CHECKSUM}")
        verify_checksum(document)
    except ValueError as e:
        raise PolicyError(f"{json_path}: damaged ({e})") from e
    try:
        return document, load(data)
    except (SafetensorError, ValueError, TypeError, KeyError) as e:  # KeyError: a type of numbers that NumPy lacks
        raise PolicyError(f"{tensor_path}: is not a safetensors file of NumPy arrays ({e})") from e


def check_arrays(path: Path | str, arrays: Mapping[str, np.ndarray], expected: Mapping[str, tuple[int, ...]]) -> None:
    """These names and shapes, float32, finite; else PolicyError."""
    if set(arrays) != set(expected):
        odd = sorted(set(arrays) ^ set(expected))
        raise PolicyError(f"{path}: holds the wrong arrays ({', '.join(odd[:3])}{' ...' if len(odd) > 3 else ''})")
    for name in expected:  # in this order, so that the message does not depend on how safetensors hands out its arrays
        array = arrays[name]
        if array.shape != expected[name] or array.dtype != np.float32:
            raise PolicyError(f"{path}: {name} is {array.dtype} {array.shape}, expected float32 {expected[name]}")
        if not np.isfinite(array).all():
            raise PolicyError(f"{path}: {name} holds values that are not finite")
