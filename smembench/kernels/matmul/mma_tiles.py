"""Tiles of the kernels with mma.sync: how a block divides its tile of C, and what unaligned rows need.

Sizes are in elements. A block advances along k by 32 columns of A and rows of B, stored in shared memory as in global
memory, row by row. A warp computes 32 × 64 of C, so a block of x × y threads has 8y × 8x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from smembench.kernels.intrinsics.halves import narrowed
from smembench.kernels.intrinsics.matrix import SUMS
from smembench.kernels.intrinsics.vector import vector_width
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import DeviceFunction, device, number
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Block, Case
from smembench.model.formats import HALVES

DEPTH, STEP = 32, 16
"""Columns of A and rows of B of a tile, and of a product."""
WARP_ROWS, WARP_COLUMNS = 32, 64
DOWN, ACROSS = WARP_ROWS // 16, WARP_COLUMNS // 8
"""Fragments of A and of B per warp and step of 16 along k."""
RESULTS = (8, 8)
"""Results per thread, across and down."""
_REGISTERS, _SM_REGISTERS = 128, 64 * 1024
"""Most per thread where all accesses are wide; twice as many where any is of a single element."""


@dataclass(frozen=True, slots=True)
class MmaTiling:
    """The tiles of a block."""

    block: Block
    dtype: str

    @classmethod
    def of(cls, case: Case) -> Self:
        """The tiles of a case's block."""
        assert case.block is not None, case.id
        return cls(case.block, case.dtype)

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return self.block.x * self.block.y

    @property
    def rows(self) -> int:
        """Rows of the block's tile of C."""
        return RESULTS[1] * self.block.y

    @property
    def columns(self) -> int:
        """Columns of the block's tile of C."""
        return RESULTS[0] * self.block.x

    def widths(self, case: Case) -> tuple[int, int, int]:
        """Elements per access of A, B and C: 16 bytes, or two of C, where all rows begin and end at such a multiple."""
        wide = vector_width(self.dtype)

        def width(row: int, most: int) -> int:
            return most if row % most == (case.stride or row) % most == 0 else 1

        return width(case.depth, wide), width(case.n, wide), width(case.n, 2)

    def program(self, function: DeviceFunction, case: Case) -> NumbaKernel:
        """The program that runs ``function`` on a case; the case's widths tell its variants apart."""
        grid = -(-case.n // self.columns), -(-case.m // self.rows)
        variant = "A by {}, B by {}, C by {}".format(*self.widths(case))
        # Addresses of single elements take more.
        registers = _REGISTERS if min(self.widths(case)) > 1 else 2 * _REGISTERS
        bounds = self.threads, _SM_REGISTERS // (registers * self.threads)
        return NumbaKernel(function, grid=grid, block=self.block, launch_bounds=bounds, variant=variant)

    def unsupported(self, case: Case) -> str | None:
        """The refusal of a case whose block does not fit, or None."""
        x, y = self.block
        if x not in (8, 16, 32) or y not in (8, 16, 32) or 2 * self.threads * _REGISTERS > _SM_REGISTERS:
            return f"{case.kernel} cannot divide its tiles evenly among {self.block} threads: use 16x16, 16x8 or 8x8"
        return None


def copy_elements(tiling: MmaTiling, rows: int, across: int, place_of: DeviceFunction) -> DeviceFunction:
    """``(tile, base, M, corner, thread)``: copy a thread's share of the tile at ``corner`` of M, element by element.

    ``place_of(row, col)``: where an element lies in the tile at ``base``. Beyond the edges of M zeros are stored.
    """
    step = tiling.threads // across
    count, narrow, zero = rows // step, narrowed(tiling.dtype), number("float32")(0)

    def copy(tile: Array, base: Index, M: Matrix, corner: Place, thread: Index) -> None:
        first, col = thread // across, thread % across
        within = corner.col + col < M.columns
        for i in range(count):
            row = first + i * step
            place = base + place_of(row, col)
            inside = within and corner.row + row < M.rows
            at = (corner.row + row) * M.stride + corner.col + col
            tile[place] = M.elements[at] if inside else narrow(zero)

    return device(copy)


def write_elements(dtype: str) -> DeviceFunction:
    """``(C, accumulators, corner, lane)``: round a warp's sums and write them, element by element."""
    narrow = narrowed(dtype)

    def write(C: Matrix, accumulators: Array, corner: Place, lane: Index) -> None:
        for i in range(2 * DOWN):
            row = corner.row + lane // 4 + i * 8
            for j in range(ACROSS):
                col = corner.col + lane % 4 * 2 + j * 8
                first = (i // 2 * ACROSS + j) * SUMS + i % 2 * 2
                at = row * C.stride + col
                if row < C.rows and col < C.columns:
                    C.elements[at] = narrow(accumulators[first])
                    if col + 1 < C.columns:
                        C.elements[at + 1] = narrow(accumulators[first + 1])

    return device(write)


def kernel_of(
    name: str, build: Callable[[Case], NumbaKernel], elements: Callable[[Case], int], *, summary: str, ladder: str
) -> Kernel:
    """The declaration of a kernel whose tiles take ``elements``; ``summary`` and ``ladder`` are as Kernel's."""
    return Kernel(
        problem="matmul",
        name=name,
        kind="cuda",
        summary=summary,
        build=build,
        results=RESULTS,
        default_blocks=(Block(16, 16), Block(16, 8)),
        tile_elements=elements,
        dtypes=HALVES,
        needs="8.0",
        unsupported=lambda case: MmaTiling.of(case).unsupported(case),
        strided=True,
        standard=False,
        ladder=ladder,
    )
