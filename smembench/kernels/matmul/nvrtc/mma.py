"""mmaSwizzled and mmaAsync in CUDA C, for rows that begin and end at multiples of 16 bytes.

Without the headers of a CUDA toolkit NVRTC has neither ``mma.h`` nor types of 16 bits: an element is its bits, and the
matrix instructions are inline PTX, as in the Numba kernels. Outside a GPU a block's threads exchange what they have.
"""

from __future__ import annotations

from collections.abc import Mapping

from smembench.kernels.common.cuda_c import port
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.cuda import mma_async, mma_swizzled
from smembench.kernels.matmul.mma_tiling import DEPTH, MmaTiling
from smembench.model.case import Case

_SOURCE = """
constexpr unsigned WARP = 32, WIDE = 8, THREADS = BX * BY, STEP = 16, DOWN = 2, ACROSS = 8;
constexpr unsigned A_CHUNKS = DEPTH / WIDE, B_CHUNKS = COLUMNS / WIDE;
constexpr unsigned A_ELEMENTS = ROWS * DEPTH, B_ELEMENTS = DEPTH * COLUMNS;

struct Matrix { const T *elements; unsigned rows, columns, stride; };

__device__ __forceinline__ unsigned this_thread() { return threadIdx.y * BX + threadIdx.x; }

// Where a chunk of 16 bytes is stored in a tile whose rows have so many.
template <unsigned CHUNKS> __device__ __forceinline__ unsigned place(unsigned row, unsigned chunk)
{
    constexpr unsigned TOGETHER = CHUNKS < 8 ? 8 / CHUNKS : 1, MOST = CHUNKS < 8 ? CHUNKS : 8;
    return (row * CHUNKS + (chunk ^ (row / TOGETHER % MOST))) * WIDE;
}

__device__ __forceinline__ void copy_chunk(T *to, const T *from, bool inside)
{
#ifdef __CUDA_ARCH__
    if (STAGES > 1) {
        unsigned shared = (unsigned)__cvta_generic_to_shared(to), bytes = inside ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(shared), "l"(from), "r"(bytes) : "memory");
        return;
    }
#endif
    *(uint4 *)to = inside ? *(const uint4 *)from : uint4{};
}

__device__ __forceinline__ void commit_copies()
{
#ifdef __CUDA_ARCH__
    if (STAGES > 1)
        asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

__device__ __forceinline__ void wait_for_all_copies_but_the_newest()
{
#ifdef __CUDA_ARCH__
    if (STAGES > 1)
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES > 1 ? STAGES - 2 : 0) : "memory");
#endif
}

template <unsigned HEIGHT, unsigned CHUNKS>
__device__ __forceinline__ void copy_tile(T *tile, const Matrix &from, unsigned row0, unsigned col0)
{
    unsigned chunk = this_thread() % CHUNKS, col = col0 + chunk * WIDE;
    for (unsigned i = 0; i < HEIGHT * CHUNKS / THREADS; ++i) {
        unsigned row = this_thread() / CHUNKS + i * (THREADS / CHUNKS);
        bool inside = row0 + row < from.rows && col < from.columns;
        copy_chunk(&tile[place<CHUNKS>(row, chunk)], &from.elements[(row0 + row) * from.stride + col], inside);
    }
}

// Four 8 x 8 matrices; each lane has the address of a row of 16 bytes.
template <bool TRANSPOSED> __device__ __forceinline__ void load_matrices(unsigned (&fragment)[4], const T *row)
{
#ifdef __CUDA_ARCH__
    unsigned shared = (unsigned)__cvta_generic_to_shared(row);
    if (TRANSPOSED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                     : "r"(shared) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                     : "r"(shared) : "memory");
#else
    static const T *rows[THREADS];
    unsigned lane = this_thread() % WARP, warp = this_thread() - lane;
    rows[this_thread()] = row;
    __syncthreads();
    for (unsigned i = 0; i < 4; ++i) {
        const T **matrix = &rows[warp + 8 * i];
        unsigned g = lane / 4, t = lane % 4 * 2;
        T low = TRANSPOSED ? matrix[t][g] : matrix[g][t], high = TRANSPOSED ? matrix[t + 1][g] : matrix[g][t + 1];
        fragment[i] = low | (unsigned)high << 16;
    }
    __syncthreads();
#endif
}

__device__ __forceinline__ void multiply(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
#ifdef __CUDA_ARCH__
    if (BFLOAT16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    static unsigned given[THREADS][6];
    unsigned lane = this_thread() % WARP, warp = this_thread() - lane;
    for (unsigned i = 0; i < 4; ++i)
        given[this_thread()][i] = a[i];
    given[this_thread()][4] = b0, given[this_thread()][5] = b1;
    __syncthreads();
    auto element = [&](unsigned of, unsigned part, unsigned half) {
        unsigned bits = given[warp + of][part] >> 16 * half << 16;  // of bfloat16
        return *(float *)&bits;
    };
    for (unsigned i = 0; i < 4; ++i)
        for (unsigned k = 0; k < 16; ++k) {
            unsigned pair = k % 8 / 2, row = lane / 4, column = lane % 4 * 2 + i % 2;
            float of_a = element(row * 4 + pair, i / 2 + k / 8 * 2, k % 2);
            sum[i] += of_a * element(column * 4 + pair, 4 + k / 8, k % 2);
        }
    __syncthreads();
#endif
}

__device__ __forceinline__ void store_two(T *to, float low, float high)
{
#ifdef __CUDA_ARCH__
    unsigned both;
    if (BFLOAT16)
        asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(low), "f"(high));
    else
        asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(low), "f"(high));
    *(unsigned *)to = both;
#else
    for (float value : {low, high}) {
        unsigned bits = *(unsigned *)&value;
        *to++ = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    }
#endif
}

// A warp's products of one stage.
__device__ __forceinline__ void multiply_tiles(float (&accumulators)[DOWN][ACROSS][4], const T *a_tile, const T *b_tile,
                                               unsigned row, unsigned col)
{
    unsigned lane = this_thread() % WARP, below = lane % 16, along = lane / 16;
#pragma unroll
    for (unsigned k = 0; k < DEPTH; k += STEP) {
        unsigned a[DOWN][4], b[ACROSS / 2][4];
        for (unsigned i = 0; i < DOWN; ++i)
            load_matrices<false>(a[i], &a_tile[place<A_CHUNKS>(row + 16 * i + below, k / WIDE + along)]);
        for (unsigned j = 0; j < ACROSS / 2; ++j)
            load_matrices<true>(b[j], &b_tile[place<B_CHUNKS>(k + below, col / WIDE + 2 * j + along)]);
        for (unsigned i = 0; i < DOWN; ++i)
            for (unsigned j = 0; j < ACROSS; ++j)
                multiply(accumulators[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
NAME(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k, unsigned lda, unsigned ldb, unsigned ldc)
{
    alignas(16) __shared__ T a_tiles[STAGES * A_ELEMENTS];
    alignas(16) __shared__ T b_tiles[STAGES * B_ELEMENTS];

    Matrix A{a, m, k, lda}, B{b, k, n, ldb};
    unsigned row0 = blockIdx.y * ROWS, col0 = blockIdx.x * COLUMNS;
    unsigned warp = this_thread() / WARP, lane = this_thread() % WARP;
    unsigned row = warp / (COLUMNS / 64) * 32, col = warp % (COLUMNS / 64) * 64;
    float accumulators[DOWN][ACROSS][4] = {};
    auto start = [&](unsigned stage, unsigned k0) {
        copy_tile<ROWS, A_CHUNKS>(&a_tiles[stage * A_ELEMENTS], A, row0, k0);
        copy_tile<DEPTH, B_CHUNKS>(&b_tiles[stage * B_ELEMENTS], B, k0, col0);
        commit_copies();
    };

    constexpr unsigned AHEAD = STAGES - 1;
    for (unsigned stage = 0; stage < AHEAD; ++stage)
        start(stage, stage * DEPTH);
    unsigned oldest = 0, free = AHEAD;
    for (unsigned k0 = 0; k0 < k; k0 += DEPTH) {
        if (STAGES == 1)
            start(0, k0);
        wait_for_all_copies_but_the_newest();
        __syncthreads();
        if (STAGES > 1)
            start(free, k0 + AHEAD * DEPTH);
        multiply_tiles(accumulators, &a_tiles[oldest * A_ELEMENTS], &b_tiles[oldest * B_ELEMENTS], row, col);
        if (STAGES == 1)
            __syncthreads();
        free = oldest;
        oldest = (oldest + 1) % STAGES;
    }
    for (unsigned i = 0; i < 2 * DOWN; ++i)
        for (unsigned j = 0; j < ACROSS; ++j) {
            unsigned at_row = row0 + row + lane / 4 + 8 * i, at_col = col0 + col + lane % 4 * 2 + 8 * j;
            if (at_row < m && at_col < n)
                store_two(&c[at_row * ldc + at_col], accumulators[i / 2][j][i % 2 * 2],
                          accumulators[i / 2][j][i % 2 * 2 + 1]);
        }
}
"""


def _port(kernel: Kernel, stages: int) -> Kernel:
    def tiling(case: Case) -> MmaTiling:
        return mma_async.tiling_of(case) if stages > 1 else mma_swizzled.tiling_of(case)

    def constants(case: Case) -> Mapping[str, int]:
        tiles = tiling(case)
        _, blocks = tiles.launch_bounds(case)
        sides = {"ROWS": tiles.rows, "COLUMNS": tiles.columns, "DEPTH": DEPTH}
        return {**sides, "STAGES": stages, "BLOCKS": blocks, "BFLOAT16": int(case.dtype == "bfloat16")}

    def unsupported(case: Case) -> str | None:
        if reason := kernel.unsupported(case):
            return reason
        if 1 in tiling(case).widths(case):
            return f"the CUDA C port of {case.kernel} takes rows of whole 16 bytes, not {case.size}"
        return None

    return port(kernel, _SOURCE.replace("NAME", kernel.name), constants, unsupported)


KERNELS = (_port(mma_swizzled.KERNEL, 1), _port(mma_async.KERNEL, mma_async.STAGES))
