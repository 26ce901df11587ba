"""Epilogue: a thread's results are written to C, and partial sums of another block are added first."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from smembench.kernels.intrinsics.block_flags import accumulate
from smembench.kernels.intrinsics.vector import load_vector, store_vector
from smembench.kernels.matmul.structs import Memory
from smembench.kernels.matmul.tiling import LANES_DOWN, Tiling
from smembench.kernels.numba_cuda import DeviceFunction, device, uint32
from smembench.kernels.types import Array, Index, Matrix, Place, Scalar


@cache
def write_within(tiling: Tiling, width: int) -> DeviceFunction:
    """``(C, accumulators, first, least)``: write a thread's results, of which the first belongs at ``first``.

    Those above or left of ``least`` and beyond the edges are left out; each access writes ``width`` elements.
    """
    down, across = tiling.down, tiling.across
    (a_size, b_size), (rows_apart, columns_apart) = tiling.fragments, tiling.apart

    def write(C: Matrix, accumulators: Array, first: Place, least: Place) -> None:
        for i in range(down):
            row = first.row + (i // a_size * rows_apart + i % a_size)
            for j in range(0, across, width):
                col = first.col + (j // b_size * columns_apart + j % b_size)
                if row >= least.row and col >= least.col and row < C.rows and col < C.columns:
                    if width == 1:
                        C.elements[row * C.stride + col] = accumulators[i * across + j]
                    else:
                        store_vector(C.elements, row * C.stride + col, load_vector(accumulators, i * across + j))

    return device(write)


@cache
def add_within(tiling: Tiling, width: int) -> DeviceFunction:
    """``(accumulators, C, first, least)``: add to the results what ``write_within`` would overwrite, by vectors."""
    down, across = tiling.down, tiling.across
    (a_size, b_size), (rows_apart, columns_apart) = tiling.fragments, tiling.apart

    def add(accumulators: Array, C: Matrix, first: Place, least: Place) -> None:
        for i in range(down):
            row = first.row + (i // a_size * rows_apart + i % a_size)
            for j in range(0, across, width):
                col = first.col + (j // b_size * columns_apart + j % b_size)
                if row >= least.row and col >= least.col and row < C.rows and col < C.columns:
                    begun = load_vector(C.elements, row * C.stride + col)
                    for p in range(width):
                        accumulators[i * across + j + p] += begun[p]

    return device(add)


class Window(NamedTuple):
    """Where a tile of C begins, and the first row and column that is written of it."""

    corner: Place
    least: Place


class Staging(NamedTuple):
    """Writing through shared memory, some rows of each thread at a time.

    ``parts``: how many times. ``stage(memory, own, part)``: stores rows of the thread whose first result lies at
    ``own`` of the block's tile. ``write(C, tile, thread, part, begun, window)``: what all threads staged of a tile;
    with ``begun`` it is added to C instead.
    """

    parts: int
    stage: DeviceFunction
    write: DeviceFunction


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

    def stage(memory: Memory, own: Place, part: Index) -> None:
        line = own.row // warp_rows * LANES_DOWN + own.row % warp_rows // a_size
        at = line * (at_once * columns) + own.col
        for i in range(at_once):
            for j in range(0, across, size):
                place = at + (i * columns + j // b_size * columns_apart + j % b_size)
                store_vector(memory.tiles.b, place, load_vector(memory.accumulators, (part * at_once + i) * across + j))

    # A thread writes the same column of all its lines. They are powers of two apart, so row_of can be added up.
    lines = threads // columns
    in_warps, in_turn = LANES_DOWN * at_once, LANES_DOWN * at_once // lines

    @device
    def row_of(line: Index) -> Index:
        return line // at_once * a_size + line % at_once

    @device
    def store(c: Array, index: Index, value: Scalar) -> None:
        c[index] = value

    def lines_by(put: DeviceFunction) -> DeviceFunction:
        def write_lines(C: Matrix, tile: Array, thread: Index, first: Place, top: Index) -> None:
            for warps in range(staged // columns // in_warps):
                for turn in range(in_turn):
                    line = first.row + (warps * warp_rows + row_of(uint32(turn * lines)))
                    if line >= top and line < C.rows:
                        place = thread + (warps * in_turn + turn) * threads
                        put(C.elements, line * C.stride + first.col, tile[place])

        return device(write_lines)

    write_new, add_to_old = lines_by(store), lines_by(accumulate)

    def write(C: Matrix, tile: Array, thread: Index, part: Index, begun: bool, window: Window) -> None:
        (row0, col0), (top, left) = window
        first = row0 + (part * at_once // a_size * rows_apart + part * at_once % a_size)
        row, col = first + row_of(thread // columns), col0 + thread % columns
        if col >= left and col < C.columns:
            if begun:
                add_to_old(C, tile, thread, Place(row, col), top)
            else:
                write_new(C, tile, thread, Place(row, col), top)

    return Staging(tiling.down // at_once, device(stage), device(write))
