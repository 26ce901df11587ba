"""mmaPlain: products of 16 × 8 × 16 on tensor cores, from tiles stored in shared memory as in global memory.

Per 32 columns of A and rows of B:

1. Each thread copies its share of both tiles in 128-bit accesses, zeros beyond the edges; barrier.
2. Twice, each warp loads its fragments: 32 × 16 of A and 16 × 64 of B.
3. Its lanes multiply them together, by 16 ``mma.sync.m16n8k16``, and accumulate in float32; barrier.

A register of a fragment holds two elements. Of A they are neighbours in a row: one load. Of B they are neighbours in a
column: two loads of 2 bytes and a shift. Rows of A's tile have 64 bytes and those of B's 128 or 256, so the eight rows
of a load of A, and the four of a load of B, fall into few banks: 4-way conflicts. A warp computes 32 × 64 of C, each
lane 8 × 8 results as in the float32 ladder, where a thread of tiledHalf computes one.
"""

from __future__ import annotations

from smembench.kernels.intrinsics.halves import store_pair
from smembench.kernels.intrinsics.matrix import A_REGISTERS, B_REGISTERS, SUMS, load_two, multiply_matrices, pack
from smembench.kernels.intrinsics.vector import ALIGNMENT, clear_vector, copy_vector, vector_width
from smembench.kernels.matmul.mma_tiles import (
    ACROSS,
    DEPTH,
    DOWN,
    STEP,
    WARP_COLUMNS,
    WARP_ROWS,
    MmaTiling,
    copy_elements,
    kernel_of,
    write_elements,
)
from smembench.kernels.numba_cuda import DeviceFunction, cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Matrix, Place
from smembench.model.case import Case
from smembench.model.hardware import WARP


def elements(case: Case) -> int:
    """A tile of A and one of B."""
    tiling = MmaTiling.of(case)
    return (tiling.rows + tiling.columns) * DEPTH


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    tiling = MmaTiling.of(case)
    (a_width, b_width, c_width), vector, threads = tiling.widths(case), vector_width(case.dtype), tiling.threads
    rows, columns, width, warps_across = tiling.rows, tiling.columns, tiling.block.x, tiling.columns // WARP_COLUMNS
    dtype, float32, word = number(case.dtype), number("float32"), number("uint32")
    a_elements, b_elements = rows * DEPTH, DEPTH * columns
    a_registers, b_registers, results = A_REGISTERS * DOWN, B_REGISTERS * ACROSS, DOWN * ACROSS * SUMS
    zero, start = float32(0), uint32(0)
    store, multiply = store_pair(case.dtype), multiply_matrices(case.dtype, DOWN, ACROSS)

    @device
    def a_place(row: Index, col: Index) -> Index:
        """Offset of an element in A's tile."""
        return row * DEPTH + col

    @device
    def b_place(row: Index, col: Index) -> Index:
        """Offset of an element in B's tile."""
        return row * columns + col

    def copying(rows: int, across: int, place_of: DeviceFunction) -> DeviceFunction:
        """Copy a thread's share of the tile at ``corner`` of M, 16 bytes per access; beyond the edges store zeros."""
        lanes = across // vector
        step = threads // lanes
        count = rows // step

        def copy(tile: Array, base: Index, M: Matrix, corner: Place, thread: Index) -> None:
            first, col = thread // lanes, thread % lanes * vector
            within = corner.col + col < M.columns
            for i in range(count):
                row = first + i * step
                place = base + place_of(row, col)
                inside = within and corner.row + row < M.rows
                at = (corner.row + row) * M.stride + corner.col + col
                if inside:
                    copy_vector(tile, place, M.elements, at)
                else:
                    clear_vector(tile, place)

        return device(copy)

    @device
    def load_a(fragments: Array, tile: Array, corner: Place, lane: Index) -> None:
        """A lane's elements of 32 × 16 of A: two neighbours in a row per load and register."""
        row, col = corner.row + lane // 4, corner.col + lane % 4 * 2
        for i in range(a_registers):
            below = i // A_REGISTERS * 16 + i % 2 * 8
            fragments[i] = load_two(tile, a_place(row + below, col + i // 2 % 2 * 8))

    @device
    def load_b(fragments: Array, tile: Array, corner: Place, lane: Index) -> None:
        """A lane's elements of 16 × 64 of B: two neighbours in a column per register, by two loads."""
        row, col = corner.row + lane % 4 * 2, corner.col + lane // 4
        for i in range(b_registers):
            r, c = row + i % B_REGISTERS * 8, col + i // B_REGISTERS * 8
            fragments[i] = pack(tile[b_place(r, c)], tile[b_place(r + 1, c)])

    @device
    def write_pairs(C: Matrix, accumulators: Array, corner: Place, lane: Index) -> None:
        """Round a warp's sums and write them, two neighbours at once."""
        for i in range(2 * DOWN):
            row = corner.row + lane // 4 + i * 8
            for j in range(ACROSS):
                col = corner.col + lane % 4 * 2 + j * 8
                first = (i // 2 * ACROSS + j) * SUMS + i % 2 * 2
                at = row * C.stride + col
                if row < C.rows and col < C.columns:
                    store(C.elements, at, accumulators[first], accumulators[first + 1])

    # Rows that are not aligned are copied and written element by element.
    copy_a = copying(rows, DEPTH, a_place) if a_width > 1 else copy_elements(tiling, rows, DEPTH, a_place)
    copy_b = copying(DEPTH, columns, b_place) if b_width > 1 else copy_elements(tiling, DEPTH, columns, b_place)
    write = write_pairs if c_width > 1 else write_elements(case.dtype)

    def mma_plain(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        a_tile = cuda.shared.array(a_elements, dtype, alignment=ALIGNMENT)  # (8y rows, 32 along k)
        b_tile = cuda.shared.array(b_elements, dtype, alignment=ALIGNMENT)  # (32 along k, 8x columns)
        accumulators = cuda.local.array(results, float32, alignment=ALIGNMENT)  # (2 × 8 products, 4 sums)
        a_fragments = cuda.local.array(a_registers, word, alignment=ALIGNMENT)  # (2, 4 registers of 2 elements)
        b_fragments = cuda.local.array(b_registers, word, alignment=ALIGNMENT)  # (8, 2 registers of 2 elements)
        thread = cuda.threadIdx.y * width + cuda.threadIdx.x
        lane = thread % WARP
        row0, col0 = cuda.blockIdx.y * rows, cuda.blockIdx.x * columns
        warp = thread // WARP
        row, col = warp // warps_across * WARP_ROWS, warp % warps_across * WARP_COLUMNS
        for i in range(results):
            accumulators[i] = zero
        k0 = start
        while k0 < k:
            copy_a(a_tile, start, A, Place(row0, k0), thread)
            copy_b(b_tile, start, B, Place(k0, col0), thread)
            cuda.syncthreads()
            for step in range(0, DEPTH, STEP):
                load_a(a_fragments, a_tile, Place(row, start + step), lane)
                load_b(b_fragments, b_tile, Place(start + step, col), lane)
                # The warp's 32 lanes multiply together: each has a part of every operand and of every sum.
                multiply(accumulators, a_fragments, b_fragments, lane)
            cuda.syncthreads()
            k0 += DEPTH
        write(C, accumulators, Place(row0 + row, col0 + col), lane)

    return tiling.program(mma_plain, case)


KERNEL = kernel_of(
    "mmaPlain",
    build,
    elements,
    summary="products of 16 × 8 × 16 on tensor cores, fragments from plain tiles",
    ladder="tensor cores, mma.sync",
)
