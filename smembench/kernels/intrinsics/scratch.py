"""Scratch memory: arrays in global memory that belong to a module, through which its blocks pass on what they found.

As ``__device__ float scratch[elements];`` in CUDA C: zero when the module is loaded, and what a launch leaves there the
next one finds. Launches that overlap share it, so a kernel that has some runs on one stream at a time. A count in it
lets blocks wait for each other.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from smembench.kernels.intrinsics.declaration import ARRAY, GLOBAL, INTEGER, Ptx, register, types
from smembench.kernels.numba_cuda import DeviceFunction, number
from smembench.kernels.types import Array, Index

_MEET = (
    "{ .reg .u32 found, others; .reg .pred less, last; sub.u32 others, $1, 1; red.release.gpu.global.add.u32 [$0], 1;"
    " all_${:uid}: ld.acquire.gpu.global.u32 found, [$0]; setp.lt.u32 less, found, $1; @less bra all_${:uid};"
    " atom.relaxed.gpu.global.inc.u32 found, [$0 + 4], others; setp.eq.u32 last, found, others;"
    " @last st.relaxed.gpu.global.u32 [$0], 0; }"
)
"""Blocks count themselves, and again when they go on; the last of these sets the first count back."""


@cache
def scratch(name: str, dtype: str, elements: int) -> DeviceFunction:
    """``()``: the array of this name, with ``elements`` elements, aligned for vectors.

    In the simulator: an array of NumPy that is made at the first call, for all launches of a process.
    """
    kind = types.Array(number(dtype), 1, "C")

    @cache
    def simulated() -> Any:
        return np.zeros(elements, dtype)

    def array() -> Array:
        values: Array = simulated()
        return values

    # LLVM IR: a variable of the module is no instruction, and LLVM has to know its space and alignment.
    return register(array, lambda code: code.module_array(f"smembench_{name}", kind, elements), result=kind)


# The result is a constant for LLVM, which sees a loop of one pass.
@Ptx(
    "{ .reg .u32 found; .reg .pred less;"
    " wait_${:uid}: ld.acquire.gpu.global.u32 found, [$0]; setp.lt.u32 less, found, $1; @less bra wait_${:uid}; }",
    GLOBAL,
    INTEGER,
    fits=lambda counts, index, wanted: counts.dtype == wanted == types.uint32,
    result=types.uint32,
    constant=1,
)
def wait_for_count(counts: Array, index: Index, wanted: Index) -> int:
    """Wait until a count of blocks is ``wanted``; returns for how many of these blocks this one goes on: 1, for itself.

    Whatever blocks wrote before they counted is visible afterwards. All of them have to run at once, as those of a
    persistent grid do. In the simulator blocks run in order, so that only the last one goes on, for all of them.
    """
    return wanted if counts[index] == wanted else 0


@Ptx(_MEET, ARRAY, INTEGER)
def meet(counts: Array, blocks: Index) -> None:
    """Wait until all ``blocks`` of a persistent grid have come here; for one thread of each.

    What threads wrote before a barrier ahead of it is visible after a barrier behind it. Both ``counts`` are zero again
    afterwards. In the simulator for a single block.
    """
