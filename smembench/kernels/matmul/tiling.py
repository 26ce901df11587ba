"""Division of a block's tile of C among threads that compute several results each. Sizes are in elements.

A block advances along k by ``depth`` columns of A and rows of B at a time. They lie in shared memory, A's transposed: a
thread reads its parts of a column of A and of a row of B as 128-bit vectors.

Where sizes are no multiples of the tile's, from serpentine on a tile over an edge is moved up or left until it lies
inside: two blocks then compute some results, in the same order and so to the same bits. Along k the first tile is the
short one, filled with zeros: the loop needs no bounds checks. Where a side is smaller, every load is predicated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Self

from smembench.kernels.common.grids import block_of
from smembench.kernels.intrinsics.vector import PAIR, copying, vector_width
from smembench.kernels.numba_cuda import DeviceFunction, device, number, uint32, uint64
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Block, Case
from smembench.model.hardware import WARP

LANES_DOWN, LANES_ACROSS = 4, 8
"""Rows and columns of lanes in a warp tile."""


class Offsets(NamedTuple):
    """An index into an array of A and one of B."""

    a: Index
    b: Index


class Memory(NamedTuple):
    """A thread's operands: the block's tiles in shared memory, and its own registers."""

    a_tile: Array
    b_tile: Array
    accumulators: Array
    a_fragment: Array
    b_fragment: Array


A_LANES = 8
"""Neighbouring threads that copy from one row of A, into as many columns of its tile, in different banks."""


class Copy(NamedTuple):
    """A copy of a thread, relative to its first element of A or B: rows below, elements along, offset in the tile."""

    of_a: bool
    row: int
    along: int
    place: int


@dataclass(unsafe_hash=True)
class Tiling:
    """A block's threads, each of which computes ``down`` × ``across`` results, in vectors that lie apart.

    Attributes:
        warps: whether threads lie in warp tiles of 4 × 8 lanes, or else in the tile as they do in the block.
        slices: groups of threads that compute the same tile, each from its part of every ``depth``.
        by_elements: whether tiles are loaded and results written an element at a time, whatever the alignment.
        vector: elements of a 128-bit access.
        threads, rows, columns: of the block, and of its tile.
        pitch: elements from one column of A's tile to the next: a vector of padding keeps stores free of conflicts.
        a_elements, b_elements, elements: of A's tile in shared memory, of B's, and of both.
        a_share, b_share: elements of A, and of B, that a thread loads per tile.
        apart: rows of A's and columns of B's tile between a thread's accesses, of vectors or else of pairs.
    """

    block: Block
    dtype: str
    down: int = 8
    across: int = 8
    depth: int = 8
    warps: bool = False
    slices: int = 1
    by_elements: bool = False

    def __post_init__(self) -> None:
        self.vector, self.threads = vector_width(self.dtype), self.block.x * self.block.y
        self.rows, self.columns = self.block.y * self.down // self.slices, self.block.x * self.across
        self.pitch = self.rows + self.vector
        self.a_elements, self.b_elements = self.depth * self.pitch, self.depth * self.columns
        self.elements = self.a_elements + self.b_elements
        self.a_share, self.b_share = (self.depth * side // self.threads for side in (self.rows, self.columns))
        of_a, of_b = (PAIR if results % self.vector else self.vector for results in (self.down, self.across))
        lanes_down, lanes_across = (LANES_DOWN, LANES_ACROSS) if self.warps else (self.block.y, self.block.x)
        self.apart = lanes_down * of_a, lanes_across * of_b

    @classmethod
    def of(cls, case: Case, **others: Any) -> Self:
        """The tiling of a case's block, with these attributes."""
        return cls(block_of(case), case.dtype, **others)

    def widths(self, case: Case) -> tuple[int, int]:
        """Elements per access of A, and of B and C: a vector where rows begin and end at one, else a single element."""
        whole = (row % self.vector == 0 and (case.stride or row) % self.vector == 0 for row in (case.depth, case.n))
        of_a, of_b = (self.vector if vectors and not self.by_elements else 1 for vectors in whole)
        return of_a, of_b

    def lanes_along_b(self, b_width: int) -> int:
        """Neighbouring threads that copy from one row of B."""
        return min(WARP, self.columns // b_width)

    def copies(self, b_width: int) -> list[Copy]:
        """A thread's copies per tile: of B ``b_width`` elements each, of A one each, since its tile is transposed."""
        b_lanes, copies = self.lanes_along_b(b_width), []
        a_in_row, b_in_row = self.depth // A_LANES, self.columns // (b_lanes * b_width)
        for i in range(self.b_share // b_width):
            row, along = i // b_in_row * (self.threads // b_lanes), i % b_in_row * b_lanes * b_width
            copies.append(Copy(False, row, along, row * self.columns + along))
        for i in range(self.a_share):
            row, along = i // a_in_row * (self.threads // A_LANES), i % a_in_row * A_LANES
            copies.append(Copy(True, row, along, along * self.pitch + row))
        return copies


def predication(tiling: Tiling, case: Case) -> tuple[str, DeviceFunction, DeviceFunction, DeviceFunction]:
    """A case's kind of predication, by name, and its functions; without a name every load is predicated.

    ``origin(index, tile, side)``: first row or column of a block's tile. ``short(k)``: by how much the first tile along
    k is shorter than the others. ``first(k, short)``: where it ends if tiles are moved inwards, else k.
    """
    depth = tiling.depth
    sides = ((case.m, tiling.rows), (case.n, tiling.columns), (case.depth, depth))
    predicated = any(side < tile for side, tile in sides)
    inwards = not predicated and any(side % tile for side, tile in sides)

    def origin(index: Index, tile: int, side: Index) -> Index:
        return min(index * tile, side - tile) if inwards else index * tile

    def short(k: Index) -> Index:
        return depth - 1 - (k - 1) % depth if inwards else uint32(0)

    def first(k: Index, short: Index) -> Index:
        return depth - short if inwards else k

    label = "tiles moved inwards" if inwards else "" if predicated else "whole tiles"
    return label, device(origin), device(short), device(first)


@cache
def staging(tiling: Tiling, a_width: int, b_width: int) -> tuple[DeviceFunction, DeviceFunction]:
    """Copies of a thread's share of the tiles by way of registers, in accesses of so many elements of A and of B.

    ``load(a_staged, b_staged, A, B, thread, corner, k0)``: load it at ``k0`` into registers. Rows and columns beyond
    the edge of C are read as the last one. What lies beyond k is zero.
    ``store(a_tile, b_tile, buffer, a_staged, b_staged, thread)``: store it in a buffer, A transposed.
    """
    pitch, columns, a_elements, b_elements = tiling.pitch, tiling.columns, tiling.a_elements, tiling.b_elements
    a_across, b_across = tiling.depth // a_width, columns // b_width
    a_step, b_step = tiling.threads // a_across, tiling.threads // b_across
    a_count, b_count, zero = tiling.rows // a_step, tiling.depth // b_step, number(tiling.dtype)(0)
    copy_a, copy_b = copying(a_width), copying(b_width)

    def load(a_staged: Array, b_staged: Array, A: Matrix, B: Matrix, thread: Index, corner: Place, k0: Index) -> None:
        row, col = corner.row + thread // a_across, k0 + thread % a_across * a_width
        for i in range(a_count):
            if col < A.columns:
                copy_a(a_staged, i * a_width, A.elements, min(row + i * a_step, A.rows - 1) * A.stride + col)
            else:
                for j in range(a_width):
                    a_staged[i * a_width + j] = zero
        row, col = k0 + thread // b_across, corner.col + thread % b_across * b_width
        for i in range(b_count):
            r = row + i * b_step
            if r < B.rows:
                copy_b(b_staged, i * b_width, B.elements, r * B.stride + min(col, B.columns - b_width))
            else:
                for j in range(b_width):
                    b_staged[i * b_width + j] = zero

    def store(a_tile: Array, b_tile: Array, buffer: Index, a_staged: Array, b_staged: Array, thread: Index) -> None:
        row, col = thread // a_across, thread % a_across * a_width
        at = uint64(buffer * a_elements) + uint64(col * pitch + row)
        for i in range(a_count):
            for j in range(a_width):
                a_tile[at + (j * pitch + i * a_step)] = a_staged[i * a_width + j]
        row, col = thread // b_across, thread % b_across * b_width
        at = uint64(buffer * b_elements) + uint64(row * columns + col)
        for i in range(b_count):
            copy_b(b_tile, at + i * b_step * columns, b_staged, i * b_width)

    return device(load), device(store)
