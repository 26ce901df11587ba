"""mmaSwizzled: mmaPadded with an XOR swizzle instead of the padding.

Only the position of each 16-byte chunk within its row changes. Two rows of A's tile fill the banks once, so chunk c of
row r is stored at c XOR (r / 2 modulo 4); that of B's tile at c XOR (r modulo 8). The eight rows of a matrix then fall
into all 32 banks, and so do the eight chunks that a quarter-warp copies: neither loads nor stores have conflicts, and
the tiles have no gaps.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.matmul.cuda.mma_plain import kernel_of, program
from smembench.kernels.matmul.mma_steps import matrices_of_a, matrices_of_b
from smembench.kernels.matmul.mma_tiling import MmaTiling
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case


def tiling_of(case: Case) -> MmaTiling:
    """Swizzled tiles."""
    return MmaTiling(block_of(case), case.dtype, "swizzled")


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    tiling = tiling_of(case)
    return program(case, tiling, matrices_of_a(tiling), matrices_of_b(tiling))


KERNEL = kernel_of(
    "mmaSwizzled",
    tiling_of,
    build,
    summary="mmaPadded with swizzled tiles instead of padding",
    ladder="a swizzle in place of the padding",
)
