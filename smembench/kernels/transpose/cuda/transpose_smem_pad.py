"""transposeSmemPad: transposeSmem with ``pad`` extra columns in the tile.

One extra column shifts each row by one bank, so the elements of a column of a 32-wide float32 tile lie in 32 different
banks, and the load has no conflicts.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.transpose.cuda import transpose_smem

KERNEL = replace(
    transpose_smem.KERNEL,
    name="transposeSmemPad",
    summary="transposeSmem with padded rows: a tile's column lies in different banks",
    pad=True,
    ladder="padded rows: no bank conflicts in the tile",
)
