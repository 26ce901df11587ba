"""transposeDown: transposeVectorized with blocks that go down the input, column after column of tiles.

Blocks start row after row of tiles, so that those which run together read a few whole rows of the input but write a
narrow strip down the whole output, a piece of 256 bytes in each of its rows. Here the grid is turned, as wide as the
tiles are high: now the strip is what they read, and what they write are a few whole rows of the output. What it
relieves: the memory, of scattered writes, at the price of scattered reads. That blocks start in the order of their
index is how GPUs behave, not what CUDA promises; the result does not depend on it.

Predicted, of any order of the tiles: at most what transposeVectorized's prototype lacked of cudaMemcpy on an H200
(2026-11-20), 1.08 times at 16384² and 1.01 at 4096². Found there, float32 in 16x32 blocks, as shares of cudaMemcpy in
the same run: 0.971 at 4096² and 0.975 at 16384², where transposeVectorized reached 0.956 and 0.939: that writes run on
matters, that reads do not. In 16x16 blocks 0.950 at 4096²; float16 at 16384² 0.960, in another run 0.923 without it.

Dead ends, there too: groups of tiles that are near in memory on both sides, squares of 4 × 4 and of 8 × 8, 2 or 16 rows
column by column, and diagonals, all 0.95 and 0.94; groups of 32 to 128 rows, better with every doubling at 16384² and
0.961 at most; every other column upwards, no difference; tiles of 128 × 128 by rows of tiles, 0.94 at most.
"""

from __future__ import annotations

from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.cuda.transpose_vectorized import vectorized
from smembench.kernels.transpose.pieces import IN_COLUMNS
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.kernels.transpose.tiles import one_tile, vectors_fit
from smembench.model.case import Block, Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, inp, nx, ny)``."""
    return vectorized(case, order=IN_COLUMNS)


KERNEL = Kernel(
    problem="transpose",
    name="transposeDown",
    kind="cuda",
    step=130,
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
