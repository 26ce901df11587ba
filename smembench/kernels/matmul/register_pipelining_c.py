"""Register pipelining in CUDA C, for aligned rows and whole tiles: what its ports share.

Tiles over an edge are moved inwards; along k the first tile is the short one. ``fma`` keeps its place without inline
assembly, and the order of its factors makes no difference here.
"""

from __future__ import annotations

from smembench.kernels.matmul.register_pipelining import ResultOrder
from smembench.kernels.matmul.remainder import MAX_REMAINDER, small_remainder
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.matmul.tiling_c import TILING, constants_of, no_whole_vectors
from smembench.model.case import Case

REGISTER_PIPELINING = (
    TILING
    + """
constexpr unsigned A_ELEMENTS = DEPTH * PITCH, B_ELEMENTS = DEPTH * COLUMNS;

struct Sides { unsigned m, n, k, lda, ldb, ldc; };

struct Share { Vector a[A_COUNT], b[B_COUNT]; };

struct Fragments { Vector a[DOWN / WIDE], b[ACROSS / WIDE]; };

struct alignas(16) Accumulators { T of[DOWN][ACROSS]; };

__device__ __forceinline__ unsigned least(unsigned x, unsigned y)
{
    return x < y ? x : y;
}

__device__ __forceinline__ unsigned this_thread()
{
    return threadIdx.y * BX + threadIdx.x;
}

// Row of a thread's first result in the tile: neighbouring lanes lie below each other in pairs.
__device__ __forceinline__ unsigned row_in_tile()
{
    unsigned warp = this_thread() / WARP, lane = this_thread() % WARP;
    return warp / WARPS * LANES_DOWN * DOWN + (lane / (2 * LANES_ACROSS) * 2 + lane % 2) * WIDE;
}

__device__ __forceinline__ unsigned column_in_tile()
{
    unsigned warp = this_thread() / WARP, lane = this_thread() % WARP;
    return warp % WARPS * LANES_ACROSS * ACROSS + lane / 2 % LANES_ACROSS * WIDE;
}

// Columns by which the first tile along k is shorter than the others.
__device__ __forceinline__ unsigned lacking(unsigned k)
{
    return DEPTH - 1 - (k - 1) % DEPTH;
}

// A thread's share of the tiles from k0 on, zeros from end on.
__device__ __forceinline__ void load_until(
    Share &held, const T *a, const T *b, unsigned row0, unsigned col0, unsigned k0, unsigned end, const Sides &sides)
{
    unsigned a_row = row0 + this_thread() / A_ACROSS, a_col = k0 + this_thread() % A_ACROSS * WIDE;
    for (unsigned i = 0; i < A_COUNT; ++i)
        held.a[i] = a_col < end ? *(const Vector *)&a[(a_row + i * A_STEP) * sides.lda + a_col] : Vector{};
    unsigned b_row = k0 + this_thread() / B_ACROSS, b_col = col0 + this_thread() % B_ACROSS * WIDE;
    for (unsigned i = 0; i < B_COUNT; ++i)
        held.b[i] = b_row + i * B_STEP < end
            ? *(const Vector *)&b[(b_row + i * B_STEP) * sides.ldb + b_col] : Vector{};
}

__device__ __forceinline__ void store_share(T *a_tile, T *b_tile, const Share &held)
{
    T *to_a = &a_tile[this_thread() % A_ACROSS * WIDE * PITCH + this_thread() / A_ACROSS];
    for (unsigned i = 0; i < A_COUNT; ++i)
        for (unsigned j = 0; j < WIDE; ++j)
            to_a[j * PITCH + i * A_STEP] = held.a[i].lane[j];
    T *to_b = &b_tile[this_thread() / B_ACROSS * COLUMNS + this_thread() % B_ACROSS * WIDE];
    for (unsigned i = 0; i < B_COUNT; ++i)
        *(Vector *)&to_b[i * B_STEP * COLUMNS] = held.b[i];
}

// Fragments of one step, from the thread's first elements of it.
__device__ __forceinline__ void load_fragments(Fragments &fragments, const T *of_a, const T *of_b)
{
    auto load_b = [&] {
        for (unsigned j = 0; j < ACROSS / WIDE; ++j)
            fragments.b[j] = *(const Vector *)&of_b[j * ACROSS_APART];
    };
    if (B_EARLY)
        load_b();
    for (unsigned i = 0; i < DOWN / WIDE; ++i)
        fragments.a[i] = *(const Vector *)&of_a[i * DOWN_APART];
    if (!B_EARLY)
        load_b();
}

// Along a row of results and back along the next, or down a column and up the next one.
__device__ __forceinline__ void multiply(Accumulators &accumulators, const Fragments &fragments)
{
    constexpr unsigned OUTER = BY_ROWS ? DOWN : ACROSS, INNER = BY_ROWS ? ACROSS : DOWN;
#pragma unroll
    for (unsigned outer = 0; outer < OUTER; ++outer)
#pragma unroll
        for (unsigned turn = 0; turn < INNER; ++turn) {
            unsigned inner = outer % 2 ? INNER - 1 - turn : turn;
            unsigned i = BY_ROWS ? outer : inner, j = BY_ROWS ? inner : outer;
            T &sum = accumulators.of[i][j];
            sum = fma(fragments.a[i / WIDE].lane[i % WIDE], fragments.b[j / WIDE].lane[j % WIDE], sum);
        }
}
"""
)
"""Constants of the tiling, and device functions: tile loads and stores, fragment loads, the MMA step."""


def register_pipelining_constants(tiling: Tiling, order: ResultOrder) -> dict[str, int]:
    """The constants that REGISTER_PIPELINING uses."""
    return {**constants_of(tiling), "BY_ROWS": int(order.by_rows), "B_EARLY": int(order.b_early)}


def not_ported(case: Case, tiling: Tiling) -> str | None:
    """Why the port does not compute a case that its Numba kernel computes, or None."""
    if reason := no_whole_vectors(case, tiling):
        return reason
    port = f"the CUDA C port of {case.kernel}"
    if case.m < tiling.rows or case.n < tiling.columns or case.depth < tiling.depth:
        return f"{port} takes whole tiles only: m, n and k of at least {tiling.rows}, {tiling.columns}, {tiling.depth}"
    if small_remainder(case, tiling):
        multiples = f"{tiling.rows}, {tiling.columns}"
        return f"{port} has no remainder: m and n not up to {MAX_REMAINDER} beyond multiples of {multiples}"
    return None
