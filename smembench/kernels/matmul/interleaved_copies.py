"""Asynchronous copies of the next tile interleaved with the main loop: a few after each step along k.

Issued together at the head of the loop, the copies would stand before the loads of fragments in the queue of the memory
pipe and hold their address registers until it has read them. Findings: results/reference/notes/stream_k.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.async_copy import copies_async
from smembench.kernels.matmul.register_pipelining import ResultOrder, pipelined_steps
from smembench.kernels.matmul.structs import Memory, Offsets, Share
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import DeviceFunction, device, uint64
from smembench.kernels.types import Index, Matrix
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


class Copying(NamedTuple):
    """``ends(A, B, share, k0, buffer)``: where a thread's copies of the tiles at ``k0`` begin: in A and B, in a buffer.

    ``start(memory, A, B, source, target)``: those copies. ``steps(memory, at, A, B, source, target)``: all steps of a
    tile but the last, and those copies between them. Past the end of k the last tiles are copied again.
    """

    ends: DeviceFunction
    start: DeviceFunction
    steps: DeviceFunction


def steps_with_copies(tiling: Tiling, b_width: int, order: ResultOrder, over: int) -> Copying:
    """Steps with an equal share of the copies after each of the first ``over``."""
    depth, columns, pitch = tiling.depth, tiling.columns, tiling.pitch
    a_elements, b_elements = tiling.a_elements, tiling.b_elements
    b_lanes = lanes_along_b(tiling, b_width)

    def ends(A: Matrix, B: Matrix, share: Share, k0: Index, buffer: Index) -> tuple[Offsets, Offsets]:
        thread, (row0, col0), short = share
        a_base, b_base = uint64(buffer * a_elements), uint64(buffer * b_elements)
        at_k = min(k0 - short, A.columns - depth)
        a_row, a_col = thread // A_LANES, thread % A_LANES
        b_row, b_col = thread // b_lanes, thread % b_lanes * b_width
        source = Offsets((row0 + a_row) * A.stride + a_col + at_k, (at_k + b_row) * B.stride + col0 + b_col)
        return source, Offsets(a_base + uint64(a_col * pitch + a_row), b_base + uint64(b_row * columns + b_col))

    start = _started(copies(tiling, b_width), b_width)
    return Copying(device(ends), start, _steps(tiling, b_width, order, over, 0, depth // tiling.slices - 1))


def _started(some: Sequence[Copy], b_width: int) -> DeviceFunction:
    """``(memory, A, B, source, target)``: start some copies."""
    copy_a = copies_async(tuple((row, along, place) for of_a, row, along, place in some if of_a), vectors=False)
    copy_b = copies_async(tuple((row, along, to) for of_a, row, along, to in some if not of_a), vectors=b_width > 1)

    def start(memory: Memory, A: Matrix, B: Matrix, source: Offsets, target: Offsets) -> None:
        copy_b(memory.tiles.b, target.b, B.elements, source.b, B.stride)
        copy_a(memory.tiles.a, target.a, A.elements, source.a, A.stride)

    return device(start)


def _steps(tiling: Tiling, b_width: int, order: ResultOrder, over: int, first: int, last: int) -> DeviceFunction:
    """``Copying.steps`` from ``first`` to ``last``, unrolled by halves."""
    some = copies(tiling, b_width)
    at_once = ceil_div(len(some), over)
    begun = some[first * at_once : (first + 1) * at_once]
    if last - first > 1 and begun:
        middle = (first + last + 1) // 2
        before = _steps(tiling, b_width, order, over, first, middle)
        after = _steps(tiling, b_width, order, over, middle, last)

        def both(memory: Memory, at: Offsets, A: Matrix, B: Matrix, source: Offsets, target: Offsets) -> None:
            before(memory, at, A, B, source, target)
            after(memory, at, A, B, source, target)

        return device(both)

    steps, start = pipelined_steps(tiling, order, first, last - first), _started(begun, b_width)

    def step(memory: Memory, at: Offsets, A: Matrix, B: Matrix, source: Offsets, target: Offsets) -> None:
        steps(memory, at)
        start(memory, A, B, source, target)

    return device(step)
