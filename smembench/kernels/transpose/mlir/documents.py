"""copyGmem, naiveGmem, transposeSmem and transposeSmemPad by numba-cuda-mlir."""

from __future__ import annotations

from smembench.kernels.common.mlir import port
from smembench.kernels.transpose.cuda import copy_gmem, naive_gmem, transpose_smem, transpose_smem_pad

KERNELS = tuple(port(file.KERNEL) for file in (copy_gmem, naive_gmem, transpose_smem, transpose_smem_pad))
