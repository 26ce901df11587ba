"""The products with several results a thread, which the small blocks of test_cuda_kernels.py do not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

import simulated
from programs import numba_kernel
from smembench.kernels import registry
from smembench.kernels.matmul.remainder import MAX_REMAINDER
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block, Case

SERPENTINE = ("serpentine", "serpentine16x8", "streamK")
TILED = ("vectorized", "doubleBuffered", "warpTiled", "unrolled", "interleaved", "tiled16x8", "slicedK", *SERPENTINE)
SIZES = [
    pytest.param((70, 72, 20), None, "A by 4, B by 4", id="whole vectors over the edges"),
    pytest.param((65, 67, 9), None, "A by 1, B by 1", id="no aligned rows"),
    pytest.param((3, 70, 8), None, "A by 4, B by 1", id="aligned rows of A only"),
    pytest.param((64, 64, 17), 72, "A by 1, B by 4", id="aligned rows, those of A with an odd end"),
    pytest.param((1, 1, 1), None, "A by 1, B by 1", id="one element"),
]
"""m, n, k, the stride, and the elements of an access in float32."""


def verify(name: str, dtype: str, size: tuple[int, int, int], block: Block, stride: int | None = None) -> str:
    """Check a product, and return the variant of the program that made it."""
    kernel = registry.find("matmul", name, "cuda")
    assert kernel is not None
    case = Case("matmul", name, "cuda:0", dtype, *size, block, stride=stride)
    assert kernel.unsupported(case) is None
    problem = PROBLEMS["matmul"]
    inputs = problem.inputs(case, seed=1)
    output = simulated.run(case, kernel, problem, inputs)
    verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), output)
    assert verdict.passed, verdict.detail
    return numba_kernel(kernel, case).variant


@pytest.mark.parametrize("name", TILED)
@pytest.mark.parametrize(("size", "stride", "variant"), SIZES)
def test_products_are_right_at_the_edges_of_tiles(
    name: str, size: tuple[int, int, int], stride: int | None, variant: str
) -> None:
    assert verify(name, "float32", size, Block(8, 8), stride).startswith(variant)


@pytest.mark.parametrize("name", SERPENTINE)
@pytest.mark.parametrize(("k", "stride"), [(16, None), (32, 144)])
def test_whole_tiles_are_loaded_without_a_look_at_the_edges(name: str, k: int, stride: int | None) -> None:
    assert verify(name, "float32", (128, 128, k), Block(8, 8), stride) == "A by 4, B by 4, whole tiles"


@pytest.mark.parametrize("name", SERPENTINE)
@pytest.mark.parametrize(
    ("size", "widths"),
    [
        ((140, 76, 20), "A by 4, B by 4"),
        ((129 + MAX_REMAINDER, 75, 18), "A by 1, B by 1"),
        ((128, 64, 17), "A by 1, B by 4"),
    ],
)
def test_tiles_over_an_edge_are_moved_inwards(name: str, size: tuple[int, int, int], widths: str) -> None:
    assert verify(name, "float32", size, Block(8, 8)) == f"{widths}, tiles moved inwards"


@pytest.mark.parametrize(
    ("size", "label"),
    [((96, 96, 24), ", whole tiles"), ((107, 109, 25), ", tiles moved inwards"), ((95, 101, 24), "")],
)
def test_three_slices_compute_a_tile(size: tuple[int, int, int], label: str) -> None:
    assert verify("slicedK12x6", "float32", size, Block(16, 24)) == f"A by 1, B by 1{label}"


@pytest.mark.parametrize(
    ("name", "block", "size", "stride"),
    [
        ("serpentine", Block(8, 8), (65, 65, 33), None),
        ("serpentine", Block(8, 8), (64, 2 * 64 + MAX_REMAINDER, 70), 139),
        ("serpentine16x8", Block(8, 8), (128 + MAX_REMAINDER, 64 + 2, 1), None),
        ("streamK", Block(8, 8), (65, 65, 33), None),
        ("streamK", Block(8, 8), (64, 2 * 64 + MAX_REMAINDER, 70), 140),
        ("streamK", Block(8, 8), (128 + MAX_REMAINDER, 64 + 2, 1), None),
        ("slicedK12x6", Block(16, 24), (97, 96 + MAX_REMAINDER, 25), None),
    ],
)
def test_a_few_rows_and_columns_are_left_over_for_all_blocks(
    name: str, block: Block, size: tuple[int, int, int], stride: int | None
) -> None:
    """In one block, whose share takes several times, and in two; with an odd k, a short and a long one."""
    assert verify(name, "float32", size, block, stride).endswith(", a few left over")


def test_float64_has_a_few_left_over_too() -> None:
    assert verify("serpentine", "float64", (65, 67, 40), Block(8, 8)).endswith(", a few left over")


@pytest.mark.parametrize(
    ("size", "blocks"),
    [
        pytest.param((64, 64, 16 * 12), 5, id="all blocks in one tile"),
        pytest.param((80, 70, 40), 1, id="one block, tiles over the edges, moved inwards"),
        pytest.param((80, 140, 40), 11, id="tiles over the edges, moved inwards"),
        pytest.param((70, 130, 40), 5, id="tiles over the edges, dealt out"),
        pytest.param((70, 5, 60), 11, id="tiles over the edges, compared"),
    ],
)
def test_any_number_of_blocks_computes_all_tiles(size: tuple[int, int, int], blocks: int) -> None:
    case = Case("matmul", "streamK", "cuda:0", "float32", *size, Block(8, 8))
    kernel, problem = registry.kernel_of(case), PROBLEMS["matmul"]
    shared = replace(kernel, build=lambda case: replace(numba_kernel(kernel, case), persistent_blocks=lambda _: blocks))
    assert numba_kernel(shared, case).on(1).grid == (blocks, 1)
    inputs = problem.inputs(case, seed=1)
    output = simulated.run(case, shared, problem, inputs)
    verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), output)
    assert verdict.passed, verdict.detail


@pytest.mark.parametrize("name", ["vectorized", "interleaved", "slicedK", "serpentine"])
@pytest.mark.parametrize(("size", "variant"), [((38, 70, 10), "A by 2, B by 2"), ((9, 5, 7), "A by 1, B by 1")])
def test_vectors_of_float64_are_pairs(name: str, size: tuple[int, int, int], variant: str) -> None:
    assert verify(name, "float64", size, Block(8, 8)) == variant


@pytest.mark.parametrize("name", ["warpTiled", "interleaved", "slicedK", "serpentine"])
def test_two_warps_side_by_side_cover_a_row(name: str) -> None:
    verify(name, "float32", (20, 124, 4), Block(16, 8))
