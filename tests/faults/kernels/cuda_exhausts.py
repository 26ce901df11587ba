"""A CUDA kernel whose build asks for more memory than any GPU has."""

from __future__ import annotations

from typing import Any

import numpy as np

from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case

MORE_THAN_THERE_IS = 2**46


def build(case: Case) -> NumbaKernel:
    buffer = cuda.device_array(MORE_THAN_THERE_IS, np.uint8)

    def fault(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        out[0] = buffer[0]

    return NumbaKernel(fault, grid=(1, 1), block=(1, 1))


KERNEL = Kernel("transpose", "exhausts", "cuda", "exhausts the GPU", build, computes="transpose", blocks=False)
