"""Products on tensor cores: the Python bodies of their instructions exchange what lanes have, as a warp does."""

from __future__ import annotations

from dataclasses import replace

import pytest

import simulated
from programs import assert_right, case_of, cuda_kernel, numba_kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block

MMA = ("mmaPlain", "mmaPadded", "mmaSwizzled", "mmaAsync")
CASES = [
    pytest.param("bfloat16", (9, 72, 40), None, "A by 8, B by 8, C by 2", id="over all edges, by vectors"),
    pytest.param("float16", (9, 11, 33), None, "A by 1, B by 1, C by 1", id="over all edges, by elements"),
    pytest.param("bfloat16", (3, 6, 8), 72, "A by 8, B by 1, C by 2", id="one small tile of wider matrices"),
]
"""Of a block of two warps, which computes 64 × 64 in steps of 32 along k."""


@pytest.mark.parametrize("name", MMA)
@pytest.mark.parametrize(("dtype", "size", "stride", "variant"), CASES)
def test_products_of_halves_are_right(
    name: str, dtype: str, size: tuple[int, int, int], stride: int | None, variant: str
) -> None:
    kernel = cuda_kernel("matmul", name)
    case = replace(case_of(kernel, *size, dtype, Block(8, 8), stride), inputs="integers")
    assert kernel.unsupported(case) is None
    assert numba_kernel(case).variant == variant
    assert_right(case, lambda inputs: simulated.run(case, kernel, PROBLEMS["matmul"], inputs))


def test_stages_are_used_again() -> None:
    kernel = cuda_kernel("matmul", "mmaAsync")
    case = replace(case_of(kernel, 3, 8, 104, "float16", Block(8, 8)), inputs="integers")
    assert_right(case, lambda inputs: simulated.run(case, kernel, PROBLEMS["matmul"], inputs))
