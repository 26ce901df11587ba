"""Iterations that are passed by: figures are those of a kernel whose iterations are all run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smembench.explain.costs import Costs
from smembench.explain.ptx.costs import Call, explain_ptx
from smembench.explain.ptx.parse import Module, parse
from smembench.launches.array_argument import ArrayArgument
from smembench.toolchains.nvrtc import compile_source

pytest.importorskip("cuda.bindings.nvrtc")

SOURCE = r"""
extern "C" {
__global__ void product(float *c, const float *a, const float *b, int n) {
    __shared__ float as[16][17], bs[16][17];
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        as[threadIdx.y][threadIdx.x] = k + threadIdx.x < n ? a[row * n + k + threadIdx.x] : 0;
        bs[threadIdx.y][threadIdx.x] = k + threadIdx.y < n ? b[(k + threadIdx.y) * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
__global__ void buffered(float *c, const float *a, int n) {  // three buffers, in turn
    __shared__ float some[3][256];
    int stage = 0;
    float sum = 0;
    for (int k = 0; k < n; k++) {
        some[stage][threadIdx.x] = a[k * 256 + threadIdx.x];
        __syncthreads();
        sum += some[stage][threadIdx.x ^ 5 * stage];
        stage = stage == 2 ? 0 : stage + 1;
    }
    c[threadIdx.x] = sum;
}
__global__ void bent(float *c, const float *a, int n, int at) {  // from an iteration on with a stride
    float sum = 0;
    for (int k = 0; k < n; k++) {
        if (k < at) sum += a[k * 256 + threadIdx.x];
        else sum += a[k * 256 + threadIdx.x * 8];
        __syncthreads();
    }
    c[threadIdx.x] = sum;
}
__global__ void once(float *c, const float *a, int n, int at) {
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < n; k++) {
        sum += a[k * 256 + threadIdx.x];
        if (k == at) sum += a[threadIdx.x * 8];
        __syncthreads();
    }
    c[threadIdx.x] = sum;
}
__global__ void between(float *c, const float *a, int n, int at) {  // for some iterations in the middle
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < n; k++) {
        sum += a[k * 256 + threadIdx.x];
        if (k >= at && k < at + 20) sum += a[threadIdx.x * 8];
        if (at % 3 == 0 && (k & 31) > 20) sum += a[threadIdx.x * 4];
        __syncthreads();
    }
    c[threadIdx.x] = sum;
}
__global__ void bounded(float *c, const float *a, int n, int at) {  // whole sectors up to a bound, then elements
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < n; k++) {
        sum += a[min(k, at) * 256 + max(k - at, 0) + (k & 63) * 8 + threadIdx.x];
        __syncthreads();
    }
    c[threadIdx.x] = sum;
}
__global__ void told(float *c, const float *a, int n, int at) {  // what a loop stores may be what tells the way
    __shared__ float some[2][256];
    __shared__ int way;
    float sum = 0;
    if (threadIdx.x == 0) way = at % 2;
    #pragma unroll 1
    for (int k = 0; k < n; k++) {
        some[k % 2][threadIdx.x] = a[k * 256 + threadIdx.x];
        __syncthreads();
        sum += some[k % 2][threadIdx.x ^ 1];
        if (at % 3 == 0 && k == at && threadIdx.x == 0) way += 1;
    }
    __syncthreads();
    c[threadIdx.x * (way == 1 ? 8 : 1)] = sum;
}
__global__ void unaligned(float *c, const float *a, int n) {
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < n; k++) { sum += a[threadIdx.x * n + k]; __syncthreads(); }
    c[threadIdx.x] = sum;
}
__global__ void halved(float *c, const float *a, int n) {  // iterations of growing strides
    float sum = 0;
    for (int k = n; k > 0; k >>= 1) { sum += a[k * threadIdx.x]; __syncthreads(); }
    c[threadIdx.x] = sum;
}
__global__ void filled(float *c, const float *a, int n) {  // a tile row by row, of which some elements are loaded
    __shared__ float some[64 * 150];
    #pragma unroll 1
    for (int k = threadIdx.x; k < 64 * n; k += 256) some[k] = a[k];
    __syncthreads();
    c[threadIdx.x] = some[threadIdx.x * n / 4];
}
}
"""

BOTH = ["bent", "once", "between", "bounded", "told"]
"""The kernels with two numbers."""


@cache
def module() -> Module:
    return parse(compile_source(SOURCE, Path("steady.cu"), "9.0", []).ptx)


def figures(costs: Costs) -> Mapping[object, object]:
    """Requests and totals by access."""
    assert not costs.trace.mistakes
    result: dict[object, object] = {}
    result.update({item.site: (item.requests, item.of_all) for item in costs.shared})
    result.update({item.site: (item.requests, item.of_all) for item in costs.memory})
    barriers = (item for item in costs.trace.accesses if item.site.space == "barrier")
    result["barriers"] = sum(len(item.addresses) * item.weight for item in barriers)
    return result


def both(kernel: str, numbers: tuple[int, ...], block: tuple[int, ...] = (256,)) -> list[Mapping[object, object]]:
    arrays = [ArrayArgument((2**22,), np.dtype("float32"))] * (len(module().kernels[kernel].parameters) - len(numbers))
    call = Call((2, 2), block, [*arrays, *numbers])
    result = []
    for way in ("passed", "run"):
        with pytest.MonkeyPatch.context() as patch:
            if way == "run":
                patch.setattr("smembench.explain.ptx.machine.loops", lambda *of: {})
            result.append(figures(explain_ptx(module().kernels[kernel], call, title=kernel, filename="steady.cu")))
    return result


@pytest.mark.parametrize("n", [16, 96, 1024, 1000, 1016])
def test_a_product_with_any_remainder(n: int) -> None:
    passed, run = both("product", (n,), (16, 16))
    assert passed == run


@settings(max_examples=25, deadline=None)
@given(
    kernel=st.sampled_from(["buffered", "unaligned", "halved", "filled", *BOTH]),
    n=st.integers(1, 150),
    at=st.integers(0, 150),
)
def test_loops_of_every_kind(kernel: str, n: int, at: int) -> None:
    passed, run = both(kernel, (n, at) if kernel in BOTH else (n,))
    assert passed == run


@pytest.mark.parametrize("n", range(58, 150, 13))
def test_what_comes_and_goes_in_the_middle(n: int) -> None:
    passed, run = both("between", (n, 30))
    assert passed == run


def test_elements_that_a_long_loop_stored_are_not_called_unwritten() -> None:
    passed, run = both("filled", (150,))
    assert passed == run


def test_most_iterations_are_not_run() -> None:
    """Of 2^16 of a loop, in fewer instructions than these have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("smembench.explain.ptx.machine.MOST_STEPS", 2**15)
        arrays = [ArrayArgument((2**26,), np.dtype("float32"))] * 2
        call = Call((1,), (256,), [*arrays, 2**16])
        costs = explain_ptx(module().kernels["buffered"], call, title="buffered", filename="steady.cu")
    (load,) = (item for item in costs.memory if item.site.kind == "load")
    assert load.requests == 8 * 2**16


