"""warpTiled: doubleBuffered with the threads of a warp in 4 rows of 8 lanes instead of 2 rows of 16.

Only the positions of a thread's results change: a warp computes 32 × 64 of C instead of 16 × 128.

It relieves shared memory: a step along k needs 32 + 64 different elements per warp instead of 16 + 128, two thirds as
many. Blocks of 16 × 8 threads, with tiles of 64 × 128, are for sizes with too few tiles of 128 × 128 for all SMs.
Findings: results/reference/notes/warp_tiled.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.matmul.cuda.double_buffered import program
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.model.case import Block, Case


def tiling_of(case: Case) -> Tiling:
    """8 × 8 results per thread, in warp tiles of 32 × 64."""
    return Tiling(block_of(case), case.dtype, warps=True)


KERNEL = kernel_of_tiling(
    "warpTiled",
    tiling_of,
    program,
    summary="doubleBuffered, a warp computing 32 × 64 of C",
    results=(8, 8),
    blocks=(Block(16, 16), Block(16, 8)),
    ladder="warps of 4 × 8 lanes",
)
