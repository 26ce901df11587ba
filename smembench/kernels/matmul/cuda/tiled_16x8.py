"""tiled16x8: interleaved with 16 × 8 results per thread, so that half as many threads compute a tile.

A thread's fragment of A is 16 rows high, a warp computes 64 × 64 of C, and a block of 16 × 8 threads computes 128 ×
128.

It relieves shared memory and instruction issue: a step takes 6 loads per 128 multiplications instead of 4 per 64. A
thread takes about 220 registers, so an SM holds 8 warps instead of 16, and each must have its own next loads on the
way. In float64 the results alone would take all registers. Predictions: results/reference/notes/tiled_16x8.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.matmul.cuda.double_buffered import program
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import Block, Case


def tiling_of(case: Case) -> Tiling:
    """16 × 8 results a thread, in warp tiles of 64 × 64 with interleaved lanes."""
    return Tiling(block_of(case), case.dtype, down=16, warps=True, interleaved=True)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    tiling = tiling_of(case)
    return program(case, tiling, tiling.depth)


def tile_elements(case: Case) -> int:
    """Two tiles of A, padded, and two of B."""
    return 2 * tiling_of(case).elements


def unsupported(case: Case) -> str | None:
    """Why the block does not fit the tiles, or the results do not fit a thread, or None."""
    return tiling_of(case).unsupported(case.kernel)


KERNEL = Kernel(
    problem="matmul",
    name="tiled16x8",
    kind="cuda",
    summary="interleaved, with 16 × 8 results a thread",
    build=build,
    results=(8, 16),
    default_blocks=(Block(16, 8), Block(8, 8)),
    tile_elements=tile_elements,
    unsupported=unsupported,
    strided=True,
    standard=False,
    ladder="16 × 8 results a thread",
)
