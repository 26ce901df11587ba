"""CUDA C ports run on the host: their source as C++, the threads of a block in turns from barrier to barrier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fake_driver.host_code import COMPILER, compile_for_host, kernel_of, port
from programs import PORTS, assert_right, case_of, cuda_c_kernel, first_dtype
from smembench.devices.base import POISON
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block, Case
from smembench.model.problem import ITEMSIZE

Launch = Callable[..., Any]

SIZES = [
    (1, 1, 1),
    (5, 7, 3),
    (9, 4, 6),
    (33, 21, 17),
    (8, 4, 12),
    (72, 140, 20),
    (70, 136, 40),
    (141, 272, 36),
    (128, 256, 64),
]
"""m, n and k: one element, ragged every way, whole vectors, tiles moved inwards, and whole tiles."""


pytestmark = pytest.mark.skipif(not COMPILER, reason="needs g++")


def block_of(kernel: Kernel) -> Block:
    """Its last usual block, or a small one that it takes."""
    small = (Block(8, 2), Block(4, 4), Block(32, 2))
    dtype = first_dtype(kernel)
    taken = (block for block in small if not kernel.refusal(case_of(kernel, 8, 8, 8, dtype, block)))
    return kernel.default_blocks[-1] if kernel.default_blocks else next(taken)


@pytest.fixture(scope="module")
def launches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Launch]:
    """Every port by its name, compiled at once."""
    kernels = [port(case_of(kernel, 8, 8, 8, first_dtype(kernel), block_of(kernel))) for kernel in PORTS]
    library = compile_for_host(kernels, tmp_path_factory.mktemp("ports"))
    return {kernel.name: kernel_of(library, number) for number, kernel in enumerate(PORTS)}


def verify(case: Case, launch: Launch) -> None:
    problem, program = PROBLEMS[case.problem], cuda_c_kernel(case)

    def run(inputs: tuple[Any, ...]) -> Any:
        constant = inputs[problem.arrays.index(program.constant) - 1].tobytes() if program.constant else b""
        first = 0 if program.zeroed else POISON
        output = np.full(problem.output_length(case) * ITEMSIZE[case.dtype], first, np.uint8).view(inputs[0].dtype)
        arrays = tuple(array[problem.first(case) :] for array in (output, *inputs))
        launch(program.grid, arrays, problem.scalars(case), constant)
        return output

    assert_right(case, run)


@pytest.mark.parametrize("kernel", PORTS, ids=lambda kernel: kernel.name)
def test_a_port_is_right_on_ragged_sizes(kernel: Kernel, launches: dict[str, Launch]) -> None:
    done = 0
    for m, n, k in SIZES:
        for stride in (None, max(n, k) + 8) if kernel.strided else (None,):
            case = case_of(kernel, m, n, k, first_dtype(kernel), block_of(kernel), stride)
            if kernel.refusal(case):
                continue
            done += 1
            verify(case, launches[kernel.name])
    assert done >= 2
