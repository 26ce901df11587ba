"""Asynchronous copies of the next tile interleaved with the main loop: a few after each step along k.

Issued together at the head of the loop, the copies would stand before the loads of fragments in the queue of the memory
pipe and hold their address registers until it has read them. Findings: results/reference/notes/stream_k.md.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from llvmlite import ir

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.async_copy import copy_element_async, copy_vector_async, emit_copy_async
from smembench.kernels.intrinsics.vector import pointer_to, register, types
from smembench.kernels.matmul.register_pipelining import ResultOrder, pipelined_steps
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import DeviceFunction, device, uint32, uint64
from smembench.model.hardware import WARP

A_LANES = 8
"""Neighbouring threads that copy from one row of A, into as many columns of its tile, in different banks."""


class Copy(NamedTuple):
    """One copy of a thread, relative to its first element of A or B: rows below, elements along, offset in the tile."""

    of_a: bool
    row: int
    along: int
    place: int


def copies(tiling: Tiling, b_width: int) -> list[Copy]:
    """A thread's copies per tile: of B ``b_width`` elements each, of A one each, since its tile is transposed."""
    b_lanes = lanes_along_b(tiling, b_width)
    a_in_row, b_in_row = tiling.depth // A_LANES, tiling.columns // (b_lanes * b_width)
    found = []
    for i in range(tiling.b_share // b_width):
        row, along = i // b_in_row * (tiling.threads // b_lanes), i % b_in_row * b_lanes * b_width
        found.append(Copy(False, row, along, row * tiling.columns + along))
    for i in range(tiling.a_share):
        row, along = i // a_in_row * (tiling.threads // A_LANES), i % a_in_row * A_LANES
        found.append(Copy(True, row, along, along * tiling.pitch + row))
    return found


def lanes_along_b(tiling: Tiling, b_width: int) -> int:
    """Neighbouring threads that copy from one row of B."""
    return min(WARP, tiling.columns // b_width)


@cache
def _start(tiling: Tiling, b_width: int, first: int, last: int) -> DeviceFunction:
    """``(a_tile, b_tile, to_a, to_b, a, b, from_a, from_b, lda, ldb)``: start the copies from ``first`` to ``last``.

    Copies from one row share an address up to a constant. Lowered as one intrinsic, as ``load_fragments`` is.
    """
    some = copies(tiling, b_width)[first:last]
    copy_of_b = copy_element_async if b_width == 1 else copy_vector_async

    def start(
        a_tile: Any, b_tile: Any, to_a: Any, to_b: Any, a: Any, b: Any, from_a: Any, from_b: Any, lda: Any, ldb: Any
    ) -> None:  # fmt: skip
        of_b = (copy_of_b, b_tile, to_b, b, from_b, ldb)
        of_a = (copy_element_async, a_tile, to_a, a, from_a, lda)
        for copy in some:
            begin, tile, to, array, source, lead = of_a if copy.of_a else of_b
            at = uint64(source + uint32(copy.row) * lead)
            begin(tile, to + uint64(copy.place), array, at + copy.along)

    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        narrow, wide = ir.IntType(32), ir.IntType(64)
        for copy in some:
            mine = slice(0 if copy.of_a else 1, None, 2)
            (tile_type, index_type, array_type, *_), (tile, to, array, source, lead) = signature.args[mine], args[mine]
            row = builder.zext(builder.add(source, builder.mul(lead, ir.Constant(narrow, copy.row))), wide)
            at = builder.add(row, ir.Constant(wide, copy.along))
            place = builder.add(to, ir.Constant(wide, copy.place))
            emit_copy_async(
                builder,
                pointer_to(context, builder, tile_type, index_type, tile, place),
                pointer_to(context, builder, array_type, index_type, array, at),
                tile_type.dtype.bitwidth // 8 * (1 if copy.of_a else b_width),
            )
        return context.get_dummy_value()

    kinds = [types.Array, types.Array, types.Integer, types.Integer]
    register(start, lambda _context: _typed, lower, *kinds, *kinds, types.Integer, types.Integer)
    return start


def _typed(
    a_tile: Any, b_tile: Any, to_a: Any, to_b: Any, a: Any, b: Any, from_a: Any, from_b: Any, lda: Any, ldb: Any
) -> Any:  # fmt: skip
    fit = to_a == to_b == types.uint64 and from_a == from_b == lda == ldb == types.uint32
    return types.void if fit else None


def steps_with_copies(tiling: Tiling, b_width: int, order: ResultOrder, over: int) -> DeviceFunction:
    """All steps of a tile but the last, with an equal share of the copies after each of the first ``over`` steps.

    ``(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b, a_base, b_base, a, b, thread, row0, col0, k0, short, k, lda,
    ldb)``: copies the tile at ``k0``, or past the end the last one again, to ``a_base`` and ``b_base``.
    """
    depth, columns, pitch = tiling.depth, tiling.columns, tiling.pitch
    count, b_lanes = len(copies(tiling, b_width)), lanes_along_b(tiling, b_width)
    at_once = ceil_div(count, over)

    def steps(first: int, last: int) -> DeviceFunction:
        begun = first * at_once
        if begun >= count:
            rest = pipelined_steps(tiling, order, first, last - first)

            def no_more(
                total: Any, a_parts: Any, b_parts: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any, to_a: Any,
                to_b: Any, a: Any, b: Any, from_a: Any, from_b: Any, lda: Any, ldb: Any,
            ) -> None:  # fmt: skip
                rest(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b)

            return device(no_more)

        if last - first == 1:
            one, start = pipelined_steps(tiling, order, first, 1), _start(tiling, b_width, begun, begun + at_once)

            def step(
                total: Any, a_parts: Any, b_parts: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any, to_a: Any,
                to_b: Any, a: Any, b: Any, from_a: Any, from_b: Any, lda: Any, ldb: Any,
            ) -> None:  # fmt: skip
                one(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b)
                start(a_tile, b_tile, to_a, to_b, a, b, from_a, from_b, lda, ldb)

            return device(step)

        middle = (first + last + 1) // 2
        before, after = steps(first, middle), steps(middle, last)

        def both(
            total: Any, a_parts: Any, b_parts: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any, to_a: Any,
            to_b: Any, a: Any, b: Any, from_a: Any, from_b: Any, lda: Any, ldb: Any,
        ) -> None:  # fmt: skip
            before(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b, to_a, to_b, a, b, from_a, from_b, lda, ldb)
            after(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b, to_a, to_b, a, b, from_a, from_b, lda, ldb)

        return device(both)

    all_steps = steps(0, depth - 1)

    def go(
        total: Any, a_parts: Any, b_parts: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any, a_base: Any,
        b_base: Any, a: Any, b: Any, thread: Any, row0: Any, col0: Any, k0: Any, short: Any, k: Any, lda: Any, ldb: Any,
    ) -> None:  # fmt: skip
        at_k = min(k0 - short, k - depth)
        a_row, a_col = thread // A_LANES, thread % A_LANES
        b_row, b_col = thread // b_lanes, thread % b_lanes * b_width
        from_a = (row0 + a_row) * lda + a_col + at_k
        from_b = (at_k + b_row) * ldb + col0 + b_col
        to_a = a_base + uint64(a_col * pitch + a_row)
        to_b = b_base + uint64(b_row * columns + b_col)
        all_steps(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b, to_a, to_b, a, b, from_a, from_b, lda, ldb)

    return device(go)
