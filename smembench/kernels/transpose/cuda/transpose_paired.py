"""transposePaired: transposeHalfWarp whose blocks alternate between two columns of tiles 16 KiB apart.

They do so only where the length of the input's rows in bytes is a power of two and at least 128 KiB; elsewhere the
kernel is transposeHalfWarp.

It relieves the banks of the DRAM. The parts of such rows that a column of tiles reads differ only in the upper bits of
their addresses, and those alone seem not to reach all banks; bits 13 and 14 do. Taking tiles diagonally, the classic
remedy against a power-of-two stride, breaks up the writes (transposeDown). Findings:
results/reference/notes/transpose_paired.md.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.common.grids import block_of
from smembench.kernels.intrinsics.declaration import BYTES
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.cuda import transpose_half_warp
from smembench.kernels.transpose.cuda.transpose_streamed import streamed
from smembench.kernels.transpose.tile_copies import IN_COLUMNS, as_in_block, in_pairs
from smembench.kernels.transpose.tile_geometry import vectors_align
from smembench.model.case import Case
from smembench.model.problem import ITEMSIZE

APART = 16 * 1024
"""Bytes between the two columns of tiles that alternate."""

CONFLICTING = 128 * 1024
"""Fewest bytes of a row of the input at which powers of two conflict."""


def rows_conflict(case: Case) -> bool:
    """True if rows of the input are a power of two of bytes apart, and far enough to conflict."""
    row = case.n * ITEMSIZE[case.dtype]
    return row >= CONFLICTING and row & (row - 1) == 0


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``; a tile is as wide as in transposeVectorized, 16 bytes per thread."""
    pairs = rows_conflict(case) and vectors_align(case)
    order = in_pairs(max(1, APART // (BYTES * block_of(case).x))) if pairs else IN_COLUMNS
    return streamed(case, order=order, share=as_in_block)


KERNEL = replace(
    transpose_half_warp.KERNEL,
    name="transposePaired",
    summary="transposeHalfWarp in pairs of columns of tiles, where rows are powers of two from 128 KiB on",
    build=build,
    ladder="rows of 128 KiB, 256 KiB …: two columns of tiles in turn",
)
