"""shapes: interleaved and slicedK with other tiles, for ``smembench tune`` to choose from; no steps of the ladder.

What changes: the results of a thread, how deep a tile is, and how a warp's lanes lie. shape16x8x8 computes 16 × 8
results a thread from tiles 8 deep. The block decides how large a tile is: 16 × 16 threads of 16 × 8 results have one of
256 × 128.

Relieves either the issue of instructions, by more results a thread or fewer turns of the loop, or waiting, by smaller
tiles. Which of these a size needs is measured. In their own blocks all compile for compute capability 9.0 without
spilling registers; 16 × 8 and 8 × 16 results are for float32 only.
"""

from __future__ import annotations

from dataclasses import dataclass

from smembench.axes import Block
from smembench.case import Case
from smembench.kernels.grids import block_of
from smembench.kernels.matmul.cuda import double_buffered, sliced_k
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.registry import Kernel, Program


@dataclass(frozen=True, slots=True)
class Shape:
    """Results of a thread, down and across, the depth of a tile, its default block, and what else a Tiling has."""

    down: int
    across: int
    depth: int
    block: Block
    interleaved: bool = True
    slices: int = 1

    @property
    def name(self) -> str:
        """Such as ``shape16x8x8Rows``: results down and across, depth, and what is not as in interleaved."""
        layout = "" if self.interleaved else "Rows"
        slices = "Sliced" if self.slices > 1 else ""
        return f"shape{self.down}x{self.across}x{self.depth}{layout}{slices}"

    @property
    def summary(self) -> str:
        """One line for ``smembench list``."""
        lanes = "pairs" if self.interleaved else "rows"
        slices = f", {self.slices} slices of k" if self.slices > 1 else ""
        return f"{self.down} × {self.across} results a thread, tiles {self.depth} deep, lanes in {lanes}{slices}"

    def tiling(self, case: Case) -> Tiling:
        """The division of a block's tile."""
        return Tiling(
            block_of(case),
            case.dtype,
            self.down,
            self.across,
            self.depth,
            warps=True,
            interleaved=self.interleaved,
            slices=self.slices,
        )

    def program(self, case: Case) -> Program:
        """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
        tiling = self.tiling(case)
        return sliced_k.program(case, tiling) if self.slices > 1 else double_buffered.program(case, tiling, self.depth)


SHAPES = (
    Shape(8, 8, 16, Block(16, 16)),
    Shape(16, 8, 8, Block(16, 8), interleaved=False),
    Shape(16, 8, 16, Block(16, 8)),
    Shape(8, 16, 8, Block(8, 16)),
    Shape(16, 8, 16, Block(16, 16), slices=2),
)


def _kernel(step: int, shape: Shape) -> Kernel:
    def tile_elements(case: Case) -> int:
        return 2 * shape.tiling(case).elements

    def refuse(case: Case) -> str | None:
        return shape.tiling(case).refuse(case.kernel)

    return Kernel(
        problem="matmul",
        name=shape.name,
        kind="cuda",
        step=step,
        summary=shape.summary,
        build=shape.program,
        results=(shape.across, shape.down // shape.slices),
        default_blocks=(shape.block,),
        tile_elements=tile_elements,
        refuse=refuse,
        strided=True,
        standard=False,
    )


KERNELS = tuple(_kernel(step, shape) for step, shape in enumerate(SHAPES, 130))
