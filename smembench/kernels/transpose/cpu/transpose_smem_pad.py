"""transposeSmemPad on the CPU: transposeSmem with ``pad`` extra columns in the buffer.

A buffer of a few KiB fits the L1 cache with or without padding, so little changes. The counterpart of bank conflicts is
a conflict in a cache set, which takes a larger tile.
"""

from __future__ import annotations

from smembench.kernels.common.grids import tile_elements
from smembench.kernels.kernel import Kernel
from smembench.kernels.transpose.cpu.transpose_smem import build
from smembench.kernels.transpose.problem import TRANSPOSE

KERNEL = Kernel(
    problem="transpose",
    name="transposeSmemPad",
    kind="cpu",
    summary="transposeSmem with padded rows in the buffer",
    build=build,
    computes=TRANSPOSE,
    pad=True,
    tile_elements=tile_elements,
    ladder="padded rows: a column spreads over the cache's sets",
)
