"""transposeSmemPadDyn: transposeSmemDyn with ``pad`` extra columns in the tile.

The row stride and the bytes of the launch grow by the padding. As in transposeSmemPad, one extra column puts a column
of a 32-wide float32 tile into 32 different banks, and the load has no conflicts.
"""

from __future__ import annotations

from smembench.kernels.common.grids import tile_elements
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.cuda.transpose_smem_dyn import build
from smembench.kernels.transpose.problem import TRANSPOSE

KERNEL = Kernel(
    problem="transpose",
    name="transposeSmemPadDyn",
    kind="cuda",
    summary="transposeSmemDyn with padded rows: a tile's column lies in different banks",
    build=build,
    computes=TRANSPOSE,
    pad=True,
    tile_elements=tile_elements,
    standard=False,
)
