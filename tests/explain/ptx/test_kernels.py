"""Kernels of CUDA C run through the interpreter: what they leave in memory is what NumPy computes."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptx_runs import parsed, run_source
from smembench.explain.ptx.content import GlobalArray
from smembench.explain.ptx.machine import Machine
from smembench.explain.ptx.memory import SPACING, Memory
from smembench.explain.ptx.merged import Merging
from smembench.explain.ptx.misplaced import outside
from smembench.explain.ptx.registers import Launch
from smembench.explain.requests import NOWHERE
from smembench.model.errors import UsageError
from smembench.toolchains.nvrtc import compile_source

SOURCE = r"""
typedef unsigned long long u64;
struct Pair { int first; long long second; };
__device__ __noinline__ int doubled(int x) { return 2 * x; }
__device__ __noinline__ Pair both(int x, const int *of) {
    if (x < 0) return {0, -1};
    return {doubled(of[x]), doubled(x) + 1ll};
}
__device__ __noinline__ void put(int *to, int value) { if (value % 3) *to = value; }
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" {

__global__ void calls(const int* a, int* out, int n) {
    int i = threadIdx.x;
    Pair found = both(i < n ? i : -1, a);
    put(out + 2 * i, found.first);
    if (i % 2) put(out + 2 * i + 1, (int)found.second);
}

__global__ void recursive(int* out, int n) { out[threadIdx.x] = fibonacci(n); }

__global__ void divisions(const int* a, const unsigned* u, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int x = a[i];
    unsigned y = u[i];
    int* o = out + i * 12;
    o[0] = x / 3; o[1] = x % 3; o[2] = x / -7; o[3] = x % 10; o[4] = x / 16; o[5] = x % 16;
    o[6] = y / 10u; o[7] = y % 7u; o[8] = y / 641u; o[9] = x / (i + 1); o[10] = x % -(i + 2); o[11] = y % (i + 3u);
}

__global__ void wide(const long long* a, long long* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    long long x = a[i];
    long long* o = out + (long long)i * 8;
    o[0] = x / 1000; o[1] = x % 1000; o[2] = x / (i + 2); o[3] = (long long)((u64)x / 10ull);
    o[4] = __mul64hi(x, 0x123456789abcdefll); o[5] = (long long)__umul64hi((u64)x, ~0ull);
    o[6] = (x << (i & 63)) ^ (x >> (i & 31)); o[7] = (int)x * (long long)(unsigned)i;
}

__global__ void conversions(const float* a, const double* d, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = a[i];
    int* o = out + i * 8;
    o[0] = (int)x; o[1] = __float2int_rn(x); o[2] = __float2int_rd(x); o[3] = __float2int_ru(x);
    o[4] = (int)(unsigned char)(int)x; o[5] = (signed char)(int)x; o[6] = (int)d[i]; o[7] = (int)(x * 1.7f + 0.3f);
}

__global__ void histogram(const int* a, unsigned* bins, int* places, int n) {
    __shared__ unsigned mine[16];
    if (threadIdx.x < 16) mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[a[i] & 15], 1u);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

__global__ void compact(const int* a, unsigned* count, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && a[i] % 3 == 0) out[atomicAdd(count, 1u)] = a[i];
}

__global__ void atomics(int* cells, unsigned* wraps, const int* a, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    atomicMin(&cells[0], a[i]); atomicMax(&cells[1], a[i]); atomicXor(&cells[2], a[i]); atomicOr(&cells[3], a[i]);
    atomicAnd(&cells[4], a[i]); atomicSub(&cells[5], a[i]); atomicInc(&wraps[0], 4); atomicDec(&wraps[1], 6);
    int old = cells[6], seen;
    do { seen = old; old = atomicCAS(&cells[6], seen, seen + a[i]); } while (old != seen);
}

