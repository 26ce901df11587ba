"""transposePipelined: transposeDown with several tiles a block, the next of which is loaded while one is written.

A block has four tiles below each other and room for two. What changes: the loads of the next tile are issued before
this one is written, wait in registers, and go into the half of the shared memory that is not being read. One barrier a
tile keeps the halves apart: a thread that is a tile ahead of another writes where that one has finished reading. What
it relieves: latency, of the loads of three tiles in four, and of starting a block for each of them. The next block goes
on below them, so that writes run on as in transposeDown. Where rows are no multiples of 16 bytes there is no difference
to transposeDown.

Predicted: little. Four blocks an SM, with a tile of 16 KiB each, have 8.6 MB on their way to the 132 SMs of an H200, as
much as the reads of a copy at 4267 GB/s deliver in 4 µs, more than loads take: they hide each other's latency already.
At most what transposeVectorized's prototype lacked of cudaMemcpy there (2026-11-20), 1.01 times at 4096² and 1.08 at
16384², of which transposeDown has some. Found there, 4096² float32: 0.925 of cudaMemcpy, where transposeDown has 0.969.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.intrinsics.vector import ALIGNMENT, lanes
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.pieces import IN_COLUMNS, hold, in_lines, put, write
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tiles import resident, two_tiles, two_tiles_fit, vector_side, vectors_align
from smembench.kernels.transpose.unaligned import unaligned
from smembench.model.case import Block, Case

TILES = 4
"""Tiles of a block: enough that most loads overlap, few enough that a matrix of 4096² has two rounds of blocks."""


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the tiles are as in transposeVectorized."""
    block, side = block_of(case), vector_side(case)
    if not vectors_align(case):
        return unaligned(case, order=IN_COLUMNS)
    elements, wide, dtype = side * side, lanes(case.dtype), number(case.dtype)
    both, share = 2 * elements, elements // threads_of(case)
    position_of = in_lines(block)
    hold_tile, put_tile, write_tile = hold(block, case.dtype), put(block, case.dtype), write(block, case.dtype)

    def transpose_pipelined(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array(both, dtype, alignment=ALIGNMENT)
        held = cuda.local.array(share, dtype, alignment=ALIGNMENT)
        packed = cuda.local.array(wide, dtype, alignment=ALIGNMENT)
        vector, top = position_of(uint32(cuda.threadIdx.x), uint32(cuda.threadIdx.y))
        x0 = uint32(uint32(cuda.blockIdx.y) * uint32(side))
        y0 = uint32(uint32(cuda.blockIdx.x) * uint32(TILES * side))
        end = min(ny, uint32(y0 + uint32(TILES * side)))
        base = uint32(0)
        hold_tile(held, inp, x0, y0, nx, ny, vector, top)
        while y0 < end:
            put_tile(tile, base, held, vector, top)
            cuda.syncthreads()
            below = uint32(y0 + uint32(side))
            if below < end:
                hold_tile(held, inp, x0, below, nx, ny, vector, top)
            write_tile(out, tile, base, packed, x0, y0, nx, ny, vector, top)
            y0 = below
            base = uint32(uint32(elements) - base)

    columns, rows = covering(case.n, case.m, Block(side, TILES * side))
    bounds = (threads_of(case), resident(case))
    return NumbaKernel(transpose_pipelined, grid=(rows, columns), block=block, launch_bounds=bounds)


KERNEL = Kernel(
    problem="transpose",
    name="transposePipelined",
    kind="cuda",
    step=150,
    summary="transposeDown with several tiles a block: the next is loaded while one is written",
    build=build,
    computes=TRANSPOSE,
    results=(8 * TILES, 8),
    default_blocks=(Block(16, 32), Block(16, 16), Block(8, 16)),
    pad=False,
    tile_elements=two_tiles,
    unsupported=two_tiles_fit,
    standard=False,
    ladder="several tiles a block: the next loads while one is written",
)
