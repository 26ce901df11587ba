"""transposePaired: transposeHalfWarp whose blocks take two columns of tiles 16 KiB apart in turn, where rows conflict.

What changes: where rows of the input are a power of two of bytes long, and 128 KiB at least, the columns of tiles that
run together are not neighbours but 16 KiB apart. Elsewhere nothing changes. What it relieves: the banks of the DRAM.
The pieces of such rows that a column of tiles reads differ only in the upper bits of their addresses, and those alone
do not reach all banks, it seems; bits 13 and 14 do. The classic remedy against a stride that is a power of two, to take
tiles diagonally, breaks up what is written instead (transposeDown).

Predicted: for float64 at 16384² as near to cudaMemcpy as at 16352², which has rows of another length.
Found on an H200 (2026-11-20): 0.982 of cudaMemcpy, where transposeHalfWarp reached 0.921, and 0.980 at 16352². In
another run, over two places of the arrays, 4050 to 4089 GB/s with 8192 rows or more of 128, 256 and 512 KiB in float32,
float64 and float16, where transposeHalfWarp had 3920 to 4057.

What it rests on, an H200 (2026-11-20), CUDA C, float64 at 16384², in GB/s, over four places of the input. Reads alone:
column after column 4025 to 4294; 16352² 4570 to 4585; row after row 4670 to 4680; in pairs 4 KiB apart as column after
column, 8 KiB 4595 to 4601, 16 KiB 4599 to 4605, 32 KiB as column after column, 64 KiB 4524 to 4564. Turning bit 13, 14
or 16 with a bit of the row's address lifts reads as well, most with bit 23 or 26, but breaks up writes. A column's
pieces are spread over the L2's slices and the DRAM's channels as any others (ncu); which banks they use has no counter.

Rows of 32 and 64 KiB do not conflict: with pairs float32 loses 0.1 to 0.5 % at 16384², 1 % at 4096².
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.intrinsics.vector import BYTES, store_vector_streaming
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.cuda.transpose_streamed import copy_streaming
from smembench.kernels.transpose.cuda.transpose_vectorized import vectorized
from smembench.kernels.transpose.pieces import IN_COLUMNS, as_in_block, in_pairs
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tiles import one_tile, vectors_align, vectors_fit
from smembench.model.case import Block, Case
from smembench.model.problem import ITEMSIZE

APART = 16 * 1024
"""Bytes between two columns of tiles that are taken in turn."""

CONFLICTING = 128 * 1024
"""Bytes of a row of the input from which on powers of two conflict."""


def rows_conflict(case: Case) -> bool:
    """Whether rows of the input are a power of two of bytes apart, and far enough to conflict."""
    row = case.n * ITEMSIZE[case.dtype]
    return row >= CONFLICTING and row & (row - 1) == 0


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; a tile is as wide as in transposeVectorized, 16 bytes a thread."""
    pairs = rows_conflict(case) and vectors_align(case)
    order = in_pairs(max(1, APART // (BYTES * block_of(case).x))) if pairs else IN_COLUMNS
    return vectorized(case, order=order, position=as_in_block, copy=copy_streaming, store=store_vector_streaming)


KERNEL = Kernel(
    problem="transpose",
    name="transposePaired",
    kind="cuda",
    step=147,
    summary="transposeHalfWarp in pairs of columns of tiles, where rows are powers of two from 128 KiB on",
    build=build,
    computes=TRANSPOSE,
    results=(8, 8),
    default_blocks=(Block(16, 32), Block(16, 16)),
    pad=False,
    tile_elements=one_tile,
    unsupported=vectors_fit,
    standard=False,
    ladder="rows of 128 KiB, 256 KiB …: two columns of tiles in turn",
)
