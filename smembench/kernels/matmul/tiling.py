"""How a block divides its tile of C among threads that compute several results each. Sizes are in elements.

A block advances along k by ``depth`` columns of A and rows of B at a time. They lie in shared memory, A's transposed: a
thread reads its parts of a column of A and of a row of B as 128-bit vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Self

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.intrinsics import vector
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import DeviceFunction, device
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Place
from smembench.model.case import Block, Case
from smembench.model.formats import WIDE
from smembench.model.hardware import WARP
from smembench.model.problem import ITEMSIZE

LANES_DOWN, LANES_ACROSS = 4, 8
"""Rows and columns of lanes in a warp tile."""

_REGISTERS, _MOST = 64 * 1024, 256
"""32-bit registers per SM, and the most per thread, one of them reserved."""


def registers(dtype: str, down: int, across: int) -> int:
    """32-bit registers per thread with ``down`` × ``across`` results: twice what the results take."""
    return 2 * down * across * ITEMSIZE[dtype] // 4


def results_fit(kernel: str, block: Block, dtype: str, down: int, across: int) -> str | None:
    """The reason to refuse a block whose threads have too few registers for their results, or None."""
    needed, threads = registers(dtype, down, across), block.x * block.y
    if needed > _MOST:
        return f"{kernel} keeps {down}×{across} {dtype} results per thread, more than its registers hold: use float32"
    if needed * threads > _REGISTERS:
        return f"{kernel} needs {needed} registers per thread, more than {threads} threads can have: use 16x16 or 16x8"
    return None


class Offsets(NamedTuple):
    """An index into an array of A and one of B."""

    a: Index
    b: Index


class Memory(NamedTuple):
    """What a thread computes with: the block's tiles in shared memory, and its own registers."""

    a_tile: Array
    b_tile: Array
    accumulators: Array
    a_fragment: Array
    b_fragment: Array


