"""Copies of tiles between the steps along k: each element of both tiles once, in as few addresses as there are rows."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from programs import case_of, cuda_kernel
from smembench.kernels.matmul.cuda.split_k import SHAPES, tiling_of
from smembench.kernels.matmul.tiling import Tiling
from smembench.model.case import Block

TILINGS = [
    (Tiling(Block(x, y), dtype, depth=16, warps=True), vectors)
    for x, y in ((8, 8), (16, 8), (8, 16), (16, 16), (8, 32), (32, 16))
    for dtype in ("float32", "float64")
    for vectors in (False, True)
] + [(tiling_of(case_of(cuda_kernel("matmul", "splitK"), 64, 64, 64, block=block)), True) for block in SHAPES]


@pytest.mark.parametrize(("tiling", "vectors"), TILINGS)
def test_threads_copy_every_element_of_a_tile_once(tiling: Tiling, vectors: bool) -> None:
    width = tiling.vector if vectors else 1
    b_lanes, result = tiling.lanes_along_b(width), tiling.copies(width)
    of_a, of_b = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for thread, copy in product(range(tiling.threads), result):
        if copy.of_a:
            row, along = thread // 8 + copy.row, thread % 8 + copy.along
            of_a[row, along] += 1
            assert thread % 8 * tiling.pitch + thread // 8 + copy.place == along * tiling.pitch + row
        else:
            row, along = thread // b_lanes + copy.row, thread % b_lanes * width + copy.along
            of_b.update((row, along + lane) for lane in range(width))
            place = thread // b_lanes * tiling.columns + thread % b_lanes * width + copy.place
            assert place == row * tiling.columns + along
            assert place % width == 0
    assert of_a == Counter(product(range(tiling.rows), range(tiling.depth)))
    assert of_b == Counter(product(range(tiling.depth), range(tiling.columns)))


def test_copies_of_one_row_differ_by_a_constant() -> None:
    """16 × 16: eight elements of A from four rows, and of B two vectors, or eight elements from two rows."""
    tiling = Tiling(Block(16, 16), "float32", depth=16, warps=True)
    for width in (4, 1):
        result = tiling.copies(width)
        assert [copy.of_a for copy in result] == [False] * (8 // width) + [True] * 8
        assert len({copy.row for copy in result if copy.of_a}) == 4
        assert len({copy.row for copy in result if not copy.of_a}) == 2
