"""Release/acquire flags in global memory: one block waits for another's partial sums, without the host in between.

A block raises its own flag when its sums are written. The next block waits for that flag and lowers it, so every launch
finds all flags down. A persistent grid, whose blocks all run at once, terminates in whatever order they start. So does
a larger one where the GPU starts the block before no later, which CUDA does not promise.

The flags are a variable of the module, as ``__device__ unsigned flags[4096];`` in CUDA C, zero when it is loaded. One
thread stores with release and loads with acquire semantics at the scope of the GPU (PTX ISA, "Memory Consistency
Model"); barriers before the store and after the load extend that to all threads of both blocks.

In the simulator the functions do nothing: blocks run in order.
"""

from __future__ import annotations

from smembench.kernels.intrinsics.declaration import GLOBAL, VALUE, Ptx, Type
from smembench.kernels.intrinsics.scratch import scratch
from smembench.kernels.numba_cuda import device
from smembench.kernels.types import Array, Index, Scalar

MOST_BLOCKS = 4096
"""Most blocks of a grid: the number of flags."""

_flags = scratch("block_flags", "uint32", MOST_BLOCKS)


@device
def raise_flag(block: Index) -> None:
    """Raise this block's flag (``st.release``); by one thread, after a barrier that follows the writes of all."""
    _raise(_flags(), block)


@device
def wait_for_flag(block: Index) -> None:
    """Wait for a block's flag (``ld.acquire``) and lower it; by one thread, before a barrier for the others."""
    _lower(_flags(), block)


@Ptx("st.release.gpu.global.u32 [$0], 1;", GLOBAL)
def _raise(flags: Array, block: Index) -> None:
    pass


# LLVM numbers the label, so that a kernel may wait more than once.
@Ptx(
    "{ .reg .u32 flag; .reg .pred down;"
    " wait_${:uid}: ld.acquire.gpu.global.u32 flag, [$0]; setp.eq.u32 down, flag, 0; @down bra wait_${:uid};"
    " st.relaxed.gpu.global.u32 [$0], 0; }",
    GLOBAL,
)
def _lower(flags: Array, block: Index) -> None:
    pass


def _of_elements(array: Type, index: Type, value: Type) -> bool:
    return bool(array.ndim == 1 and array.dtype == value)


@Ptx("red.relaxed.gpu.global.add.f%bits [$0], $1;", GLOBAL, VALUE, fits=_of_elements)
def accumulate(array: Array, index: Index, value: Scalar) -> None:
    """Add to an element in global memory without loading it.

    ``red.global.add`` of PTX, which takes subnormal numbers of single precision for zero.
    """
    array[index] += value
