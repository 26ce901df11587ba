"""How a block divides its tile of C among warps that multiply on tensor cores, and how its tiles lie in shared memory.

Sizes are in elements. A block advances along k by 32 columns of A and rows of B, stored in shared memory as in global
memory, row by row. A warp computes 32 × 64 of C, so a block of x × y threads has 8y × 8x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from smembench.kernels.common.grids import covering
from smembench.kernels.intrinsics.vector import vector_width
from smembench.kernels.numba_cuda import DeviceFunction
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case

Layout = Literal["plain", "padded", "swizzled"]
"""Rows one after the other; with 16 bytes of padding between them; with their chunks of 16 bytes permuted."""

DEPTH = 32
WARP_ROWS, WARP_COLUMNS = 32, 64
RESULTS = (8, 8)
"""Results per thread, across and down."""
BLOCKS = (Block(16, 16), Block(16, 8))
_REGISTERS = 128
"""Most registers per thread where all accesses are wide; twice as many where any is of a single element."""
_SM_REGISTERS = 64 * 1024


@dataclass(frozen=True, slots=True)
class MmaTiling:
    """The tiles of a block, ``stages`` times."""

    block: Block
    dtype: str
    layout: Layout
    stages: int = 1

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

    def pitch(self, width: int) -> int:
        """Elements from one row of a tile of this width to the next."""
        return width + (vector_width(self.dtype) if self.layout == "padded" else 0)

    @property
    def a_elements(self) -> int:
        """Elements of a tile of A in shared memory."""
        return self.rows * self.pitch(DEPTH)

    @property
    def b_elements(self) -> int:
        """Elements of a tile of B in shared memory."""
        return DEPTH * self.pitch(self.columns)

    @property
    def elements(self) -> int:
        """Elements of all tiles in shared memory."""
        return self.stages * (self.a_elements + self.b_elements)

    def program(self, function: DeviceFunction, case: Case) -> NumbaKernel:
        """The program that runs ``function`` on a case; the case's widths tell its variants apart."""
        grid = covering(case.n, case.m, Block(self.columns, self.rows))
        variant = "A by {}, B by {}, C by {}".format(*self.widths(case))
        bounds = self.launch_bounds(case)
        return NumbaKernel(function, grid=grid, block=self.block, launch_bounds=bounds, variant=variant)

    def launch_bounds(self, case: Case) -> tuple[int, int]:
        """Threads per block, and the blocks per SM that the registers allow."""
        # Addresses of single elements take more.
        registers = _REGISTERS if min(self.widths(case)) > 1 else 2 * _REGISTERS
        return self.threads, _SM_REGISTERS // (registers * self.threads)

    def widths(self, case: Case) -> tuple[int, int, int]:
        """Elements per access of A, B and C: 16 bytes, or two of C, where all rows begin and end at such a multiple."""
        wide = vector_width(self.dtype)

        def width(row: int, most: int) -> int:
            return most if row % most == (case.stride or row) % most == 0 else 1

        return width(case.depth, wide), width(case.n, wide), width(case.n, 2)

    def unsupported(self, case: Case) -> str | None:
        """Why a case's block does not fit, or None."""
        x, y = self.block
        if x not in (8, 16, 32) or y not in (8, 16, 32) or 2 * self.threads * _REGISTERS > _SM_REGISTERS:
            return f"{case.kernel} cannot divide its tiles evenly among {self.block} threads: use 16x16, 16x8 or 8x8"
        return None
