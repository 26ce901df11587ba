"""warpTiled: doubleBuffered with a warp's threads in 4 rows of 8 lanes instead of 2 rows of 16.

Only the places of a thread's results change: a warp computes 32 × 64 of C instead of 16 × 128.

It relieves shared memory: a step along k needs 32 + 64 different elements per warp instead of 16 + 128, two thirds as
many. Blocks of 16 × 8 threads, with tiles of 64 × 128, are for sizes with too few tiles of 128 × 128 for all SMs.
Findings: results/reference/notes/warp_tiled.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.matmul.cuda.double_buffered import program
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import Block, Case


def tiling_of(case: Case) -> Tiling:
    """8 × 8 results a thread, in warp tiles of 32 × 64."""
    return Tiling(block_of(case), case.dtype, warps=True)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    return program(case, tiling_of(case))


def tile_elements(case: Case) -> int:
    """Two tiles of A, padded, and two of B."""
    return 2 * tiling_of(case).elements


def unsupported(case: Case) -> str | None:
    """Why the block does not fit the tiles, or None."""
    return tiling_of(case).unsupported(case.kernel)


KERNEL = Kernel(
    problem="matmul",
    name="warpTiled",
    kind="cuda",
    summary="doubleBuffered, a warp computing 32 × 64 of C",
    build=build,
    results=(8, 8),
    default_blocks=(Block(16, 16), Block(16, 8)),
    tile_elements=tile_elements,
    unsupported=unsupported,
    strided=True,
    standard=False,
    ladder="warps of 4 × 8 lanes",
)