__global__ void sums(const int* a, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? a[i] : 0;
    for (int d = 16; d > 0; d >>= 1) value += __shfl_down_sync(0xffffffffu, value, d);
    __shared__ int of_warps[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (lane == 0) of_warps[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < blockDim.x / 32 ? of_warps[lane] : 0;
        for (int d = 16; d > 0; d >>= 1) value += __shfl_xor_sync(0xffffffffu, value, d);
        if (lane == 0) out[blockIdx.x] = value;
    }
}

__global__ void transposed(const float* a, float* out, int rows, int columns) {
    __shared__ float tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    for (int j = 0; j < 16; j += blockDim.y)
        if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * columns + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x; y = blockIdx.x * 16 + threadIdx.y;
    for (int j = 0; j < 16; j += blockDim.y)
        if (x < rows && y + j < columns) out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void scanned(const int* a, int* out, int n) {
    extern __shared__ int two[];
    int i = threadIdx.x, from = 0;
    two[i] = i < n ? a[i] : 0;
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        int to = 1 - from;
        two[to * blockDim.x + i] = two[from * blockDim.x + i] + (i >= d ? two[from * blockDim.x + i - d] : 0);
        from = to;
        __syncthreads();
    }
    if (i < n) out[i] = two[from * blockDim.x + i];
}

__global__ void trips(const int* a, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i];
    int steps = 0;
    while (x != 1) {
        if (x & 1) x = 3 * x + 1; else x >>= 1;
        if (++steps > 500) break;
    }
    int sum = 0;
    for (int k = 0; k < i % 7; k++) {
        if (k == 3) continue;
        for (int m = k; m < i % 5; m++) sum += k * m + steps;
    }
    out[2 * i] = steps; out[2 * i + 1] = sum;
}

__global__ void local_arrays(const int* a, int* out, int n) {
    int i = threadIdx.x;
    int mine[8];
    short small[5];
    for (int k = 0; k < 8; k++) mine[k] = a[(i + k) % n];
    for (int k = 0; k < 5; k++) small[k] = (short)(a[i] * (k - 2));
    for (int k = 1; k < 8; k++)
        for (int m = k; m > 0 && mine[m - 1] > mine[m]; m--) {
            int t = mine[m]; mine[m] = mine[m - 1]; mine[m - 1] = t;
        }
    for (int k = 0; k < 4; k++) out[i * 4 + k] = mine[(a[i] + 2 * k) & 7] + small[(i + k) % 5];
}

__constant__ int table[5] = {3, -1, 4, -1, 5};
__constant__ unsigned char letters[4] = {200, 7, 0, 255};
__constant__ float scale = 2.5f;
__constant__ short grid_of[2][3] = {{1, -2, 3}, {-4, 5, -6}};
__constant__ long long big = -5000000000ll;
__device__ int counts[3] = {10, 20, 30};
__constant__ int set_by_host[4];

__global__ void constants(const int* a, long long* out) {
    int i = threadIdx.x;
    int k = a[i];
    out[i] = table[k % 5] + letters[k & 3] * 1000 + (int)(scale * k) * 1000000ll + grid_of[k & 1][k % 3] + big;
    atomicAdd(&counts[i % 3], 1);
    __syncthreads();
    if (i < 3) out[blockDim.x + i] = counts[i];
}

__global__ void from_host(const int* a, int* out) {
    out[threadIdx.x] = a[set_by_host[threadIdx.x & 3]];
}

__global__ void returns(const int* a, int* out, int n) {
    __shared__ int s[64];
    int i = threadIdx.x;
    if (i >= n) return;
    s[i] = a[i];
    __syncthreads();
    if (s[i] < 0) { out[i] = -1; return; }
    int v = s[n - 1 - i];
    __syncthreads();
    s[i] = v * 2;
    __syncthreads();
    if (i & 1) return;
    out[i] = s[i] + (i + 2 < n ? 1 : 0);
}

__global__ void choices(const int* a, int* out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    int x = a[i], r = 0;
    switch (x) {
        case 0: r = 5; break;
        case 1: r = x * 7 + i;
        case 2: r += i * 3; break;
        case 3: for (int k = 0; k < i; k++) r ^= k * k; break;
        case 4: r = i / 3; break;
        case 5: return;
        case 6: r = a[(i + 1) % n]; break;
        case 9: r = -i; break;
        case 100: r = 77; break;
        default: r = -1000;
    }
    out[i] = r;
}

__global__ void places(int* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int within = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[((u64)z * height + y) * width + x] = within * 1000 + (int)__ballot_sync(__activemask(), threadIdx.x == 0) % 997;
}

__global__ void which(int* a, int* b, const int* from, int n) {
    __shared__ int s[64];
    int i = threadIdx.x;
    if (i >= n) return;
    int* to = from[i] & 1 ? a : b;
    to[i] = from[i];
    s[i] = i;
    int* p = from[i] & 2 ? &a[i] : &b[i];
    atomicAdd(p, 100);
    a[n + i] = *p;
}

__global__ void bits(const unsigned* a, unsigned* out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    unsigned x = a[i], y = a[(i + 1) % n];
    unsigned* o = out + 10 * i;
    o[0] = __popc(x); o[1] = __clz(x); o[2] = __brev(x); o[3] = __ffs(x); o[4] = __byte_perm(x, y, 0x3715);
    o[5] = __funnelshift_l(x, y, i); o[6] = (x & y) ^ (~x | (y >> 3)); o[7] = (x >> (i & 15)) & 0x3ff;
    o[8] = __vadd_like(x, y); o[9] = __mul24(x, y) + __umulhi(x, y);
}

