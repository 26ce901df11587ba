"""naive and tiled by numba-cuda-mlir."""

from __future__ import annotations

from smembench.kernels.common.dtypes import only
from smembench.kernels.common.mlir import port
from smembench.kernels.matmul.cuda import naive, tiled
from smembench.model.formats import WIDE

KERNELS = (port(only(naive.KERNEL, *WIDE)), port(only(tiled.KERNEL, *WIDE)))
