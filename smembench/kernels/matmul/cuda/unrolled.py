"""unrolled: warpTiled with all 8 steps along k of a tile unrolled.

NVVM unrolls a constant loop only up to about 128 multiplications per body. So the 512 of a tile are unrolled by device
functions, each of which calls one of half as many steps twice.

It relieves instruction issue, since the loop's own instructions are gone, and hides latency: the loads of the next step
need not wait for the end of an iteration. Findings: results/reference/notes/unrolled.md.
"""

from __future__ import annotations

from smembench.kernels.matmul.cuda import double_buffered
from smembench.kernels.matmul.cuda.warp_tiled import tiling_of
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case


def program(case: Case, tiling: Tiling) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``: doubleBuffered's, with all steps of a tile unrolled."""
    return double_buffered.program(case, tiling, tiling.depth)


KERNEL = kernel_of_tiling(
    "unrolled",
    tiling_of,
    program,
    summary="warpTiled, the steps along k of a tile unrolled",
    results=(8, 8),
    blocks=(Block(16, 16), Block(16, 8)),
    ladder="k unrolled",
)
