"""h2dPinned: host to device from page-locked memory.

The GPU reads the pages by itself, without a copy in between and without the CPU. What is timed is cuMemcpyAsync and
the wait for it; allocating page-locked memory, which takes far longer than malloc, is not.
"""

from __future__ import annotations

from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import copy
from smembench.kernels.program import LibraryCall

KERNEL = Kernel(
    problem="transfer",
    name="h2dPinned",
    kind="cuda",
    summary="host to device from page-locked memory",
    build=lambda case: LibraryCall(copy, inputs="pinned"),
    blocks=False,
)
