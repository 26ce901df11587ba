"""Kernels with a fault that Compute Sanitizer names: 64 threads for an input of 64 elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case

THREADS = 64
_ELEMENT = number("float32")


def beyond_the_input(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    out[cuda.threadIdx.x] = inp[THREADS + cuda.threadIdx.x]


def no_barrier(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    tile = cuda.shared.array(THREADS, _ELEMENT)
    tile[cuda.threadIdx.x] = inp[cuda.threadIdx.x]
    out[cuda.threadIdx.x] = tile[THREADS - 1 - cuda.threadIdx.x]  # another warp's


def _kernel(function: Callable[..., None]) -> Kernel:
    def build(case: Case) -> NumbaKernel:
        return NumbaKernel(function, grid=(1, 1), block=(THREADS, 1))

    return Kernel("transpose", function.__name__, "cuda", build=build, computes="transpose", blocks=False)


KERNELS = (_kernel(beyond_the_input), _kernel(no_barrier))
