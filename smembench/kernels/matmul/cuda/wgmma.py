"""wgmma: one warp group multiplies whole tiles in shared memory on the tensor cores.

Per 128 bytes along k:

1. One thread has the Tensor Memory Accelerator (TMA) copy the next tiles of A and B, and swizzle them.
2. All threads wait until the tiles have arrived and multiply them (``wgmma``): 128 × 128 results, half of the rows at a
   time.
3. Barrier, after which the tiles may be overwritten.

Unlike in mmaAsync no thread computes addresses within a tile, and no operand passes through registers. Copies and
products take turns: the tensor cores wait for every tile.
"""

from __future__ import annotations

from smembench.kernels.intrinsics.bulk_copy import (
    TILE_ALIGNMENT,
    prefetch_map,
    publish_barriers,
    set_barrier,
    wait_for_phase,
)
from smembench.kernels.intrinsics.halves import store_pair
from smembench.kernels.intrinsics.warp_group import (
    GROUP,
    ROWS,
    begin_products,
    commit_products,
    finish_products,
    products,
)
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.tile_choice import unsupported
from smembench.kernels.matmul.warp_groups import Stages, Tile, copies
from smembench.kernels.numba_cuda import cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Map, Matrix, Place
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.formats import NARROW, produced
from smembench.model.hardware import WARP

TILE = Tile(rows=128, columns=128)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map)``."""
    element, float32, barrier = number(case.dtype), number("float32"), number("uint64")
    tile = TILE.of(case)
    rows, columns, depth, at_b = tile.rows, tile.columns, tile.depth, tile.a_elements
    sums, lower_a, eights = columns // 2, ROWS * depth, columns // 8
    copy, multiply = copies(tile), products(columns, case.dtype, case.b_layout)
    store = store_pair(produced(case.dtype))

    @device
    def write(C: Matrix, accumulators: Array, place: Place, thread: Index) -> None:
        """Write 64 rows at ``place``: a warp has 16 of them; of each 8 × 8 results a thread has two neighbours."""
        row, col = place.row + thread // WARP * 16 + thread % WARP // 4, place.col + thread % 4 * 2
        for group in range(eights):
            for half in range(2):
                if row + uint32(half * 8) < C.rows and col + uint32(group * 8) < C.columns:
                    at = (row + uint32(half * 8)) * C.stride + col + uint32(group * 8)
                    store(C.elements, at, accumulators[group * 4 + half * 2], accumulators[group * 4 + half * 2 + 1])

    def wgmma(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Map, b_map: Map,
    ) -> None:  # fmt: skip
        # (128 rows of A and then 128 columns of B, 128 bytes along k)
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        full = cuda.shared.array(1, barrier)
        # The upper and the lower 64 rows of the tile: each (128 / 8, 2 rows, 2 columns)
        upper = cuda.local.array(sums, float32)
        lower = cuda.local.array(sums, float32)
        thread = cuda.threadIdx.x
        place = Place(cuda.blockIdx.y * rows, cuda.blockIdx.x * columns)
        if thread == 0:
            prefetch_map(a_map)
            prefetch_map(b_map)
            set_barrier(full, 0, 1)  # one thread announces the bytes of a copy; the phase ends when they have come
            publish_barriers()
        cuda.syncthreads()
        for i in range(sums):
            upper[i] = lower[i] = 0
        phase = uint32(0)
        for k0 in range(0, k, depth):
            if thread == 0:
                copy(Stages(tiles, full, full), uint32(0), a_map, b_map, place, uint32(k0), n)
            wait_for_phase(full, 0, phase)
            begin_products()
            # A warp group's operands are whole tiles in shared memory: no thread loads a fragment.
            multiply(upper, tiles, 0, tiles, at_b, thread)
            multiply(lower, tiles, lower_a, tiles, at_b, thread)
            commit_products()
            finish_products(0)
            cuda.syncthreads()
            phase = 1 - phase
        C = Matrix(c, m, n, ldc)
        write(C, upper, place, thread)
        write(C, lower, Place(place.row + ROWS, place.col), thread)

    return NumbaKernel(
        wgmma,
        grid=tile.grid(case),
        block=(GROUP, 1),
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=tile.maps(case),
        launch_bounds=(GROUP, 1),
    )


KERNEL = Kernel(
    problem="matmul",
    name="wgmma",
    kind="cuda",
    summary="a warp group multiplies tiles in shared memory that the TMA copies there",
    build=build,
    blocks=False,
    results=(TILE.columns, TILE.rows),
    tile_elements=TILE.tile_elements,
    dynamic_elements=TILE.tile_elements,
    dtypes=NARROW,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=unsupported,
    needs="9.0a",
    standard=False,
    ladder="operands from shared memory, tiles copied by the TMA",
)
