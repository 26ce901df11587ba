"""d2hPinned: device to host into page-locked memory, the way back of h2dPinned.

The GPU writes the pages by itself. What is timed is cuMemcpyAsync and the wait for it.
"""

from __future__ import annotations

from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import copy
from smembench.kernels.program import LibraryCall

KERNEL = Kernel(
    problem="transfer",
    name="d2hPinned",
    kind="cuda",
    summary="device to host into page-locked memory",
    build=lambda case: LibraryCall(copy, output="pinned"),
    blocks=False,
)
