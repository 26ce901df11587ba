"""transposeDown: transposeVectorized with blocks in column order: down the input, one column of tiles after another.

In row order, blocks that run together read a few whole rows of the input but write a narrow strip down the whole
output, 256 bytes in each of its rows. In column order it is the other way round: they read the strip and write a few
whole rows. The grid is transposed for that.

It relieves memory of scattered writes at the price of scattered reads. That blocks start in the order of their index is
how GPUs behave, not what CUDA promises; the result does not depend on it. Findings:
results/reference/notes/transpose_down.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from smembench.kernels.transpose.cuda import transpose_vectorized
from smembench.kernels.transpose.tile_copies import IN_COLUMNS

KERNEL = replace(
    transpose_vectorized.KERNEL,
    name="transposeDown",
    summary="transposeVectorized with blocks that go down the input, so that writes run on",
    build=partial(transpose_vectorized.vectorized, order=IN_COLUMNS),
    ladder="blocks go down the input: contiguous writes, scattered reads",
)
