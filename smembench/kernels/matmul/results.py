"""A thread's results on their way to C, and back from it where another block began them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from smembench.cuda_api import device, uint32
from smembench.kernels.matmul.tiling import Tiling
from smembench.kernels.vector import load_vector, store_vector


@cache
def write_within(tiling: Tiling, width: int) -> Callable[..., Any]:
    """``(c, total, row0, col0, top, left, m, n, ldc)``: results from row ``top`` to m and from column ``left`` to n.

    The first of a thread's belongs at ``row0``, ``col0``; ``width`` elements are written at a time.
    """
    down, across = tiling.down, tiling.across
    (a_size, b_size), (rows_apart, columns_apart) = tiling.fragments, tiling.apart

    def write(c: Any, total: Any, row0: Any, col0: Any, top: Any, left: Any, m: Any, n: Any, ldc: Any) -> None:
        for i in range(down):
            row = uint32(row0 + uint32(i // a_size * rows_apart + i % a_size))
            for j in range(0, across, width):
                col = uint32(col0 + uint32(j // b_size * columns_apart + j % b_size))
                if row >= top and col >= left and row < m and col < n:
                    if width == 1:
                        c[uint32(row * ldc + col)] = total[i * across + j]
                    else:
                        store_vector(c, uint32(row * ldc + col), load_vector(total, i * across + j))

    return device(write)


@cache
def add_within(tiling: Tiling, width: int) -> Callable[..., Any]:
    """``(total, c, row0, col0, top, left, m, n, ldc)``: add what ``write_within`` would replace."""
    down, across = tiling.down, tiling.across
    (a_size, b_size), (rows_apart, columns_apart) = tiling.fragments, tiling.apart

    def add(total: Any, c: Any, row0: Any, col0: Any, top: Any, left: Any, m: Any, n: Any, ldc: Any) -> None:
        for i in range(down):
            row = uint32(row0 + uint32(i // a_size * rows_apart + i % a_size))
            for j in range(0, across, width):
                col = uint32(col0 + uint32(j // b_size * columns_apart + j % b_size))
                if row >= top and col >= left and row < m and col < n:
                    if width == 1:
                        total[i * across + j] += c[uint32(row * ldc + col)]
                    else:
                        begun = load_vector(c, uint32(row * ldc + col))
                        for p in range(width):
                            total[i * across + j + p] += begun[p]

    return device(add)
