"""wgmmaPersistent: wgmmaSpecialized with one block per multiprocessor, which computes tile after tile of C.

1. The producer goes on to the next tile's copies while the consumers still write the results of the last one.
2. Tiles are numbered down a band of sixteen rows of tiles, then to the right, so that blocks that run at the same time
   share tiles of A and B in the L2. Bands of four rows are faster where all tiles run at once, and bands of twelve
   where k is long, but not in clusters.
3. Where fewer blocks need no more waves, fewer run: with 132 multiprocessors 128 for 512 tiles, four each, since most
   of 132 would have four too. Findings: results/reference/notes/tensor_cores.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.bulk_copy import TILE_ALIGNMENT
from smembench.kernels.intrinsics.warp_group import GROUP, ROWS, add_registers, give_registers, own_group
from smembench.kernels.matmul.cuda import wgmma_specialized
from smembench.kernels.matmul.cuda.wgmma_specialized import (
    CONSUMER_REGISTERS,
    CONSUMERS,
    PRODUCER_REGISTERS,
    THREADS,
    TILE,
    PipelineState,
    multiplying,
    producing,
    release,
    setting_up,
)
from smembench.kernels.matmul.warp_groups import Maps, Member, Stages, Tile, epilogue
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Case
from smembench.model.hardware import SM90_MULTIPROCESSORS

BAND, LONG_BAND, NARROW_BAND = 16, 12, 4
"""Rows of tiles in a band, in one where k is long, and in one of so few tiles that all run at once."""
LONG_K = 12288
"""The least k that is long: bands of twelve rows were measured to be faster at 16384, those of sixteen at 8192."""


def placing(tile: Tile, cluster: int = 1) -> DeviceFunction:
    """``(number, tiles_down, tiles_across, k)``: where the tile of this number begins.

    ``cluster``: blocks that compute such a tile together.
    """
    rows, columns, at_once = tile.rows, tile.columns, SM90_MULTIPROCESSORS // cluster
    narrow, wide = NARROW_BAND // cluster, BAND // cluster
    long = LONG_BAND if cluster == 1 else wide

    def place_of(number: Index, tiles_down: Index, tiles_across: Index, k: Index) -> Place:
        many = long if k >= LONG_K else wide
        band = uint32(narrow if tiles_down * tiles_across <= at_once else many)
        size = tiles_across * band
        bands = number // size
        above, inside = bands * band, number - bands * size  # one division for both, and below
        high = min(band, tiles_down - above)
        column = inside // high
        return Place((above + inside - column * high) * rows, column * columns)

    return device(place_of)


def fewest(tiles: int, most: int) -> int:
    """The fewest blocks with which the tiles take as few waves as with ``most`` blocks."""
    return ceil_div(tiles, ceil_div(tiles, most))


def in_order(tile: Tile, case: Case, cluster: int = 1) -> Callable[[int], tuple[int, int]]:
    """``tile_of(number)``: which tile of a case, across and down, has a number in this order."""
    place_of, (tiles_across, tiles_down) = placing(tile.of(case), cluster), tile.grid(case)

    def tile_of(number: int) -> tuple[int, int]:
        place = place_of(number, tiles_down, tiles_across, case.k)
        return int(place.col) // tile.columns, int(place.row) // tile.rows

    return tile_of


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map)``."""
    element, float32, barrier = number(case.dtype), number("float32"), number("uint64")
    tile = TILE.of(case)
    rows, columns, stage_count, sums = tile.rows, tile.columns, tile.stages, tile.sums
    set_up_barriers, producer_loop = setting_up(tile.stages), producing(tile, tile.copies())
    main_loop, write = multiplying(tile, release), epilogue(tile.columns, case.dtype)
    place_of = placing(tile)

    def wgmma_persistent(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Index, b_map: Index,
    ) -> None:  # fmt: skip
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        stages, maps = Stages(tiles, full, empty), Maps(a_map, b_map)
        accumulators = cuda.local.array(sums, float32)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        tiles_down, tiles_across = (m + (rows - 1)) // rows, (n + (columns - 1)) // columns
        if cuda.threadIdx.x == 0:
            set_up_barriers(stages, maps, CONSUMERS)
        cuda.syncthreads()
        state = PipelineState(uint32(0), uint32(0))
        tile_index = cuda.blockIdx.x
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            while thread == 0 and tile_index < tiles_down * tiles_across:
                state = producer_loop(stages, state, maps, place_of(tile_index, tiles_down, tiles_across, k), 0, k)
                tile_index += cuda.gridDim.x
        else:
            add_registers(CONSUMER_REGISTERS)
            member = Member(group - 1, thread)
            while tile_index < tiles_down * tiles_across:
                place = place_of(tile_index, tiles_down, tiles_across, k)
                state = main_loop(accumulators, stages, state, member, k)
                write(Matrix(c, m, n, ldc), accumulators, Place(place.row + member.group * ROWS, place.col), thread)
                tile_index += cuda.gridDim.x

    grid = tile.grid(case)
    return NumbaKernel(
        wgmma_persistent,
        grid=grid,
        block=(THREADS, 1),
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=tile.maps(case),
        launch_bounds=(THREADS, 1),
        persistent_blocks=partial(fewest, prod(grid)),
        grid_dependent=True,
        tile_of=in_order(tile, case),
    )


KERNEL = replace(
    wgmma_specialized.KERNEL,
    name="wgmmaPersistent",
    summary="wgmmaSpecialized with a persistent grid, whose blocks compute tile after tile",
    build=build,
    ladder="a block computes tile after tile, in bands",
)
