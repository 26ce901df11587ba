"""tiled and tiled2D in Triton: a program multiplies tiles with ``tl.dot`` along k.

Triton keeps the tiles of A and B in shared memory, in layouts that it chooses itself, and loads the next ones by
asynchronous copies while it multiplies. Beyond the edges it loads zeros.

Unless told otherwise ``tl.dot`` multiplies float32 on tensor cores as TF32, which errs by 3e-4 and would fail the
check. ``input_precision="ieee"`` has it use float32 multiply-adds, as all kernels here do. float64 it multiplies on
tensor cores in full precision.

- tiled: as many results as threads, as in the documents.
- tiled2D: 128 × 128 results by 256 threads, as Triton's users write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smembench.kernels.common.grids import block_of
from smembench.kernels.common.triton import port
from smembench.kernels.matmul.cuda import tiled, tiled_2d
from smembench.model.case import Case

_DEPTH = 16
"""Fewest columns of A's tile that ``tl.dot`` takes."""


def source() -> Any:
    """A program computes a tile of BY rows and BX columns of C, in steps of BK along k."""
    import triton
    import triton.language as tl

    @triton.jit
    def product(  # type: ignore[no-untyped-def]
        c, a, b, m, n, k, lda, ldb, ldc, BX: tl.constexpr, BY: tl.constexpr, BK: tl.constexpr
    ):
        row = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
        col = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
        total = tl.zeros((BY, BX), c.dtype.element_ty)
        for k0 in range(0, k, BK):
            across = k0 + tl.arange(0, BK)[None, :]
            down = k0 + tl.arange(0, BK)[:, None]
            a_tile = tl.load(a + row * lda + across, mask=(row < m) & (across < k), other=0)
            b_tile = tl.load(b + down * ldb + col, mask=(down < k) & (col < n), other=0)
            total = tl.dot(a_tile, b_tile, total, input_precision="ieee", out_dtype=c.dtype.element_ty)
        tl.store(c + row * ldc + col, total, mask=(row < m) & (col < n))

    return product


def _block(case: Case) -> Mapping[str, int]:
    side = block_of(case).x
    return {"BX": side, "BY": side, "BK": max(side, _DEPTH)}


def _results(case: Case) -> Mapping[str, int]:
    block, (across, down) = block_of(case), tiled_2d.KERNEL.results
    return {"BX": across * block.x, "BY": down * block.y, "BK": _DEPTH}


KERNELS = (port(tiled.KERNEL, source, _block), port(tiled_2d.KERNEL, source, _results))
