"""transposeDown: transposeVectorized with blocks that go down the input, column after column of tiles.

In row order, blocks that run together read a few whole rows of the input but write a narrow strip down the whole
output, 256 bytes in each of its rows. Here the grid is as wide as the tiles are high: the strip is what they read, and
they write a few whole rows.

It relieves memory of scattered writes at the price of scattered reads. That blocks start in the order of their index is
how GPUs behave, not what CUDA promises; the result does not depend on it. Findings:
results/reference/notes/transpose_down.md.
"""

from __future__ import annotations

from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.cuda.transpose_vectorized import vectorized
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tile_copies import IN_COLUMNS
from smembench.kernels.transpose.tile_geometry import one_tile, vectors_fit
from smembench.model.case import Block, Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``."""
    return vectorized(case, order=IN_COLUMNS)


KERNEL = Kernel(
    problem="transpose",
    name="transposeDown",
    kind="cuda",
    summary="transposeVectorized with blocks that go down the input, so that writes run on",
    build=build,
    computes=TRANSPOSE,
    results=(8, 8),
    default_blocks=(Block(16, 32), Block(16, 16)),
    pad=False,
    tile_elements=one_tile,
    unsupported=vectors_fit,
    standard=False,
    ladder="blocks go down the input: writes run on, reads are scattered",
)
