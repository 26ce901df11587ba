"""Kernels as users write them, of which one integer type more or less makes another kernel."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

from typing import Any

from numba import cuda, float32, int64, types, uint32


@cuda.jit
def halo(out: Any, a: Any) -> None:
    i = cuda.threadIdx.x - 1
    if i >= 0:
        out[i] = a[i]


@cuda.jit
def clamped(out: Any, a: Any) -> None:
    i = cuda.grid(1)
    out[i] = a[max(i - 1, 0)]


@cuda.jit
def negative_literal(out: Any, a: Any) -> None:
    out[cuda.threadIdx.x] = a[cuda.threadIdx.x + -1]


@cuda.jit
def from_the_end(out: Any, a: Any) -> None:
    out[cuda.threadIdx.x] = a[-1 - cuda.threadIdx.x]


@cuda.jit
def mixed(out: Any, a: Any) -> None:
    first = int64(cuda.blockIdx.x) - 3 + uint32(2)
    if first < cuda.threadIdx.x:
        out[first + 1] = a[uint32(first) % 7]


@cuda.jit
def widens(out: Any, a: Any) -> None:
    total = uint32(4_000_000_000) + uint32(4_000_000_000)
    out[0] = a[0] + total


@cuda.jit
def in_place(out: Any, a: Any) -> None:
    i = cuda.blockDim.x
    i -= cuda.threadIdx.x + 1
    i >>= 1
    out[i] = a[i]


@cuda.jit
def tile(out: Any, a: Any) -> None:
    shared = cuda.shared.array((2, 32), float32)
    t = cuda.threadIdx.x
    shared[t % 2, t - t // 2 * 2 + 1] = a[t]
    cuda.syncthreads()
    out[t] = shared[t // 16, 31 - t]


KERNELS = [
    (kernel, ("float32[64]", "float32[64]"))
    for kernel in (clamped, halo, negative_literal, from_the_end, mixed, widens, in_place, tile)
]
"""With arguments of a launch."""


def ptx(kernel: Any) -> str:
    """What Numba makes of it, for compute capability 9.0."""
    two = (types.float32[::1], types.float32[::1])
    text: str = cuda.compile_ptx(kernel.py_func, two, cc=(9, 0))[0]
    return text
