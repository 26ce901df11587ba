"""splitK: products whose tiles several blocks share, each with slices of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

import simulated
from programs import assert_right, case_of, cuda_kernel, numba_kernel
from smembench.kernels.matmul.cuda.split_k import SHAPES
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block

Size = tuple[int, int, int]


def verify(block: Block, size: Size, blocks: int, stride: int | None = None) -> str:
    """Check a product of so many blocks, twice, since a launch leaves its tickets to the next; its variant."""
    kernel = cuda_kernel("matmul", "splitK")
    case = case_of(kernel, *size, "float32", block, stride)
    assert kernel.refusal(case) is None
    program = replace(numba_kernel(case), persistent_blocks=lambda _: blocks)
    kernel = replace(kernel, build=lambda _: program)
    for _ in range(2):
        assert_right(case, lambda inputs: simulated.run(case, kernel, PROBLEMS["matmul"], inputs))
    return program.variant


@pytest.mark.parametrize("block", SHAPES)
@pytest.mark.parametrize(
    ("size", "stride", "blocks", "variant"),
    [
        ((64, 128, 160), None, 3, "A by 4, B by 4, whole tiles"),
        ((67, 130, 75), None, 7, "A by 1, B by 1, tiles moved inwards"),
        ((65, 132, 66), 144, 2, "A by 1, B by 4, tiles moved inwards"),
        ((68, 12, 68), None, 3, "A by 4, B by 4"),
        ((3, 67, 9), None, 2, "A by 1, B by 1"),
        ((1, 1, 1), None, 4, "A by 1, B by 1"),
    ],
)
def test_products_are_right_whatever_blocks_share_a_tile(
    block: Block, size: Size, stride: int | None, blocks: int, variant: str
) -> None:
    assert verify(block, size, blocks, stride) == variant
