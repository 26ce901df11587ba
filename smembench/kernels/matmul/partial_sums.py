"""Even shares of the steps along k of all tiles, and the addition of a tile's partial sums in a fixed order.

Steps are numbered, tile after tile, and block b begins at b · steps / blocks, rounded down. So blocks with one step
more lie between the others, and where the number of blocks is a multiple of that of tiles, none has steps of two tiles.
A block shares at most two tiles with others, its first and its last, and has two places in scratch memory. How many
blocks there are is a choice: more have fewer steps each, but each shared tile takes as long as several steps.

1. Slices: each thread stores some of its sums in shared memory, in place of B's tiles, and adds up a part of what all
   slices stored. Each thread ends up with 1 / slices of its results, in vectors that are ``slices`` apart.
2. Blocks: each writes its sums to scratch memory, and is counted. When all of a tile's blocks have done so, each
   adds up an equal share of the tile's vectors, block after block, and so to the same bits in every launch. The count
   is the first block's, which is the first of no other tile.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from smembench.kernels.common.grids import ceil_div
from smembench.kernels.intrinsics.scratch import scratch, wait_for_count
from smembench.kernels.intrinsics.vector import ALIGNMENT, copy_vector, load_vector, store_vector
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32, uint64
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.hardware import WARP

SCRATCH_ELEMENTS = 2**23
"""Elements of the scratch memory of a kernel, 32 MiB of float32."""
SUMS_AT_ONCE = 16
"""Sums of a thread that slices exchange at a time, at most: as many as B's tiles have room for."""
BLOCKS_AT_ONCE = 8
"""Blocks whose sums are loaded together, so that a thread waits once for all of them."""
PIPELINE, PER_RESULT = 1950, 0.265
"""Cycles until the first copies of a part of a tile have come, and per result for these copies and for writing it."""
EXCHANGE = 4600
"""Cycles in which the blocks of a tile exchange sums."""