LOOPS = """
extern "C" {
__global__ void inner(volatile float *out, const volatile float *x, int n) {  // five iterations, again and again
    #pragma unroll 1
    for (int k = 0; k < n; k++) {
        #pragma unroll 1
        for (int i = 0; i < 10; i += 2) out[threadIdx.x] = 1;
    }
}
__global__ void down(volatile float *out, const volatile float *x, unsigned n) {  // ends by wrapping around
    #pragma unroll 1
    for (unsigned i = n - 1; i < n; i--) out[i * 32 + threadIdx.x] = 1;
}
__global__ void bytes(volatile float *out, const volatile float *x, int n) {  // wraps around every 256 iterations
    #pragma unroll 1
    for (int i = 0; i < n; i++)
        if ((signed char)i < 50) out[threadIdx.x] = 1;
}
__global__ void skipped(volatile float *out, const volatile float *x, int n) {  // a comparison that nobody comes to
    #pragma unroll 1
    for (int i = 0; i < n; i++) {
        if (i == n + 9) {
            out[threadIdx.x] = 2;
            if (i + threadIdx.x < 7) break;
        }
        out[threadIdx.x] = 1;
    }
}
__global__ void cases(float *out, const volatile float *x, int n) {  // a case that the compiler may put before the loop
    __shared__ volatile float s[32];
    float sum = 0;
    #pragma unroll 1
    for (int i = threadIdx.x & 3; i < n; i++) {
        switch (n * threadIdx.x % 5) {
        case 0: if ((threadIdx.x | 38) + max(n, threadIdx.x) > 32) sum += s[threadIdx.x]; break;
        case 1: ((volatile float *)out)[threadIdx.x] = 1;
        case 3: sum += x[threadIdx.x]; break;
        }
    }
}
}
"""


@pytest.mark.parametrize(
    ("name", "n", "requests", "of_all"),
    [
        ("inner", 100, 500, 2000),
        ("down", 100, 100, 400),
        ("bytes", 1080, 762, 3048),
        ("skipped", 100, 100, 400),
        ("cases", 100, 100, 100),
    ],
)
def test_every_iteration_is_counted_once(name: str, n: int, requests: int, of_all: int) -> None:
    kernel = parse(compile_source(LOOPS, Path("loops.cu"), "9.0", []).ptx).kernels[name]
    floats = ArrayArgument((2**16,), np.dtype("float32"))
    costs = explain_ptx(kernel, Call((1,), (32,), [floats, floats, n]), title=name, filename="loops.cu")
    accesses = costs.shared if name == "cases" else costs.memory
    assert sum(access.requests for access in accesses) == requests
    assert sum(access.of_all for access in accesses) == of_all
