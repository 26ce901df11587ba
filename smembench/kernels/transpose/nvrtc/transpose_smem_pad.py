"""transposeSmemPad in CUDA C: transposeSmem with ``pad`` extra columns in the tile."""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.transpose.cuda import transpose_smem_pad
from smembench.kernels.transpose.nvrtc.transpose_smem import TILE

KERNEL = port(transpose_smem_pad.KERNEL, TILE.replace("NAME", transpose_smem_pad.KERNEL.name))
