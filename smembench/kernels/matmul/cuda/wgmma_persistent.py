"""wgmmaPersistent: wgmmaSpecialized with a block per multiprocessor, which computes one tile of C after another.

1. The producer goes on with the next tile's copies while the consumers still write the results of the last one.
2. Tiles follow each other down a band of eight rows of tiles, then to the right, so that blocks that run at the same
   time share tiles of A and B in the L2.
"""

from __future__ import annotations

from math import prod

from smembench.kernels.intrinsics.bulk_copy import (
    TILE_ALIGNMENT,
    acquire_map,
    arrive,
    publish_barriers,
    set_barrier,
    wait_for_phase,
)
from smembench.kernels.intrinsics.warp_group import (
    GROUP,
    ROWS,
    add_registers,
    begin_products,
    commit_products,
    finish_products,
    give_registers,
    products,
)
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.cuda.wgmma_specialized import (
    CONSUMER_REGISTERS,
    CONSUMERS,
    PRODUCER_REGISTERS,
    THREADS,
    TILE,
)
from smembench.kernels.matmul.structs import Matrix, Place
from smembench.kernels.matmul.warp_groups import Maps, Stages, epilogue, unsupported
from smembench.kernels.numba_cuda import cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import NARROW

BAND = 8
"""Rows of tiles in a band."""
_ROWS, _COLUMNS = TILE.rows, TILE.columns


@device
def place_of(tile: Index, down: Index, across: Index) -> Place:
    """Where the tile of this number begins, of ``down`` × ``across`` tiles."""
    band, inside = tile // (across * BAND), tile % (across * BAND)
    high = min(uint32(BAND), down - band * BAND)
    return Place((band * BAND + inside % high) * _ROWS, inside // high * _COLUMNS)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map)``."""
    element, total, barrier = number(case.dtype), number("float32"), number("uint64")
    shape = TILE.of(case)
    rows, columns, stages, elements = shape.rows, shape.columns, shape.stages, shape.elements
    sums, depth, a_elements, group_elements = columns // 2, shape.depth, shape.a_elements, ROWS * shape.depth
    copy, multiply = shape.copies(), products(columns, case.dtype, case.b_layout)
    write = epilogue(columns, case.dtype)

    def wgmma_persistent(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Index, b_map: Index,
    ) -> None:  # fmt: skip
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        arrived = cuda.shared.array(stages, barrier)
        free = cuda.shared.array(stages, barrier)
        results = cuda.local.array(sums, total)
        group, thread = cuda.threadIdx.x // GROUP, cuda.threadIdx.x % GROUP
        down, across = (m + (rows - 1)) // rows, (n + (columns - 1)) // columns
        if cuda.threadIdx.x == 0:
            for i in range(stages):
                set_barrier(arrived, i, 1)
                set_barrier(free, i, CONSUMERS)
            publish_barriers()
            acquire_map(a_map)
            acquire_map(b_map)
        cuda.syncthreads()
        stage, phase = uint32(0), uint32(0)
        tile = cuda.blockIdx.x
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            while thread == 0 and tile < down * across:
                place = place_of(tile, down, across)
                for k0 in range(0, k, depth):
                    wait_for_phase(free, stage, 1 - phase)
                    copy(Stages(tiles, arrived), stage, Maps(a_map, b_map), place, uint32(k0))
                    stage += 1
                    if stage == stages:
                        stage, phase = uint32(0), 1 - phase
                tile += cuda.gridDim.x
        else:
            add_registers(CONSUMER_REGISTERS)
            while tile < down * across:
                place = place_of(tile, down, across)
                for i in range(sums):
                    results[i] = 0
                for _ in range(0, k, depth):
                    wait_for_phase(arrived, stage, phase)
                    at = stage * elements
                    begin_products()
                    multiply(results, tiles, at + (group - 1) * group_elements, at + a_elements, thread)
                    commit_products()
                    finish_products(0)
                    if thread == 0:
                        arrive(free, stage)
                    stage += 1
                    if stage == stages:
                        stage, phase = uint32(0), 1 - phase
                write(Matrix(c, m, n, ldc), results, Place(place.row + (group - 1) * ROWS, place.col), thread)
                tile += cuda.gridDim.x

    grid = shape.grid(case)
    return NumbaKernel(
        wgmma_persistent,
        grid=grid,
        block=(THREADS, 1),
        dynamic_bytes=shape.shared_bytes,
        tensor_maps=shape.maps(case),
        launch_bounds=(THREADS, 1),
        persistent_blocks=lambda multiprocessors: min(multiprocessors, prod(grid)),
    )


KERNEL = Kernel(
    problem="matmul",
    name="wgmmaPersistent",
    kind="cuda",
    summary="wgmmaSpecialized with a persistent grid, whose blocks compute tile after tile",
    build=build,
    blocks=False,
    tile_elements=TILE.tile_elements,
    dtypes=NARROW,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=unsupported,
    needs="9.0a",
    standard=False,
    ladder="a block computes tile after tile, in bands",
)
