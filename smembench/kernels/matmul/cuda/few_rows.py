"""fewRows: C of at most 16 rows at a time, on tensor cores, with B from global memory straight into their registers.

Such a product is bound by reading B, each element of which serves few multiplications. A tile in shared memory would
gain nothing, since no other warp needs its elements; shared memory is for the sums.

1. The operands are swapped: C's transpose is B's times A's. So columns of B are the 16 rows of an ``mma.sync``, and
   rows of A its 8 columns, of which few are empty.
2. A block has 16 columns of C or a few times as many, over all of k, whose steps its warps take in turn.
3. A lane loads 16 bytes at a time, as they lie: of a column of B 8 elements along k, which its registers would not
   have, but A's are loaded in the same order, and a sum has no order; of a row of B 8 columns, of which the halves of
   registers are exchanged to get neighbours along k. All loads of a few steps come before their products.
4. The warps add up their sums in shared memory, and round and write them.

Rows of A and of B as it lies must begin at multiples of 16 bytes. Findings: results/reference/notes/few_rows.md.
"""

from __future__ import annotations

from typing import NamedTuple

from smembench.kernels.common.grids import block_of, ceil_div
from smembench.kernels.intrinsics.halves import narrowed
from smembench.kernels.intrinsics.matrix import A_REGISTERS, B_REGISTERS, SUMS, multiply_matrices
from smembench.kernels.intrinsics.vector import ALIGNMENT, vector_width
from smembench.kernels.intrinsics.words import (
    load_two_words,
    load_two_words_once,
    load_words,
    load_words_once,
    lower_halves,
    upper_halves,
)
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, device, number, uint32, uint64
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix
from smembench.model.case import BY_COLUMNS, BY_ROWS, Block, Case
from smembench.model.formats import HALVES
from smembench.model.hardware import SM90_MULTIPROCESSORS, WARP
from smembench.model.problem import ITEMSIZE

ROWS = 8  # of A per product
COLUMNS = 16  # of B per product
WORDS = 4  # registers of 16 bytes
PITCH = ROWS + 1  # of a column's sums in shared memory
ENOUGH_BLOCKS = 3 * SM90_MULTIPROCESSORS // 2


class Form(NamedTuple):
    """The choice between compiled functions.

    Attributes:
        groups: of 8 rows of A, one or two.
        tiles: of 16 columns of B; by rows a lane loads 2 columns of each at once.
        steps: of a warp along k whose loads come before their products.
    """

    groups: int
    tiles: int
    steps: int


