"""serpentine: unrolled with register pipelining, results visited in serpentine order, interleaved lanes, tiles 16 deep.

Per tile along k:

1. Issue the global loads of the thread's share of the next tiles, into registers.
2. For each step but the last: load the fragments of the next step and multiply those of this one, down one column of
   results and up the next. Neighbours share a factor, which relieves register bank conflicts.
3. Store the next tiles into the other buffer; barrier; load their first fragments.
4. Multiply the last step's fragments, which hides the latency of those loads.

Lanes are interleaved: 2i and 2i + 1 share their columns, l and l + 2 their rows, and the warp tile stays as it is. A
load of 128 bits is served by half-warps instead of quarter-warps if all lanes l and l + 2 ask for the same 16 bytes
(``explain.banks.lanes_together``), so those of B take 2 wavefronts instead of 4. Alone that gained nothing:
results/reference/notes/tried_and_lost.md.

Tiles are loaded without bounds checks (predication.py); up to eight rows or columns beyond whole tiles are left to all
blocks (remainder.py). serpentine16x8 has 16 × 8 results per thread in blocks of 128 threads, visited along rows.
Findings: results/reference/notes/serpentine.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from smembench.kernels.common.grids import block_of
from smembench.kernels.intrinsics.fragments import scheduling_barrier
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.predication import predication
from smembench.kernels.matmul.register_pipelining import ResultOrder, load_fragments, outer_product, pipelined_steps
from smembench.kernels.matmul.remainder import remainder, small_remainder
from smembench.kernels.matmul.structs import Offsets, Share
from smembench.kernels.matmul.tile_steps import tile_steps
from smembench.kernels.matmul.tiling import Tiling, kernel_of_tiling
from smembench.kernels.numba_cuda import cuda, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
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
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)`` on a tiling of an even depth, all steps unrolled."""
    bounds = predication(tiling, case)
    origin, short_of, start_of, load_tiles = bounds.origin, bounds.short, bounds.start, bounds.load_tiles
    functions = tile_steps(case, tiling, fragment_buffers=2, first=bounds.first)
    allocate, position, first_tiles = functions.allocate, functions.position, functions.first_tiles
    store_tiles, write_results = functions.store_tiles, functions.write_results
    width, rows, columns, depth = tiling.block.x, tiling.rows, tiling.columns, tiling.depth
    a_elements, b_elements = tiling.a_elements, tiling.b_elements
    load_first = load_fragments(tiling, order, 0)
    all_but_last = pipelined_steps(tiling, order, 0, depth - 1)
    multiply_last = outer_product(tiling, order, 1)
    few, compute_remainder = small_remainder(case, tiling), remainder(tiling).compute

    def serpentine(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        memory = allocate()
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        row0 = origin(cuda.blockIdx.y, rows, m)
        col0 = origin(cuda.blockIdx.x, columns, n)
        short = short_of(k)
        row, col = position(thread)
        share = Share(thread, Place(row0, col0), short)
        from_a, from_b = start_of(A, B, share)
        k0 = uint32(0)
        buffer = uint32(0)
        first_tiles(memory, A, B, share, k0)
        at_a = uint64(row)
        at_b = uint64(col)
        load_first(memory, Offsets(at_a, at_b))
        while k0 < k + short:
            k0 += depth
            load_tiles(memory.held, A, B, share, Offsets(from_a, from_b), k0)
            scheduling_barrier()
            all_but_last(memory, Offsets(at_a, at_b))
            buffer = 1 - buffer
            store_tiles(memory, buffer, thread)
            cuda.syncthreads()
            at_a = uint64(buffer * a_elements) + uint64(row)
            at_b = uint64(buffer * b_elements) + uint64(col)
            load_first(memory, Offsets(at_a, at_b))
            multiply_last(memory)
        write_results(C, memory.accumulators, Place(row0 + row, col0 + col))
        if few:
            compute_remainder(C, A, B, memory, thread)

    return tiling.program(serpentine, case, bounds.label, few=few)


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
        name, variant.tiling, program_of, summary=summary, results=shape, blocks=(block,), ladder=ladder
    )


KERNELS = (
    _kernel(
        "serpentine",
        Block(16, 16),
        summary="unrolled with fragments a step ahead and multiplications in serpentine order",
        ladder="fragments a step ahead, fewer reads of registers",
    ),
    _kernel(
        "serpentine16x8",
        Block(16, 8),
        summary="serpentine with 16 × 8 results per thread",
        ladder="16 × 8 results per thread",
    ),
)
