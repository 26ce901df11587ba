"""d2hPageable: device to host into pageable memory, the way back of h2dPageable.

The GPU writes into page-locked memory of the driver, which copies on from there piece by piece. What is timed is
cuMemcpyAsync and the wait for it.
"""

from __future__ import annotations

from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import copy
from smembench.kernels.program import LibraryCall

KERNEL = Kernel(
    problem="transfer",
    name="d2hPageable",
    kind="cuda",
    summary="device to host into pageable memory",
    build=lambda case: LibraryCall(copy, output="pageable"),
    blocks=False,
)
