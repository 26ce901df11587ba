"""wgmmaPersistent in CUDA C, for element types of 16 bits."""

from __future__ import annotations

from smembench.kernels.matmul.cuda import wgmma_persistent
from smembench.kernels.matmul.cuda.wgmma_specialized import TILE
from smembench.kernels.matmul.nvrtc import wgmma_specialized
from smembench.kernels.matmul.warp_groups_c import warp_group_port

PLACE_OF = """
// Where the tile of this number begins, in bands.
__device__ __forceinline__ Place place_of(unsigned number, unsigned tiles_down, unsigned tiles_across, unsigned k)
{
    unsigned many = k >= LONG_K ? LONG_BAND : BAND;
    unsigned band = tiles_down * tiles_across <= MULTIPROCESSORS ? NARROW_BAND : many;
    unsigned size = tiles_across * band, bands = number / size;
    unsigned above = bands * band, inside = number - bands * size;  // one division for both, and below
    unsigned high = band < tiles_down - above ? band : tiles_down - above;
    unsigned column = inside / high;
    return {(above + inside - column * high) * ROWS, column * COLUMNS};
}
"""
"""The bands, in wgmmaStored too."""

_SOURCE = """
extern "C" __global__ void __launch_bounds__(BX, 1)
wgmmaPersistent(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k,
                unsigned lda, unsigned ldb, unsigned ldc, Map a_map, Map b_map)
{
    __shared__ Barrier full[STAGES], empty[STAGES];
    Stages stages{(T *)dynamic_memory(), full, empty};
    Maps maps{a_map, b_map};
    unsigned group = own_group(), thread = threadIdx.x % GROUP;
    unsigned tiles_down = (m + (ROWS - 1)) / ROWS, tiles_across = (n + (COLUMNS - 1)) / COLUMNS;
    if (threadIdx.x == 0)
        set_up_barriers(stages, maps, CONSUMERS);
    __syncthreads();
    PipelineState state{0, 0};
    unsigned tile_index = blockIdx.x;
    if (group == 0) {
        give_registers<PRODUCER_REGISTERS>();
        for (; thread == 0 && tile_index < tiles_down * tiles_across; tile_index += gridDim.x)
            state = producer_loop(stages, state, maps, place_of(tile_index, tiles_down, tiles_across, k), k);
    } else {
        add_registers<CONSUMER_REGISTERS>();
        float accumulators[COLUMNS / 2];
        Member member{group - 1, thread};
        for (; tile_index < tiles_down * tiles_across; tile_index += gridDim.x) {
            Place place = place_of(tile_index, tiles_down, tiles_across, k);
            state = main_loop(accumulators, stages, state, member, k);
            write(Matrix{c, m, n, ldc}, accumulators, Place{place.row + member.group * GROUP_ROWS, place.col}, thread);
        }
    }
}
"""

CONSTANTS = {
    **wgmma_specialized.CONSTANTS,
    "MULTIPROCESSORS": wgmma_persistent.MULTIPROCESSORS,
    "NARROW_BAND": wgmma_persistent.NARROW_BAND,
    "BAND": wgmma_persistent.BAND,
    "LONG_BAND": wgmma_persistent.LONG_BAND,
    "LONG_K": wgmma_persistent.LONG_K,
}
KERNEL = warp_group_port(wgmma_persistent.KERNEL, PLACE_OF + _SOURCE, TILE.of, CONSTANTS)