class Shares(NamedTuple):
    """Tiles to share: how many, the steps along k and the results of each, and the cycles of a step.

    What parts of tiles and exchanges cost is fitted to times on an H200 (float32_tiles.py).
    """

    tiles: int
    steps: int
    results: int
    step_cycles: float

    def cycles(self, blocks: int, multiprocessors: int) -> float:
        """Estimated cycles in which so many blocks compute all tiles."""
        # A block has whole tiles, or part of one, or else parts of several, the first and the last of which it shares.
        even = self.tiles % blocks == 0 or blocks % self.tiles == 0
        parts = ceil_div(self.tiles, blocks) + (0 if even else 1)
        shared = int(blocks > self.tiles) if even else 2
        multiplying = ceil_div(self.tiles * self.steps, blocks) * self.step_cycles
        each = multiplying + parts * part_cycles(self.results)
        return ceil_div(blocks, multiprocessors) * each + shared * EXCHANGE

    def blocks(self, multiprocessors: int) -> int:
        """The number of blocks with the fewest cycles: a multiple of that of tiles, or one per multiprocessor."""
        room = SCRATCH_ELEMENTS // (2 * self.results)  # in scratch memory: for two tiles per block
        at_once = min(multiprocessors, room, self.tiles * self.steps)
        even = (self.tiles * parts for parts in range(1, min(max(at_once // self.tiles, 1), self.steps) + 1))
        return min((at_once, *even), key=lambda blocks: (self.cycles(blocks, multiprocessors), -blocks))


def part_cycles(results: int) -> float:
    """Cycles per part of a tile in which a block multiplies nothing."""
    return PIPELINE + PER_RESULT * results


@device
def steps_of(block: Index, blocks: Index, steps: Index) -> tuple[Index, Index]:
    """The first of a block's steps, and the first of the next block's."""
    # Here and in splitK quotients are of 32-bit operands: by itself Numba divides 64-bit ones, in more instructions.
    fewest = uint32(steps) // uint32(blocks)
    longer = uint32(steps - fewest * blocks)
    longer_before = uint32(block * longer) // uint32(blocks)
    first = block * fewest + longer_before
    one_more = uint32(block * longer - longer_before * blocks + longer >= blocks)
    return first, first + fewest + one_more


@device
def block_with(step: Index, blocks: Index, steps: Index) -> Index:
    """The block that has a step."""
    return uint32((uint64(step + 1) * blocks - 1) // steps)


@cache
def add_slices(tiling: Tiling) -> DeviceFunction:
    """``(accumulators, tile, thread)``: add up the sums of a block's slices, some of each thread at a time.

    All threads call it. The first ``results // slices`` of a thread's sums are then those of its share.
    """
    threads, slices, size = tiling.threads, tiling.slices, tiling.vector
    at_once = min(SUMS_AT_ONCE, slices * size)
    members, phases, together = threads // slices, tiling.down * tiling.across // at_once, at_once // size
    turns = max(slices // together, 1)

    def add(accumulators: Array, tile: Array, thread: Index) -> None:
        member, own_slice = thread % members, thread // members
        for phase in range(phases):
            cuda.syncthreads()
            for j in range(0, at_once, size):
                copy_vector(tile, j * threads + thread * size, accumulators, phase * at_once + j)
            cuda.syncthreads()
            if own_slice // together == phase % turns:
                place = phase // turns * size
                at = own_slice % together * (size * threads) + member * size
                copy_vector(accumulators, place, tile, at)
                for other in range(1, slices):
                    more = load_vector(tile, at + other * members * size)
                    for p in range(size):
                        accumulators[place + p] += more[p]

    return device(add)


@cache
def write_vector(tiling: Tiling, width: int) -> DeviceFunction:
    """``(C, sums, index, place, thread, corner, least)``: write the vector of sums at ``index``.

    ``place``: where in its share ``thread`` has that vector. ``corner``: where the tile begins. Results above or left
    of ``least`` and beyond the edges are left out; each access writes ``width`` elements.
    """
    members, slices, size, across = tiling.threads // tiling.slices, tiling.slices, tiling.vector, tiling.across
    warps_across, (rows_apart, columns_apart) = tiling.block.x // 8, tiling.apart

    def write(C: Matrix, sums: Array, index: Index, place: Index, thread: Index, corner: Place, least: Place) -> None:
        member = thread % members
        warp, lane = member // WARP, member % WARP
        lane_row, lane_col = lane // 16 * 2 + lane % 2, lane // 2 % 8
        first = Place(warp // warps_across * 32 + lane_row * size, warp % warps_across * 64 + lane_col * size)
        at = place * slices + thread // members * size
        row = corner.row + first.row + (at // across // size * rows_apart + at // across % size)
        col = corner.col + first.col + at % across // size * columns_apart
        for p in range(0, size, width):
            if row >= least.row and col + p >= least.col and row < C.rows and col + p < C.columns:
                if width == 1:
                    C.elements[row * C.stride + (col + p)] = sums[index + p]
                else:
                    store_vector(C.elements, row * C.stride + col, load_vector(sums, index))

    return device(write)


@cache
def block_sums(tiling: Tiling, width: int) -> tuple[DeviceFunction, DeviceFunction]:
    """Exchange of the sums of a tile that the blocks from ``first`` to ``last`` share; all threads call both functions.

    ``pass_on(accumulators, thread, block, first)``: write this block's share, and count it.
    ``add(C, thread, block, first, last, corner, least)``: wait for the others, add up some of the tile, and write it.
    """
    threads, size, dtype = tiling.threads, tiling.vector, number(tiling.dtype)
    share = tiling.down * tiling.across // tiling.slices
    elements, loaded = tiling.rows * tiling.columns, size * BLOCKS_AT_ONCE
    partial_sums = scratch("partial_sums", tiling.dtype, SCRATCH_ELEMENTS)
    counts = scratch("counts", "uint32", SCRATCH_ELEMENTS // elements)
    write = write_vector(tiling, width)

    @device
    def place_of(block: Index, first: Index) -> Index:
        """Offset of a block's sums: first those of the tile that it begins, then those of a tile that it continues."""
        return (2 * block + uint32(block != first)) * elements

    def pass_on(accumulators: Array, thread: Index, block: Index, first: Index) -> None:
        place = place_of(block, first) + thread * size
        for j in range(0, share, size):
            copy_vector(partial_sums(), place + j * threads, accumulators, j)
        cuda.syncthreads()
        if thread == 0:
            cuda.threadfence()
            cuda.atomic.add(counts(), 2 * first, 1)

    def add(C: Matrix, thread: Index, block: Index, first: Index, last: Index, corner: Place, least: Place) -> None:
        sums = cuda.local.array(size, dtype, alignment=ALIGNMENT)
        more = cuda.local.array(loaded, dtype, alignment=ALIGNMENT)
        passed, blocks = partial_sums(), last - first + uint32(1)
        parts = wait_for_count(counts(), 2 * first, blocks)
        vectors = uint32(elements // size)
        begin = uint32(vectors * (block - first + uint32(1) - parts)) // uint32(blocks)
        end = uint32(vectors * (block - first + uint32(1))) // uint32(blocks)
        at = begin + thread
        while at < end:
            copy_vector(sums, 0, passed, place_of(first, first) + at * size)
            other = first + uint32(1)
            while other <= last:
                for i in range(BLOCKS_AT_ONCE):
                    if other + i <= last:
                        copy_vector(more, i * size, passed, place_of(other + i, first) + at * size)
                for i in range(BLOCKS_AT_ONCE):
                    if other + i <= last:
                        for p in range(size):
                            sums[p] += more[i * size + p]
                other = other + uint32(BLOCKS_AT_ONCE)
            write(C, sums, 0, at // threads * size, at % threads, corner, least)
            at = at + uint32(threads)
        cuda.syncthreads()
        # The last block to go on sets both counts back, for the next launch.
        if thread == 0 and cuda.atomic.inc(counts(), 2 * first + 1, blocks - 1) == blocks - 1:
            counts()[2 * first] = 0

    return device(pass_on), device(add)
