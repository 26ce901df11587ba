"""transposeSwizzled: transposeCoarsened with its tile swizzled instead of padded.

Element (row, column) is stored in column ``column XOR row`` of its row; in a float16 tile whose rows fill the banks, in
column ``column XOR 2 · row``, since two elements share a word. Rows stay rows, and the elements of a column fall into
different banks for every element type, so neither stores nor loads have conflicts.

It saves the shared memory of the padding, and rows stay multiples of 16 bytes apart, as vector accesses of the tile
need. The XOR costs one instruction per access. Predictions: results/reference/notes/transpose_swizzled.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tile_geometry import power_of_two, rows_fit
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case
from smembench.model.hardware import BANKS, WORD_BYTES
from smembench.model.problem import ITEMSIZE


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; the tile is bx × bx."""
    block = block_of(case)
    side, by = block
    itemsize = ITEMSIZE[case.dtype]
    step = max(WORD_BYTES // itemsize, 1) if side * itemsize >= BANKS * WORD_BYTES else 1
    dtype = number(case.dtype)

    def transpose_swizzled(out: Array, inp: Array, nx: Index, ny: Index) -> None:
        tile = cuda.shared.array((side, side), dtype)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        x0, y0 = cuda.blockIdx.x * side, cuda.blockIdx.y * side

        # Over the edge, load the edge again and never store it: without a branch no load waits for the one before.
        ix = x0 + tx
        if ix >= nx:
            ix = nx - 1
        for first in range(0, side, by):
            row = ty + first
            iy = y0 + row
            if iy >= ny:
                iy = ny - 1
            tile[row, tx ^ row * step % side] = inp[iy * nx + ix]
        cuda.syncthreads()

        ox = y0 + tx
        for first in range(0, side, by):
            row = ty + first
            oy = x0 + row
            value = tile[tx, row ^ tx * step % side]
            if ox < ny and oy < nx:
                out[oy * ny + ox] = value

    return NumbaKernel(transpose_swizzled, grid=covering(case.n, case.m, Block(side, side)), block=block)


def tile_elements(case: Case) -> int:
    """Elements of a tile as high as the block is wide."""
    return block_of(case).x ** 2


def _unsupported(case: Case) -> str | None:
    return power_of_two(case) or rows_fit(case)


KERNEL = Kernel(
    problem="transpose",
    name="transposeSwizzled",
    kind="cuda",
    summary="transposeCoarsened with the tile's columns permuted by XOR instead of padded",
    build=build,
    computes=TRANSPOSE,
    results=(1, 8),
    default_blocks=(Block(32, 8), Block(32, 4)),
    pad=False,
    tile_elements=tile_elements,
    unsupported=_unsupported,
    standard=False,
    ladder="XOR instead of padding: no conflicts, rows stay aligned",
)
