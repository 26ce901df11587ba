"""serpentine in CUDA C, for aligned rows and whole tiles: what a hand-written product loses or gains by Numba.

Tiles over an edge are moved inwards; along k the first tile is the short one. Results are visited along rows, since by
the model of register bank conflicts ptxas makes the better loop of that here. ``fma`` keeps its place without inline
assembly. Findings: results/reference/notes/serpentine.md.
"""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.matmul.cuda import serpentine
from smembench.kernels.matmul.ragged import SIDE
from smembench.kernels.matmul.tiled_kernel import few_left, launch_bounds
from smembench.kernels.matmul.tiling import LANES_ACROSS, LANES_DOWN
from smembench.model.case import Case
from smembench.model.hardware import WARP

_SOURCE = """
constexpr unsigned A_ACROSS = DEPTH / WIDE, A_STEP = THREADS / A_ACROSS, A_COUNT = ROWS / A_STEP;
constexpr unsigned B_ACROSS = COLUMNS / WIDE, B_STEP = THREADS / B_ACROSS, B_COUNT = DEPTH / B_STEP;
constexpr unsigned WARPS = BX / LANES_ACROSS, DOWN_APART = LANES_DOWN * WIDE, ACROSS_APART = LANES_ACROSS * WIDE;
constexpr unsigned A_ELEMENTS = DEPTH * PITCH, B_ELEMENTS = DEPTH * COLUMNS;

struct alignas(16) Vector { T lane[WIDE]; };

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

// A thread's share of the first tiles, zeros from end on.
__device__ __forceinline__ void load_first(
    Share &held, const T *a, const T *b, unsigned row0, unsigned col0, unsigned end, const Sides &sides)
{
    unsigned a_row = row0 + this_thread() / A_ACROSS, a_col = this_thread() % A_ACROSS * WIDE;
    for (unsigned i = 0; i < A_COUNT; ++i)
        held.a[i] = a_col < end ? *(const Vector *)&a[(a_row + i * A_STEP) * sides.lda + a_col] : Vector{};
    unsigned b_row = this_thread() / B_ACROSS, b_col = col0 + this_thread() % B_ACROSS * WIDE;
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
    for (unsigned i = 0; i < DOWN / WIDE; ++i)
        fragments.a[i] = *(const Vector *)&of_a[i * DOWN_APART];
    for (unsigned j = 0; j < ACROSS / WIDE; ++j)
        fragments.b[j] = *(const Vector *)&of_b[j * ACROSS_APART];
}

// Along a row of results and back along the next.
__device__ __forceinline__ void multiply(Accumulators &accumulators, const Fragments &fragments)
{
#pragma unroll
    for (unsigned i = 0; i < DOWN; ++i)
#pragma unroll
        for (unsigned turn = 0; turn < ACROSS; ++turn) {
            unsigned j = i % 2 ? ACROSS - 1 - turn : turn;
            T &sum = accumulators.of[i][j];
            sum = fma(fragments.a[i / WIDE].lane[i % WIDE], fragments.b[j / WIDE].lane[j % WIDE], sum);
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
serpentine(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k, unsigned lda, unsigned ldb, unsigned ldc)
{
    alignas(16) __shared__ T a_tile[2 * A_ELEMENTS];
    alignas(16) __shared__ T b_tile[2 * B_ELEMENTS];

    Sides sides{m, n, k, lda, ldb, ldc};
    unsigned row0 = least(blockIdx.y * ROWS, m - ROWS), col0 = least(blockIdx.x * COLUMNS, n - COLUMNS);
    unsigned row = row_in_tile(), col = column_in_tile(), lack = lacking(k);
    unsigned from_a = (row0 + this_thread() / A_ACROSS) * lda + this_thread() % A_ACROSS * WIDE;
    unsigned from_b = this_thread() / B_ACROSS * ldb + col0 + this_thread() % B_ACROSS * WIDE;

    Accumulators accumulators{};
    Share held;
    Fragments fragments[2];
    load_first(held, a, b, row0, col0, DEPTH - lack, sides);
    store_share(a_tile, b_tile, held);
    __syncthreads();
    const T *of_a = &a_tile[row], *of_b = &b_tile[col];
    load_fragments(fragments[0], of_a, of_b);
    unsigned buffer = 0;
    for (unsigned k0 = 0; k0 < k + lack;) {
        k0 += DEPTH;
        unsigned at_k = least(k0 - lack, k - DEPTH);  // behind the last tiles, those once more
        for (unsigned i = 0; i < A_COUNT; ++i)
            held.a[i] = *(const Vector *)&a[from_a + at_k + i * A_STEP * lda];
        for (unsigned i = 0; i < B_COUNT; ++i)
            held.b[i] = *(const Vector *)&b[from_b + at_k * ldb + i * B_STEP * ldb];
        __syncwarp();  // these loads stay before what follows
#pragma unroll
        for (unsigned step = 0; step < DEPTH - 1; ++step) {
            load_fragments(fragments[(step + 1) % 2], of_a + (step + 1) * PITCH, of_b + (step + 1) * COLUMNS);
            multiply(accumulators, fragments[step % 2]);
        }
        buffer ^= 1;
        store_share(&a_tile[buffer * A_ELEMENTS], &b_tile[buffer * B_ELEMENTS], held);
        __syncthreads();
        of_a = &a_tile[buffer * A_ELEMENTS + row];
        of_b = &b_tile[buffer * B_ELEMENTS + col];
        load_fragments(fragments[0], of_a, of_b);
        multiply(accumulators, fragments[1]);
    }

    for (unsigned i = 0; i < DOWN; ++i) {
        unsigned r = row0 + row + i / WIDE * DOWN_APART + i % WIDE;
        for (unsigned j = 0; j < ACROSS; j += WIDE)
            *(Vector *)&c[r * ldc + col0 + col + j / WIDE * ACROSS_APART] = *(const Vector *)&accumulators.of[i][j];
    }
}
"""

_NUMBA = next(kernel for kernel in serpentine.KERNELS if kernel.name == "serpentine")
_VARIANT = serpentine.VARIANTS[_NUMBA.name]


def _constants(case: Case) -> dict[str, int]:
    tiling = _VARIANT.tiling(case)
    return {
        "WARP": WARP,
        "LANES_DOWN": LANES_DOWN,
        "LANES_ACROSS": LANES_ACROSS,
        "WIDE": tiling.vector,
        "DOWN": tiling.down,
        "ACROSS": tiling.across,
        "DEPTH": tiling.depth,
        "ROWS": tiling.rows,
        "COLUMNS": tiling.columns,
        "PITCH": tiling.pitch,
        "THREADS": tiling.threads,
        "BLOCKS": launch_bounds(tiling)[1],
    }


def _unsupported(case: Case) -> str | None:
    tiling, port = _VARIANT.tiling(case), f"the CUDA C port of {case.kernel}"
    if reason := _NUMBA.unsupported(case):
        return reason
    if tiling.widths(case) != (tiling.vector, tiling.vector):
        return f"{port} takes whole vectors only: n, k and stride that are multiples of {tiling.vector}"
    if case.m < tiling.rows or case.n < tiling.columns or case.depth < tiling.depth:
        return f"{port} takes whole tiles only: m, n and k of at least {tiling.rows}, {tiling.columns}, {tiling.depth}"
    if few_left(case, tiling):
        multiples = f"{tiling.rows}, {tiling.columns}"
        return f"{port} has no remainder: m and n not up to {SIDE} beyond multiples of {multiples}"
    return None


KERNEL = port(_NUMBA, _SOURCE, _constants, _unsupported)
