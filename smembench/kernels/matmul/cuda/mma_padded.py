"""mmaPadded: mmaPlain with ldmatrix, from tiles with 16 bytes of padding between their rows.

Steps 1 and 3 are those of mmaPlain. In step 2 a lane no longer loads its own elements: it gives the address of a row of
16 bytes, and gets its two elements of each of four 8×8 matrices. Those of B come transposed, so that no elements have
to be shifted together: 6 loads per warp and step instead of 40.

The eight rows of a matrix are served at once. With the padding they begin 80 bytes apart in A's tile, 144 or 272 in
B's, each in four banks of its own. The copies into A's tile pay for it: the eight lanes that are served at once fill
two rows, which share banks, since 80 bytes are not half a wavefront.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.matmul.cuda.mma_plain import kernel_of, program
from smembench.kernels.matmul.mma_steps import matrices_of_a, matrices_of_b
from smembench.kernels.matmul.mma_tiling import MmaTiling
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case


def tiling_of(case: Case) -> MmaTiling:
    """Tiles with padding."""
    return MmaTiling(block_of(case), case.dtype, "padded")


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    tiling = tiling_of(case)
    return program(case, tiling, matrices_of_a(tiling), matrices_of_b(tiling))


KERNEL = kernel_of(
    "mmaPadded",
    tiling_of,
    build,
    summary="mmaPlain with ldmatrix from padded tiles",
    ladder="ldmatrix, and padding against its conflicts",
)