struct Sizes { int n; short step; char sign; long long base; float scale; };

__global__ void structures(const char4* a, const short2* b, int4* out, Sizes sizes) {
    int i = threadIdx.x;
    if (i >= sizes.n) return;
    char4 c = a[i * sizes.step];
    short2 s = b[i];
    out[i] = make_int4(c.x * c.y + sizes.sign, (unsigned char)c.z - c.w, s.x - s.y, (int)(sizes.base >> 33));
    if (i == 0) out[0].w = (int)(sizes.scale * 8);
}

__global__ void counted(const int* a, int* out, int n) {
    int i = threadIdx.x;
    int x = i < n ? a[i] : 0;
    int many = __syncthreads_count(x > 10);
    int all = __syncthreads_and(x < 100), some = __syncthreads_or(!(x >= 0));
    out[i] = many * 4 + (all != 0) * 2 + (some != 0);
}

__global__ void doubles(const double* d, const float* f, long long* out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    double x = d[i];
    float y = f[i];
    long long* o = out + 7 * i;
    o[0] = __double_as_longlong(fma(x, 3.7, 1.1)); o[1] = (long long)floor(x / 3); o[2] = __float_as_int(y * y + y);
    o[3] = __float_as_int(fminf(y, 0.25f)) ^ __float_as_int(fabsf(y)); o[4] = (long long)(x * 1e6);
    o[5] = y < (float)x ? 1 : -1; o[6] = __double_as_longlong(sqrt(fabs(x)));
}

__global__ void generic(const int* a, int* out, int n) {
    __shared__ int s[40];
    int mine[6];
    int i = threadIdx.x;
    for (int k = 0; k < 6; k++) mine[k] = a[(i * 5 + k) % n];
    s[i] = a[i];
    __syncthreads();
    const int* p = n > 30 ? s : a;
    int* q = mine;
    for (int k = 0; k < a[0] % 3 + 1; k++) q = &mine[(k + a[i]) % 6];
    *q += 1000;
    int sum = 0;
    for (int k = 0; k < 6; k++) sum = sum * 3 + mine[k];
    out[i] = sum + p[(i + 1) % n];
}

__global__ void mixed(int* a, int* out, int n) {
    __shared__ int s[64];
    int mine[4] = {7, 8, 9, 10};
    int i = threadIdx.x;
    s[i] = 1000 + i;
    __syncthreads();
    int* p = a[i] % 3 == 0 ? &s[(i + 1) % n] : a[i] % 3 == 1 ? &mine[i & 3] : &a[n + i];
    out[i] = *p;
    __syncthreads();
    *p = i;
    mine[(i + 1) & 3] += 1;
    __syncthreads();
    out[n + i] = s[i];
    out[2 * n + i] = mine[i & 3];
}

__global__ void ranks(const int* a, unsigned* out, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    unsigned active = __activemask();
    unsigned peers = __match_any_sync(active, a[i]);
    unsigned below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    out[3 * i] = __popc(peers & below);
    unsigned votes = __all_sync(active, a[i] > 1) + 2 * __any_sync(active, a[i] > 3);
    out[3 * i + 1] = __reduce_add_sync(active, (unsigned)a[i]) + votes;
    int part = i & ~7;
    out[3 * i + 2] = __ballot_sync(0xffu << (part & 31), a[i] & 1) >> (part & 31);
}

