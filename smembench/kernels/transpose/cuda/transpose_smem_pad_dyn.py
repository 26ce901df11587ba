"""transposeSmemPadDyn: transposeSmemDyn with ``pad`` extra columns in the tile.

The row stride and the bytes that the launch gives grow by the padding. As in transposeSmemPad, one extra column puts
the elements of a column of a 32-wide float32 tile into 32 different banks, and the load has no conflicts.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.transpose.cuda import transpose_smem_dyn

KERNEL = replace(
    transpose_smem_dyn.KERNEL,
    name="transposeSmemPadDyn",
    summary="transposeSmemDyn with padded rows: a tile's column lies in different banks",
    pad=True,
)
