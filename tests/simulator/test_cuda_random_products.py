"""Random products by the kernels that need tensor cores or asynchronous copies, as the Python bodies have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

import simulated
from campaign import CAMPAIGN, chance
from random_products import STEPS, hold
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case

if TYPE_CHECKING:
    from smembench.model.problem import Array

TERMS = 2**14
"""A second's work, or a few."""
TRIED = [kernel for kernel in STEPS if CAMPAIGN > 1 or not kernel.name.startswith(("splitK", "streamK", "mma"))]
"""Those that take long have products of all kinds in test_cuda_split_k.py, test_cuda_matmul_ladder.py and
test_cuda_mma.py."""


@pytest.mark.parametrize("kernel", TRIED, ids=lambda kernel: kernel.name)
def test_random_products_are_right(kernel: Kernel) -> None:
    def run(case: Case) -> Callable[[tuple[Array, ...]], Array]:
        return lambda inputs: simulated.run(case, kernel, PROBLEMS["matmul"], inputs)

    hold(kernel, chance(f"{kernel.name} in the simulator"), CAMPAIGN, run, terms=TERMS)
