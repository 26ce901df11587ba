"""MatMulKernel: tiled as the programming guide writes it ("Shared Memory", its second listing), with device functions.

The kernel and its get_element, set_element and get_sub_matrix follow the guide's statement by statement. Every
sub-matrix is a Matrix like any other, with the stride of the matrix of which it is a part. Two things differ: Python
has no pointers, so a Matrix also has the index of its first element; and a sub-matrix ends where its matrix ends, with
zeros beyond, so that any m × k × n works, not only multiples of BLOCK_SIZE.

A, B and C may themselves be parts of wider matrices (--stride). The guide's block is 16×16.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.matmul.cuda import tiled
from smembench.kernels.numba_cuda import cuda, device, number, uint32
from smembench.kernels.program import NumbaKernel
from smembench.kernels.types import Array, Index, Scalar
from smembench.model.case import Case


class Matrix(NamedTuple):
    """Matrices are stored in row-major order: M(row, col) = M.elements[M.first + row * M.stride + col]."""

    width: Index
    height: Index
    stride: Index
    elements: Array
    first: Index


def build(case: Case) -> NumbaKernel:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``; the block is square, BLOCK_SIZE wide."""
    block = block_of(case)
    BLOCK_SIZE = block.x
    dtype = number(case.dtype)
    zero: Scalar = dtype(0)

    @device
    def get_element(A: Matrix, row: Index, col: Index) -> Scalar:
        """Get a matrix element."""
        if row < A.height and col < A.width:
            return A.elements[A.first + row * A.stride + col]
        return zero

    @device
    def set_element(A: Matrix, row: Index, col: Index, value: Scalar) -> None:
        """Set a matrix element."""
        if row < A.height and col < A.width:
            A.elements[A.first + row * A.stride + col] = value

    @device
    def get_sub_matrix(A: Matrix, row: Index, col: Index) -> Matrix:
        """Get the sub-matrix Asub of A that is col sub-matrices to the right and row sub-matrices down."""
        width = min(A.width - BLOCK_SIZE * col, BLOCK_SIZE)
        height = min(A.height - BLOCK_SIZE * row, BLOCK_SIZE)
        return Matrix(width, height, A.stride, A.elements, A.first + A.stride * BLOCK_SIZE * row + BLOCK_SIZE * col)

    def mat_mul_kernel(
        c: Array, a: Array, b: Array, m: Index, n: Index, k: Index, lda: Index, ldb: Index, ldc: Index
    ) -> None:
        A, B, C = Matrix(k, m, lda, a, uint32(0)), Matrix(n, k, ldb, b, uint32(0)), Matrix(n, m, ldc, c, uint32(0))
        # Block row and column
        block_row = cuda.blockIdx.y
        block_col = cuda.blockIdx.x
        # Each thread block computes one sub-matrix Csub of C
        Csub = get_sub_matrix(C, block_row, block_col)
        # Each thread computes one element of Csub by accumulating results into Cvalue
        Cvalue = zero
        # Thread row and column within Csub
        row = cuda.threadIdx.y
        col = cuda.threadIdx.x
        # Shared memory used to store Asub and Bsub respectively
        As = cuda.shared.array((BLOCK_SIZE, BLOCK_SIZE), dtype)
        Bs = cuda.shared.array((BLOCK_SIZE, BLOCK_SIZE), dtype)
        # Loop over all the sub-matrices of A and B that are required to compute Csub
        for t in range((A.width + BLOCK_SIZE - 1) // BLOCK_SIZE):
            Asub = get_sub_matrix(A, block_row, t)
            Bsub = get_sub_matrix(B, t, block_col)
            # Each thread loads one element of each sub-matrix
            As[row, col] = get_element(Asub, row, col)
            Bs[row, col] = get_element(Bsub, row, col)
            cuda.syncthreads()
            # Multiply Asub and Bsub together
            for e in range(BLOCK_SIZE):
                Cvalue += As[row, e] * Bs[e, col]
            cuda.syncthreads()
        # Each thread writes one element
        set_element(Csub, row, col, Cvalue)

    return NumbaKernel(mat_mul_kernel, grid=covering(case.n, case.m, block), block=block)


KERNEL = replace(
    tiled.KERNEL,
    name="MatMulKernel",
    summary="tiled as in the programming guide: sub-matrices by device functions",
    build=build,
    standard=False,
    ladder="",
)