__global__ void large(u64* sums, const u64* a, int n) {
    int i = threadIdx.x;
    if (i >= n) return;
    atomicAdd(&sums[0], a[i]); atomicMax(&sums[1], a[i]); atomicXor(&sums[2], a[i]);
    atomicAdd((float*)&sums[3], 0.5f); atomicAdd((double*)&sums[4], 0.25);
    if (i == n - 1) sums[5] = atomicExch(&sums[6], 99ull);
}

}
""".replace("__vadd_like(x, y)", "__sad((int)x, (int)y, 9u)")

A = np.random.default_rng(5)
INT = np.iinfo(np.int32)


@cache
def ptx() -> str:
    return compile_source(SOURCE, Path("kernels.cu"), "9.0", []).ptx


def launch(name: str, *arguments: Any, **geometry: Any) -> None:
    for result in run_source(ptx(), name, arguments, **geometry):
        assert not result.mistakes
        assert not result.unfollowed


def towards_zero(a: Any, b: Any) -> Any:
    a, b = (np.asarray(item, np.int64) for item in (a, b))
    return np.abs(a) // np.abs(b) * np.sign(a) * np.sign(b)


def remainder(a: Any, b: Any) -> Any:
    return a - towards_zero(a, b) * b


def test_integer_divisions() -> None:
    n = 50
    a = A.integers(INT.min, INT.max, n, np.int32)
    a[:4] = INT.min, INT.max, -1, 0
    u, out, i = A.integers(0, 2**32, n, np.uint32), np.zeros((n, 12), np.int32), np.arange(n)
    launch("divisions", a, u, out, np.int32(n), grid=(2, 1, 1))
    x, y = a.astype(np.int64), u.astype(np.int64)
    wanted = [towards_zero(x, 3), remainder(x, 3), towards_zero(x, -7), remainder(x, 10), towards_zero(x, 16)]
    wanted += [remainder(x, 16), y // 10, y % 7, y // 641, towards_zero(x, i + 1), remainder(x, -(i + 2)), y % (i + 3)]
    assert (out == np.stack(wanted, 1).astype(np.int32)).all()


def test_64_bit_arithmetic() -> None:
    n = 40
    a = A.integers(-(2**63), 2**63 - 1, n, np.int64)
    a[:3] = -(2**63), -1, 2**63 - 1
    out = np.zeros((n, 8), np.int64)
    launch("wide", a, out, np.int32(n), grid=(2, 1, 1))
    for i, (x, got) in enumerate(zip(a.tolist(), out.tolist(), strict=True)):
        quotients = [abs(x) // by * (1 if x >= 0 else -1) for by in (1000, i + 2)]
        low = (x + 2**31) % 2**32 - 2**31
        unsigned = x % 2**64
        wanted = [quotients[0], x - quotients[0] * 1000, quotients[1], unsigned // 10, x * 0x123456789ABCDEF >> 64]
        wanted += [unsigned * (2**64 - 1) >> 64, (x << (i & 63)) ^ (x >> (i & 31)), low * i]
        assert got == [(item + 2**63) % 2**64 - 2**63 for item in wanted], i


def test_floating_point_numbers_become_integers() -> None:
    edges = [0.5, 1.5, -0.5, -1.5, 2.5, 1e10, -1e10, np.nan, np.inf, -np.inf, 255.9, -128.9, 300.2, 1e-42]
    a = np.array([*edges, *A.uniform(-1000, 1000, 26)], np.float32)
    n = len(a)
    d, out = a.astype(np.float64) * 1.0000001, np.zeros((n, 8), np.int32)
    launch("conversions", a, d, out, np.int32(n), grid=(2, 1, 1))

    def whole(values: Any, nan: int = 0) -> Any:
        return np.clip(np.where(np.isnan(values), nan, values), INT.min, INT.max).astype(np.int64).astype(np.int32)

    x = a.astype(np.float64)
    fused = (x * np.float64(np.float32(1.7)) + np.float64(np.float32(0.3))).astype(np.float32).astype(np.float64)
    cut = whole(np.trunc(x))
    wanted = [cut, whole(np.rint(x)), whole(np.floor(x)), whole(np.ceil(x)), cut.astype(np.uint8), cut.astype(np.int8)]
    wanted += [whole(np.trunc(d), INT.min), whole(np.trunc(fused))]
    for number, column in enumerate(wanted):
        assert out[:, number].tolist() == column.tolist(), number


def test_a_histogram_with_atomics() -> None:
    a, bins = A.integers(0, 1000, 500, np.int32), np.zeros(16, np.uint32)
    launch("histogram", a, bins, bins, np.int32(500), grid=(3, 1, 1), block=(48, 1, 1))
    assert bins.tolist() == np.bincount(a & 15, minlength=16).tolist()


def test_an_atomic_counter_gives_each_thread_a_place() -> None:
    a, count, out = A.integers(0, 1000, 90, np.int32), np.zeros(1, np.uint32), np.full(90, -1, np.int32)
    launch("compact", a, count, out, np.int32(90), grid=(2, 1, 1), block=(64, 1, 1))
    chosen = a[a % 3 == 0]
    assert count[0] == len(chosen)
    assert sorted(out[: len(chosen)].tolist()) == sorted(chosen.tolist())
    assert (out[len(chosen) :] == -1).all()


def test_functions_that_are_called() -> None:
    """Through parameters and results in memory, structures among them, with returns in branches."""
    a, out = A.integers(-100, 100, 40, np.int32), np.full((64, 2), 77, np.int32)
    launch("calls", a, out, np.int32(40), block=(64, 1, 1))
    for i in range(64):
        first, second = (2 * int(a[i]), 2 * i + 1) if i < 40 else (0, -1)
        assert out[i].tolist() == [first if first % 3 else 77, second if i % 2 and second % 3 else 77], i


def test_a_function_that_calls_itself_is_refused() -> None:
    with pytest.raises(UsageError, match=r"recursive, line \d+: the call .*fibonacci.* is not traced"):
        launch("recursive", np.zeros(32, np.int32), np.int32(5))


def test_every_atomic_operation() -> None:
    n = 45
    a = A.integers(-1000, 1000, n, np.int32)
    cells, wraps = np.array([500, -500, 0, 0, -1, 7, 3], np.int32), np.array([0, 3], np.uint32)
    launch("atomics", cells, wraps, a, np.int32(n), block=(64, 1, 1))
    reduced = [np.bitwise_xor.reduce(a), np.bitwise_or.reduce(a), np.bitwise_and.reduce(a)]
    assert cells.tolist() == [min(a.min(), 500), max(a.max(), -500), *reduced, 7 - a.sum(), 3 + a.sum()]
    assert wraps.tolist() == [n % 5, (3 - n) % 7]


@pytest.mark.parametrize("threads", [32, 96, 256])
def test_a_sum_by_shuffles(threads: int) -> None:
    n = 2 * threads - 11
    a, out = A.integers(-1000, 1000, n, np.int32), np.zeros(2, np.int32)
    launch("sums", a, out, np.int32(n), grid=(2, 1, 1), block=(threads, 1, 1))
    assert out.tolist() == [a[:threads].sum(), a[threads:].sum()]


@pytest.mark.parametrize("shape", [(33, 50), (16, 16), (7, 70)])
def test_a_transpose_with_ragged_sizes(shape: tuple[int, int]) -> None:
    rows, columns = shape
    a = A.random(shape, np.float32)
    out = np.zeros((columns, rows), np.float32)
    grid = (-(-columns // 16), -(-rows // 16), 1)
    launch("transposed", a, out, np.int32(rows), np.int32(columns), grid=grid, block=(16, 4, 1))
    assert (out == a.T).all()


@pytest.mark.parametrize("threads", [1, 40, 64, 100])
def test_a_scan_in_dynamic_shared_memory(threads: int) -> None:
    n = threads - threads // 10
    a, out = A.integers(-1000, 1000, n, np.int32), np.zeros(n, np.int32)
    launch("scanned", a, out, np.int32(n), block=(threads, 1, 1), dynamic_bytes=8 * threads)
    assert out.tolist() == np.cumsum(a).tolist()


def test_loops_of_different_length() -> None:
    n = 60
    a, out = np.arange(1, n + 1, dtype=np.int32), np.zeros((n, 2), np.int32)
    launch("trips", a, out, np.int32(n), grid=(2, 1, 1))
    for i in range(n):
        x, steps = i + 1, 0
        while x != 1:
            x, steps = 3 * x + 1 if x & 1 else x >> 1, steps + 1
        total = sum(k * m + steps for k in range(i % 7) if k != 3 for m in range(k, i % 5))
        assert out[i].tolist() == [steps, total]


def test_local_arrays() -> None:
    n = 40
    a, out = A.integers(-20000, 20000, n, np.int32), np.zeros((n, 4), np.int32)
    launch("local_arrays", a, out, np.int32(n), block=(n, 1, 1))
    for i in range(n):
        mine = sorted(a[(i + k) % n] for k in range(8))
        small = [np.int16((int(a[i]) * (k - 2) + 2**15) % 2**16 - 2**15) for k in range(5)]
        assert out[i].tolist() == [int(mine[(a[i] + 2 * k) & 7]) + int(small[(i + k) % 5]) for k in range(4)]


def test_constants_and_variables_with_initialisers() -> None:
    n = 33
    a, out = np.arange(n, dtype=np.int32), np.zeros(n + 3, np.int64)
    launch("constants", a, out, block=(n, 1, 1))
    table, letters, both = [3, -1, 4, -1, 5], [200, 7, 0, 255], [[1, -2, 3], [-4, 5, -6]]
    wanted = [
        table[k % 5] + letters[k & 3] * 1000 + int(2.5 * k) * 1000000 + both[k & 1][k % 3] - 5000000000
        for k in range(n)
    ]
    assert out.tolist() == [*wanted, 21, 31, 41]


def test_constants_that_the_host_sets_are_unknown() -> None:
    a, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    (result,) = run_source(ptx(), "from_host", (a, out), block=(4, 1, 1))
    assert [item.what for item in result.unfollowed] == ["an address"]


@pytest.mark.parametrize("n", [64, 50, 33, 1])
def test_returns_between_barriers(n: int) -> None:
    a, out = A.integers(-5, 50, n, np.int32), np.zeros(n, np.int32)
    launch("returns", a, out, np.int32(n), block=(64, 1, 1))
    kept = a >= 0
    wanted = np.where(np.arange(n) % 2 == 0, a[::-1] * 2 + (np.arange(n) + 2 < n), 0)
    assert out.tolist() == np.where(kept, wanted, -1).tolist()


def test_a_switch() -> None:
    a = np.array([*range(-1, 12), 100, *A.integers(0, 8, 40)], np.int32)
    n = len(a)
    out = np.full(n, 42, np.int32)
    launch("choices", a, out, np.int32(n), block=(64, 1, 1))
    for i, x in enumerate(a.tolist()):
        squares = 0
        for k in range(i):
            squares ^= k * k
        wanted = {
            0: 5, 1: 7 + 4 * i, 2: 3 * i, 3: squares, 4: i // 3, 5: 42, 6: a[(i + 1) % n], 9: -i, 100: 77,
        }.get(x, -1000)  # fmt: skip
        assert out[i] == wanted, (i, x)


@pytest.mark.parametrize("block", [(5, 3, 2), (33, 1, 1), (7, 7, 1), (3, 1, 17)])
def test_blocks_of_several_dimensions_and_no_multiple_of_a_warp(block: tuple[int, int, int]) -> None:
    grid = (2, 3, 2)
    x, y, z = (count * size for count, size in zip(grid, block, strict=True))
    out = np.zeros((z, y, x), np.int32)
    launch("places", out, np.int32(x), np.int32(y), grid=grid, block=block)
    threads = block[0] * block[1] * block[2]
    within = np.arange(threads)
    for index in range(0, threads, 32):
        word = sum(1 << t % 32 for t in range(index, min(index + 32, threads)) if t % block[0] == 0)
        signed = word - 2**32 if word >> 31 else word
        within[index : index + 32] = within[index : index + 32] * 1000 + int(np.fmod(signed, 997))
    wanted = np.tile(within.reshape(block[::-1]), grid[::-1])
    assert (out == wanted).all()


def test_threads_that_access_different_arrays_at_once() -> None:
    n = 40
    a, b, chosen = np.zeros(2 * n, np.int32), np.zeros(n, np.int32), A.integers(0, 4, n, np.int32)
    launch("which", a, b, chosen, np.int32(n), block=(64, 1, 1))
    odd, second = chosen & 1 == 1, chosen & 2 == 2
    assert a[:n].tolist() == (np.where(odd, chosen, 0) + 100 * second).tolist()
    assert b.tolist() == (np.where(odd, 0, chosen) + 100 * ~second).tolist()
    assert a[n:].tolist() == np.where(second, a[:n], b).tolist()


def test_a_mistake_is_that_of_the_array_which_a_thread_misses() -> None:
    kernel = parsed(".visible .entry k() { ret; }").kernels["k"]
    arrays = [GlobalArray(name, (number + 1) * SPACING, 8, None) for number, name in enumerate("ab")]
    memory = Memory(kernel, arrays, 0)
    inside = np.array([SPACING, 2 * SPACING + 4, NOWHERE, SPACING + 4])
    assert outside(memory, 1, "global", "load", inside, 4) is None
    for at, text in (
        (SPACING + 8, "thread 4 loads 4 bytes at byte 8 of a, which has 8 bytes"),
        (2 * SPACING + 6, "thread 4 loads 4 bytes at byte 6 of b, which has 8 bytes"),
        (SPACING - 4, "thread 4 loads 4 bytes at byte -4 of a, which has 8 bytes"),
        (2 * SPACING - 4, "thread 4 loads 4 bytes at byte -4 of b, which has 8 bytes"),
        (5 * SPACING, f"thread 4 loads 4 bytes at byte {5 * SPACING} of global memory, which has 0 bytes"),
    ):
        result = outside(memory, 1, "global", "load", np.array([*inside, at]), 4)
        assert result is not None
        assert result.text == text


def test_bits() -> None:
    n = 40
    a, out = A.integers(0, 2**32, n, np.uint32), np.zeros((n, 10), np.uint32)
    a[:2] = 0, 2**32 - 1
    launch("bits", a, out, np.int32(n), block=(64, 1, 1))
    words = a.tolist()
    for i, x in enumerate(words):
        y = words[(i + 1) % n]
        eight = (y << 32 | x).to_bytes(8, "little")
        signed = [item - 2**32 if item >> 31 else item for item in (x, y)]
        low = [(item & 0xFFFFFF) - (1 << 24 if item >> 23 & 1 else 0) for item in (x, y)]
        wanted = [x.bit_count(), 32 - x.bit_length(), int(f"{x:032b}"[::-1], 2), (x & -x).bit_length()]
        wanted += [int.from_bytes([eight[5], eight[1], eight[7], eight[3]], "little")]
        wanted += [((y << 32 | x) << (i & 31)) >> 32, (x & y) ^ (~x | (y >> 3)), x >> (i & 15) & 0x3FF]
        wanted += [abs(signed[0] - signed[1]) + 9, low[0] * low[1] + (x * y >> 32)]
        assert out[i].tolist() == [item & 0xFFFFFFFF for item in wanted], i


def test_structures_vectors_and_small_types() -> None:
    n = 20
    a, b = A.integers(-128, 128, (2 * n, 4), np.int8), A.integers(-(2**15), 2**15, (n, 2), np.int16)
    kind = np.dtype([("n", "i4"), ("step", "i2"), ("sign", "i1"), ("base", "i8"), ("scale", "f4")], align=True)
    sizes, out = np.array((n, 2, -3, -(2**40), 1.75), kind)[()], np.zeros((n, 4), np.int32)
    launch("structures", a, b, out, sizes)
    c, s = a[::2].astype(np.int32), b.astype(np.int32)
    last = np.full(n, -(2**40) >> 33)
    last[0] = 14
    wanted = [c[:, 0] * c[:, 1] - 3, (c[:, 2] & 255) - c[:, 3], s[:, 0] - s[:, 1], last]
    assert out.tolist() == np.stack(wanted, 1).tolist()


@pytest.mark.parametrize(("low", "high"), [(0, 99), (-5, 50), (-5, 200), (0, 200)])
def test_barriers_that_count(low: int, high: int) -> None:
    n, threads = 60, 70
    a, out = A.integers(low, high, n, np.int32), np.zeros(threads, np.int32)
    a[:2] = low, high
    launch("counted", a, out, np.int32(n), block=(threads, 1, 1))
    assert set(out.tolist()) == {int((a > 10).sum()) * 4 + 2 * int(high < 100) + int(low < 0)}


def test_floating_point_arithmetic() -> None:
    n = 30
    d, f = A.uniform(-1000, 1000, n), A.uniform(-2, 2, n).astype(np.float32)
    out = np.zeros((n, 7), np.int64)
    launch("doubles", d, f, out, np.int32(n))
    for x, y, got in zip(d.tolist(), f, out.tolist(), strict=True):
        fused = float(Fraction(x) * Fraction(3.7) + Fraction(1.1))
        square = np.float32(float(y) * float(y) + float(y))
        assert got[0] == np.float64(fused).view(np.int64)
        assert got[1] == np.floor(x / 3)
        assert got[2] == square.view(np.int32)
        assert got[3] == np.minimum(y, np.float32(0.25)).view(np.int32) ^ np.abs(y).view(np.int32)
        assert got[4] == int(x * 1e6)
        assert got[5] == (1 if y < np.float32(x) else -1)
        assert got[6] == np.sqrt(abs(x)).view(np.int64)


@pytest.mark.parametrize("n", [40, 30])
def test_generic_addresses_of_local_and_shared_memory(n: int) -> None:
    a, out = A.integers(0, 100, 40, np.int32), np.zeros(40, np.int32)
    launch("generic", a, out, np.int32(n), block=(40, 1, 1))
    for i in range(40):
        mine = [int(a[(i * 5 + k) % n]) for k in range(6)]
        mine[(int(a[0]) % 3 + int(a[i])) % 6] += 1000
        total = 0
        for item in mine:
            total = total * 3 + item
        assert out[i] == total + a[(i + 1) % n]


def test_threads_of_one_access_reach_different_spaces() -> None:
    n = 40
    a, out = A.integers(0, 50, 2 * n, np.int32), np.zeros(3 * n, np.int32)
    before, i = a.copy(), np.arange(n)
    launch("mixed", a, out, np.int32(n), block=(n, 1, 1))
    space = before[:n] % 3
    assert out[:n].tolist() == np.choose(space, [1000 + (i + 1) % n, 7 + i % 4, before[n:]]).tolist()
    assert a[n:].tolist() == np.where(space == 2, i, before[n:]).tolist()
    shared = 1000 + i
    shared[(i[space == 0] + 1) % n] = i[space == 0]
    assert out[n : 2 * n].tolist() == shared.tolist()
    assert out[2 * n :].tolist() == np.where(space == 1, i, 7 + i % 4).tolist()


def test_ranks_among_the_lanes_of_a_warp() -> None:
    n = 56
    a, out = A.integers(0, 6, n, np.int32), np.zeros((n, 3), np.uint32)
    launch("ranks", a, out, np.int32(n), block=(64, 1, 1))
    for i in range(n):
        warp = a[i // 32 * 32 : i // 32 * 32 + 32]
        votes = sum(1 << k for k in range(8) if a[i // 8 * 8 + k] & 1)
        total = warp.sum() + (warp > 1).all() + 2 * (warp > 3).any()
        assert out[i].tolist() == [(warp[: i % 32] == a[i]).sum(), total, votes]


def test_atomic_operations_of_64_bits_and_of_floating_point_numbers() -> None:
    n = 20
    a, sums = A.integers(0, 2**63, n, np.uint64), np.zeros(7, np.uint64)
    sums[6] = 41
    launch("large", sums, a, np.int32(n))
    assert sums[:3].tolist() == [int(a.sum()), int(a.max()), int(np.bitwise_xor.reduce(a))]
    assert sums[3:4].view(np.float32)[0] == 10
    assert sums[4:5].view(np.float64)[0] == 5
    assert sums[5:].tolist() == [41, 99]


def test_brx_branches_by_its_table() -> None:
    text = """
    .visible .entry k(.param .u64 p0, .param .u64 p1)
    {
        .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %rd<9>;
        ld.param.u64 %rd1, [p0];
        ld.param.u64 %rd2, [p1];
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd3, %r1, 4;
        add.s64 %rd4, %rd1, %rd3;
        add.s64 %rd5, %rd2, %rd3;
        ld.global.u32 %r2, [%rd4];
        setp.gt.u32 %p1, %r2, 3;
        @%p1 bra $L_default;
        $L_brx_0: .branchtargets
            $L_0,
            $L_1,
            $L_default,
            $L_0;
        brx.idx %r2, $L_brx_0;
    $L_0:
        mov.u32 %r3, 10;
        bra.uni $L_end;
    $L_1:
        mov.u32 %r3, 11;
        bra.uni $L_end;
    $L_default:
        mov.u32 %r3, 12;
    $L_end:
        st.global.u32 [%rd5], %r3;
        ret;
    }
    """
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    a, out = np.array([0, 1, 2, 3, 4, 1, 0], np.int32), np.zeros(7, np.int32)
    (result,) = run_source(head + text, "k", (a, out), block=(7, 1, 1))
    assert not result.unfollowed
    assert out.tolist() == [10, 11, 12, 10, 12, 11, 10]
    kernel = parsed(text).kernels["k"]
    arrays = [GlobalArray(name, (number + 1) * SPACING, 28, None) for number, name in enumerate("ab")]
    parameters = {f"p{number}": ((number + 1) * SPACING).to_bytes(8, "little") for number in range(2)}
    unknown = Machine(kernel, Launch((1, 1, 1), (7, 1, 1), parameters), Memory(kernel, arrays, 0), Merging({})).run(
        (0, 0, 0)
    )
    assert not unknown.unfollowed  # on every way only a value is computed
    assert [record.kind for record in unknown.records] == ["load", "store"]


def test_unknown_values_make_what_they_are_stored_in_unknown() -> None:
    text = """
    .visible .entry k(.param .u64 p0, .param .u64 p1)
    {
        .reg .b32 %r<5>; .reg .b64 %rd<9>;
        ld.param.u64 %rd1, [p0];
        ld.param.u64 %rd2, [p1];
        ld.global.u64 %rd3, [%rd2];
        INSTRUCTION;
        ld.global.u64 %rd4, [%rd1];
        ld.global.u32 %r1, [%rd4];
        ret;
    }
    """
    for instruction in ("st.global.u64 [%rd1], %rd3", "atom.global.add.u64 %rd5, [%rd1], %rd3"):
        kernel = parsed(text.replace("INSTRUCTION", instruction)).kernels["k"]
        arrays = [GlobalArray("a", SPACING, 8, np.zeros(8, np.uint8)), GlobalArray("b", 2 * SPACING, 8, None)]
        parameters = {f"p{number}": ((number + 1) * SPACING).to_bytes(8, "little") for number in range(2)}
        result = Machine(kernel, Launch((1, 1, 1), (1, 1, 1), parameters), Memory(kernel, arrays, 0), Merging({})).run(
            (0, 0, 0)
        )
        assert {item.what for item in result.unfollowed} == {"an address"}, instruction
