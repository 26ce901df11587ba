"""h2dPinned: host to device from page-locked memory.

The GPU reads the pages by itself, without a copy in between and without the CPU. What is timed is cuMemcpyAsync and
the wait for it; allocating page-locked memory, which takes far longer than malloc, is not.
"""

from __future__ import annotations

from smembench.kernels.numba_cuda import copy
from smembench.kernels.program import LibraryCall
from smembench.kernels.registry import Kernel
from smembench.model.case import Case


def build(case: Case) -> LibraryCall:
    """Program for ``(stream, out, inp)``."""
    return LibraryCall(copy, inputs="pinned")


KERNEL = Kernel(
    problem="transfer",
    name="h2dPinned",
    kind="cuda",
    step=30,
    summary="host to device from page-locked memory",
    build=build,
    blocks=False,
)
