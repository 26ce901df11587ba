"""The loop of every access kernel: passes over its tiles, each a store, a barrier, a load and a barrier.

The documents' kernels touch shared memory twice per thread and take a few microseconds, whatever the pattern. Here a
thread carries 32 bytes of values and keeps storing and loading them, so that the banks determine the time: on compute
capability 9.0 the loop compiles to 16 accesses of 4 bytes, their addresses in two registers and offsets, beside two
barriers and four other instructions. Barriers and other threads' stores keep the compiler from leaving any of them out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from smembench.kernels.access.problem import LINE, tiles
from smembench.kernels.common.grids import block_of, ceil_div, tile_elements, tile_width
from smembench.kernels.kernel import Kernel, no_elements
from smembench.kernels.numba_cuda import cuda, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Case
from smembench.model.problem import ITEMSIZE


class Layout(NamedTuple):
    """Place of thread t's element in a tile: t % ``run`` · ``step`` + t // ``run`` · ``next_run``.

    The first product wraps round at ``size``, the elements of the tile.
    """

    run: int
    step: int
    next_run: int
    size: int


def row(case: Case) -> Layout:
    """Element (threadIdx.y, threadIdx.x): a warp's elements follow each other along a row."""
    return Layout(block_of(case).x, 1, tile_width(case), tile_elements(case))


def column(case: Case) -> Layout:
    """The documents' icol and irow: a warp's elements follow each other down a column, a row's width apart."""
    return Layout(block_of(case).y, tile_width(case), 1, tile_elements(case))


LayoutOf = Callable[[Case], Layout]


def build(case: Case, *, sets: LayoutOf, reads: LayoutOf, dynamic: bool = False) -> NumbaKernel:
    """Program for ``(out, inp, n, passes)``; with ``dynamic`` the launch gives the tiles, else the kernel has them."""
    block = case.block or LINE
    bx, threads = block.x, block.x * block.y
    dtype, count = number(case.dtype), tiles(case.dtype)
    one = np.dtype(case.dtype).type(1)
    set_run, set_step, set_next, size = sets(case)
    read_run, read_step, read_next, _ = reads(case)
    length = 0 if dynamic else count * size

    def access(out: Array, inp: Array, n: Index, passes: Index) -> None:
        shared = cuda.shared.array(length, dtype)
        values = cuda.local.array(count, dtype)
        t = cuda.threadIdx.y * bx + cuda.threadIdx.x
        i = cuda.blockIdx.x * threads + t
        set_at = uint64(t) % set_run * set_step % size + uint64(t) // set_run * set_next
        read_at = uint64(t) % read_run * read_step % size + uint64(t) // read_run * read_next
        value = dtype(0)
        if i < n:
            value = inp[i]
        for tile in range(count):
            values[tile] = value
        done = uint32(0)
        while done < passes:
            for tile in range(count):
                shared[tile * size + set_at] = values[tile]
            cuda.syncthreads()
            for tile in range(count):
                values[tile] = shared[(tile + 1) % count * size + read_at]
            values[0] += one
            cuda.syncthreads()
            done = done + 1
        if i < n:
            total = values[0]
            for tile in range(1, count):
                total += values[tile]
            out[i] = total

    dynamic_bytes = count * size * ITEMSIZE[case.dtype] if dynamic else 0
    return NumbaKernel(access, grid=(ceil_div(case.n, threads), 1), block=block, dynamic_bytes=dynamic_bytes)


def all_tiles(case: Case) -> int:
    """Elements of a block's tiles together."""
    return tiles(case.dtype) * tile_elements(case)


def variants(
    name: str,
    computes: str,
    pattern: str,
    effect: str,
    *,
    sets: LayoutOf,
    reads: LayoutOf,
    standard: tuple[str, ...] = ("",),
) -> tuple[Kernel, ...]:
    """A pattern on a tile of the block's shape: static and dynamic shared memory, without and with padding."""

    def variant(suffix: str, *, dynamic: bool, pad: bool) -> Kernel:
        where = ", dynamic shared memory" if dynamic else ""
        return Kernel(
            problem="access",
            name=name + suffix,
            kind="cuda",
            summary=f"{pattern}{where}" + (", padded rows" if pad else f": {effect}"),
            build=partial(build, sets=sets, reads=reads, dynamic=dynamic),
            computes=computes,
            pad=pad,
            tile_elements=all_tiles,
            dynamic_elements=all_tiles if dynamic else no_elements,
            standard=suffix in standard,
        )

    return (
        variant("", dynamic=False, pad=False),
        variant("Dyn", dynamic=True, pad=False),
        variant("Pad", dynamic=False, pad=True),
        variant("DynPad", dynamic=True, pad=True),
    )