def form_of(case: Case) -> Form:
    """Tiles that leave enough blocks, and steps that leave enough registers."""
    groups = 1 if case.m <= ROWS else 2
    if case.b_layout == BY_ROWS:
        tiles = 4 if case.n >= 4 * COLUMNS * ENOUGH_BLOCKS // 2 else 2
        return Form(groups, tiles, 8 // tiles)
    tiles = 2 if case.n >= 2 * COLUMNS * ENOUGH_BLOCKS else 1
    return Form(groups, tiles, 4 if groups * tiles < 4 else 2)


def elements(case: Case) -> int:
    """The sums of all warps for 8 rows, in float32."""
    return block_of(case).y * form_of(case).tiles * COLUMNS * PITCH * 4 // ITEMSIZE[case.dtype]


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    block = block_of(case)
    (groups, tiles, steps), warps, threads = form_of(case), block.y, WARP * block.y
    by_rows, vector, columns = case.b_layout == BY_ROWS, vector_width(case.dtype), tiles * COLUMNS
    depth = COLUMNS if by_rows else 2 * COLUMNS  # along k per step
    products, loads = depth // COLUMNS, 4 if by_rows else 2 * tiles
    load_words_of_b, b_load = (load_two_words_once, 2) if by_rows and tiles == 2 else (load_words_once, WORDS)
    load_words_of_a, a_load = (load_two_words, 2) if by_rows else (load_words, WORDS)
    b_words, a_words, b_chunk = b_load * loads, a_load * groups, 2 * b_load
    sums, warp_sums = SUMS * tiles * groups, columns * PITCH
    all_sums = warps * warp_sums
    float32, word = number("float32"), number("uint32")
    zero = float32(0)
    multiply, narrow = multiply_matrices(case.dtype, tiles, groups), narrowed(case.dtype)
    b_staged_words, a_staged_words = steps * b_words, steps * a_words
    b_registers, a_registers = A_REGISTERS * tiles, B_REGISTERS * groups

    @device
    def load_b(words: Array, first: Index, B: Matrix, col: Index, at: Index, lane: Index) -> None:
        """A step's part of B: by columns two columns per tile, 8 elements along k; by rows 4 rows, 8 columns."""
        if by_rows:
            at_k, at_col = at + lane % 4 * 4, col + lane // 4 * b_chunk
            for i in range(loads):
                within = uint32(at_k + i < B.rows and at_col < B.columns)
                place = uint64(at_k + i) * B.stride + at_col
                load_words_of_b(words, first + i * b_load, B.elements, place, within)
        else:
            at_k = at + lane % 4 * vector
            within = uint32(at_k < B.rows)
            for i in range(loads):
                at_col = min(col + lane // 4 + i * 8, B.columns - 1)
                load_words_of_b(words, first + i * b_load, B.elements, uint64(at_col) * B.stride + at_k, within)

    @device
    def load_rows(words: Array, first: Index, A: Matrix, row: Index, at: Index, lane: Index) -> None:
        """A step's part of A, a row per group of 8 lanes, in the order in which B's elements lie along k."""
        at_k = at + lane % 4 * (depth // 4)
        within = uint32(at_k < A.columns)
        for i in range(groups):
            at_row = min(row + lane // 4 + i * ROWS, A.rows - 1)
            load_words_of_a(words, first + i * a_load, A.elements, uint64(at_row) * A.stride + at_k, within)

    @device
    def arrange(left: Array, right: Array, b: Array, a: Array, step: Index, half: Index) -> None:
        """The operands of a product: the 16 columns of each tile, and the rows of each group."""
        for i in range(tiles):
            to = i * A_REGISTERS
            if by_rows:
                at = step * b_words + i
                left[to] = lower_halves(b[at], b[at + b_load])
                left[to + 1] = upper_halves(b[at], b[at + b_load])
                left[to + 2] = lower_halves(b[at + 2 * b_load], b[at + 3 * b_load])
                left[to + 3] = upper_halves(b[at + 2 * b_load], b[at + 3 * b_load])
            else:
                at = step * b_words + i * 2 * WORDS + half * 2
                left[to] = b[at]
                left[to + 1] = b[at + WORDS]
                left[to + 2] = b[at + 1]
                left[to + 3] = b[at + WORDS + 1]
        for i in range(groups):
            at = step * a_words + i * a_load + half * 2
            right[i * B_REGISTERS] = a[at]
            right[i * B_REGISTERS + 1] = a[at + 1]

    def few_rows(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        A, B = Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        shared = cuda.shared.array(all_sums, float32, alignment=ALIGNMENT)  # (warps, columns, 8 rows and 1)
        total = cuda.local.array(sums, float32, alignment=ALIGNMENT)  # (tiles, groups, 4 sums)
        b_staged = cuda.local.array(b_staged_words, word, alignment=ALIGNMENT)  # (steps, loads, 4 words)
        a_staged = cuda.local.array(a_staged_words, word, alignment=ALIGNMENT)  # (steps, groups, words)
        left = cuda.local.array(b_registers, word, alignment=ALIGNMENT)
        right = cuda.local.array(a_registers, word, alignment=ALIGNMENT)
        lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
        col0, row0 = cuda.blockIdx.x * columns, cuda.blockIdx.y * (groups * ROWS)
        for i in range(sums):
            total[i] = zero
        at = warp * (steps * depth)
        while at < k:
            for step in range(steps):
                load_b(b_staged, step * b_words, B, col0, at + step * depth, lane)
            for step in range(steps):
                load_rows(a_staged, step * a_words, A, row0, at + step * depth, lane)
            for step in range(steps):
                for half in range(products):
                    arrange(left, right, b_staged, a_staged, step, half)
                    multiply(total, left, right, lane)
            at += warps * steps * depth
        thread = warp * WARP + lane
        for j in range(groups):
            for i in range(tiles):
                for part in range(SUMS):
                    # By columns a tile has 16 neighbours, by rows two neighbours of what each lane loads.
                    col = (
                        lane // 4 * b_chunk + i * 2 + part // 2 if by_rows else i * COLUMNS + lane // 4 + part // 2 * 8
                    )
                    at = warp * warp_sums + col * PITCH + lane % 4 * 2 + part % 2
                    shared[at] = total[(i * groups + j) * SUMS + part]
            cuda.syncthreads()
            for place in range(thread, columns * ROWS, threads):
                col, row = place % columns, place // columns
                at_row, at_col = row0 + j * ROWS + row, col0 + col
                if at_row < m and at_col < n:
                    result = zero
                    for i in range(warps):
                        result += shared[i * warp_sums + col * PITCH + row]
                    c[at_row * ldc + at_col] = narrow(result)
            cuda.syncthreads()

    grid = ceil_div(case.n, columns), ceil_div(case.m, groups * ROWS)
    variant = f"{groups * ROWS} rows and {columns} columns, B by {case.b_layout}"
    return NumbaKernel(few_rows, grid=grid, block=block, launch_bounds=(threads, 1), variant=variant)


def unsupported(case: Case) -> str | None:
    """The reason that a case does not suit, or None: rows of A, and rows or columns of B, are loaded by 16 bytes."""
    return unaligned(case, case.depth, case.n if case.b_layout == BY_ROWS else 0)


def unaligned(case: Case, *sides: int) -> str | None:
    """The reason that rows of these lengths or this block do not suit loads of 16 bytes by whole warps, or None."""
    block, vector = block_of(case), vector_width(case.dtype)
    if block.x != WARP:
        return f"{case.kernel} needs a row of the block per warp: {WARP} threads along x, not {block}"
    if odd := next((side for side in (*sides, case.stride or 0) if side % vector), None):
        return f"{case.kernel} loads {vector} elements at a time, which do not divide {odd}"
    return None


KERNEL = Kernel(
    problem="matmul",
    name="fewRows",
    kind="cuda",
    summary="products of few rows on tensor cores: B straight into registers, sums through shared memory",
    build=build,
    default_blocks=(Block(32, 8), Block(32, 16)),
    tile_elements=elements,
    dtypes=HALVES,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    unsupported=unsupported,
    needs="8.0",
    strided=True,
    standard=False,
    ladder="B straight into registers, in the order of tensor cores",
    few=16,
)
