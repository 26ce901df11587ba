"""A chain of dependent loads, followed by one thread, by the memory that it lies in."""

from __future__ import annotations

from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import Case
from smembench.model.problem import ITEMSIZE

THREADS = 256
_MOST_BYTES = 48 * 1024
"""Shared memory that a launch has without asking for more."""


def global_memory(case: Case) -> NumbaKernel:
    """Program for ``(out, chain, n, loads)``, through whichever caches hold the chain."""

    def global_chain(out: Array, chain: Array, n: Index, loads: Index) -> None:
        at = uint32(0)
        done = uint32(0)
        while done < loads:
            at = uint32(int(chain[at]))
            done = done + 1
        out[0] = at

    return NumbaKernel(global_chain, grid=(1, 1), block=(1, 1))


def shared_memory(case: Case) -> NumbaKernel:
    """The same in shared memory, which the launch gives: a block copies the chain, its last thread follows it.

    The copy takes about as long as a few hundred loads.
    """
    word = number(case.dtype)

    def shared_chain(out: Array, chain: Array, n: Index, loads: Index) -> None:
        shared = cuda.shared.array(0, word)
        i = cuda.threadIdx.x
        while i < n:
            shared[i] = chain[i]
            i = i + THREADS
        cuda.syncthreads()
        if cuda.threadIdx.x == THREADS - 1:
            at = uint32(0)
            done = uint32(0)
            while done < loads:
                at = uint32(int(shared[at]))
                done = done + 1
            out[0] = at

    return NumbaKernel(shared_chain, grid=(1, 1), block=(THREADS, 1), dynamic_bytes=case.n * ITEMSIZE[case.dtype])


def too_long(case: Case) -> str | None:
    """A chain that does not fit."""
    most = _MOST_BYTES // ITEMSIZE[case.dtype]
    return f"n {case.n}: at most {most} words fit the shared memory of a block" if case.n > most else None


def elements(case: Case) -> int:
    """The whole chain."""
    return case.n


KERNELS = (
    Kernel(
        problem="latency",
        name="globalChain",
        kind="cuda",
        summary="dependent loads from global memory: the L1, the L2 or DRAM, as the chain's size decides",
        build=global_memory,
        blocks=False,
    ),
    Kernel(
        problem="latency",
        name="sharedChain",
        kind="cuda",
        summary="dependent loads from shared memory",
        build=shared_memory,
        blocks=False,
        tile_elements=elements,
        dynamic_elements=elements,
        unsupported=too_long,
    ),
)
