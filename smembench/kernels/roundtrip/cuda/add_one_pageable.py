"""addOnePageable: the documents' add_one, one thread per element, with the arrays in pageable host memory.

Timed is all of it: the copy to the device, the launch from Python, the kernel, the copy back and the wait. The
blog's kernel adds in place; here input and output are two arrays, so that a result can be compared with its input. Its
blocks have one dimension; here threads are counted along x, then y.
"""

from __future__ import annotations

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.program import MemoryKind, NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case


def build(case: Case, place: MemoryKind = "pageable") -> NumbaKernel:
    """Program for ``(out, inp, n)``, whose host arrays are of this kind."""
    block = block_of(case)
    bx, threads = block.x, threads_of(case)

    def add_one(out: Array, inp: Array, n: Index) -> None:
        idx = cuda.blockIdx.x * threads + (cuda.threadIdx.y * bx + cuda.threadIdx.x)
        if idx < n:
            out[idx] = inp[idx] + 1

    return NumbaKernel(add_one, grid=covering(case.n, 1, Block(threads, 1)), block=block, inputs=place, output=place)


KERNEL = Kernel(
    problem="roundtrip",
    name="addOnePageable",
    kind="cuda",
    summary="copy to the device, add one, copy back; pageable memory",
    build=build,
)
