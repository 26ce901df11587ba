"""transposeSmemPad: transposeSmem with ``pad`` extra columns in the tile.

One extra column shifts each row by a bank, so a column of a 32-wide float32 tile lies in 32 different banks and the
load has no conflicts.
"""

from __future__ import annotations

from smembench.kernels.common.grids import tile_elements
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.cuda.transpose_smem import build
from smembench.kernels.transpose.problem import TRANSPOSE

KERNEL = Kernel(
    problem="transpose",
    name="transposeSmemPad",
    kind="cuda",
    summary="transposeSmem with padded rows: a tile's column lies in different banks",
    build=build,
    computes=TRANSPOSE,
    pad=True,
    tile_elements=tile_elements,
    ladder="padded rows: no bank conflicts in the tile",
)
