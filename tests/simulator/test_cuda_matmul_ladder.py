"""The products with several results per thread, which the small blocks of test_cuda_kernels.py do not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

import simulated
from ladder import PIPELINED, TILED
from programs import assert_right, case_of, cuda_kernel, numba_kernel
from smembench.kernels.matmul.ragged import SIDE
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block

Size = tuple[int, int, int]
SMALL = Block(8, 8)

SIZES = [
    pytest.param((68, 8, 20), None, "A by 4, B by 4", id="whole vectors over the edges"),
    pytest.param((3, 67, 9), None, "A by 1, B by 1", id="no aligned rows"),
    pytest.param((3, 6, 8), None, "A by 4, B by 1", id="aligned rows of A only"),
    pytest.param((64, 64, 17), 72, "A by 1, B by 4", id="aligned rows, those of A with an odd end"),
    pytest.param((1, 1, 1), None, "A by 1, B by 1", id="one element"),
]
"""m, n, k, the stride, and the elements of an access in float32; tiles have 64 rows or 128, and 64 columns."""


def verify(
    name: str, size: Size, *, dtype: str = "float32", block: Block = SMALL, stride: int | None = None, blocks: int = 0
) -> str:
    """Check a product, of so many persistent blocks if given; the variant of the program that made it."""
    kernel = cuda_kernel("matmul", name)
    case = case_of(kernel, *size, dtype, block, stride)
    assert kernel.refusal(case) is None
    program = numba_kernel(case)
    if blocks:
        program = replace(program, persistent_blocks=lambda _: blocks)
        kernel = replace(kernel, build=lambda _: program)
    assert_right(case, lambda inputs: simulated.run(case, kernel, PROBLEMS["matmul"], inputs))
    return program.variant


@pytest.mark.parametrize("name", TILED)
@pytest.mark.parametrize(("size", "stride", "variant"), SIZES)
def test_products_are_right_at_the_edges_of_tiles(name: str, size: Size, stride: int | None, variant: str) -> None:
    assert verify(name, size, stride=stride).startswith(variant)


@pytest.mark.parametrize("name", PIPELINED)
@pytest.mark.parametrize(("k", "stride"), [(16, None), (32, 144)])
def test_whole_tiles_are_loaded_without_a_look_at_the_edges(name: str, k: int, stride: int | None) -> None:
    assert verify(name, (128, 64, k), stride=stride) == "A by 4, B by 4, whole tiles"


@pytest.mark.parametrize("name", PIPELINED)
@pytest.mark.parametrize(
    ("more", "k", "widths"),
    [((12, 12), 20, "A by 4, B by 4"), ((SIDE + 1, 11), 18, "A by 1, B by 1"), ((0, 0), 17, "A by 1, B by 4")],
)
def test_tiles_over_an_edge_are_moved_inwards(name: str, more: tuple[int, int], k: int, widths: str) -> None:
    rows = 128 if name == "serpentine16x8" else 64
    assert verify(name, (rows + more[0], 64 + more[1], k)) == f"{widths}, tiles moved inwards"


@pytest.mark.parametrize(
    ("size", "label"),
    [((96, 96, 24), ", whole tiles"), ((107, 109, 25), ", tiles moved inwards"), ((95, 31, 24), "")],
)
def test_three_slices_compute_a_tile(size: Size, label: str) -> None:
    assert verify("slicedK12x6", size, block=Block(16, 24)) == f"A by 1, B by 1{label}"


@pytest.mark.parametrize(
    ("name", "dtype", "size", "stride"),
    [
        ("serpentine", "float32", (65, 65, 33), None),
        ("serpentine", "float32", (64, 2 * 64 + SIDE, 70), 139),
        ("serpentine16x8", "float32", (128 + SIDE, 64 + 2, 1), None),
        ("serpentine", "float64", (65, 67, 40), None),
        ("streamK", "float32", (65, 65, 33), None),
        ("streamK", "float32", (64, 2 * 64 + SIDE, 70), 140),
        ("streamK", "float32", (64 + SIDE, 64 + 2, 1), None),
        ("slicedK12x6", "float32", (97, 96 + SIDE, 25), None),
    ],
)
def test_a_few_rows_and_columns_are_left_over_for_all_blocks(
    name: str, dtype: str, size: Size, stride: int | None
) -> None:
    """In one block, whose share takes several times, and in two; with an odd k, a short and a long one."""
    block = Block(16, 24) if name == "slicedK12x6" else SMALL
    assert verify(name, size, dtype=dtype, block=block, stride=stride).endswith(", a few left over")


@pytest.mark.parametrize(
    ("size", "blocks"),
    [
        pytest.param((64, 64, 16 * 6), 5, id="all blocks in one tile"),
        pytest.param((80, 70, 40), 1, id="one block, tiles over the edges, moved inwards"),
        pytest.param((80, 140, 40), 11, id="tiles over the edges, moved inwards"),
        pytest.param((70, 130, 40), 5, id="tiles over the edges, dealt out"),
        pytest.param((70, 5, 60), 11, id="tiles over the edges, compared"),
    ],
)
def test_any_number_of_blocks_computes_all_tiles(size: Size, blocks: int) -> None:
    verify("streamK", size, blocks=blocks)


@pytest.mark.parametrize(("block", "size"), [(Block(16, 8), (70, 142, 40)), (Block(8, 16), (141, 70, 40))])
def test_tiles_that_are_wider_than_high_or_higher_than_wide(block: Block, size: Size) -> None:
    verify("streamK", size, block=block, blocks=3)


@pytest.mark.parametrize("name", ["vectorized", "unrolled", "serpentine"])
@pytest.mark.parametrize(("size", "variant"), [((38, 70, 10), "A by 2, B by 2"), ((9, 5, 7), "A by 1, B by 1")])
def test_vectors_of_float64_are_pairs(name: str, size: Size, variant: str) -> None:
    assert verify(name, size, dtype="float64") == variant


@pytest.mark.parametrize("name", ["unrolled", "serpentine"])
def test_two_warps_side_by_side_cover_a_row(name: str) -> None:
    verify(name, (20, 124, 4), block=Block(16, 8))
