"""Division of a block's tile of C among threads that compute several results each. Sizes are in elements.

A block advances along k by ``depth`` columns of A and rows of B at a time. They lie in shared memory, A's transposed: a
thread reads its parts of a column of A and of a row of B as 128-bit vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from smembench.kernels.common.grids import block_of
from smembench.kernels.intrinsics.vector import PAIR, vector_width
from smembench.kernels.types import Array, Index
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


A_LANES = 8
"""Neighbouring threads that copy from one row of A, into as many columns of its tile, in different banks."""


class Copy(NamedTuple):
    """A copy of a thread, relative to its first element of A or B: rows below, elements along, offset in the tile."""

    of_a: bool
    row: int
    along: int
    place: int


def copies_of(tiling: Tiling, b_width: int) -> list[Copy]:
    """A thread's copies per tile: of B ``b_width`` elements each, of A one each, since its tile is transposed."""
    b_lanes = lanes_along_b(tiling, b_width)
    a_in_row, b_in_row = tiling.depth // A_LANES, tiling.columns // (b_lanes * b_width)
    copies = []
    for i in range(tiling.b_share // b_width):
        row, along = i // b_in_row * (tiling.threads // b_lanes), i % b_in_row * b_lanes * b_width
        copies.append(Copy(False, row, along, row * tiling.columns + along))
    for i in range(tiling.a_share):
        row, along = i // a_in_row * (tiling.threads // A_LANES), i % a_in_row * A_LANES
        copies.append(Copy(True, row, along, along * tiling.pitch + row))
    return copies


def lanes_along_b(tiling: Tiling, b_width: int) -> int:
    """Neighbouring threads that copy from one row of B."""
    return min(WARP, tiling.columns // b_width)
