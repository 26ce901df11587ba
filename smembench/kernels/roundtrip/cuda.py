"""The documents' add_one, one thread per element, by where its arrays lie.

With arrays of the host all of it is timed: the copy to the device, the launch from Python, the kernel, the copy back
and the wait. In page-locked memory both copies go at the speed of the link; the launch and the waiting stay, and weigh
the more. With arrays in the GPU's memory the launch alone is timed, by events: what a program pays whose array stays on
the GPU between kernels.

The blog's kernel adds in place; here input and output are two arrays, so that a result can be compared with its input.
Its blocks have one dimension; here threads are counted along x, then y.
"""

from __future__ import annotations

from functools import partial

from smembench.kernels.common.grids import block_of, covering, threads_of
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.program import MemoryKind, NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Block, Case


def build(case: Case, place: MemoryKind) -> NumbaKernel:
    """Program for ``(out, inp, n)``, whose arrays are of this kind of memory."""
    block = block_of(case)
    bx, threads = block.x, threads_of(case)

    def add_one(out: Array, inp: Array, n: Index) -> None:
        idx = cuda.blockIdx.x * threads + (cuda.threadIdx.y * bx + cuda.threadIdx.x)
        if idx < n:
            out[idx] = inp[idx] + 1

    return NumbaKernel(add_one, grid=covering(case.n, 1, Block(threads, 1)), block=block, inputs=place, output=place)


def _kernel(name: str, summary: str, place: MemoryKind) -> Kernel:
    return Kernel("roundtrip", name, "cuda", summary, build=partial(build, place=place))


KERNELS = (
    _kernel("addOnePageable", "copy to the device, add one, copy back; pageable memory", "pageable"),
    _kernel("addOnePinned", "copy to the device, add one, copy back; page-locked memory", "pinned"),
    _kernel("addOneDevice", "add one to an array in the GPU's memory: no copies", "device"),
)
