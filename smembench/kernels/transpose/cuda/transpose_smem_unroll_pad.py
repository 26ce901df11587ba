"""transposeSmemUnrollPad: transposeSmemUnroll with ``pad`` extra columns in the tile.

Rows are 2·bx + pad elements apart. With one extra column, a column of a 32x32 float32 block lies in 32 different banks
and both loads have no conflicts. Where the block is 16 high a warp loads two columns at once, and it takes two extra
columns.
"""

from __future__ import annotations

from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.cuda.transpose_smem_unroll import build, tile_elements
from smembench.kernels.transpose.problem import TRANSPOSE

KERNEL = Kernel(
    problem="transpose",
    name="transposeSmemUnrollPad",
    kind="cuda",
    summary="transposeSmemUnroll with padded rows: a tile's column lies in different banks",
    build=build,
    computes=TRANSPOSE,
    pad=True,
    tile_elements=tile_elements,
    standard=False,
)
