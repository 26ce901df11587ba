"""transposeSmemPad: transposeSmem with ``pad`` extra columns in the tile.

One extra column shifts each row by one bank. In blocks of 32x32 the elements of a column of a float32 tile lie in 32
different banks then, and the load has no conflicts. In blocks of 16x16 a warp accesses two rows or columns at once, and
2-way conflicts remain for loads and stores.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.transpose.cuda import transpose_smem

KERNEL = replace(
    transpose_smem.KERNEL,
    name="transposeSmemPad",
    summary="transposeSmem with padded rows, against bank conflicts",
    pad=True,
    ladder="padded rows, against the tile's bank conflicts",
)
