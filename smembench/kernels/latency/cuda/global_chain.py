"""globalChain: one thread follows the chain in global memory, through whichever caches hold it."""

from __future__ import annotations

from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Case


def build(case: Case) -> NumbaKernel:
    """Program for ``(out, chain, n, loads)``."""

    def global_chain(out: Array, chain: Array, n: Index, loads: Index) -> None:
        at = uint32(0)
        done = uint32(0)
        while done < loads:
            at = uint32(int(chain[at]))
            done = done + 1
        out[0] = at

    return NumbaKernel(global_chain, grid=(1, 1), block=(1, 1))


KERNEL = Kernel(
    problem="latency",
    name="globalChain",
    kind="cuda",
    summary="dependent loads from global memory: the L1, the L2 or DRAM, as the chain's size decides",
    build=build,
    blocks=False,
)
