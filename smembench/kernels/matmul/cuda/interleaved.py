"""interleaved: unrolled with neighbouring lanes of a warp below each other in pairs.

Lanes 2i and 2i + 1 share their columns, and lanes l and l + 2 their rows; the warp tile stays as it is. Shared memory
serves a quarter-warp at a time, which now needs 2 different vectors of A and 4 of B instead of 1 and 8.

A load of 128 bits is served by half-warps instead of quarter-warps if all lanes l and l + 2 ask for the same 16 bytes
(``explain.banks.lanes_together``): the loads of B then take 2 wavefronts instead of 4. Findings:
results/reference/notes/interleaved.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.matmul.cuda.unrolled import program
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.model.case import Block, Case


def tiling_of(case: Case) -> Tiling:
    """8 × 8 results per thread, in warp tiles of 32 × 64 with interleaved lanes."""
    return Tiling(block_of(case), case.dtype, warps=True, interleaved=True)


KERNEL = kernel_of_tiling(
    "interleaved",
    tiling_of,
    program,
    summary="unrolled, neighbouring lanes of a warp below each other in pairs",
    results=(8, 8),
    blocks=(Block(16, 16), Block(16, 8)),
    ladder="lanes interleaved in pairs",
)
