"""unrolled: warpTiled with all 8 steps along k of a tile written out.

What changes: the loop over a tile's columns is gone. NVVM unrolls a constant loop only up to about 128
multiplications a body, so its 512 are written out by device functions that call each other twice.

Relieves the issue of instructions: CUDA 13.0 makes 582 of a tile, of which 512 multiply, where the loop needs 81 for 64
before what a tile costs by itself; and the loads of the next step need not wait for a loop's end. Predicted from the
instructions: 81 · 8 / 582, at least 1.11 times warpTiled, and what waiting for fragments took.

Found with a prototype of the same shape on an H200 (2026-11-20), n = 4096: 45.7 TFLOP/s instead of 34.4, 1.33 times,
0.91 of cuBLAS; n = 8192: 46.6, 0.95. With this one 46.5 at 4096, 1.26 times warpTiled.
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
    step=90,
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
