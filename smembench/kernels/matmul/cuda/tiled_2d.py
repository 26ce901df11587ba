"""tiled2D: tiled1D with 8 × 8 results per thread, so that each element loaded serves 8 multiplications.

A thread has 8 columns as well, bx apart, so a block computes 8·by rows and 8·bx columns. The kernel is tiled1D's, whose
loops over columns have 8 passes here.

It relieves shared memory further: 16 elements are loaded per 64 multiplications, a quarter of an element per
multiplication where tiled1D needs nine eighths. Shared memory can serve that while the SM multiplies at its peak. Reads
of A are broadcasts and reads of B contiguous: no bank conflicts. Predictions: results/reference/notes/tiled_2d.md.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.cuda.tiled_1d import DEPTH, DOWN, program
from smembench.kernels.matmul.tiled_kernel import results_fit
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case
from smembench.model.formats import WIDE

ACROSS = 8


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    return program(case, ACROSS)


def tile_elements(case: Case) -> int:
    """8 columns of A and 8 rows of B."""
    block = block_of(case)
    return DEPTH * (DOWN * block.y + ACROSS * block.x)


def unsupported(case: Case) -> str | None:
    """The refusal of a block whose threads' results do not fit in registers, or None."""
    return results_fit(case.kernel, block_of(case), case.dtype, DOWN, ACROSS)


KERNEL = Kernel(
    problem="matmul",
    name="tiled2D",
    kind="cuda",
    summary="tiled, with 8 × 8 results per thread",
    build=build,
    results=(ACROSS, DOWN),
    default_blocks=(Block(16, 16),),
    tile_elements=tile_elements,
    dtypes=WIDE,
    unsupported=unsupported,
    strided=True,
    standard=False,
    ladder="8 × 8 results per thread",
)
