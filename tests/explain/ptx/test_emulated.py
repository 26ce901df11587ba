"""Requests, sectors and wavefronts of well-known kernels: those of an emulation warp by warp, written apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from smembench.explain.ptx.costs import Call, explain_ptx
from smembench.explain.ptx.parse import Module, parse
from smembench.launches.array_argument import ArrayArgument
from smembench.toolchains.nvrtc import compile_source

pytest.importorskip("cuda.bindings.nvrtc")

SOURCE = r"""
extern "C" {
__global__ void rows_of_csr(float *y, const volatile float *x, const int *row, const int *col, int n) {
    int r = blockIdx.x * 128 + threadIdx.x;
    if (r >= n) return;
    float sum = 0;
    int end = row[r + 1];
    #pragma unroll 1
    for (int j = row[r]; j < end; j++) sum += x[col[j]];
    y[r] = sum;
}
__global__ void filtered(float *y, const volatile float *x, int w, int h) {
    __shared__ volatile float s[10][34];
    int left = blockIdx.x * 32, top = blockIdx.y * 8;
    #pragma unroll 1
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 340; i += 256) {
        int r = top + i / 34 - 1, c = left + i % 34 - 1;
        s[i / 34][i % 34] = r >= 0 && r < h && c >= 0 && c < w ? x[r * w + c] : 0;
    }
    __syncthreads();
    float sum = 0;
    #pragma unroll 1
    for (int d = 0; d < 9; d++) sum += s[threadIdx.y + d / 3][threadIdx.x + d % 3];
    if (left + threadIdx.x < w && top + threadIdx.y < h) y[(top + threadIdx.y) * w + left + threadIdx.x] = sum;
}
__global__ void merged(float *y, const float *x) {
    __shared__ volatile float s[256];
    int t = threadIdx.x;
    s[t] = x[t];
    s[t + 128] = x[t + 128];
    __syncthreads();
    #pragma unroll 1
    for (int d = 128; d > 0; d >>= 1) {
        int p = 2 * t - (t & (d - 1));
        float a = s[p], b = s[p + d];
        s[p] = fminf(a, b);
        s[p + d] = fmaxf(a, b);
        __syncthreads();
    }
    y[t] = s[t];
    y[t + 128] = s[t + 128];
}
__global__ void compacted(float *y, const int *kept, int n) {
    int i = blockIdx.x * 128 + threadIdx.x, lane = threadIdx.x & 31;
    bool keep = i < n && kept[i] > 50;
    unsigned of_warp = __ballot_sync(~0u, keep);
    if (keep) y[i - lane + __popc(of_warp & (1u << lane) - 1)] = 1;
}
__global__ void batch(float *y, const float *x, int n, int m) {
    __shared__ volatile float s[16][17];
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (i < n && j < m) s[threadIdx.y][threadIdx.x] = x[(blockIdx.z * n + i) * m + j];
    __syncthreads();
    int a = blockIdx.x * 16 + threadIdx.y, b = blockIdx.y * 16 + threadIdx.x;
    if (a < m && b < n) y[(blockIdx.z * m + a) * n + b] = s[threadIdx.x][threadIdx.y];
}
__global__ void triangle(float *y, const float *x, int n) {  // each block has a row as long as its number
    float sum = 0;
    #pragma unroll 1
    for (int j = threadIdx.x; j <= blockIdx.x; j += 32) sum += x[blockIdx.x * n + j];
    y[blockIdx.x * 32 + threadIdx.x] = sum;
}
}
"""
FLOATS = ArrayArgument((200_000,), np.dtype("float32"))
FLOAT = 4
"""Bytes."""
ARRAYS = {"rows_of_csr": ("y", "x", "row", "col"), "compacted": ("y", "kept")}
"""The arrays among a kernel's parameters, where they are not y and x."""
Counts = dict[tuple[str, str], list[int]]
"""Requests, and their sectors in an array or wavefronts in shared memory, by array and kind of access."""


