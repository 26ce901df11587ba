"""memcpy: cudaMemcpy from device to device, the ceiling to which ``percent_of_copy`` refers.

It reads and writes in the widest accesses that the hardware has, so no kernel that moves every byte once is much
faster. Arrays are copied 256 MiB at a time: in a CUDA graph one larger copy is slower, and would be no ceiling.
Findings: results/reference/notes/memcpy.md.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.driver import copy
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import LibraryCall
from smembench.kernels.transpose.problem import COPY

MAX_BYTES = 2**28


def enqueue(stream: int, out: Any, inp: Any) -> None:
    """Enqueue copies of at most ``MAX_BYTES`` each."""
    count = MAX_BYTES // inp.dtype.itemsize
    for start in range(0, inp.size, count):
        copy(stream, out[start : start + count], inp[start : start + count])


KERNEL = Kernel(
    problem="transpose",
    name="memcpy",
    kind="cuda",
    summary="cudaMemcpy device to device: the ceiling of % of memcpy",
    build=lambda case: LibraryCall(enqueue),
    computes=COPY,
    blocks=False,
    library=True,
)
