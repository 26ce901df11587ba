"""wgmmaSpecialized: one warp group copies while two multiply, with four stages of tiles between them.

1. The producer, one thread of the first warp group, waits until a stage is free and starts the copies of its tiles.
2. Each consumer, a warp group for 64 of the tile's 128 rows, waits until a stage has arrived, multiplies 64 × 256
   results, and says that it is free.
3. The producer's group gives registers to the consumers, whose threads hold 128 results each.

Copies run up to four stages ahead of the products, so neither waits for the other. Two groups hold the results that
wgmmaSpilled has no room for in one.
"""

from __future__ import annotations

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
from smembench.kernels.matmul.structs import Matrix, Place
from smembench.kernels.matmul.warp_groups import Maps, Stages, Tile, epilogue, unsupported
from smembench.kernels.numba_cuda import cuda, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import NARROW

TILE = Tile(rows=128, columns=256, stages=4)
CONSUMERS = TILE.rows // ROWS
THREADS = (1 + CONSUMERS) * GROUP
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232
"""Per thread, together the 65,536 of a multiprocessor: 128 · (40 + 2 · 232) = 64,512."""


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map)``."""
    element, total, barrier = number(case.dtype), number("float32"), number("uint64")
    shape = TILE.of(case)
    rows, columns, stages, elements = shape.rows, shape.columns, shape.stages, shape.elements
    sums, depth, a_elements, group_elements = columns // 2, shape.depth, shape.a_elements, ROWS * shape.depth
    copy, multiply = shape.copies(), products(columns, case.dtype, case.b_layout)
    write = epilogue(columns, case.dtype)

    def wgmma_specialized(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Index, b_map: Index,
    ) -> None:  # fmt: skip
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        arrived = cuda.shared.array(stages, barrier)
        free = cuda.shared.array(stages, barrier)
        results = cuda.local.array(sums, total)
        group, thread = cuda.threadIdx.x // GROUP, cuda.threadIdx.x % GROUP
        place = Place(cuda.blockIdx.y * rows, cuda.blockIdx.x * columns)
        if cuda.threadIdx.x == 0:
            for i in range(stages):
                set_barrier(arrived, i, 1)
                set_barrier(free, i, CONSUMERS)
            publish_barriers()
            acquire_map(a_map)
            acquire_map(b_map)
        cuda.syncthreads()
        stage, phase = uint32(0), uint32(0)
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            if thread == 0:
                for k0 in range(0, k, depth):
                    wait_for_phase(free, stage, 1 - phase)
                    copy(Stages(tiles, arrived), stage, Maps(a_map, b_map), place, uint32(k0))
                    stage += 1
                    if stage == stages:
                        stage, phase = uint32(0), 1 - phase
        else:
            add_registers(CONSUMER_REGISTERS)
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

    return NumbaKernel(
        wgmma_specialized,
        grid=shape.grid(case),
        block=(THREADS, 1),
        dynamic_bytes=shape.shared_bytes,
        tensor_maps=shape.maps(case),
        launch_bounds=(THREADS, 1),
    )


KERNEL = Kernel(
    problem="matmul",
    name="wgmmaSpecialized",
    kind="cuda",
    summary="wgmma with a producer and two consumers, four stages of tiles between them",
    build=build,
    blocks=False,
    tile_elements=TILE.tile_elements,
    dtypes=NARROW,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=unsupported,
    needs="9.0a",
    standard=False,
    ladder="a warp group copies while two multiply",
)
