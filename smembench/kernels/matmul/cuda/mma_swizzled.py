"""mmaSwizzled: mmaPadded with an exclusive or in place of the padding.

Only the place of a part of 16 bytes in its row changes. Two rows of A's tile fill the banks once, so its four parts are
numbered by the exclusive or with half the row's number; the parts of B's rows with the row's number, modulo 8. The
eight rows of a matrix then lie in all 32 banks, and so do the eight parts that a quarter of a warp copies: neither
loads nor stores have conflicts, and the tiles have no gaps.
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
