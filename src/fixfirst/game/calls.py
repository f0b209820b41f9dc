"""Calls that compiled functions make and Numba does not offer: to a function at an address, and to store eight bytes."""

import re
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils, config
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from fixfirst.base.compile import Piece

_AT_ADDRESS: dict[int, Any] = {}  # what must not be deleted while somebody knows where it is


class CompileError(ValueError):
    """A function that Numba cannot compile, in one line: where, and why."""


def address_of(function: Callable[..., None], *records: np.dtype) -> int:
    """Compile a function of records by itself and return its address, for `call_address`. Raises CompileError."""
    if config.DISABLE_JIT:
        address, found = id(function), function
    else:
        piece = Piece(function, forceinline=False)
        try:
            piece.compile(types.void(*map(numba.from_dtype, records)))
        except Exception as e:  # Numba has many kinds, and lets some of its own mistakes out, too
            raise CompileError(f"({_where(str(e), function.__code__)}) does not compile: {_essence(e)}") from e
        (found,) = piece.overloads.values()
        address = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)
    _AT_ADDRESS[address] = found
    return address


def _call_in_machine_code(typing: Any, address: Any, first: Any, second: Any) -> Any:
    """Write the instructions of a call by Numba's own convention, so that the caller raises what the function raises."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention, records = context.call_conv, signature.args[1:]
        kind = convention.get_function_type(types.none, records)
        function = builder.inttoptr(values[0], kind.as_pointer())
        status, _ = convention.call_function(builder, function, types.none, records, values[1:])
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(address, first, second), generate


def _call_in_python(address: int, first: Any, second: Any) -> None:
    _AT_ADDRESS[address](first, second)


# call_address(address, first, second): call a function of two records that `address_of` has compiled.
call_address = _call_in_python if config.DISABLE_JIT else intrinsic(_call_in_machine_code)


def _store_in_machine_code(typing: Any, rows: Any, row: Any, column: Any, eight: Any) -> Any:
    """Write one instruction for what a loop does in eight, each with its own check of the column."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, values[0])
        place = cgutils.get_item_pointer(context, builder, signature.args[0], array, values[1:3], wraparound=False)
        builder.store(values[3], builder.bitcast(place, values[3].type.as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(rows, types.intp, types.intp, types.uint64), generate


def _store_in_python(rows: np.ndarray, row: int, column: int, eight: Any) -> None:
    for k in range(8):
        rows[row, column + k] = int(eight) >> 8 * k & 255


# store_eight(rows, row, column, eight): write the bytes of a uint64, lowest first, into columns of an array [N, M] of bytes.
store_eight = _store_in_python if config.DISABLE_JIT else intrinsic(_store_in_machine_code)


def _where(message: str, code: CodeType) -> str:
    """Return file and line of what Numba complains about, else of the function."""
    name = Path(code.co_filename).name
    last = max(line for *_, line in code.co_lines() if line)
    lines = [int(line) for file, line in re.findall(r'([^/\\"(]+)(?:", line | \()([0-9]+)', message) if file.strip() == name]
    line = next((line for line in lines if code.co_firstlineno <= line <= last), code.co_firstlineno)
    return f"{name}, line {line}"


def _essence(error: Exception) -> str:
    """Return the line of a message that says what is wrong: not where Numba was, nor the source."""
    if not isinstance(error, NumbaError):
        return f"{type(error).__name__}: {error}"
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if line and not line.startswith("Failed in nopython mode")), type(error).__name__)
