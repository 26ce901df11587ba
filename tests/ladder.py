"""The kernels of the ladders, in the groups that several test files ask about."""

from __future__ import annotations

from programs import case_of, cuda_kernel
from smembench.model.case import Block, Case

HALF_WARPS = ("transposeHalfWarp", "transposePaired")
STREAMED = ("transposeStreamed", *HALF_WARPS)
DOWN = ("transposeDown", *STREAMED)
VECTORIZED = ("transposeVectorized", *DOWN)

SERPENTINE = ("serpentine", "serpentine16x8")
PIPELINED = (*SERPENTINE, "streamK")
"""Fragments are loaded a step ahead."""
TILED = ("vectorized", "doubleBuffered", "unrolled", *PIPELINED)


def transpose(
    name: str, dtype: str = "float32", columns: int = 4096, rows: int | None = None, block: Block | None = None
) -> Case:
    """Square unless it has other rows."""
    return case_of(cuda_kernel("transpose", name), rows or columns, columns, dtype=dtype, block=block)


def matmul(
    name: str, dtype: str = "float32", n: int = 4096, *, k: int | None = None, block: Block | None = None
) -> Case:
    """A square result, of square matrices unless there is a k."""
    return case_of(cuda_kernel("matmul", name), n, n, k or n, dtype, block)
