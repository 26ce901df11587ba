"""wgmmaStored in CUDA C, for element types of 16 bits."""

from __future__ import annotations

from smembench.kernels.matmul.cuda import wgmma_stored
from smembench.kernels.matmul.nvrtc.wgmma_persistent import CONSTANTS, PLACE_OF
from smembench.kernels.matmul.warp_groups import BUFFERS
from smembench.kernels.matmul.warp_groups_c import warp_group_port

_SOURCE = """
constexpr unsigned WARP = 32, WIDTH = PIECE_BYTES / sizeof(T);

// Where an element of a swizzled tile lies.
__device__ __forceinline__ unsigned place_in_tile(unsigned row, unsigned col)
{
    constexpr unsigned WIDE = CHUNK / sizeof(T);
    return row * WIDTH + (col / WIDE ^ row / (ROW_BYTES / PIECE_BYTES) % (PIECE_BYTES / CHUNK)) * WIDE + col % WIDE;
}

// Store a lane's results of PIECE_BYTES of its warp's rows in a buffer.
__device__ __forceinline__ void fill(T *buffer, const float (&accumulators)[COLUMNS / 2], unsigned part, unsigned lane)
{
#pragma unroll
    for (unsigned pair = 0; pair < WIDTH / 4; ++pair) {
        unsigned row = lane / 4 + pair % 2 * 8, col = pair / 2 * 8 + lane % 4 * 2;
        unsigned first = part * (WIDTH / 2) + pair * 2;
        store_pair(&buffer[place_in_tile(row, col)], accumulators[first], accumulators[first + 1]);
    }
}

// Start to write a thread's results of the block's tile at a place.
__device__ __forceinline__ void write(T *buffers, const float (&accumulators)[COLUMNS / 2], Map c_map, Place place,
                                      Member member)
{
    constexpr unsigned PARTS = COLUMNS / WIDTH;
    unsigned lane = member.thread % WARP, warp = member.group * (GROUP / WARP) + member.thread / WARP;
    if (PARTS % BUFFERS > 0 && lane == 0)
        finish_stores<0>();  // the last tile ended with the buffer that this one begins with
#pragma unroll
    for (unsigned part = 0; part < PARTS; ++part) {
        T *buffer = &buffers[(warp * BUFFERS + part % BUFFERS) * HEIGHT * WIDTH];
        if (lane == 0)
            finish_stores<BUFFERS - 1>();
        __syncwarp();
        fill(buffer, accumulators, part, lane);
        publish_tile();
        __syncwarp();
        if (lane == 0) {
            start_store(c_map, place.col + part * WIDTH, place.row + warp * HEIGHT, buffer);
            commit_stores();
        }
    }
}

extern "C" __global__ void __launch_bounds__(BX, 1)
wgmmaStored(T *c, const T *a, const T *b, unsigned m, unsigned n, unsigned k,
            unsigned lda, unsigned ldb, unsigned ldc, Map a_map, Map b_map, Map c_map)
{
    T *tiles = (T *)dynamic_memory(), *buffers = &tiles[STAGES * ELEMENTS];
    __shared__ Barrier full[STAGES], empty[STAGES];
    Stages stages{tiles, full, empty};
    Maps maps{a_map, b_map};
    unsigned group = own_group(), thread = threadIdx.x % GROUP;
    unsigned tiles_down = (m + (ROWS - 1)) / ROWS, tiles_across = (n + (COLUMNS - 1)) / COLUMNS;
    if (threadIdx.x == 0) {
        set_up_barriers(stages, maps, CONSUMERS);
        prefetch_map(c_map);
    }
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
            write(buffers, accumulators, c_map, place, member);
        }
        finish_stores<0>();
    }
}
"""

KERNEL = warp_group_port(
    wgmma_stored.KERNEL,
    PLACE_OF + _SOURCE,
    wgmma_stored.tile_of,
    {**CONSTANTS, "HEIGHT": wgmma_stored.HEIGHT, "BUFFERS": BUFFERS},
)
