"""Declaration and launch of kernels on tiles of A and of B: which blocks suit, their registers, and their number.

Nothing here is compiled.
"""

from __future__ import annotations

from collections.abc import Callable

from smembench.kernels.intrinsics.block_flags import MOST_BLOCKS
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.ragged import SIDE
from smembench.kernels.matmul.tiling import LANES_ACROSS, LANES_DOWN, Tiling
from smembench.kernels.numba_cuda import DeviceFunction
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case
from smembench.model.formats import WIDE
from smembench.model.problem import ITEMSIZE

_REGISTERS, _MOST = 64 * 1024, 256
"""32-bit registers per SM, and the most per thread, one of them reserved."""

FEWEST = 16
"""Fewest steps per block of streamK where there are more blocks than tiles; fewer were not tried."""


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


def launch_bounds(tiling: Tiling) -> tuple[int, int]:
    """Threads per block, and the blocks per SM that the registers allow."""
    return tiling.threads, _REGISTERS // (tiling.threads * registers(tiling.dtype, tiling.down, tiling.across))


def launched(
    function: DeviceFunction, case: Case, tiling: Tiling, label: str = "", *, few: bool = False
) -> NumbaKernel:
    """The program that runs ``function`` on a case; the case's widths and ``label`` tell its variants apart.

    With ``few`` the grid has whole tiles only, and the function computes the few rows and columns beyond them.
    """
    grid = -(-case.n // tiling.columns), -(-case.m // tiling.rows)
    if few:
        grid = case.n // tiling.columns, case.m // tiling.rows
    parts = ("A by {}, B by {}".format(*tiling.widths(case)), label, "a few left over" if few else "")
    variant, bounds = ", ".join(filter(None, parts)), launch_bounds(tiling)
    return NumbaKernel(function, grid=grid, block=tiling.block, launch_bounds=bounds, variant=variant)


def few_left(case: Case, tiling: Tiling) -> bool:
    """True if whole tiles leave at most SIDE rows and columns, and the sums of a chunk fit in two of B's tiles."""
    left = [side % tile for side, tile in ((case.m, tiling.rows), (case.n, tiling.columns))]
    fit = SIDE * (tiling.threads + SIDE) <= 2 * tiling.b_elements
    return fit and min(case.m // tiling.rows, case.n // tiling.columns) > 0 and max(left) in range(1, SIDE + 1)


def stream_k_blocks(tiles: int, steps: int, resident: int, multiprocessors: int) -> int:
    """Blocks that share ``tiles`` of ``steps`` along k on a device that runs ``resident`` blocks per multiprocessor."""
    most = min(max(tiles, tiles * steps // FEWEST), MOST_BLOCKS)
    if tiles > multiprocessors:
        return min(most, resident * multiprocessors)
    blocks = min(most, multiprocessors)  # with two on each, partial sums would be passed on twice as often
    idle = blocks % tiles  # equally many for every tile, if that leaves at most one in 16 idle
    return blocks - idle if idle * 16 <= blocks else blocks


def unsupported(tiling: Tiling, kernel: str, fitting: str = "16x16, 16x8 or 8x8") -> str | None:
    """The refusal of a block whose threads cannot compute the tile, with blocks that can, or None."""
    if reason := results_fit(kernel, tiling.block, tiling.dtype, tiling.down, tiling.across):
        return reason
    if not _divides(tiling):
        return f"{kernel} cannot divide its tiles evenly among {tiling.block} threads: use {fitting}"
    return None


def _divides(tiling: Tiling) -> bool:
    """True if warps fill the tile, and all threads load equal shares of A and of B."""
    if tiling.warps and (tiling.block.x % LANES_ACROSS or tiling.block.y % (LANES_DOWN * tiling.slices)):
        return False
    sides = ((tiling.depth, tiling.rows), (tiling.columns, tiling.depth))
    return all(
        tiling.threads % (row // width) == 0 and rows % (tiling.threads // (row // width)) == 0
        for row, rows in sides
        for width in ((1,) if tiling.by_elements else (1, tiling.vector))
    )


def kernel_of_tiling(
    name: str,
    tiling_of: Callable[[Case], Tiling],
    program_of: Callable[[Case, Tiling], NumbaKernel],
    *,
    summary: str,
    results: tuple[int, int] = (8, 8),
    blocks: tuple[Block, ...] = (Block(16, 16),),
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

    def refused(case: Case) -> str | None:
        tiling = tiling_of(case)
        return unsupported(tiling, name, str(blocks[0])) if tiling.by_elements else unsupported(tiling, name)

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
        unsupported=refused,
        strided=True,
        standard=False,
        ladder=ladder,
    )
