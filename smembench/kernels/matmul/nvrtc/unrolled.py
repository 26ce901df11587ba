"""unrolled in CUDA C: 8 × 8 results per thread in warp tiles, two buffers, 128-bit accesses; NVRTC unrolls k."""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.matmul.cuda import unrolled
from smembench.kernels.matmul.cuda.warp_tiled import tiling_of
from smembench.kernels.matmul.tiling_c import TILING, constants_of, no_whole_vectors
from smembench.model.case import Case

_SOURCE = """
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
unrolled(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k, unsigned lda, unsigned ldb, unsigned ldc)
{
    alignas(16) __shared__ T a_tile[2][DEPTH * PITCH];
    alignas(16) __shared__ T b_tile[2][DEPTH * COLUMNS];

    unsigned thread = threadIdx.y * BX + threadIdx.x, warp = thread / WARP, lane = thread % WARP;
    unsigned row = warp / WARPS * LANES_DOWN * DOWN + lane / LANES_ACROSS * WIDE;
    unsigned col = warp % WARPS * LANES_ACROSS * ACROSS + lane % LANES_ACROSS * WIDE;
    unsigned row0 = blockIdx.y * ROWS, col0 = blockIdx.x * COLUMNS;
    unsigned a_row = thread / A_ACROSS, a_col = thread % A_ACROSS * WIDE;
    unsigned b_row = thread / B_ACROSS, b_col = thread % B_ACROSS * WIDE;

    alignas(16) T accumulators[DOWN][ACROSS] = {};
    Vector a_held[A_COUNT], b_held[B_COUNT];
    auto load = [&](unsigned k0) {
        for (unsigned i = 0; i < A_COUNT; ++i) {
            unsigned r = row0 + a_row + i * A_STEP;
            a_held[i] = k0 + a_col < k ? *(const Vector *)&a[(r < m ? r : m - 1) * lda + k0 + a_col] : Vector{};
        }
        for (unsigned i = 0; i < B_COUNT; ++i) {
            unsigned r = k0 + b_row + i * B_STEP, x = col0 + b_col;
            b_held[i] = r < k ? *(const Vector *)&b[r * ldb + (x < n ? x : n - WIDE)] : Vector{};
        }
    };

    auto store = [&](unsigned buffer) {
        for (unsigned i = 0; i < A_COUNT; ++i)
            for (unsigned j = 0; j < WIDE; ++j)
                a_tile[buffer][(a_col + j) * PITCH + a_row + i * A_STEP] = a_held[i].lane[j];
        for (unsigned i = 0; i < B_COUNT; ++i)
            *(Vector *)&b_tile[buffer][(b_row + i * B_STEP) * COLUMNS + b_col] = b_held[i];
    };

    load(0);
    store(0);
    __syncthreads();
    unsigned buffer = 0;
    for (unsigned k0 = DEPTH; k0 < k + DEPTH; k0 += DEPTH) {
        load(k0);
#pragma unroll
        for (unsigned step = 0; step < DEPTH; ++step) {
            Vector down[DOWN / WIDE], across[ACROSS / WIDE];
            for (unsigned i = 0; i < DOWN / WIDE; ++i)
                down[i] = *(const Vector *)&a_tile[buffer][step * PITCH + row + i * DOWN_APART];
            for (unsigned j = 0; j < ACROSS / WIDE; ++j)
                across[j] = *(const Vector *)&b_tile[buffer][step * COLUMNS + col + j * ACROSS_APART];
            for (unsigned j = 0; j < ACROSS; ++j)
                for (unsigned i = 0; i < DOWN; ++i)
                    accumulators[i][j] += down[i / WIDE].lane[i % WIDE] * across[j / WIDE].lane[j % WIDE];
        }
        buffer ^= 1;
        store(buffer);
        __syncthreads();
    }

    for (unsigned i = 0; i < DOWN; ++i) {
        unsigned r = row0 + row + i / WIDE * DOWN_APART + i % WIDE;
        for (unsigned j = 0; j < ACROSS; j += WIDE) {
            unsigned x = col0 + col + j / WIDE * ACROSS_APART;
            if (r < m && x < n)
                *(Vector *)&c[r * ldc + x] = *(const Vector *)&accumulators[i][j];
        }
    }
}
"""


def _constants(case: Case) -> dict[str, int]:
    return constants_of(tiling_of(case))


def _unsupported(case: Case) -> str | None:
    return no_whole_vectors(case, tiling_of(case)) or unrolled.KERNEL.unsupported(case)


KERNEL = port(unrolled.KERNEL, TILING + _SOURCE, _constants, _unsupported)
