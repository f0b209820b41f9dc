"""Named arrays on disk: safetensors, and a JSON document beside them that holds both hashes. Never pickles."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fixfirst.base.errors import PolicyError
from fixfirst.base.files import read_document, read_file, sha256, write_atomically, write_document

SCHEMA = 1


def write_pair(json_path: Path, kind: str, document: dict[str, Any], tensors: Mapping[str, np.ndarray]) -> None:
    """Write arrays, and a JSON document with their hash and its own: a flipped bit in either is noticed."""
    data = save({name: np.asarray(array, order="C") for name, array in tensors.items()})
    write_atomically(json_path.with_suffix(".safetensors"), data)
    write_document(json_path, kind, {"schema": SCHEMA, "sha256": sha256(data), **document})


def read_pair(json_path: Path, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a JSON document and the arrays whose hash it holds."""
    tensor_path = json_path.with_suffix(".safetensors")
    try:
        document = read_document(json_path, kind)
        data = read_file(tensor_path)
    except FileNotFoundError as e:
        raise PolicyError(f"{e.filename}: is missing") from e
    except (OSError, ValueError) as e:
        raise PolicyError(f"{json_path}: cannot be read ({e})") from e
    if document.get("schema") != SCHEMA:
        raise PolicyError(f"{json_path}: has schema {document.get('schema')!r}, this version reads {SCHEMA}")
    if document.get("sha256") != sha256(data):
        raise PolicyError(f"{tensor_path}: damaged (its sha256 is not the one in {json_path.name})")
    try:
        return document, load(data)
    except (SafetensorError, ValueError, TypeError, KeyError) as e:  # KeyError: a type of numbers that NumPy lacks
        raise PolicyError(f"{tensor_path}: is not a safetensors file of NumPy arrays ({e})") from e


def check_arrays(path: Path | str, arrays: Mapping[str, np.ndarray], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Raise PolicyError unless the arrays have these names and shapes, are float32, and finite."""
    if set(arrays) != set(expected):
        odd = sorted(set(arrays) ^ set(expected))
        raise PolicyError(f"{path}: holds the wrong arrays ({', '.join(odd[:3])}{' ...' if len(odd) > 3 else ''})")
    for name in expected:  # in this order, so that the message does not depend on how safetensors hands out its arrays
        array = arrays[name]
        if array.shape != expected[name] or array.dtype != np.float32:
            raise PolicyError(f"{path}: {name} is {array.dtype} {array.shape}, expected float32 {expected[name]}")
        if not np.isfinite(array).all():
            raise PolicyError(f"{path}: {name} holds values that are not finite")
