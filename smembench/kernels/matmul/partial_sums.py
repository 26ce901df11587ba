"""Partial sums of a tile, from slices of its block and from several blocks, added in an order that never changes.

1. Slices: each thread stores some of its sums in shared memory, in place of B's tiles, and adds up a part of what all
   slices stored. A thread is left with 1 / slices of a tile's share, in vectors that lie ``slices`` apart.
2. Blocks: each writes its sums to scratch memory and draws a ticket. Who draws the last one adds up all, in the order of
   the blocks, and so to the same bits in every launch. No block waits for another.

A block has at most two tiles that it shares, its first and its last, so there are two places per block, and a tile's
tickets are counted by the first of its blocks.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from smembench.kernels.intrinsics.scratch import scratch
from smembench.kernels.intrinsics.vector import copy_vector, load_vector, store_vector
from smembench.kernels.matmul.structs import Matrix, Memory, Place
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, uint32
from smembench.kernels.types import Array, Index

SCRATCH_ELEMENTS = 2**23
"""Elements of the scratch memory of a kernel, 32 MiB of float32."""


def most_blocks(tiling: Tiling) -> int:
    """How many blocks have room in scratch memory for two tiles each."""
    return SCRATCH_ELEMENTS // (2 * tiling.rows * tiling.columns)


class Contributors(NamedTuple):
    """The first and the last of the blocks that have steps of a tile."""

    first: Index
    last: Index


@cache
def add_slices(tiling: Tiling, at_once: int) -> DeviceFunction:
    """``(memory, thread)``: add up what the slices of a block have, ``at_once`` sums of each thread at a time.

    All threads call it. The first ``results // slices`` of a thread's sums are then those of its share.
    """
    threads, slices, size = tiling.threads, tiling.slices, tiling.vector
    members, phases, together = threads // slices, tiling.results // at_once, at_once // size
    turns = max(slices // together, 1)

    def add(memory: Memory, thread: Index) -> None:
        member, part = thread % members, thread // members
        for phase in range(phases):
            cuda.syncthreads()
            for j in range(0, at_once, size):
                copy_vector(memory.tiles.b, j * threads + thread * size, memory.total, phase * at_once + j)
            cuda.syncthreads()
            if part // together == phase % turns:
                place = phase // turns * size
                at = part % together * (size * threads) + member * size
                copy_vector(memory.total, place, memory.tiles.b, at)
                for other in range(1, slices):
                    more = load_vector(memory.tiles.b, at + other * members * size)
                    for p in range(size):
                        memory.total[place + p] += more[p]

    def nothing(memory: Memory, thread: Index) -> None:
        pass

    return device(add if slices > 1 else nothing)


@cache
def write_share(tiling: Tiling, width: int) -> DeviceFunction:
    """``(C, total, part, first, least)``: write a thread's share of its slices' sums.

    ``part``: its slice. ``first``: where the first result of all its slices belongs. Results above or left of ``least``
    and beyond the edges are left out; each access writes ``width`` elements.
    """
    slices, size, across = tiling.slices, tiling.vector, tiling.across
    share = tiling.results // slices
    (a_size, b_size), (rows_apart, columns_apart) = tiling.fragments, tiling.apart

    def write(C: Matrix, total: Array, part: Index, first: Place, least: Place) -> None:
        for j in range(0, share, size):
            at = j * slices + part * size
            row = first.row + (at // across // a_size * rows_apart + at // across % a_size)
            col = first.col + at % across // b_size * columns_apart
            for p in range(0, size, width):
                inside = row < C.rows and col + p < C.columns
                if row >= least.row and col + p >= least.col and inside:
                    if width == 1:
                        C.elements[row * C.stride + (col + p)] = total[j + p]
                    else:
                        store_vector(C.elements, row * C.stride + col, load_vector(total, j))

    return device(write)


@cache
def add_blocks(tiling: Tiling) -> DeviceFunction:
    """``(total, ticket, thread, block, contributors)``: whether this block has the sums of all contributors now.

    All threads call it with their share, which is then the sum. ``ticket`` is an array of one integer in shared memory.
    """
    threads, share, size = tiling.threads, tiling.results // tiling.slices, tiling.vector
    elements = tiling.rows * tiling.columns
    partial_sums = scratch("partial_sums", tiling.dtype, SCRATCH_ELEMENTS)
    tickets = scratch("tickets", "uint32", most_blocks(tiling))

    def add(total: Array, ticket: Array, thread: Index, block: Index, contributors: Contributors) -> bool:
        first, last = contributors
        passed = partial_sums()
        # A block's place for the tile that it begins, and after that for the one that it goes on with.
        own = 2 * block + (0 if block == first else 1)
        for j in range(0, share, size):
            copy_vector(passed, own * elements + (j * threads + thread * size), total, j)
        cuda.threadfence()
        cuda.syncthreads()
        if thread == 0:
            ticket[0] = cuda.atomic.inc(tickets(), first, last - first)
        cuda.syncthreads()
        if ticket[0] < last - first:
            return False
        cuda.threadfence()
        for j in range(0, share, size):
            copy_vector(total, j, passed, 2 * first * elements + (j * threads + thread * size))
        other = first + uint32(1)
        while other <= last:
            for j in range(0, share, size):
                more = load_vector(passed, (2 * other + 1) * elements + (j * threads + thread * size))
                for p in range(size):
                    total[j + p] += more[p]
            other = other + uint32(1)
        return True

    return device(add)
