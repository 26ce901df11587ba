"""globalChain on the CPU: one thread follows the chain, through whichever caches hold it."""

from __future__ import annotations

from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.kernels.types import Array, Index
from smembench.model.case import Case


def build(case: Case) -> HostFunction:
    """Program for ``(out, chain, n, loads)``."""
    from numba import njit, uint64

    @njit(nogil=True)
    def follow(out: Array, chain: Array, n: Index, loads: Index) -> None:
        at = uint64(0)
        for _ in range(loads):
            at = uint64(chain[at])
        out[0] = at

    return HostFunction(follow)


KERNEL = Kernel(
    problem="latency",
    name="globalChain",
    kind="cpu",
    summary="dependent loads by one thread: a cache or DRAM, as the chain's size decides",
    build=build,
    blocks=False,
)
