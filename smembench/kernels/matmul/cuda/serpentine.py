"""serpentine: interleaved with register pipelining, results visited in serpentine order, and tiles 16 deep.

1. Load the thread's share of the next tiles from global memory into registers.
2. For each step but the last: load the fragments of the next step, multiply those of this one, down one column of
   results and up the next. Neighbours share a factor, which relieves register bank conflicts.
3. Store the next tiles into the other buffer; barrier; load their first fragments.
4. Multiply the last step's fragments, which fills the time that those loads take.

A block's threads share all of k, unlike slicedK's.

Tiles are loaded without bounds checks (predication.py); up to eight rows or columns beyond whole tiles are left to all
blocks (remainder.py). serpentine16x8 has 16 × 8 results per thread in blocks of 128 threads, visited along rows.
Findings: results/reference/notes/serpentine.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from smembench.kernels.common.grids import block_of
from smembench.kernels.intrinsics.vector import ALIGNMENT
from smembench.kernels.matmul.predication import predication
from smembench.kernels.matmul.register_pipelining import (
    ResultOrder,
    load_fragments,
    outer_product,
    pipelined_steps,
    scheduling_barrier,
)
from smembench.kernels.matmul.remainder import remainder, small_remainder
from smembench.kernels.matmul.tile_steps import tile_steps
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.kernels.numba_cuda import cuda, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import Block, Case

DEPTH = 16


@dataclass(frozen=True, slots=True)
class Variant:
    """Results of a thread, down and across, and the order in which it visits them."""

    down: int
    across: int
    order: ResultOrder

    def tiling(self, case: Case) -> Tiling:
        """The division of a block's tile."""
        return Tiling(block_of(case), case.dtype, self.down, self.across, DEPTH, warps=True, interleaved=True)


def program(case: Case, tiling: Tiling, order: ResultOrder) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)`` on a tiling of an even depth, all steps written out."""
    position, load_a, load_b, store_a, store_b, _, write = tile_steps(case, tiling)
    dtype = number(case.dtype)
    zero = dtype(0)
    width, rows, columns, depth = tiling.block.x, tiling.rows, tiling.columns, tiling.depth
    count, both_a_parts, both_b_parts = tiling.down * tiling.across, 2 * tiling.down, 2 * tiling.across
    a_elements, b_elements, a_share, b_share = tiling.a_elements, tiling.b_elements, tiling.a_share, tiling.b_share
    a_both, b_both = 2 * a_elements, 2 * b_elements
    load_first = load_fragments(tiling, order, 0)
    all_but_last = pipelined_steps(tiling, order, 0, depth - 1)
    multiply_last = outer_product(tiling, order, 1)
    label, origin, short_of, first, begin, load = predication(tiling, case)
    few = small_remainder(case, tiling)
    chunk_count, corner, sum_up, write_sums = remainder(tiling)

    def serpentine(c: Any, a: Any, b: Any, m: Any, n: Any, k: Any, lda: Any, ldb: Any, ldc: Any) -> None:
        a_tile = cuda.shared.array(a_both, dtype, alignment=ALIGNMENT)
        b_tile = cuda.shared.array(b_both, dtype, alignment=ALIGNMENT)
        total = cuda.local.array(count, dtype, alignment=ALIGNMENT)
        a_parts = cuda.local.array(both_a_parts, dtype, alignment=ALIGNMENT)
        b_parts = cuda.local.array(both_b_parts, dtype, alignment=ALIGNMENT)
        a_held = cuda.local.array(a_share, dtype, alignment=ALIGNMENT)
        b_held = cuda.local.array(b_share, dtype, alignment=ALIGNMENT)
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        row0 = origin(cuda.blockIdx.y, uint32(rows), m)
        col0 = origin(cuda.blockIdx.x, uint32(columns), n)
        short = short_of(k)
        row, col = position(thread)
        from_a, from_b = begin(thread, row0, col0, lda, ldb)
        for i in range(count):
            total[i] = zero
        k0 = uint32(0)
        buffer = uint32(0)
        load_a(a_held, a, thread, row0, k0, m, first(k, short), lda)
        load_b(b_held, b, thread, col0, k0, n, first(k, short), ldb)
        store_a(a_tile, uint64(0), a_held, thread)
        store_b(b_tile, uint64(0), b_held, thread)
        cuda.syncthreads()
        at_a = uint64(row)
        at_b = uint64(col)
        load_first(a_parts, b_parts, a_tile, b_tile, at_a, at_b)
        while k0 < k + short:
            k0 = k0 + depth
            load(a_held, b_held, a, b, from_a, from_b, thread, row0, col0, k0, short, m, n, k, lda, ldb)
            scheduling_barrier()
            all_but_last(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b)
            buffer = 1 - buffer
            store_a(a_tile, uint64(buffer * a_elements), a_held, thread)
            store_b(b_tile, uint64(buffer * b_elements), b_held, thread)
            cuda.syncthreads()
            at_a = uint64(buffer * a_elements) + uint64(row)
            at_b = uint64(buffer * b_elements) + uint64(col)
            load_first(a_parts, b_parts, a_tile, b_tile, at_a, at_b)
            multiply_last(total, a_parts, b_parts)
        write(c, total, row0 + row, col0 + col, m, n, ldc)
        if few:
            chunk = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
            while chunk < chunk_count(m, n):
                first_row, first_col = corner(chunk, m, n)
                cuda.syncthreads()
                sum_up(b_tile, total, a, b, thread, first_row, first_col, m, n, k, lda, ldb)
                cuda.syncthreads()
                write_sums(c, b_tile, thread, first_row, first_col, m, n, ldc)
                chunk = chunk + cuda.gridDim.x * cuda.gridDim.y

    return tiling.program(serpentine, case, label, few=few)


VARIANTS = {
    "serpentine": Variant(8, 8, ResultOrder(by_rows=False, b_early=True)),
    "serpentine16x8": Variant(16, 8, ResultOrder(by_rows=True, b_first=True)),
}
"""By the kernel's name."""


def _kernel(name: str, block: Block, *, summary: str, ladder: str) -> Kernel:
    variant = VARIANTS[name]

    def program_of(case: Case, tiling: Tiling) -> NumbaKernel:
        return program(case, tiling, variant.order)

    shape = (variant.across, variant.down)
    return kernel_of_tiling(
        name, variant.tiling, program_of, summary=summary, results=shape, block=block, ladder=ladder
    )


KERNELS = (
    _kernel(
        "serpentine",
        Block(16, 16),
        summary="interleaved with fragments a step ahead and multiplications in serpentine order",
        ladder="fragments a step ahead, fewer reads of registers",
    ),
    _kernel(
        "serpentine16x8",
        Block(16, 8),
        summary="serpentine with 16 × 8 results a thread",
        ladder="16 × 8 results a thread",
    ),
)
