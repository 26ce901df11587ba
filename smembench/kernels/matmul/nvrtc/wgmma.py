"""wgmma in CUDA C, for element types of 16 bits."""

from __future__ import annotations

from smembench.kernels.matmul.cuda import wgmma
from smembench.kernels.matmul.warp_groups_c import warp_group_port

_SOURCE = """
extern "C" __global__ void __launch_bounds__(BX, 1)
wgmma(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k, unsigned lda, unsigned ldb, unsigned ldc,
      Map a_map, Map b_map)
{
    T *tiles = (T *)dynamic_memory();
    __shared__ Barrier full[1];
    float upper[COLUMNS / 2], lower[COLUMNS / 2];
    unsigned thread = threadIdx.x;
    Place place{blockIdx.y * ROWS, blockIdx.x * COLUMNS};
    if (thread == 0) {
        set_barrier(full, 1);
        publish_barriers();
        acquire_map(a_map);
        acquire_map(b_map);
    }
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < COLUMNS / 2; ++i)
        upper[i] = lower[i] = 0;
    unsigned phase = 0;
    for (unsigned k0 = 0; k0 < k; k0 += DEPTH) {
        if (thread == 0)
            copy(Stages{tiles, full, full}, 0, Maps{a_map, b_map}, place, k0);
        wait_for_phase(full, phase);
        begin_products();
        multiply<COLUMNS, B_BY_ROWS>(upper, tiles, &tiles[A_ELEMENTS], thread);
        multiply<COLUMNS, B_BY_ROWS>(lower, &tiles[GROUP_ROWS * DEPTH], &tiles[A_ELEMENTS], thread);
        commit_products();
        finish_products<0>();
        __syncthreads();
        phase = 1 - phase;
    }
    Matrix C{c, m, n, ldc};
    write(C, upper, place, thread);
    write(C, lower, Place{place.row + GROUP_ROWS, place.col}, thread);
}
"""

KERNEL = warp_group_port(wgmma.KERNEL, _SOURCE, wgmma.TILE.of)
