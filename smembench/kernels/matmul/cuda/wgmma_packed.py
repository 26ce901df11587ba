"""wgmmaPacked: wgmmaStored for rows that the Tensor Memory Accelerator (TMA) cannot copy: they are first packed.

1. All threads copy A, B or both into rows that begin at multiples of 128 bytes (packing.py).
2. When all blocks have done so, each computes tile after tile from the copies.
3. Results are staged in buffers, as in wgmmaStored, and written by the warp's lanes, neighbours next to each other.

A matrix is read and written once for its copy, and its tiles are read many times. Predicted accesses leave out the
copies. Findings: results/reference/notes/tensor_cores.md.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod

from smembench.kernels.intrinsics.bulk_copy import ROW_BYTES, TILE_ALIGNMENT, place_in_tile
from smembench.kernels.intrinsics.bulk_store import see_stores
from smembench.kernels.intrinsics.scratch import meet, scratch
from smembench.kernels.intrinsics.traced import traced
from smembench.kernels.intrinsics.warp_group import GROUP, add_registers, give_registers, own_group
from smembench.kernels.matmul.cuda import wgmma_stored
from smembench.kernels.matmul.cuda.wgmma_persistent import fewest, in_order, placing
from smembench.kernels.matmul.cuda.wgmma_specialized import (
    CONSUMER_REGISTERS,
    CONSUMERS,
    PRODUCER_REGISTERS,
    THREADS,
    PipelineState,
    multiplying,
    producing,
    release,
    setting_up,
)
from smembench.kernels.matmul.cuda.wgmma_stored import HEIGHT, TILES, buffering, quickest
from smembench.kernels.matmul.packing import copied, height, packing
from smembench.kernels.matmul.warp_groups import Maps, Member, Stages, Tile, shared_elements, unsupported
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel, TensorMap
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import BY_ROWS, Case
from smembench.model.formats import HALVES, produced
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE


def tile_of(case: Case) -> Tile:
    """The one with the fewest cycles, but none of 224 columns, which takes more than counted.

    Measurements: results/reference/notes/tensor_cores.md.
    """
    return quickest(case, (tile.of(case) for tile in TILES if tile.columns != 224))


def writing(tile: Tile) -> DeviceFunction:
    """``(shared, accumulators, C, place, member)``: write a thread's results of the tile at ``place``.

    ``shared``: shared memory as elements of C.
    """
    dtype = produced(tile.dtype)
    itemsize, columns, begin = ITEMSIZE[dtype], tile.columns, tile.after_stages
    row_bytes = tile.result_bytes
    fill, place_of, width = buffering(dtype, row_bytes), place_in_tile(itemsize, row_bytes), row_bytes // itemsize
    size = HEIGHT * width

    def write(shared: Array, accumulators: Array, C: Matrix, place: Place, member: Member) -> None:
        lane, warp = member.thread % WARP, member.group * (GROUP // WARP) + member.thread // WARP
        at = begin + warp * size
        for part in range(columns // width):
            cuda.syncwarp()
            fill(shared, at, accumulators, part, lane)
            cuda.syncwarp()
            for i in range(size // WARP):
                in_row, in_col = uint32(i * WARP // width), uint32(i * WARP % width) + lane
                row, col = place.row + warp * HEIGHT + in_row, place.col + uint32(part * width) + in_col
                if row < C.rows and col < C.columns:
                    C.elements[row * C.stride + col] = shared[at + place_of(in_row, in_col)]

    return device(write)


def maps_of(case: Case, tile: Tile) -> tuple[TensorMap, TensorMap]:
    """The tensor maps of A and B, or of their copies."""
    of_a, of_b = tile.maps(case)
    return copied(of_a, ITEMSIZE[case.dtype]), copied(of_b, ITEMSIZE[case.dtype])


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc, a_map, b_map, a_copy, b_copy)``."""
    element, result, barrier = number(case.dtype), number(produced(case.dtype)), number("uint64")
    float32 = number("float32")
    tile = tile_of(case)
    rows, columns, stage_count, sums = tile.rows, tile.columns, tile.stages, tile.sums
    set_up_barriers, producer_loop, pack = (
        setting_up(tile.stages),
        producing(tile, tile.copies()),
        packing(case.dtype, THREADS),
    )
    main_loop, write, place_of = multiplying(tile, release), writing(tile), placing(tile)
    of_a, of_b = maps_of(case, tile)
    copies = (each._replace(tile_rows=height(case.dtype), row_bytes=ROW_BYTES) for each in (of_a, of_b))
    packs_a, packs_b, by_rows = of_a.copied, of_b.copied, case.b_layout == BY_ROWS
    counts = scratch("packed", "uint32", 2)

    def wgmma_packed(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index,
        a_map: Index, b_map: Index, a_copy: Index, b_copy: Index,
    ) -> None:  # fmt: skip
        tiles = cuda.shared.array(0, element, alignment=TILE_ALIGNMENT)
        buffers = cuda.shared.array(0, result, alignment=TILE_ALIGNMENT)  # the same memory
        full = cuda.shared.array(stage_count, barrier)
        empty = cuda.shared.array(stage_count, barrier)
        stages, maps = Stages(tiles, full, empty), Maps(a_map, b_map)
        accumulators = cuda.local.array(sums, float32)
        group, thread = own_group(), cuda.threadIdx.x % GROUP
        tiles_down, tiles_across = (m + (rows - 1)) // rows, (n + (columns - 1)) // columns
        if packs_a and not traced():
            pack(tiles, Matrix(a, m, k, lda), a_copy)
        if packs_b and not traced():
            pack(tiles, Matrix(b, k, n, ldb) if by_rows else Matrix(b, n, k, ldb), b_copy)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            set_up_barriers(stages, maps, CONSUMERS)
            meet(counts(), cuda.gridDim.x)
        cuda.syncthreads()
        state = PipelineState(uint32(0), uint32(0))
        tile_index = cuda.blockIdx.x
        if group == 0:
            give_registers(PRODUCER_REGISTERS)
            see_stores()
            while thread == 0 and tile_index < tiles_down * tiles_across:
                state = producer_loop(stages, state, maps, place_of(tile_index, tiles_down, tiles_across, k), 0, k)
                tile_index += cuda.gridDim.x
        else:
            add_registers(CONSUMER_REGISTERS)
            member = Member(group - 1, thread)
            while tile_index < tiles_down * tiles_across:
                place = place_of(tile_index, tiles_down, tiles_across, k)
                state = main_loop(accumulators, stages, state, member, k)
                write(buffers, accumulators, Matrix(c, m, n, ldc), place, member)
                tile_index += cuda.gridDim.x

    grid = tile.grid(case)
    return NumbaKernel(
        wgmma_packed,
        grid=grid,
        block=(THREADS, 1),
        dynamic_bytes=tile.shared_bytes,
        tensor_maps=(of_a, of_b, *copies),
        launch_bounds=(THREADS, 1),
        variant=f"{columns}{', A packed' * packs_a}{', B packed' * packs_b}",
        persistent_blocks=partial(fewest, prod(grid)),
        grid_dependent=True,
        tile_of=in_order(tile, case),
    )


def needless(case: Case) -> str | None:
    """Why the kernel does not take a case, or that none of its rows needs a copy; None if it takes the case."""
    if case.b_layout == BY_ROWS and case.dtype not in HALVES:
        return unsupported(case)
    if any(each.copied for each in maps_of(case, tile_of(case))) or case.n % 2:
        return None
    others = "wgmmaPersistent" if unsupported(case, stored=True) else "wgmmaStored or wgmmaPersistent"
    return f"{case.kernel} is only for rows that the TMA does not take; use {others}"


KERNEL = replace(
    wgmma_stored.KERNEL,
    name="wgmmaPacked",
    summary="wgmmaStored for rows that the TMA does not take, after copies of A or B",
    build=build,
    tile_elements=shared_elements(tile_of),
    dynamic_elements=shared_elements(tile_of),
    unsupported=needless,
    ladder="",
)
