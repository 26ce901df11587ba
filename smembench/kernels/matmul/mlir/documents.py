"""naive and tiled by numba-cuda-mlir."""

from __future__ import annotations

from smembench.kernels.common.mlir import port
from smembench.kernels.matmul.cuda import naive, tiled

KERNELS = (port(naive.KERNEL), port(tiled.KERNEL))
