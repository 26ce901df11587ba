"""copyGmem on the CPU: block by block, all cores, as the copy that a transpose is compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smembench.kernels.common.grids import block_of
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.kernels.transpose.problem import COPY
from smembench.model.case import Case

if TYPE_CHECKING:
    from smembench.model.problem import Array


def build(case: Case) -> HostFunction:
    """Program for ``(out, inp, nx, ny)``."""
    from numba import njit, prange, uint64

    bx, by = block_of(case)

    @njit(parallel=True, nogil=True)
    def copy_gmem(out: Array, inp: Array, nx: int, ny: int) -> None:
        for row_of_blocks in prange((ny + by - 1) // by):
            y0 = row_of_blocks * by
            for x0 in range(0, nx, bx):
                for y in range(y0, min(y0 + by, ny)):
                    for x in range(x0, min(x0 + bx, nx)):
                        # Unsigned indices: no code for indices that count from the end.
                        i = uint64(y * nx + x)
                        out[i] = inp[i]

    return HostFunction(copy_gmem)


KERNEL = Kernel(
    problem="transpose",
    name="copyGmem",
    kind="cpu",
    summary="copy block by block on all cores",
    build=build,
    computes=COPY,
)
