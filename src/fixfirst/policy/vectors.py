"""Sums of many numbers at once, kept in vector registers while they grow. For compiled functions.

Written as LLVM's instructions, because Numba's loops put every partial sum back into memory, which takes twice as long. A
vector here has a fixed length, and is split to what the CPU has. Every number is the sum of the same terms in the same order
whatever that is, each product and each sum rounded by itself. At the end stands what the functions do, in NumPy; it takes
their place where nothing is compiled (NUMBA_DISABLE_JIT=1).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

TILE_ROWS, TILE = 4, 16  # a tile of sums fits into registers, with what is added to it
WIDE = 64  # a line of sums

_FLOAT, _INT32 = ir.FloatType(), ir.IntType(32)


class _Code:
    """The instructions of one call, being written; args: arrays as (type, value), numbers as they are."""

    def __init__(self, context: Any, builder: Any, signature: Any, values: Any):
        self.context, self.builder = context, builder
        self.args: list[Any] = [
            (kind, context.make_array(kind)(context, builder, value)) if isinstance(kind, types.Array) else value
            for kind, value in zip(signature.args, values, strict=True)
        ]

    def pointer(self, array: Any, *indices: Any, length: int = 1) -> Any:
        """Where a number of an array lies, or the first of so many."""
        kind, value = array
        first = cgutils.get_item_pointer(self.context, self.builder, kind, value, list(indices), wraparound=False)
        return first if length == 1 else self.builder.bitcast(first, ir.VectorType(_FLOAT, length).as_pointer())

    def load(self, array: Any, *indices: Any, length: int = 1) -> Any:
        return self.builder.load(self.pointer(array, *indices, length=length), align=None if length == 1 else 4)

    def plus(self, index: Any, more: int) -> Any:
        return self.builder.add(index, ir.Constant(index.type, more))

    def everywhere(self, number: Any, length: int) -> Any:
        """A vector of the same number."""
        kind = ir.VectorType(_FLOAT, length)
        nothing, first = ir.Constant(kind, ir.Undefined), ir.Constant(_INT32, 0)
        vector = self.builder.insert_element(nothing, number, first)
        return self.builder.shuffle_vector(vector, nothing, ir.Constant(ir.VectorType(_INT32, length), None))

    def variable(self, value: Any) -> Any:
        """What LLVM keeps in registers."""
        slot = cgutils.alloca_once(self.builder, value.type)
        self.builder.store(value, slot)
        return slot

    def add_to(self, slot: Any, value: Any) -> None:
        self.builder.store(self.builder.fadd(self.builder.load(slot), value), slot)

    def keep(self, slot: Any, pointer: Any) -> None:
        self.builder.store(self.builder.load(slot), pointer, align=4)


def _written_by(write: Callable[[_Code], Any], signature: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        result = write(_Code(context, builder, signature, values))
        return context.get_dummy_value() if result is None else result

    return signature, generate


def _tile(code: _Code, rows: int, length: int, is_transposed: bool) -> None:
    """c[i : i + rows, n : n + length] += a[i : i + rows, :terms] b[:terms, n : n + length], or with a transposed."""
    a, b, c, i, n, terms = code.args
    numbers = [code.plus(i, row) for row in range(rows)]
    pointers = [code.pointer(c, number, n, length=length) for number in numbers]
    sums = [code.variable(code.builder.load(pointer, align=4)) for pointer in pointers]
    with cgutils.for_range(code.builder, terms) as loop:
        line = code.load(b, loop.index, n, length=length)
        for number, total in zip(numbers, sums, strict=True):
            factor = code.load(a, *((loop.index, number) if is_transposed else (number, loop.index)))
            code.add_to(total, code.builder.fmul(code.everywhere(factor, length), line))
    for total, pointer in zip(sums, pointers, strict=True):
        code.keep(total, pointer)


@intrinsic
def add_tile(typing, a, b, c, i, n, terms):
    """c[i : i + 4, n : n + 16] += a[i : i + 4, :terms] b[:terms, n : n + 16], term by term."""
    return _written_by(lambda code: _tile(code, TILE_ROWS, TILE, False), types.void(a, b, c, i, n, terms))


@intrinsic
def add_outer_tile(typing, a, b, c, i, n, terms):
    """c[i : i + 4, n : n + 16] += a[:terms, i : i + 4] transposed b[:terms, n : n + 16], term by term."""
    return _written_by(lambda code: _tile(code, TILE_ROWS, TILE, True), types.void(a, b, c, i, n, terms))


@intrinsic
def add_short_line(typing, a, b, c, i, n, terms):
    """c[i, n : n + 16] += a[i, :terms] b[:terms, n : n + 16], term by term."""
    return _written_by(lambda code: _tile(code, 1, TILE, False), types.void(a, b, c, i, n, terms))


@intrinsic
def add_wide_line(typing, a, b, c, i, n, terms):
    """c[i, n : n + 64] += a[i, :terms] b[:terms, n : n + 64], term by term."""
    return _written_by(lambda code: _tile(code, 1, WIDE, False), types.void(a, b, c, i, n, terms))


@intrinsic
def add_lines(typing, lines, active, begin, end, c, i):
    """c[i, :64] += lines[active[k], :64] for k from begin to before end."""

    def write(code: _Code) -> None:
        lines, active, begin, end, c, i = code.args
        n = ir.Constant(i.type, 0)
        pointer = code.pointer(c, i, n, length=WIDE)
        total = code.variable(code.builder.load(pointer, align=4))
        with cgutils.for_range_slice(code.builder, begin, end, ir.Constant(begin.type, 1)) as (k, _):
            code.add_to(total, code.load(lines, code.load(active, k), n, length=WIDE))
        code.keep(total, pointer)

    return _written_by(write, types.void(lines, active, begin, end, c, i))


@intrinsic
def add_to_lines(typing, a, i, lines, active, begin, end):
    """lines[active[k], :64] += a[i, :64] for k from begin to before end."""

    def write(code: _Code) -> None:
        a, i, lines, active, begin, end = code.args
        n = ir.Constant(i.type, 0)
        line = code.load(a, i, n, length=WIDE)
        with cgutils.for_range_slice(code.builder, begin, end, ir.Constant(begin.type, 1)) as (k, _):
            pointer = code.pointer(lines, code.load(active, k), n, length=WIDE)
            code.builder.store(code.builder.fadd(code.builder.load(pointer, align=4), line), pointer, align=4)

    return _written_by(write, types.void(a, i, lines, active, begin, end))


def _over_row(code: _Code, width: Any, start: float, at: Callable[[Any], Any], join: Callable[[Any, Any], Any]) -> Any:
    """What `join` makes of vectors at(n), n = 0, 16, 32, ..., in 16 lanes; then of their halves until one is left."""
    total = code.variable(ir.Constant(ir.VectorType(_FLOAT, TILE), [start] * TILE))
    with cgutils.for_range_slice(code.builder, width.type(0), width, width.type(TILE)) as (n, _):
        code.builder.store(join(code.builder.load(total), at(n)), total)
    lanes, length = code.builder.load(total), TILE
    while length > 1:
        length //= 2
        nothing, kind = ir.Constant(lanes.type, ir.Undefined), ir.VectorType(_INT32, length)
        halves = (list(range(first, first + length)) for first in (0, length))
        lanes = join(*(code.builder.shuffle_vector(lanes, nothing, ir.Constant(kind, half)) for half in halves))
    return code.builder.extract_element(lanes, ir.Constant(_INT32, 0))


@intrinsic
def dot(typing, a, b, i, width):
    """The sum of a[i, :width] * b[i, :width], in 16 sums side by side. width: a multiple of 16."""

    def write(code: _Code) -> Any:
        a, b, i, width = code.args

        def products(n: Any) -> Any:
            return code.builder.fmul(code.load(a, i, n, length=TILE), code.load(b, i, n, length=TILE))

        return _over_row(code, width, 0.0, products, code.builder.fadd)

    return _written_by(write, types.float32(a, b, i, width))


@intrinsic
def largest(typing, a, i, width):
    """The largest of a[i, :width]. width: a multiple of 16."""

    def write(code: _Code) -> Any:
        a, i, width = code.args

        def larger(x: Any, y: Any) -> Any:
            return code.builder.select(code.builder.fcmp_ordered(">", x, y), x, y)

        return _over_row(code, width, -np.inf, lambda n: code.load(a, i, n, length=TILE), larger)

    return _written_by(write, types.float32(a, i, width))


@intrinsic
def two_to(typing, n):
    """2^n as float32, for whole n (int32) in -126..127: n becomes the exponent."""

    def write(code: _Code) -> Any:
        (n,) = code.args
        exponent = code.builder.add(n, ir.Constant(_INT32, 127))
        return code.builder.bitcast(code.builder.shl(exponent, ir.Constant(_INT32, 23)), _FLOAT)

    return _written_by(write, types.float32(types.int32))


class Plain:
    """What the functions above do."""

    @staticmethod
    def add_tile(a, b, c, i, n, terms, rows=TILE_ROWS, length=TILE):
        for j in range(terms):
            c[i : i + rows, n : n + length] += a[i : i + rows, j : j + 1] * b[j, n : n + length]

    @staticmethod
    def add_outer_tile(a, b, c, i, n, terms):
        Plain.add_tile(a.T, b, c, i, n, terms)

    @staticmethod
    def add_short_line(a, b, c, i, n, terms):
        Plain.add_tile(a, b, c, i, n, terms, 1)

    @staticmethod
    def add_wide_line(a, b, c, i, n, terms):
        Plain.add_tile(a, b, c, i, n, terms, 1, WIDE)

    @staticmethod
    def add_lines(lines, active, begin, end, c, i):
        for bit in active[begin:end]:
            c[i, :WIDE] += lines[bit, :WIDE]

    @staticmethod
    def add_to_lines(a, i, lines, active, begin, end):
        for bit in active[begin:end]:
            lines[bit, :WIDE] += a[i, :WIDE]

    @staticmethod
    def dot(a, b, i, width):
        sums = np.zeros(TILE, np.float32)
        for n in range(0, width, TILE):
            sums += a[i, n : n + TILE] * b[i, n : n + TILE]
        while len(sums) > 1:
            sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
        return sums[0]

    @staticmethod
    def largest(a, i, width):
        return a[i, :width].max()

    @staticmethod
    def two_to(n):
        return np.float32(2.0**n)


if config.DISABLE_JIT:
    globals().update({name: value.__func__ for name, value in vars(Plain).items() if isinstance(value, staticmethod)})
