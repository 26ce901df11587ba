"""unrolled: warpTiled with all 8 steps along k of a tile written out.

NVVM unrolls a constant loop only up to about 128 multiplications per body, so the 512 of a tile are written out by
device functions that call each other twice.

It relieves instruction issue, since the loop's own instructions are gone, and latency: the loads of the next step need
not wait for the end of an iteration. Findings: results/reference/notes/unrolled.md.
"""

from __future__ import annotations

from smembench.kernels.matmul.cuda.double_buffered import program
from smembench.kernels.matmul.cuda.warp_tiled import tile_elements, tiling_of, unsupported
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import Block, Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    tiling = tiling_of(case)
    return program(case, tiling, tiling.depth)


KERNEL = Kernel(
    problem="matmul",
    name="unrolled",
    kind="cuda",
    summary="warpTiled, the steps along k of a tile written out",
    build=build,
    results=(8, 8),
    default_blocks=(Block(16, 16), Block(16, 8)),
    tile_elements=tile_elements,
    unsupported=unsupported,
    strided=True,
    standard=False,
    ladder="k written out",
)