class Emulated:
    """What warps access, by the elements of their active lanes; all elements have four bytes."""

    def __init__(self) -> None:
        self.counts: Counts = {}

    def access(self, array: str, kind: str, elements: Iterable[int]) -> None:
        """A request; of no lane it is none."""
        if active := set(elements):
            banks = [{element for element in active if element % 32 == bank} for bank in range(32)]
            cost = max(map(len, banks)) if array == "s" else len({FLOAT * element // 32 for element in active})
            requests, costs = self.counts.get((array, kind), [0, 0])
            self.counts[array, kind] = [requests + 1, costs + cost]


def warps(threads: int) -> Iterator[range]:
    """The threads of each warp."""
    return (range(begin, begin + 32) for begin in range(0, threads, 32))


def rows_of_csr(run: Emulated, row: Any, col: Any) -> None:
    n = len(row) - 1
    for block, warp in product(range(4), warps(128)):
        rows = [block * 128 + thread for thread in warp if block * 128 + thread < n]
        run.access("row", "load", (r + 1 for r in rows))
        run.access("row", "load", rows)
        at = {r: int(row[r]) for r in rows}
        while active := [r for r in rows if at[r] < row[r + 1]]:
            run.access("col", "load", (at[r] for r in active))
            run.access("x", "load", (int(col[at[r]]) for r in active))
            for r in active:
                at[r] += 1
        run.access("y", "store", rows)


def filtered(run: Emulated, w: int, h: int) -> None:
    for top, left, warp in product(range(0, h, 8), range(0, w, 32), warps(256)):
        for turn in range(2):
            cells = [thread + 256 * turn for thread in warp if thread + 256 * turn < 340]
            places = [(top + cell // 34 - 1, left + cell % 34 - 1) for cell in cells]
            run.access("x", "load", (r * w + c for r, c in places if 0 <= r < h and 0 <= c < w))
            run.access("s", "store", cells)
        for d in range(9):
            run.access("s", "load", ((thread // 32 + d // 3) * 34 + thread % 32 + d % 3 for thread in warp))
        results = [(top + thread // 32, left + thread % 32) for thread in warp]
        run.access("y", "store", (r * w + c for r, c in results if r < h and c < w))


def merged(run: Emulated) -> None:
    for warp in warps(128):
        for apart in (0, 128):
            run.access("x", "load", (thread + apart for thread in warp))
            run.access("s", "store", (thread + apart for thread in warp))
            run.access("s", "load", (thread + apart for thread in warp))
            run.access("y", "store", (thread + apart for thread in warp))
        for d in (2**bit for bit in range(8)):
            for kind, apart in product(("load", "store"), (0, d)):
                run.access("s", kind, (2 * thread - thread % d + apart for thread in warp))


def compacted(run: Emulated, kept: Any) -> None:
    for block, warp in product(range(4), warps(128)):
        numbers = [block * 128 + thread for thread in warp if block * 128 + thread < len(kept)]
        run.access("kept", "load", numbers)
        begin = block * 128 + warp[0]
        run.access("y", "store", range(begin, begin + sum(bool(kept[i] > 50) for i in numbers)))


def batch(run: Emulated, n: int, m: int) -> None:
    for z, top, left, warp in product(range(3), range(0, n, 16), range(0, m, 16), warps(256)):
        lanes = [(thread // 16, thread % 16) for thread in warp]
        inside = [(y, x) for y, x in lanes if top + y < n and left + x < m]
        run.access("x", "load", ((z * n + top + y) * m + left + x for y, x in inside))
        run.access("s", "store", (y * 17 + x for y, x in inside))
        inside = [(y, x) for y, x in lanes if left + y < m and top + x < n]
        run.access("s", "load", (x * 17 + y for y, x in inside))
        run.access("y", "store", ((z * m + left + y) * n + top + x for y, x in inside))


def triangle(run: Emulated, blocks: int, n: int) -> None:
    for block in range(blocks):
        for begin in range(0, block + 1, 32):
            run.access("x", "load", range(block * n + begin, block * n + min(begin + 32, block + 1)))
        run.access("y", "store", range(block * 32, block * 32 + 32))


@cache
def module() -> Module:
    return parse(compile_source(SOURCE, Path("emulated.cu"), "9.0", []).ptx)


def assert_counted(run: Emulated, name: str, grid: tuple[int, ...], block: tuple[int, ...], *arguments: Any) -> None:
    costs = explain_ptx(module().kernels[name], Call(grid, block, list(arguments)), title=name, filename="emulated.cu")
    names = {f"{name}_param_{place}": array for place, array in enumerate(ARRAYS.get(name, ("y", "x")))} | {"s": "s"}
    predicted: Counts = {}
    accesses = [(access.site, access.requests, access.of_all) for access in costs.memory]
    accesses += [(access.site, access.requests, access.of_all) for access in costs.shared]
    for site, requests, cost in accesses:
        before = predicted.get((names[site.array], site.kind), [0, 0])
        predicted[names[site.array], site.kind] = [before[0] + requests, before[1] + round(cost)]
    assert predicted == run.counts
    assert not costs.trace.mistakes
    assert costs.trace.sampled is None


def integers(values: Any) -> ArrayArgument:
    return ArrayArgument(values.shape, values.dtype, values)


@pytest.mark.parametrize("seed", range(2))
def test_rows_and_places_are_read_from_data(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row = np.concatenate([[0], np.cumsum(rng.integers(0, 9, 500))]).astype(np.int32)
    col, kept = (rng.integers(0, most, count).astype(np.int32) for most, count in ((5000, row[-1]), (100, 500)))
    run = Emulated()
    rows_of_csr(run, row, col)
    assert_counted(run, "rows_of_csr", (4,), (128,), FLOATS, FLOATS, integers(row), integers(col), 500)
    run = Emulated()
    compacted(run, kept)
    assert_counted(run, "compacted", (4,), (128,), FLOATS, integers(kept), 500)


CASES: list[tuple[Callable[..., None], tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
    (filtered, (3, 3), (32, 8), (70, 21), (70, 21)),
    (filtered, (2, 5), (32, 8), (64, 40), (64, 40)),
    (merged, (1,), (128,), (), ()),
    (batch, (5, 3, 3), (16, 16), (45, 70), (45, 70)),
    (triangle, (400,), (32,), (400, 401), (401,)),
]


@pytest.mark.parametrize(("emulation", "grid", "block", "sizes", "arguments"), CASES)
def test_kernels_without_data(
    emulation: Callable[..., None],
    grid: tuple[int, ...],
    block: tuple[int, ...],
    sizes: tuple[int, ...],
    arguments: tuple[int, ...],
) -> None:
    run = Emulated()
    emulation(run, *sizes)
    assert_counted(run, emulation.__name__, grid, block, FLOATS, FLOATS, *arguments)
