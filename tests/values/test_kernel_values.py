"""The kernels whose results their PTX tells, at ragged sizes. The others: tests/simulator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import by_ptx
from programs import NUMBA, assert_right, case_of, cuda_kernel, ragged
from smembench.kernels import registry
from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case
from smembench.model.groups import grouped

APART = 11
"""Of a kernel's variants by type, block and pad one is compiled, which takes longer than all else.

The next kernel's lies so many further in its list, so that kernels alike meet all of them.
"""


def verify(case: Case, kernel: Kernel | None = None) -> None:
    """Check a case, with another kernel than its own if one is given."""
    chosen = kernel or registry.kernel_of(case)
    assert_right(case, lambda inputs: by_ptx.run(case, chosen, PROBLEMS[case.problem], inputs), chosen.computes)


def chosen_cases() -> list[list[Case]]:
    """All sizes of one variant of each kernel whose tile is the block."""
    result: list[list[Case]] = []
    for kernel in NUMBA:
        alone = kernel.problem == "reduction"  # its sizes and blocks are those of test_reduction_values.py
        allowed = [] if alone else [case for case in ragged(kernel) if by_ptx.follows(kernel, case.dtype)]
        variants = [*grouped(allowed, lambda case: (case.dtype, case.block, case.pad)).values()]
        if variants:
            result.append(variants[APART * len(result) % len(variants)])
    return result


@pytest.mark.parametrize("cases", [pytest.param(cases, id=cases[0].id) for cases in chosen_cases()])
def test_every_kernel_is_right_on_ragged_sizes(cases: list[Case]) -> None:
    for case in cases:
        verify(case)


@pytest.mark.parametrize(
    ("name", "dtype", "stride"),
    [("naive", "float64", 17), ("tiled", "float32", 20), ("MatMulKernel", "float32", 49), ("tiledHalf", "float16", 17)],
)
def test_products_of_sub_matrices_touch_nothing_around_them(name: str, dtype: str, stride: int) -> None:
    """One stride each, which is compiled."""
    for m, n, k in [(5, 7, 17), (9, 17, 6)]:
        verify(case_of(cuda_kernel("matmul", name), m, n, k, dtype, Block(4, 4), stride))


@pytest.mark.parametrize(
    ("kernel", "stride"), [("strided", 3), ("strided", 12), ("strided", 32), ("broadcastAccess", None)]
)
def test_threads_in_a_line_do_not_meet(kernel: str, stride: int | None) -> None:
    """In more than one block, the last of them ragged."""
    verify(case_of(cuda_kernel("access", kernel), 2, 700, dtype="int32", stride=stride))


def without_bounds(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    """A transpose that every thread of the grid takes part in."""
    x, y = cuda.grid(2)
    out[int(x * ny + y)] = inp[int(y * nx + x) % inp.size]


def off_by_one(out: Any, inp: Any, nx: Any, ny: Any) -> None:
    """A transpose whose bounds test leaves the last row out."""
    x, y = cuda.grid(2)
    if x < nx and y < ny - 1:
        out[int(x * ny + y)] = inp[int(y * nx + x)]


@pytest.mark.parametrize(
    ("function", "result"),
    [
        pytest.param(without_bounds, r"array 1\[\d+\], and array 1 has 35 elements", id="a write beside the output"),
        pytest.param(off_by_one, "7 of 35 elements differ, the first at index 4", id="rows left out"),
    ],
)
def test_a_mistake_is_caught(function: Any, result: str) -> None:
    def build(case: Case) -> NumbaKernel:
        grid, block = covering(case.n, case.m, block_of(case)), block_of(case)
        return NumbaKernel(function, grid=grid, block=block, variant=function.__name__)

    kernel = cuda_kernel("transpose", "naiveGmem")
    with pytest.raises(AssertionError, match=result):
        verify(case_of(kernel, 5, 7, block=Block(4, 4)), replace(kernel, build=build))


@pytest.mark.parametrize(
    ("name", "sides", "block"), [("tiled1D", (5, 3, 7), Block(4, 4)), ("tiled2D", (1, 1, 1), Block(2, 8))]
)
def test_a_loop_whose_values_cease_to_differ_between_threads_is_followed(
    name: str, sides: tuple[int, int, int], block: Block
) -> None:
    verify(case_of(cuda_kernel("matmul", name), *sides, block=block))
