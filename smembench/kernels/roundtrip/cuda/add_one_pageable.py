"""addOnePageable: the documents' add_one, one thread per element, with the arrays in pageable host memory.

Timed is all of it: the copy to the device, the launch from Python, the kernel, the copy back and the wait. The
documents' kernel adds in place; here input and output are two arrays, so that a result can be held against its input.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.program import MemoryKind, NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import Block, Case


def build(case: Case, place: MemoryKind = "pageable") -> NumbaKernel:
    """Program for ``(out, inp, n)``, whose host arrays are of this kind."""
    block = block_of(case)
    bx, threads = block.x, threads_of(case)

    def add_one(out: Any, inp: Any, n: Any) -> None:
        t = cuda.threadIdx.y * bx + cuda.threadIdx.x
        i = cuda.blockIdx.x * threads + t
        if i < n:
            out[i] = inp[i] + 1

    return NumbaKernel(add_one, grid=covering(case.n, 1, Block(threads, 1)), block=block, inputs=place, output=place)


KERNEL = Kernel(
    problem="roundtrip",
    name="addOnePageable",
    kind="cuda",
    summary="copy to the device, add one, copy back; pageable memory",
    build=build,
)