@dataclass(frozen=True, slots=True)
class Tiling:
    """A block's threads, each of which computes ``down`` × ``across`` results, in vectors that lie apart.

    Threads lie in the tile as they do in the block, or with ``warps`` in warp tiles of 4 × 8 lanes: row by row, or
    ``interleaved``, so that lanes 2i and 2i + 1 lie below each other and a quarter of a warp covers 2 × 4 lanes.
    With ``slices`` as many groups of threads compute the same tile, each from its part of every ``depth``. With
    ``by_elements`` tiles are loaded and results written an element at a time, whatever the alignment.
    """

    block: Block
    dtype: str
    down: int = 8
    across: int = 8
    depth: int = 8
    warps: bool = False
    interleaved: bool = False
    slices: int = 1
    by_elements: bool = False

    @classmethod
    def of(cls, case: Case, **others: Any) -> Self:
        """The tiling of a case's block, with these attributes."""
        return cls(block_of(case), case.dtype, **others)

    @property
    def vector(self) -> int:
        """Elements of a 128-bit access."""
        return vector.vector_width(self.dtype)

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return self.block.x * self.block.y

    @property
    def rows(self) -> int:
        """Rows of the tile."""
        return self.block.y * self.down // self.slices

    @property
    def columns(self) -> int:
        """Columns of the tile."""
        return self.block.x * self.across

    @property
    def pitch(self) -> int:
        """Elements from one column of A's tile to the next: a vector of padding keeps stores free of conflicts."""
        return self.rows + self.vector

    @property
    def a_elements(self) -> int:
        """Elements of A's tile in shared memory."""
        return self.depth * self.pitch

    @property
    def b_elements(self) -> int:
        """Elements of B's tile in shared memory."""
        return self.depth * self.columns

    @property
    def elements(self) -> int:
        """Elements of both tiles in shared memory."""
        return self.a_elements + self.b_elements

    @property
    def a_share(self) -> int:
        """Elements of A that a thread loads per tile."""
        return self.depth * self.rows // self.threads

    @property
    def b_share(self) -> int:
        """Elements of B that a thread loads per tile."""
        return self.depth * self.columns // self.threads

    @property
    def fragments(self) -> tuple[int, int]:
        """Elements per access of A's and B's tiles: a vector, or a pair where the results are not whole vectors."""
        of_a, of_b = (vector.PAIR if results % self.vector else self.vector for results in (self.down, self.across))
        return of_a, of_b

    @property
    def apart(self) -> tuple[int, int]:
        """Rows of A's and columns of B's tile between a thread's consecutive accesses."""
        down, across = (LANES_DOWN, LANES_ACROSS) if self.warps else (self.block.y, self.block.x)
        of_a, of_b = self.fragments
        return down * of_a, across * of_b

    @property
    def results(self) -> int:
        """Results of a thread."""
        return self.down * self.across

    @property
    def registers(self) -> int:
        """32-bit registers per thread."""
        return registers(self.dtype, self.down, self.across)

    @property
    def launch_bounds(self) -> tuple[int, int]:
        """Threads per block, and the blocks per SM that the registers allow."""
        return self.threads, _REGISTERS // (self.threads * self.registers)

    def program(self, function: DeviceFunction, case: Case, label: str = "", *, few: bool = False) -> NumbaKernel:
        """The program that runs ``function`` on a case; the case's widths and ``label`` tell its variants apart.

        With ``few`` the grid has whole tiles only, and the function computes the few rows and columns beyond them.
        """
        grid = covering(case.n, case.m, Block(self.columns, self.rows))
        if few:
            grid = case.n // self.columns, case.m // self.rows
        parts = ("A by {}, B by {}".format(*self.widths(case)), label, "a few left over" if few else "")
        variant = ", ".join(filter(None, parts))
        return NumbaKernel(
            function, grid=grid, block=self.block, launch_bounds=self.launch_bounds, variant=variant, grid_dependent=few
        )

    def widths(self, case: Case) -> tuple[int, int]:
        """Elements per access of A, and of B and C: a vector where rows begin and end at one, else a single element."""
        return self._width(case.depth, case.stride), self._width(case.n, case.stride)

    def _width(self, row: int, stride: int | None) -> int:
        aligned = row % self.vector == 0 and (stride or row) % self.vector == 0
        return self.vector if aligned and not self.by_elements else 1

    def unsupported(self, kernel: str, fitting: str = "16x16, 16x8 or 8x8") -> str | None:
        """Why threads of this block cannot compute the tile, naming blocks that can, or None."""
        if reason := results_fit(kernel, self.block, self.dtype, self.down, self.across):
            return reason
        if not self._divides():
            return f"{kernel} cannot divide its tiles evenly among {self.block} threads: use {fitting}"
        return None

    def _divides(self) -> bool:
        """Whether warps fill the tile, and all threads load equal shares of A and of B."""
        if self.warps and (self.block.x % LANES_ACROSS or self.block.y % (LANES_DOWN * self.slices)):
            return False
        sides = ((self.depth, self.rows), (self.columns, self.depth))
        return all(
            self.threads % (row // width) == 0 and rows % (self.threads // (row // width)) == 0
            for row, rows in sides
            for width in ((1,) if self.by_elements else (1, self.vector))
        )


def kernel_of_tiling(
    name: str,
    tiling_of: Callable[[Case], Tiling],
    program_of: Callable[[Case, Tiling], NumbaKernel],
    *,
    summary: str,
    results: tuple[int, int],
    blocks: tuple[Block, ...],
    ladder: str = "",
    buffers: int = 2,
    needs: str = "",
) -> Kernel:
    """A kernel on tiles of A and of B in shared memory.

    Args:
        name: the kernel's.
        tiling_of: how a case's block divides its tile.
        program_of: the program for ``(c, a, b, m, n, k, lda, ldb, ldc)``.
        summary, results, ladder, needs: as Kernel's.
        blocks: the defaults; of tiles that are loaded by elements a refusal names the first.
        buffers: how many tiles of A and of B a block has.
    """

    def build(case: Case) -> NumbaKernel:
        return program_of(case, tiling_of(case))

    def tile_elements(case: Case) -> int:
        return buffers * tiling_of(case).elements

    def unsupported(case: Case) -> str | None:
        tiling = tiling_of(case)
        return tiling.unsupported(name, str(blocks[0])) if tiling.by_elements else tiling.unsupported(name)

    return Kernel(
        problem="matmul",
        name=name,
        kind="cuda",
        summary=summary,
        build=build,
        results=results,
        default_blocks=blocks,
        tile_elements=tile_elements,
        needs=needs,
        dtypes=WIDE,
        unsupported=unsupported,
        strided=True,
        standard=False,
        ladder=ladder,
    )


@cache
def position(tiling: Tiling) -> DeviceFunction:
    """``(thread)``: the place of a thread's first result in the tile."""
    width, (a_size, b_size) = tiling.block.x, tiling.fragments
    warps_across = tiling.block.x // LANES_ACROSS
    warp_rows, warp_columns = LANES_DOWN * tiling.down, LANES_ACROSS * tiling.across
    pair = 2 if tiling.interleaved else 1

    def in_block(thread: Index) -> Place:
        return Place(thread // width * a_size, thread % width * b_size)

    def in_warps(thread: Index) -> Place:
        warp, lane = thread // WARP, thread % WARP
        # Lanes lie in rows of 8, or of 8 pairs one below the other.
        lane_row = lane // (LANES_ACROSS * pair) * pair + lane % pair
        lane_col = lane // pair % LANES_ACROSS
        row = warp // warps_across * warp_rows + lane_row * a_size
        col = warp % warps_across * warp_columns + lane_col * b_size
        return Place(row, col)

    return device(in_warps if tiling.warps else in_block)


A_LANES = 8
"""Neighbouring threads that copy from one row of A, into as many columns of its tile, in different banks."""


class Copy(NamedTuple):
    """One copy of a thread, relative to its first element of A or B: rows below, elements along, offset in the tile."""

    of_a: bool
    row: int
    along: int
    place: int


def copies_of(tiling: Tiling, b_width: int) -> list[Copy]:
    """A thread's copies per tile: of B ``b_width`` elements each, of A one each, since its tile is transposed."""
    b_lanes = lanes_along_b(tiling, b_width)
    a_in_row, b_in_row = tiling.depth // A_LANES, tiling.columns // (b_lanes * b_width)
    found = []
    for i in range(tiling.b_share // b_width):
        row, along = i // b_in_row * (tiling.threads // b_lanes), i % b_in_row * b_lanes * b_width
        found.append(Copy(False, row, along, row * tiling.columns + along))
    for i in range(tiling.a_share):
        row, along = i // a_in_row * (tiling.threads // A_LANES), i % a_in_row * A_LANES
        found.append(Copy(True, row, along, along * tiling.pitch + row))
    return found


def lanes_along_b(tiling: Tiling, b_width: int) -> int:
    """Neighbouring threads that copy from one row of B."""
    return min(WARP, tiling.columns // b_width)
