"""transposeSmemPadDyn: transposeSmemDyn with ``pad`` extra columns in the tile.

The row stride and the bytes that the launch gives grow by the padding. As in transposeSmemPad, one extra column leaves
no conflicts in blocks of 32x32 for float32, and 2-way ones in blocks of 16x16.
"""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.transpose.cuda import transpose_smem_dyn

KERNEL = replace(
    transpose_smem_dyn.KERNEL,
    name="transposeSmemPadDyn",
    summary="transposeSmemDyn with padded rows, against bank conflicts",
    pad=True,
)
