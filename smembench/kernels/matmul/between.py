"""Steps along k with the asynchronous copies of the next tile between them, a few at a time.

All of them at the head of the loop stand before the loads of fragments in the queue of the multiprocessor's memory
pipe, and hold the registers with their addresses until it has read them. On an H200 (2026-11-22) Nsight Compute found
8 % of streamK's time at 1023 lost to that.
"""

from __future__ import annotations

from typing import Any

from smembench.cuda_api import device, uint32, uint64
from smembench.hardware import WARP
from smembench.kernels.async_copy import copy_element_async
from smembench.kernels.grids import ceil_div
from smembench.kernels.matmul.ahead import Order, advance
from smembench.kernels.matmul.pieces import Piece
from smembench.kernels.matmul.tiling import Tiling

_LANES_ALONG_K = 8
"""Of a copy of A: so many elements of a row go to as many columns of the tile, in different banks."""


def element_copies(tiling: Tiling, first: int, last: int) -> Piece:
    """``(a_tile, b_tile, to_a, to_b, a, b, from_a, from_b, lda, ldb)``: a thread's copies from ``first`` to ``last``.

    Those of A come before those of B. The thread's first elements come from ``from_a`` and ``from_b`` and go to
    ``to_a`` and ``to_b``. What comes from the same row has the same address, but for a constant.
    """
    of_a, pitch, columns = tiling.a_share, tiling.pitch, tiling.columns
    a_apart, b_apart = tiling.threads // _LANES_ALONG_K, tiling.threads // WARP
    a_in_row, b_in_row = tiling.depth // _LANES_ALONG_K, columns // WARP
    first_a, last_a, first_b, last_b = min(first, of_a), min(last, of_a), max(first - of_a, 0), max(last - of_a, 0)

    def copy(
        a_tile: Any, b_tile: Any, to_a: Any, to_b: Any, a: Any, b: Any, from_a: Any, from_b: Any, lda: Any, ldb: Any
    ) -> None:  # fmt: skip
        for i in range(first_a, last_a):
            row, along = i // a_in_row * a_apart, i % a_in_row * _LANES_ALONG_K
            at = uint64(uint32(from_a + uint32(uint32(row) * lda)))
            copy_element_async(a_tile, uint64(to_a + uint64(along * pitch + row)), a, uint64(at + uint64(along)))
        for i in range(first_b, last_b):
            row, along = i // b_in_row * b_apart, i % b_in_row * WARP
            at = uint64(uint32(from_b + uint32(uint32(row) * ldb)))
            copy_element_async(b_tile, uint64(to_b + uint64(row * columns + along)), b, uint64(at + uint64(along)))

    return device(copy)


def advance_copying(tiling: Tiling, order: Order, over: int) -> Piece:
    """All steps of a tile but the last, and before each of the first ``over`` as many copies as of the others.

    ``(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b, a_base, b_base, a, b, thread, row0, col0, k0, short, k, lda,
    ldb)``: the tile at ``k0`` is copied to ``a_base`` and ``b_base``.
    """
    depth, columns, pitch = tiling.depth, tiling.columns, tiling.pitch
    copies = tiling.a_share + tiling.b_share
    at_once = ceil_div(copies, over)

    def steps(first: int) -> Piece:
        begun = first * at_once
        if begun >= copies:
            rest = advance(tiling, order, first, depth - 1 - first)

            def no_more(
                total: Any, a_parts: Any, b_parts: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any, to_a: Any,
                to_b: Any, a: Any, b: Any, from_a: Any, from_b: Any, lda: Any, ldb: Any,
            ) -> None:  # fmt: skip
                rest(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b)

            return device(no_more)

        copy, one = element_copies(tiling, begun, begun + at_once), advance(tiling, order, first, 1)
        others = steps(first + 1)

        def step(
            total: Any, a_parts: Any, b_parts: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any, to_a: Any,
            to_b: Any, a: Any, b: Any, from_a: Any, from_b: Any, lda: Any, ldb: Any,
        ) -> None:  # fmt: skip
            copy(a_tile, b_tile, to_a, to_b, a, b, from_a, from_b, lda, ldb)
            one(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b)
            others(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b, to_a, to_b, a, b, from_a, from_b, lda, ldb)

        return device(step)

    all_steps = steps(0)

    def go(
        total: Any, a_parts: Any, b_parts: Any, a_tile: Any, b_tile: Any, at_a: Any, at_b: Any, a_base: Any,
        b_base: Any, a: Any, b: Any, thread: Any, row0: Any, col0: Any, k0: Any, short: Any, k: Any, lda: Any, ldb: Any,
    ) -> None:  # fmt: skip
        at_k = uint32(min(uint32(k0 - short), uint32(k - uint32(depth))))
        a_row, a_col = uint32(thread // uint32(_LANES_ALONG_K)), uint32(thread % uint32(_LANES_ALONG_K))
        b_row, b_col = uint32(thread // uint32(WARP)), uint32(thread % uint32(WARP))
        from_a = uint32(uint32(uint32(uint32(row0 + a_row) * lda) + a_col) + at_k)
        from_b = uint32(uint32(uint32(uint32(at_k + b_row) * ldb) + col0) + b_col)
        to_a = uint64(a_base + uint64(uint32(uint32(a_col * uint32(pitch)) + a_row)))
        to_b = uint64(b_base + uint64(uint32(uint32(b_row * uint32(columns)) + b_col)))
        all_steps(total, a_parts, b_parts, a_tile, b_tile, at_a, at_b, to_a, to_b, a, b, from_a, from_b, lda, ldb)

    return device(go)
