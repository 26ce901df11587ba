"""mmaPadded: mmaPlain with ldmatrix, from tiles with 16 bytes of padding between their rows.

Steps 1 and 3 are those of mmaPlain. In step 2 a lane no longer loads its own elements: it gives the address of a row of
16 bytes, and gets its two elements of each of four 8×8 matrices. Those of B come transposed, so that no elements have
to be shifted together: 6 loads per warp and step instead of 40.

The eight rows of a matrix are served at once. With the padding they begin 80 bytes apart in A's tile, 144 or 272 in
B's, each in four banks of its own. The copies into A's tile pay for it: the eight lanes that are served at once fill
two rows, which share banks, since 80 bytes are not half a wavefront.
"""

from __future__ import annotations

from smembench.kernels.intrinsics.halves import store_pair
from smembench.kernels.intrinsics.matrix import (
    A_REGISTERS,
    B_REGISTERS,
    MATRICES,
    SUMS,
    load_matrices,
    load_matrices_transposed,
    multiply_matrices,
)
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

PAD = 8
"""Elements of padding after each row: 16 bytes."""


def elements(case: Case) -> int:
    """A tile of A and one of B."""
    tiling = MmaTiling.of(case)
    return tiling.rows * (DEPTH + PAD) + DEPTH * (tiling.columns + PAD)


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``."""
    tiling = MmaTiling.of(case)
    (a_width, b_width, c_width), vector, threads = tiling.widths(case), vector_width(case.dtype), tiling.threads
    rows, columns, width, warps_across = tiling.rows, tiling.columns, tiling.block.x, tiling.columns // WARP_COLUMNS
    dtype, float32, word = number(case.dtype), number("float32"), number("uint32")
    a_pitch, b_pitch = DEPTH + PAD, columns + PAD
    a_elements, b_elements = rows * a_pitch, DEPTH * b_pitch
    a_registers, b_registers, results = A_REGISTERS * DOWN, B_REGISTERS * ACROSS, DOWN * ACROSS * SUMS
    zero, start = float32(0), uint32(0)
    store, multiply = store_pair(case.dtype), multiply_matrices(case.dtype, DOWN, ACROSS)

    @device
    def a_place(row: Index, col: Index) -> Index:
        """Offset of an element in A's tile."""
        return row * a_pitch + col

    @device
    def b_place(row: Index, col: Index) -> Index:
        """Offset of an element in B's tile."""
        return row * b_pitch + col

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
        """A warp's 32 × 16 of A: four matrices of 8 × 8 per ldmatrix, to which each lane gives the address of a row."""
        row, col = corner.row + lane % 16, corner.col + lane // 16 * 8
        for i in range(DOWN):
            load_matrices(fragments, i * MATRICES, tile, a_place(row + i * 16, col), lane)

    @device
    def load_b(fragments: Array, tile: Array, corner: Place, lane: Index) -> None:
        """A warp's 16 × 64 of B, transposed on the way: neighbours in a column share a register."""
        row, col = corner.row + lane % 16, corner.col + lane // 16 * 8
        for j in range(ACROSS // 2):
            load_matrices_transposed(fragments, j * MATRICES, tile, b_place(row, col + j * 16), lane)

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

    def mma_padded(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        C, A, B = Matrix(c, m, n, ldc), Matrix(a, m, k, lda), Matrix(b, k, n, ldb)
        a_tile = cuda.shared.array(a_elements, dtype, alignment=ALIGNMENT)  # (8y rows, 32 along k and padding)
        b_tile = cuda.shared.array(b_elements, dtype, alignment=ALIGNMENT)  # (32 along k, 8x columns and padding)
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

    return tiling.program(mma_padded, case)


KERNEL = kernel_of(
    "mmaPadded",
    build,
    elements,
    summary="mmaPlain with ldmatrix from padded tiles",
    ladder="ldmatrix, and padding against its conflicts",
)
