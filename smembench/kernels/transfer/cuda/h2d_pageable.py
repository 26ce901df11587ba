"""h2dPageable: host to device from pageable memory, the arrays that malloc and NumPy make.

The GPU reads host memory by itself only where pages cannot move, so the driver first copies piece by piece into
page-locked memory of its own, and the GPU from there. What is timed is cuMemcpyAsync and the wait for it.
"""

from __future__ import annotations

from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import copy
from smembench.kernels.program import LibraryCall

KERNEL = Kernel(
    problem="transfer",
    name="h2dPageable",
    kind="cuda",
    summary="host to device from pageable memory",
    build=lambda case: LibraryCall(copy, inputs="pageable"),
    blocks=False,
)
