"""serpentine and serpentine16x8 in CUDA C: for aligned rows and whole tiles.

Results are visited along rows for both, since by the model of register bank conflicts ptxas makes the better loop of
that here. Findings: results/reference/notes/serpentine.md.
"""

from __future__ import annotations

from smembench.kernels.common.cuda_c import port
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.cuda import serpentine
from smembench.kernels.matmul.register_pipelining import ResultOrder
from smembench.kernels.matmul.register_pipelining_c import (
    REGISTER_PIPELINING,
    not_ported,
    register_pipelining_constants,
)
from smembench.model.case import Case

_SOURCE = """
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
NAME(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k, unsigned lda, unsigned ldb, unsigned ldc)
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
    load_until(held, a, b, row0, col0, 0, DEPTH - lack, sides);
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

_BY_ROWS = ResultOrder(by_rows=True)


def _port(kernel: Kernel) -> Kernel:
    variant = serpentine.VARIANTS[kernel.name]

    def constants(case: Case) -> dict[str, int]:
        return register_pipelining_constants(variant.tiling(case), _BY_ROWS)

    def unsupported(case: Case) -> str | None:
        return kernel.unsupported(case) or not_ported(case, variant.tiling(case))

    return port(kernel, REGISTER_PIPELINING + _SOURCE.replace("NAME", kernel.name), constants, unsupported)


KERNELS = tuple(_port(kernel) for kernel in serpentine.KERNELS)
