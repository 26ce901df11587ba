"""Copies between host and device by the CUDA driver: cuMemcpyAsync and the wait for it are timed.

Pageable memory is what malloc and NumPy allocate. The GPU accesses host memory by itself only where pages cannot move,
so the driver copies piece by piece through page-locked memory of its own. Page-locked (pinned) arrays need no copy in
between and no CPU; their allocation, which takes far longer than malloc, is not timed.
"""

from __future__ import annotations

from smembench.kernels.driver import copy
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import LibraryCall


def _kernel(name: str, summary: str, call: LibraryCall) -> Kernel:
    return Kernel("transfer", name, "cuda", summary, build=lambda case: call, blocks=False, library=True)


KERNELS = (
    _kernel("h2dPageable", "host to device from pageable memory", LibraryCall(copy, inputs="pageable")),
    _kernel("h2dPinned", "host to device from page-locked memory", LibraryCall(copy, inputs="pinned")),
    _kernel("d2hPageable", "device to host into pageable memory", LibraryCall(copy, output="pageable")),
    _kernel("d2hPinned", "device to host into page-locked memory", LibraryCall(copy, output="pinned")),
)
