"""tiled16x8: interleaved with 16 × 8 results per thread, so that half as many threads compute a tile.

A thread's fragment of A is 16 rows high, a warp computes 64 × 64 of C, and a block of 16 × 8 threads computes 128 ×
128.

It relieves shared memory and instruction issue: a step takes 6 loads per 128 multiplications instead of 4 per 64. A
thread takes about 220 registers, so an SM holds 8 warps instead of 16, and each warp must have its own next loads in
flight. In float64 the results alone would take all registers. Predictions: results/reference/notes/tiled_16x8.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.matmul.cuda.unrolled import program
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.model.case import Block, Case


def tiling_of(case: Case) -> Tiling:
    """16 × 8 results per thread, in warp tiles of 64 × 64 with interleaved lanes."""
    return Tiling(block_of(case), case.dtype, down=16, warps=True, interleaved=True)


KERNEL = kernel_of_tiling(
    "tiled16x8",
    tiling_of,
    program,
    summary="interleaved, with 16 × 8 results per thread",
    results=(8, 16),
    blocks=(Block(16, 8), Block(8, 8)),
    ladder="16 × 8 results per thread",
)
