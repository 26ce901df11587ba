"""Kernels as users write them, for tests of ``explain path.py:function``."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba import cuda, float32, int32
from numba.cuda import shfl_down_sync, syncthreads

TILE, PADDED = 32, 33
WEIGHTS = np.array([3, 1, 2, 0], np.int32)


@cuda.jit(device=True)
def clamped(index: Any, side: Any) -> Any:
    """An index that lies inside."""
    return max(0, min(index, side - 1))


@cuda.jit
def one_dimension(out: Any, a: Any, scale: Any) -> None:
    """A grid-stride loop with math and a typed constant."""
    for i in range(cuda.grid(1), a.shape[0], cuda.gridsize(1)):
        out[i] = math.sqrt(a[i]) * float32(scale) + np.float32(i)


@cuda.jit
def tile(out: Any, a: Any) -> None:
    """A transpose with conflicts."""
    shared = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    shared[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + cuda.threadIdx.x
    y = cuda.blockIdx.x * TILE + cuda.threadIdx.y
    out[y, x] = shared[cuda.threadIdx.x, cuda.threadIdx.y]


@cuda.jit
def padded(out: Any, a: Any) -> None:
    """The same without conflicts."""
    shared = cuda.shared.array((TILE, PADDED), dtype=numba.float32)
    x, y = cuda.grid(2)
    shared[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + cuda.threadIdx.x
    y = cuda.blockIdx.x * TILE + cuda.threadIdx.y
    out[y, x] = shared[cuda.threadIdx.x, cuda.threadIdx.y]


@cuda.jit
def race(out: Any, a: Any) -> None:
    """The same without its barrier."""
    shared = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    shared[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    out[y, x] = shared[cuda.threadIdx.x, cuda.threadIdx.y]


@cuda.jit
def stencil(out: Any, a: Any) -> None:
    """Three dimensions, a device function, rows as views."""
    x, y, z = cuda.grid(3)
    if x < out.shape[2] and y < out.shape[1] and z < out.shape[0]:
        total = 0.0
        for step in range(-1, 2):
            plane = a[clamped(z + step, a.shape[0])]
            total += plane[y, x]
        out[z, y, x] = total


@cuda.jit
def outside(out: Any, a: Any) -> None:
    """Reads one element too far."""
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i + 1]


@cuda.jit
def gather(out: Any, a: Any, indices: Any) -> None:
    """An address that depends on data."""
    i = cuda.grid(1)
    if i < indices.size:
        out[i] = a[indices[i]]


@cuda.jit
def rows(out: Any, first: Any, a: Any) -> None:
    """Loops whose length depends on data."""
    i = cuda.grid(1)
    if i < out.size:
        total = 0.0
        for k in range(first[i], first[i + 1]):
            total += a[k]
        out[i] = total


@cuda.jit
def histogram(bins: Any, a: Any) -> None:
    """Atomics on shared and on global memory."""
    counts = cuda.shared.array(32, int32)
    lane = cuda.threadIdx.x
    if lane < 32:
        counts[lane] = 0
    cuda.syncthreads()
    cuda.atomic.add(counts, cuda.grid(1) % 32, 1)
    cuda.syncthreads()
    if lane < 32:
        cuda.atomic.add(bins, lane, counts[lane])


@cuda.jit
def counted(bins: Any, a: Any) -> None:
    """A bin of each element of one dimension."""
    cuda.atomic.add(bins, a[cuda.grid(1)], 1)


@cuda.jit
def shuffled(out: Any, a: Any) -> None:
    """A sum by shuffles, local and constant arrays, names imported from numba.cuda, a barrier of the grid."""
    weights = cuda.const.array_like(WEIGHTS)
    own = cuda.local.array(4, float32)
    lane = cuda.threadIdx.x % 32
    for k in range(4):
        own[weights[k]] = a[4 * cuda.grid(1) + k]
    total = own[0] + own[1] + own[2] + own[3] + weights[lane % 4]
    step = 16
    while step > 0:
        total += shfl_down_sync(0xFFFFFFFF, total, step)
        step //= 2
    cuda.syncwarp()
    syncthreads()
    cuda.cg.this_grid().sync()
    if lane == 0:
        out[cuda.grid(1) // 32 + WEIGHTS[3]] = total


@cuda.jit
def long(out: Any, steps: Any) -> None:
    """More work than a trace does."""
    for k in range(steps):
        out[k] = k


@cuda.jit
def dynamic(out: Any, a: Any) -> None:
    """Two names of the same dynamic shared memory, one of them a view of its second half."""
    everything = cuda.shared.array(0, float32)
    words = cuda.shared.array(0, int32)
    half = everything[32:]
    lane = cuda.threadIdx.x
    half[lane] = a[lane]
    cuda.syncthreads()
    out[lane] = words[32 + (lane * 2) % 32]


@cuda.jit
def once(out: Any) -> None:
    """A store per block."""
    out[0] = 1


def plain(out: Any, a: Any) -> None:
    """A function without a decorator."""
    out[cuda.grid(1)] = a[cuda.grid(1)]


@cuda.jit
def quads(out: Any, a: Any) -> None:
    """Four neighbours per thread: the compiler makes one store of them, and one load."""
    shared = cuda.shared.array((TILE, 4), float32, alignment=16)
    t = cuda.threadIdx.x
    for k in range(4):
        shared[t, k] = a[k, t]
    cuda.syncthreads()
    out[t] = shared[t, 0] + shared[t, 1] + shared[t, 2] + shared[t, 3]


@cuda.jit
def negative(out: Any, a: Any) -> None:
    """An index below the first, which Numba alone computes as a signed number."""
    i = cuda.threadIdx.x + -1
    if i >= 0:
        out[i] = a[i]


def sums(offset: int) -> Any:
    """A kernel that closes over a device function, which calls another."""

    @cuda.jit(device=True)
    def four(shared: Any, row: Any) -> Any:
        return shared[clamped(row, TILE), 0] + shared[row, 1] + shared[row, 2] + shared[row, 3] + offset

    @cuda.jit
    def kernel(out: Any, a: Any) -> None:
        shared = cuda.shared.array((TILE, 4), float32, alignment=16)
        t = cuda.threadIdx.x
        for k in range(4):
            shared[t, k] = a[k, t]
        cuda.syncthreads()
        out[t] = four(shared, t)

    return kernel


@cuda.jit
def returns_early(out: Any, a: Any, n: Any) -> None:
    tile = cuda.shared.array(256, float32)
    i = cuda.grid(1)
    if i >= n:
        return
    tile[cuda.threadIdx.x] = a[i]
    cuda.syncthreads()
    out[i] = tile[cuda.threadIdx.x]


@cuda.jit
def returns_between_barriers(out: Any, a: Any, n: Any) -> None:
    tile = cuda.shared.array(256, float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    tile[t] = a[min(i, n - 1)]
    cuda.syncthreads()
    if i >= n or t >= 128:
        return
    tile[t] += tile[t + 128]
    cuda.syncthreads()
    out[i] = tile[t]


@cuda.jit
def goes_on(out: Any, a: Any, n: Any) -> None:
    tile = cuda.shared.array(256, float32)
    i = cuda.grid(1)
    tile[cuda.threadIdx.x] = a[min(i, n - 1)]
    if i < n:
        cuda.syncthreads()
    out[min(i, n - 1)] = tile[cuda.threadIdx.x]


@cuda.jit
def guarded_too_late(out: Any, a: Any, n: Any) -> None:
    i = cuda.grid(1)
    if i < n + 3:
        out[min(i, n - 1)] = a[i]


@cuda.jit
def add(out: Any, a: Any) -> None:
    cuda.atomic.add(out, cuda.grid(1), a[cuda.grid(1)])


@cuda.jit
def sqrt(out: Any, a: Any) -> None:
    out[cuda.grid(1)] = math.sqrt(a[cuda.grid(1)])


@cuda.jit
def shared(out: Any, a: Any) -> None:
    tile = cuda.shared.array(32, float32)
    tile[cuda.threadIdx.x] = a[cuda.grid(1)]
    out[cuda.grid(1)] = tile[cuda.threadIdx.x]


@cuda.jit(device=True)
def for_ever(n: Any) -> Any:
    return for_ever(n + 1)


@cuda.jit
def recurses(out: Any, a: Any) -> None:
    out[cuda.grid(1)] = for_ever(a.size)
