"""tiled on the CPU: naive from tiles of A and B in buffers that stay in the L1 cache, on all cores.

An element of C is the same dot product as in naive, in the same order: only where its operands lie differs. The tile's
width is an argument of the compiled function. If it were a constant, LLVM would unroll the dot products and compute
several at once by vector instructions, and the time would not be that of tiling alone.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from smembench.kernels.common.grids import block_of, square_only
from smembench.kernels.kernel import Kernel
from smembench.kernels.matmul.through_float32 import for_dtype
from smembench.kernels.program import HostFunction
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case

if TYPE_CHECKING:
    from smembench.model.problem import Array


def build(case: Case) -> HostFunction:
    """Program for ``(c, a, b, m, n, k, lda, ldb, ldc)``; the block is square and as wide as the tile."""
    tiled, width = compiled(), block_of(case).x
    return for_dtype(case, lambda *arguments: tiled(*arguments, width), tiled)


@cache
def compiled() -> Any:
    """The function that Numba compiles per element type: it takes seconds, and serves tiles of any width."""
    import numpy as np
    from numba import njit, prange, uint64

    @njit(parallel=True, nogil=True)
    def tiled(c: Array, a: Array, b: Array, m: int, n: int, k: int, lda: int, ldb: int, ldc: int, tile: int) -> None:
        for row_of_blocks in prange((m + tile - 1) // tile):
            a_tile = np.empty((tile, tile), c.dtype)
            b_tile = np.empty((tile, tile), c.dtype)
            c_tile = np.empty((tile, tile), c.dtype)
            y0 = row_of_blocks * tile
            for x0 in range(0, n, tile):
                c_tile[:, :] = 0
                for k0 in range(0, k, tile):
                    for y in range(tile):
                        for x in range(tile):
                            inside = y0 + y < m and k0 + x < k
                            a_tile[uint64(y), uint64(x)] = (
                                a[uint64((y0 + y) * lda + k0 + x)] if inside else c.dtype.type(0)
                            )
                            inside = k0 + y < k and x0 + x < n
                            b_tile[uint64(y), uint64(x)] = (
                                b[uint64((k0 + y) * ldb + x0 + x)] if inside else c.dtype.type(0)
                            )
                    for y in range(tile):
                        for x in range(tile):
                            total = c_tile[uint64(y), uint64(x)]
                            for i in range(tile):
                                total += a_tile[uint64(y), uint64(i)] * b_tile[uint64(i), uint64(x)]
                            c_tile[uint64(y), uint64(x)] = total
                for y in range(min(tile, m - y0)):
                    for x in range(min(tile, n - x0)):
                        c[uint64((y0 + y) * ldc + x0 + x)] = c_tile[uint64(y), uint64(x)]

    return tiled


def tile_elements(case: Case) -> int:
    """Three square buffers: A, B and the sums."""
    return 3 * block_of(case).x ** 2


KERNEL = Kernel(
    problem="matmul",
    name="tiled",
    kind="cpu",
    summary="tiles of A, B and C in buffers that stay in the L1 cache, on all cores",
    build=build,
    b_layouts=(BY_ROWS, BY_COLUMNS),
    tile_elements=tile_elements,
    unsupported=square_only,
    strided=True,
    ladder="tiles of A and B in buffers that stay in the L1 cache",
)
