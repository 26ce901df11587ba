"""serpentine: unrolled with register pipelining, results visited in serpentine order, interleaved lanes, tiles 16 deep.

Per tile along k:

1. Issue the global loads of the thread's share of the next tiles, into registers.
2. For each step but the last: load the fragments of the next step and multiply those of this one, down one column of
   results and up the next. Neighbours share a factor, which relieves register bank conflicts.
3. Store the next tiles into the other buffer; barrier; load their first fragments.
4. Multiply the last step's fragments, which hides the latency of those loads.

Lanes are interleaved: 2i and 2i + 1 share their columns, l and l + 2 their rows, and the warp tile stays as it is. A
load of 128 bits is served by half-warps instead of quarter-warps if all lanes n and n^1, or all n and n^2, ask for the
same 16 bytes (``explain.banks.lanes_together``), so those of B take 2 wavefronts instead of 4. Alone that gained
nothing: results/reference/notes/tried_and_lost.md.

The order of results relieves register bank conflicts: the register file has two banks, of even and odd registers, each
of which delivers one operand per cycle, while a multiply-add has three. An operand kept from the instruction before
(``.reuse`` in SASS) keeps the pipes busy. Tiles are loaded without bounds checks (``predication`` in tiling.py).
serpentine16x8 has 16 × 8 results per thread in blocks of 128 threads, visited along rows. Findings:
results/reference/notes/serpentine.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from smembench.kernels.intrinsics.fragments import copy_vectors, outer_product, scheduling_barrier
from smembench.kernels.intrinsics.vector import ALIGNMENT, copying
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul import ragged
from smembench.kernels.matmul.tiled_kernel import few_left, kernel_of_tiling, launched
from smembench.kernels.matmul.tiling import Memory, Offsets, Tiling, predication, staging
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Block, Case
from smembench.model.hardware import WARP

DEPTH = 16


@dataclass(frozen=True, slots=True)
class Variant:
    """Results of a thread, down and across, and the order in which it visits them: along rows or columns.

    B's element as the first factor, or its fragment loaded first, only affect which registers ptxas chooses.
    """

    down: int
    across: int
    by_rows: bool
    b_first: bool = False
    b_early: bool = False

    def results(self) -> tuple[tuple[int, int], ...]:
        """Row and column of every result of a thread: neighbours share a factor, also where the direction turns."""
        outer, inner = (self.down, self.across) if self.by_rows else (self.across, self.down)
        turns = [(i, j) for i in range(outer) for j in (range(inner - 1, -1, -1) if i % 2 else range(inner))]
        return tuple(turns if self.by_rows else [(j, i) for i, j in turns])

    def tiling(self, case: Case) -> Tiling:
        """The division of a block's tile."""
        return Tiling.of(case, down=self.down, across=self.across, depth=DEPTH, warps=True)

    def build(self, case: Case, tiling: Tiling) -> NumbaKernel:
        """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
        (a_width, b_width), vector, dtype = tiling.widths(case), tiling.vector, number(case.dtype)
        width, rows, columns, pitch, threads = tiling.block.x, tiling.rows, tiling.columns, tiling.pitch, tiling.threads
        a_elements, b_elements, a_share, b_share = tiling.a_elements, tiling.b_elements, tiling.a_share, tiling.b_share
        down, across, b_early, b_first, order = self.down, self.across, self.b_early, self.b_first, self.results()
        a_buffers, b_buffers, a_halves, b_halves = 2 * a_elements, 2 * b_elements, 2 * down, 2 * across
        zero, result_count, copy_a, copy_b = dtype(0), down * across, copying(a_width), copying(b_width)
        # A thread's rows are vectors that lie 4 lanes apart, its columns vectors that lie 8 lanes apart.
        warps_across, (rows_apart, columns_apart) = width // 8, tiling.apart
        warp_rows, warp_columns = 4 * down, 8 * across
        # A thread's part of a tile: every a_step-th row of A's from its own, every b_step-th row of B's.
        a_across, b_across = DEPTH // a_width, columns // b_width
        a_step, b_step = threads // a_across, threads // b_across
        a_count, b_count = rows // a_step, DEPTH // b_step

        @device
        def load(a_staged: Array, b_staged: Array, A: Matrix, B: Matrix, at_a: Index, at_b: Index) -> None:
            """Global memory to registers, without bounds checks."""
            for i in range(a_count):
                copy_a(a_staged, i * a_width, A.elements, at_a + i * a_step * A.stride)
            for i in range(b_count):
                copy_b(b_staged, i * b_width, B.elements, at_b + i * b_step * B.stride)

        def loads(step: int) -> DeviceFunction:
            """Load a step's fragments into one half of the registers: of a column of A's tile, and of a row of B's."""
            a_half, b_half, a_below, b_below = step % 2 * down, step % 2 * across, step * pitch, step * columns
            load_a = copy_vectors(tuple((a_half + i, i // vector * rows_apart) for i in range(0, down, vector)))
            load_b = copy_vectors(tuple((b_half + j, j // vector * columns_apart) for j in range(0, across, vector)))

            def load(memory: Memory, at: Offsets) -> None:
                at_a, at_b = uint64(at.a + uint64(a_below)), uint64(at.b + uint64(b_below))
                if b_early:
                    load_b(memory.b_fragment, memory.b_tile, at_b)
                load_a(memory.a_fragment, memory.a_tile, at_a)
                if not b_early:
                    load_b(memory.b_fragment, memory.b_tile, at_b)

            return device(load)

        def steps(first: int, last: int) -> DeviceFunction:
            """Per step: load the next one's fragments, and multiply its own."""
            if last - first > 1:  # by halves, since Numba inlines long functions slowly
                middle = (first + last) // 2
                before, after = steps(first, middle), steps(middle, last)

                def halves(memory: Memory, at: Offsets) -> None:
                    before(memory, at)
                    after(memory, at)

                return device(halves)
            load_next = loads(last)
            multiply = outer_product(order, across, first % 2 * down, first % 2 * across, b_first=b_first)

            def step(memory: Memory, at: Offsets) -> None:
                load_next(memory, at)
                multiply(memory.accumulators, memory.a_fragment, memory.b_fragment)

            return device(step)

        load_first, all_but_last = loads(0), steps(0, DEPTH - 1)
        multiply_last = outer_product(order, across, down, across, b_first=b_first)

        @device
        def write(C: Matrix, accumulators: Array, first: Place) -> None:
            """Write a thread's results, of which the first belongs at ``first``, but those beyond the edges."""
            for i in range(down):
                row = first.row + (i // vector * rows_apart + i % vector)
                for j in range(0, across, b_width):
                    col = first.col + (j // vector * columns_apart + j % vector)
                    if row < C.rows and col < C.columns:
                        copy_b(C.elements, row * C.stride + col, accumulators, i * across + j)

        # Ragged sizes: sides smaller than a tile, tiles that are moved inwards, and a few rows or columns beyond them.
        label, origin, short_of, first_end = predication(tiling, case)
        load_checked, store = staging(tiling, a_width, b_width)
        few, (_, _, compute_chunks), inside = few_left(case, tiling), ragged.remainder(tiling), bool(label)

        def serpentine(
            c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
        ) -> None:
            C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
            # (2 buffers, 16 along k, rows and padding) and (2 buffers, 16 along k, columns)
            a_tile = cuda.shared.array(a_buffers, dtype, alignment=ALIGNMENT)
            b_tile = cuda.shared.array(b_buffers, dtype, alignment=ALIGNMENT)
            accumulators = cuda.local.array(result_count, dtype, alignment=ALIGNMENT)  # (rows, columns)
            a_fragment = cuda.local.array(a_halves, dtype, alignment=ALIGNMENT)  # (2 halves, rows)
            b_fragment = cuda.local.array(b_halves, dtype, alignment=ALIGNMENT)  # (2 halves, columns)
            a_staged = cuda.local.array(a_share, dtype, alignment=ALIGNMENT)
            b_staged = cuda.local.array(b_share, dtype, alignment=ALIGNMENT)
            memory = Memory(a_tile, b_tile, accumulators, a_fragment, b_fragment)
            thread = cuda.threadIdx.y * width + cuda.threadIdx.x
            row0 = origin(cuda.blockIdx.y, rows, m)
            col0 = origin(cuda.blockIdx.x, columns, n)
            short = short_of(k)
            # A warp's lanes: 2i and 2i + 1 lie below each other, l and l + 2 side by side.
            warp, lane = thread // WARP, thread % WARP
            lane_row, lane_col = lane // 16 * 2 + lane % 2, lane // 2 % 8
            row = warp // warps_across * warp_rows + lane_row * vector
            col = warp % warps_across * warp_columns + lane_col * vector
            if inside:
                a_col = thread % a_across * a_width
                b_col = col0 + thread % b_across * b_width
                from_a = (row0 + thread // a_across) * lda + a_col
                from_b = thread // b_across * ldb + b_col
            k0 = uint32(0)
            buffer = uint32(0)
            for i in range(result_count):
                accumulators[i] = zero
            A_first, B_first = Matrix(a, m, first_end(k, short), lda), Matrix(b, first_end(k, short), n, ldb)
            load_checked(a_staged, b_staged, A_first, B_first, thread, Place(row0, col0), k0)
            store(a_tile, b_tile, buffer, a_staged, b_staged, thread)
            cuda.syncthreads()
            at_a = uint64(row)
            at_b = uint64(col)
            load_first(memory, Offsets(at_a, at_b))
            while k0 < k + short:
                k0 += DEPTH
                if inside:
                    at_k = min(k0 - short, k - DEPTH)  # past the end of k the last tiles are loaded again
                    load(a_staged, b_staged, A, B, from_a + at_k, from_b + at_k * ldb)
                else:
                    load_checked(a_staged, b_staged, A, B, thread, Place(row0, col0), k0)
                scheduling_barrier()
                all_but_last(memory, Offsets(at_a, at_b))
                buffer = 1 - buffer
                store(a_tile, b_tile, buffer, a_staged, b_staged, thread)
                cuda.syncthreads()
                at_a = uint64(buffer * a_elements) + uint64(row)
                at_b = uint64(buffer * b_elements) + uint64(col)
                # The next tile's first fragments arrive while this one's last are multiplied.
                load_first(memory, Offsets(at_a, at_b))
                multiply_last(accumulators, a_fragment, b_fragment)
            write(C, accumulators, Place(row0 + row, col0 + col))
            if few:
                compute_chunks(C, A, B, accumulators, b_tile, thread)

        return launched(serpentine, case, tiling, label, few=few)


VARIANTS = {
    "serpentine": Variant(8, 8, by_rows=False, b_early=True),
    "serpentine16x8": Variant(16, 8, by_rows=True, b_first=True),
}


def _kernel(name: str, block: Block, *, summary: str, ladder: str) -> Kernel:
    variant = VARIANTS[name]
    shape = (variant.across, variant.down)
    return kernel_of_tiling(
        name, variant.tiling, variant.build, summary=summary, results=shape, blocks=(block,), ladder=ladder
    )


KERNELS = (
    _kernel(
        "serpentine",
        Block(16, 16),
        summary="unrolled with fragments a step ahead and multiplications in serpentine order",
        ladder="operands in registers a step ahead, fewer register reads",
    ),
    _kernel(
        "serpentine16x8",
        Block(16, 8),
        summary="serpentine with 16 × 8 results per thread",
        ladder="16 × 8 results per thread",
    ),
)
