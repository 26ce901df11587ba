"""Epilogue: a thread's results are written to C, and partial sums of another block are added first."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from smembench.kernels.intrinsics.block_flags import accumulate
from smembench.kernels.intrinsics.vector import load_vector, store_vector
from smembench.kernels.matmul.tiling import LANES_DOWN, Tiling
from smembench.kernels.numba_cuda import device, uint32


@cache
def write_within(tiling: Tiling, width: int) -> Callable[..., Any]:
    """``(c, total, row0, col0, top, left, m, n, ldc)``: write results in rows ``top`` to m and columns ``left`` to n.

    A thread's first result belongs at ``row0``, ``col0``; each access writes ``width`` elements.
    """
    down, across = tiling.down, tiling.across
    (a_size, b_size), (rows_apart, columns_apart) = tiling.fragments, tiling.apart

    def write(c: Any, total: Any, row0: Any, col0: Any, top: Any, left: Any, m: Any, n: Any, ldc: Any) -> None:
        for i in range(down):
            row = row0 + (i // a_size * rows_apart + i % a_size)
            for j in range(0, across, width):
                col = col0 + (j // b_size * columns_apart + j % b_size)
                if row >= top and col >= left and row < m and col < n:
                    if width == 1:
                        c[row * ldc + col] = total[i * across + j]
                    else:
                        store_vector(c, row * ldc + col, load_vector(total, i * across + j))

    return device(write)


@cache
def add_within(tiling: Tiling, width: int) -> Callable[..., Any]:
    """``(total, c, row0, col0, top, left, m, n, ldc)``: add what ``write_within`` would overwrite, by vectors."""
    down, across = tiling.down, tiling.across
    (a_size, b_size), (rows_apart, columns_apart) = tiling.fragments, tiling.apart

    def add(total: Any, c: Any, row0: Any, col0: Any, top: Any, left: Any, m: Any, n: Any, ldc: Any) -> None:
        for i in range(down):
            row = row0 + (i // a_size * rows_apart + i % a_size)
            for j in range(0, across, width):
                col = col0 + (j // b_size * columns_apart + j % b_size)
                if row >= top and col >= left and row < m and col < n:
                    begun = load_vector(c, row * ldc + col)
                    for p in range(width):
                        total[i * across + j + p] += begun[p]

    return device(add)


class Staging(NamedTuple):
    """Writing through shared memory, some rows of each thread at a time.

    ``parts``: how often. ``stage(tile, total, row, col, part)``: stores rows of the thread whose first result lies at
    ``row`` and ``col`` of the block's tile. ``write(c, tile, thread, part, begun, row0, col0, top, left, m, n, ldc)``:
    what all threads staged of a tile from ``row0`` and ``col0``, within the bounds of ``write_within``; with ``begun``
    it is added to C instead.
    """

    parts: int
    stage: Callable[..., Any]
    write: Callable[..., Any]


@cache
def staging(tiling: Tiling, elements: int) -> Staging:
    """Staging for rows of C that are not aligned, through ``elements`` elements of shared memory.

    Written directly, each element would be one word of its own sector, and each sector would be written four times.
    """
    columns, across, threads, size = tiling.columns, tiling.across, tiling.threads, tiling.vector
    (a_size, b_size), (rows_apart, columns_apart) = tiling.fragments, tiling.apart
    of_threads, warp_rows = tiling.rows // tiling.down, LANES_DOWN * tiling.down
    at_once = min(elements // (of_threads * columns), a_size)
    staged = of_threads * at_once * columns

    def stage(tile: Any, total: Any, row: Any, col: Any, part: Any) -> None:
        own = row // warp_rows * LANES_DOWN + row % warp_rows // a_size
        at = own * (at_once * columns) + col
        for i in range(at_once):
            for j in range(0, across, size):
                place = at + (i * columns + j // b_size * columns_apart + j % b_size)
                store_vector(tile, place, load_vector(total, (part * at_once + i) * across + j))

    # A thread writes the same column of all its lines. Those are apart by powers of two, so their rows add up.
    lines = threads // columns
    in_warps, in_turn = LANES_DOWN * at_once, LANES_DOWN * at_once // lines

    @device
    def row_of(line: Any) -> Any:
        return line // at_once * a_size + line % at_once

    @device
    def store(c: Any, index: Any, value: Any) -> None:
        c[index] = value

    def lines_by(put: Callable[..., Any]) -> Callable[..., Any]:
        def write_lines(c: Any, tile: Any, thread: Any, row: Any, col: Any, top: Any, m: Any, ldc: Any) -> None:
            for warps in range(staged // columns // in_warps):
                for turn in range(in_turn):
                    line = row + (warps * warp_rows + row_of(uint32(turn * lines)))
                    if line >= top and line < m:
                        place = thread + (warps * in_turn + turn) * threads
                        put(c, line * ldc + col, tile[place])

        return device(write_lines)

    write_new, add_to_old = lines_by(store), lines_by(accumulate)

    def write(
        c: Any, tile: Any, thread: Any, part: Any, begun: Any, row0: Any, col0: Any, top: Any, left: Any, m: Any,
        n: Any, ldc: Any,
    ) -> None:  # fmt: skip
        first = row0 + (part * at_once // a_size * rows_apart + part * at_once % a_size)
        row, col = first + row_of(thread // columns), col0 + thread % columns
        if col >= left and col < n:
            if begun:
                add_to_old(c, tile, thread, row, col, top, m, ldc)
            else:
                write_new(c, tile, thread, row, col, top, m, ldc)

    return Staging(tiling.down // at_once, device(stage), device(write))
