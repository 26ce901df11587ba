"""streamK in CUDA C, for aligned rows and whole tiles: a remainder has no port."""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.intrinsics.block_flags import MOST_BLOCKS
from smembench.kernels.matmul.cuda import stream_k
from smembench.kernels.matmul.interleaved_copies import A_LANES
from smembench.kernels.matmul.register_pipelining_c import (
    REGISTER_PIPELINING,
    not_ported,
    register_pipelining_constants,
)
from smembench.model.case import Case

_SOURCE = """
__device__ unsigned flags[MOST_BLOCKS];

__device__ __forceinline__ void raise_flag(unsigned block)
{
    __threadfence();
    *(volatile unsigned *)&flags[block] = 1;
}

__device__ __forceinline__ void wait_for_flag(unsigned block)
{
    while (!*(volatile unsigned *)&flags[block])
        ;
    flags[block] = 0;
    __threadfence();
}

template <unsigned BYTES> __device__ __forceinline__ void copy_async(T *to, const T *from)
{
#ifdef __CUDA_ARCH__
    unsigned place = (unsigned)__cvta_generic_to_shared(to);
    if (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(place), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" :: "r"(place), "l"(from), "n"(BYTES) : "memory");
#else
    for (unsigned i = 0; i < BYTES / sizeof(T); ++i)
        to[i] = from[i];
#endif
}

__device__ __forceinline__ void wait_for_copies()
{
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
#endif
}

// A thread's copies per tile, some after each of the first steps: vectors of B, and elements of A, whose tile is
// transposed.
constexpr unsigned B_LANES = COLUMNS / WIDE < WARP ? COLUMNS / WIDE : WARP;
constexpr unsigned A_IN_ROW = DEPTH / A_LANES, B_IN_ROW = COLUMNS / (B_LANES * WIDE);
constexpr unsigned B_COPIES = B_COUNT, COPIES = B_COPIES + A_COUNT * WIDE;
constexpr unsigned AT_ONCE = (COPIES + COPYING - 1) / COPYING;

struct Way { const T *a, *b; T *a_tile, *b_tile; unsigned lda, ldb; };

__device__ __forceinline__ void copy(const Way &way, unsigned number)
{
    if (number < B_COPIES) {
        unsigned row = number / B_IN_ROW * (THREADS / B_LANES), along = number % B_IN_ROW * B_LANES * WIDE;
        copy_async<16>(&way.b_tile[row * COLUMNS + along], &way.b[row * way.ldb + along]);
    } else {
        number -= B_COPIES;
        unsigned row = number / A_IN_ROW * (THREADS / A_LANES), along = number % A_IN_ROW * A_LANES;
        copy_async<sizeof(T)>(&way.a_tile[along * PITCH + row], &way.a[row * way.lda + along]);
    }
}

// A block's first step, where blocks share all steps evenly; the end for the block after the last.
__device__ __forceinline__ unsigned first_step(unsigned block, unsigned blocks, unsigned steps)
{
    return (unsigned long long)block * steps / blocks;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
streamK(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k, unsigned lda, unsigned ldb, unsigned ldc)
{
    alignas(16) __shared__ T a_tile[2 * A_ELEMENTS];
    alignas(16) __shared__ T b_tile[2 * B_ELEMENTS];

    Sides sides{m, n, k, lda, ldb, ldc};
    unsigned thread = this_thread(), row = row_in_tile(), col = column_in_tile();
    unsigned a_row = thread / A_LANES, a_col = thread % A_LANES;
    unsigned b_row = thread / B_LANES, b_col = thread % B_LANES * WIDE;
    unsigned block = blockIdx.y * gridDim.x + blockIdx.x, blocks = gridDim.x * gridDim.y;
    unsigned lack = lacking(k), steps_per_tile = (k + DEPTH - 1) / DEPTH;
    unsigned tiles_across = (n + COLUMNS - 1) / COLUMNS, tiles = tiles_across * ((m + ROWS - 1) / ROWS);
    unsigned steps = tiles * steps_per_tile;
    unsigned begins = first_step(block, blocks, steps), end = first_step(block + 1, blocks, steps);

    while (end > begins) {
        unsigned tile = (end - 1) / steps_per_tile, base = tile * steps_per_tile;
        unsigned since = (begins > base ? begins : base) - base, until = end - base;
        unsigned top = tile / tiles_across * ROWS, left = tile % tiles_across * COLUMNS;
        unsigned row0 = least(top, m - ROWS), col0 = least(left, n - COLUMNS);

        Accumulators accumulators{};
        Share held;
        Fragments fragments[2];
        unsigned k0 = since * DEPTH, last = until * DEPTH;
        load_until(held, a, b, row0, col0, since ? k0 - lack : 0, since ? k : DEPTH - lack, sides);
        store_share(a_tile, b_tile, held);
        __syncthreads();
        const T *of_a = &a_tile[row], *of_b = &b_tile[col];
        load_fragments(fragments[0], of_a, of_b);
        unsigned buffer = 0;
        while (k0 < last) {
            k0 += DEPTH;
            buffer ^= 1;
            unsigned at_k = least(k0 - lack, k - DEPTH);  // behind the last tiles, those once more
            Way way{
                &a[(row0 + a_row) * lda + a_col + at_k],
                &b[(at_k + b_row) * ldb + col0 + b_col],
                &a_tile[buffer * A_ELEMENTS + a_col * PITCH + a_row],
                &b_tile[buffer * B_ELEMENTS + b_row * COLUMNS + b_col],
                lda,
                ldb,
            };
#pragma unroll
            for (unsigned step = 0; step < DEPTH - 1; ++step) {
                load_fragments(fragments[(step + 1) % 2], of_a + (step + 1) * PITCH, of_b + (step + 1) * COLUMNS);
                multiply(accumulators, fragments[step % 2]);
#pragma unroll
                for (unsigned number = step * AT_ONCE; number < (step + 1) * AT_ONCE && number < COPIES; ++number)
                    copy(way, number);
            }
            wait_for_copies();
            __syncthreads();
            of_a = &a_tile[buffer * A_ELEMENTS + row];
            of_b = &b_tile[buffer * B_ELEMENTS + col];
            load_fragments(fragments[0], of_a, of_b);
            multiply(accumulators, fragments[1]);
        }

        if (since) {
            if (thread == 0)
                wait_for_flag(block - 1);
            __syncthreads();
        }
        for (unsigned i = 0; i < DOWN; ++i) {
            unsigned r = row0 + row + i / WIDE * DOWN_APART + i % WIDE;
            for (unsigned j = 0; j < ACROSS; j += WIDE) {
                unsigned x = col0 + col + j / WIDE * ACROSS_APART;
                if (r < top || x < left)
                    continue;  // another tile's
                Vector &result = *(Vector *)&c[r * ldc + x];
                Vector sum = *(const Vector *)&accumulators.of[i][j];
                if (since) {
                    Vector begun = result;
                    for (unsigned p = 0; p < WIDE; ++p)
                        sum.lane[p] += begun.lane[p];
                }
                result = sum;
            }
        }
        // Partial sums are written before the flag is raised, and fragments read before the next tile is stored.
        __syncthreads();
        if (until < steps_per_tile && thread == 0)
            raise_flag(block);
        end = base + since;
    }
}
"""


def _constants(case: Case) -> dict[str, int]:
    own = {"A_LANES": A_LANES, "COPYING": stream_k.COPYING, "MOST_BLOCKS": MOST_BLOCKS}
    return {**register_pipelining_constants(stream_k.VARIANT.tiling(case), stream_k.VARIANT.order), **own}


def _unsupported(case: Case) -> str | None:
    return stream_k.KERNEL.unsupported(case) or not_ported(case, stream_k.VARIANT.tiling(case))


KERNEL = port(stream_k.KERNEL, REGISTER_PIPELINING + _SOURCE, _constants, _unsupported)
