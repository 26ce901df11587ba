"""Products of few rows: over all edges, and in every form that B's layout and the number of rows choose."""

from __future__ import annotations

from dataclasses import replace

import pytest

import simulated
from programs import assert_right, case_of, cuda_kernel
from smembench.kernels.matmul.cuda import few_rows_clustered
from smembench.kernels.matmul.tile_choice import Form
from smembench.kernels.matmul.warp_groups import Tile
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import BY_COLUMNS, BY_ROWS, Block


@pytest.mark.parametrize(
    ("name", "dtype", "size", "stride", "b_layout"),
    [
        ("fewRows", "bfloat16", (9, 72, 40), None, BY_ROWS),
        ("fewRows", "bfloat16", (1, 24, 264), None, BY_ROWS),
        ("fewRows", "float16", (5, 40, 136), None, BY_COLUMNS),
        ("fewRows", "bfloat16", (19, 33, 8), 72, BY_COLUMNS),
        ("oneRow", "float32", (1, 72, 40), None, BY_ROWS),
        ("oneRow", "float32", (3, 36, 9), 72, BY_ROWS),
        ("oneRow", "float64", (5, 36, 136), None, BY_ROWS),
        ("fewRowsClustered", "bfloat16", (9, 130, 200), None, BY_COLUMNS),
        ("fewRowsClustered", "float16", (20, 136, 80), None, BY_ROWS),
        ("fewRowsClustered", "float8_e4m3", (3, 128, 144), None, BY_COLUMNS),
        ("fewRowsClustered", "tf32", (40, 256, 40), None, BY_COLUMNS),
    ],
)
def test_products_of_few_rows_are_right(
    name: str, dtype: str, size: tuple[int, int, int], stride: int | None, b_layout: str
) -> None:
    kernel = cuda_kernel("matmul", name)
    block = Block(32, 2) if kernel.blocks else None
    case = replace(case_of(kernel, *size, dtype, block, stride), inputs="integers", b_layout=b_layout)
    assert kernel.refusal(case) is None
    assert_right(case, lambda inputs: simulated.run(case, kernel, PROBLEMS["matmul"], inputs))


@pytest.mark.parametrize("b_layout", [BY_ROWS, BY_COLUMNS])
@pytest.mark.parametrize(
    ("size", "tile"),
    [
        ((9, 136, 200), Tile(16, 128, 3)),  # by rows, the second piece of the last tile lies beyond B
        ((9, 200, 200), Tile(16, 128, 3)),
        ((70, 96, 72), Tile(72, 64, 2)),  # two consumers, of which the second has 8 rows
        ((70, 96, 72), Tile(24, 64, 2)),  # tiles below each other, of which the last has rows beyond A
        ((130, 40, 72), Tile(128, 32, 2)),
        ((64, 264, 72), Tile(64, 256, 2)),
    ],
)
def test_tiles_over_all_edges(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int, int], tile: Tile, b_layout: str
) -> None:
    monkeypatch.setattr(few_rows_clustered, "form_of", lambda case: Form(tile.of(case)))
    kernel = cuda_kernel("matmul", "fewRowsClustered")
    case = replace(case_of(kernel, *size, "bfloat16"), inputs="integers", b_layout=b_layout)
    assert_right(case, lambda inputs: simulated.run(case, kernel, PROBLEMS["matmul"], inputs))
