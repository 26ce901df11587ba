"""naiveGmem on the CPU: block by block, rows read, columns written.

Each write touches another cache line. Where ny is a power of two they all fall into the same few sets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smembench.kernels.common.grids import block_of
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.model.case import Case

if TYPE_CHECKING:
    from smembench.model.problem import Array


def build(case: Case) -> HostFunction:
    """Program for ``(out, inp, nx, ny)``."""
    from numba import njit, prange, uint64

    bx, by = block_of(case)

    @njit(parallel=True, nogil=True)
    def naive_gmem(out: Array, inp: Array, nx: int, ny: int) -> None:
        for row_of_blocks in prange((ny + by - 1) // by):
            y0 = row_of_blocks * by
            for x0 in range(0, nx, bx):
                for y in range(y0, min(y0 + by, ny)):
                    for x in range(x0, min(x0 + bx, nx)):
                        out[uint64(x * ny + y)] = inp[uint64(y * nx + x)]

    return HostFunction(naive_gmem)


KERNEL = Kernel(
    problem="transpose",
    name="naiveGmem",
    kind="cpu",
    summary="transpose block by block, rows read, columns written, on all cores",
    build=build,
    computes=TRANSPOSE,
    ladder="from memory to memory: writes strided",
)
