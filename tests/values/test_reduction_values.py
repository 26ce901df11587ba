"""The sums by their PTX, at the edges of warps, blocks, vectors and grids."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

import by_ptx
from programs import assert_right, case_of, numba_kernel
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Block, Case

SIZES = [1, 31, 33, 65, 1000, 2049]
BLOCKS = [Block(64, 1), Block(128, 1), Block(16, 8), Block(32, 8)]
KERNELS = [
    kernel for kernel in registry.of_problem("reduction") if kernel.kind == "cuda" and not (kernel.peer or kernel.port)
]


def verify(case: Case, kernel: Kernel | None = None) -> None:
    chosen = kernel or registry.kernel_of(case)
    assert_right(case, lambda inputs: by_ptx.run(case, chosen, PROBLEMS["reduction"], inputs), chosen.computes)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_sum_is_right_at_every_edge(kernel: Kernel) -> None:
    """Of one element type in one block, since compiling takes longest: kernels meet all of them in turn."""
    place, dtypes = KERNELS.index(kernel), PROBLEMS["reduction"].dtypes
    for n in SIZES:
        verify(case_of(kernel, 1, n, dtype=dtypes[place % len(dtypes)], block=BLOCKS[place % len(BLOCKS)]))


@pytest.mark.parametrize(("blocks", "n"), [*product((1, 3, 7), (5, 1024, 1333))])
def test_a_persistent_grid_of_any_size_goes_over_all_elements(blocks: int, n: int) -> None:
    (kernel,) = (kernel for kernel in KERNELS if kernel.name == "sumPersistent")
    case = case_of(kernel, 1, n, dtype="float64", block=Block(64, 1))
    program: NumbaKernel = replace(numba_kernel(case), grid=(blocks, 1), persistent_blocks=None)
    verify(case, replace(kernel, build=lambda _: program))


def test_a_sum_that_finds_no_zeros_is_caught() -> None:
    """The output is poisoned before a launch, and only the program's own zeros make it right."""
    case = case_of(KERNELS[1], 1, 100, dtype="int32", block=Block(64, 1))
    program: NumbaKernel = replace(numba_kernel(case), zeroed=False)
    with pytest.raises(AssertionError, match="the result is"):
        verify(case, replace(KERNELS[1], build=lambda _: program))
