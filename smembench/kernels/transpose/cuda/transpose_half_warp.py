"""transposeHalfWarp: transposeStreamed whose half-warps access 256 bytes of a row each.

A thread's vector and row are its indices in the block, so in blocks 16 wide a warp covers 16 vectors by 2 rows of the
tile instead of 8 by 4.

It relieves memory: two warps no longer ask at two times for the halves of 256 bytes. The price: 16 columns of vectors
share 8 groups of four banks, and loads from shared memory have 2-way conflicts. Blocks 8 wide are as before; in blocks
32 wide a warp covers 512 bytes of one row, and conflicts are 4-way. Where rows are no multiple of 16 bytes, loads have
2-way conflicts where unaligned_rows.py says none, but no more than it says for odd squares, except 4-way ones of
float16. Findings: results/reference/notes/transpose_half_warp.md.
"""

from __future__ import annotations

from smembench.kernels.intrinsics.vector import store_vector_streaming
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.cuda.transpose_streamed import copy_streaming
from smembench.kernels.transpose.cuda.transpose_vectorized import vectorized
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tile_copies import IN_COLUMNS, as_in_block
from smembench.kernels.transpose.tile_geometry import one_tile, vectors_fit
from smembench.model.case import Block, Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``."""
    return vectorized(case, order=IN_COLUMNS, position=as_in_block, copy=copy_streaming, store=store_vector_streaming)


KERNEL = Kernel(
    problem="transpose",
    name="transposeHalfWarp",
    kind="cuda",
    summary="transposeStreamed whose half-warps access 256 bytes of a row each",
    build=build,
    computes=TRANSPOSE,
    results=(8, 8),
    default_blocks=(Block(16, 32), Block(16, 16)),
    pad=False,
    tile_elements=one_tile,
    unsupported=vectors_fit,
    standard=False,
    ladder="256 bytes of a row at once, for 2-way conflicts",
)
