"""transposeSmemUnrollPad: transposeSmemUnroll with ``pad`` extra columns in the tile.

Rows are 2·bx + pad elements apart. With one extra column, the elements of a column of a 32x32 float32 block lie in 32
different banks, and both loads have no conflicts. Where the block is 16 high a warp loads two columns at once, and two
extra columns are needed.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.transpose.cuda import transpose_smem_unroll

KERNEL = replace(
    transpose_smem_unroll.KERNEL,
    name="transposeSmemUnrollPad",
    summary="transposeSmemUnroll with padded rows, against bank conflicts",
    pad=True,
)
