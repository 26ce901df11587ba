"""wgmmaSpecialized in CUDA C, for element types of 16 bits."""

from __future__ import annotations

from smembench.kernels.matmul.cuda import wgmma_specialized
from smembench.kernels.matmul.warp_groups_c import warp_group_port

_SOURCE = """
extern "C" __global__ void __launch_bounds__(BX, 1)
wgmmaSpecialized(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k,
                 unsigned lda, unsigned ldb, unsigned ldc, Map a_map, Map b_map)
{
    __shared__ Barrier full[STAGES], empty[STAGES];
    Stages stages{(T *)dynamic_memory(), full, empty};
    Maps maps{a_map, b_map};
    Place place{blockIdx.y * ROWS, blockIdx.x * COLUMNS};
    unsigned group = own_group(), thread = threadIdx.x % GROUP;
    if (threadIdx.x == 0)
        set_up_barriers(stages, maps, CONSUMERS);
    __syncthreads();
    PipelineState first{0, 0};
    if (group == 0) {
        give_registers<PRODUCER_REGISTERS>();
        if (thread == 0)
            producer_loop(stages, first, maps, place, k);
    } else {
        add_registers<CONSUMER_REGISTERS>();
        float accumulators[COLUMNS / 2];
        Member member{group - 1, thread};
        main_loop(accumulators, stages, first, member, k);
        write(Matrix{c, m, n, ldc}, accumulators, Place{place.row + member.group * GROUP_ROWS, place.col}, thread);
    }
}
"""

CONSTANTS = {
    "CONSUMERS": wgmma_specialized.CONSUMERS,
    "PRODUCER_REGISTERS": wgmma_specialized.PRODUCER_REGISTERS,
    "CONSUMER_REGISTERS": wgmma_specialized.CONSUMER_REGISTERS,
}
"""Those of the later steps, too."""
KERNEL = warp_group_port(wgmma_specialized.KERNEL, _SOURCE, wgmma_specialized.TILE.of, CONSTANTS)
