"""unrolled: doubleBuffered with warps of 4 × 8 lanes, and all 8 steps along k of a tile unrolled.

1. The threads of a warp lie in 4 rows of 8 instead of 2 rows of 16, so that a warp computes 32 × 64 of C instead of
   16 × 128. Per step along k it needs two thirds as many different elements of the tiles.
2. NVVM unrolls a constant loop only up to about 128 multiplications per body. So the 512 of a tile are unrolled by
   device functions, each of which calls one of half as many steps twice.

It relieves shared memory, and instruction issue, since the loop's own instructions are gone. It hides latency: the
loads of the next step need not wait for the end of an iteration. Blocks of 16 × 8 threads, with tiles of 64 × 128, are
for sizes with too few tiles of 128 × 128 for all SMs. Findings: results/reference/notes/unrolled.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.matmul.cuda import double_buffered
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case


def tiling_of(case: Case) -> Tiling:
    """8 × 8 results per thread, in warp tiles of 32 × 64."""
    return Tiling(block_of(case), case.dtype, warps=True)


def program(case: Case, tiling: Tiling) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``: doubleBuffered's, with all steps of a tile unrolled."""
    return double_buffered.program(case, tiling, tiling.depth)


KERNEL = kernel_of_tiling(
    "unrolled",
    tiling_of,
    program,
    summary="doubleBuffered, a warp computing 32 × 64 of C, the steps along k of a tile unrolled",
    results=(8, 8),
    blocks=(Block(16, 16), Block(16, 8)),
    ladder="warps of 4 × 8 lanes, k unrolled",
)
