"""CUDA C ports run on the host: their source as C++, the threads of a block in turns from barrier to barrier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fake_driver.host_code import COMPILER, compile_for_host, host_map, kernel_of, port
from programs import PORTS, assert_right, case_of, cuda_c_kernel, first_dtype
from smembench.devices.base import POISON
from smembench.kernels.common.grids import ceil_div
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import BY_COLUMNS, BY_ROWS, Block, Case
from smembench.model.problem import ITEMSIZE

Launch = Callable[..., Any]

(STREAM_K,) = (kernel for kernel in PORTS if kernel.name == "streamK")
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


def verify(case: Case, launch: Launch, grid: tuple[int, int]) -> None:
    problem, program = PROBLEMS[case.problem], cuda_c_kernel(case)

    def run(inputs: tuple[Any, ...]) -> Any:
        constant = inputs[problem.arrays.index(program.constant) - 1].tobytes() if program.constant else b""
        first = 0 if program.zeroed else POISON
        output = np.full(problem.output_length(case) * ITEMSIZE[case.dtype], first, np.uint8).view(inputs[0].dtype)
        arrays = tuple(array[problem.first(case) :] for array in (output, *inputs))
        maps = (host_map(each, arrays[each.array]) for each in program.tensor_maps)
        launch(grid, (*arrays, *maps), problem.scalars(case), constant)
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
            program = cuda_c_kernel(case)
            # Where blocks share tiles, fewer and more of them than there are.
            for grid in [program.grid] + ([(1, 1), (3, 1), (7, 1)] if program.persistent_blocks else []):
                verify(case, launches[kernel.name], grid)
    assert done >= 2


WIDTHS = [
    ("wgmma", (130, 136, 200), ""),
    ("wgmmaSpecialized", (130, 264, 392), ""),
    ("wgmmaPersistent", (2200, 264, 72), ""),
    ("wgmmaStored", (1250, 2920, 72), "256"),
    ("wgmmaStored", (1250, 2624, 72), "224"),
    ("wgmmaStored", (1250, 2496, 72), "192"),
    ("wgmmaStored", (1250, 1728, 72), "160"),
    ("wgmmaStored", (1250, 1256, 72), "128"),
    ("wgmmaStored", (1250, 1088, 72), "96"),
    ("wgmmaStored", (300, 264, 200), "64"),
]
"""Ports by warp groups, m, n and k, and the columns of a tile: ragged in all three; more steps along k than stages in
all but one, and a band of tiles that is not full."""


def by_warp_groups(name: str, size: tuple[int, int, int], b_layout: str) -> Case:
    (kernel,) = (each for each in PORTS if each.name == name)
    return replace(case_of(kernel, *size, first_dtype(kernel)), b_layout=b_layout)


@pytest.fixture(scope="module")
def widths(tmp_path_factory: pytest.TempPathFactory) -> dict[Case, Launch]:
    """Every tile of warp groups in either layout, compiled at once: most of a compiler's time is for the headers."""
    cases = [by_warp_groups(*each[:2], layout) for each, layout in product(WIDTHS, (BY_ROWS, BY_COLUMNS))]
    library = compile_for_host([*map(port, cases)], tmp_path_factory.mktemp("widths"))
    return {case: kernel_of(library, number) for number, case in enumerate(cases)}


@pytest.mark.parametrize("b_layout", [BY_ROWS, BY_COLUMNS])
@pytest.mark.parametrize(("name", "size", "variant"), WIDTHS)
def test_warp_groups_multiply_either_layout_in_tiles_of_every_width(
    name: str, size: tuple[int, int, int], variant: str, b_layout: str, widths: dict[Case, Launch]
) -> None:
    case = by_warp_groups(name, size, b_layout)
    program = cuda_c_kernel(case)
    assert program.variant == variant
    verify(case, widths[case], program.on(7).grid)


@settings(max_examples=30)
@given(
    m=st.integers(128, 400),
    n=st.integers(32, 100).map(lambda vectors: 4 * vectors),
    k=st.integers(4, 40).map(lambda vectors: 4 * vectors),
    share=st.floats(0, 1),
)
def test_any_number_of_blocks_shares_any_product(
    launches: dict[str, Launch], m: int, n: int, k: int, share: float
) -> None:
    """From one block to as many as there are steps; a block without one would hand over nothing."""
    case = case_of(STREAM_K, m, n, k)
    assume(STREAM_K.refusal(case) is None)
    verify(case, launches["streamK"], (1 + int(share * (ceil_div(m, 128) * ceil_div(n, 128) * ceil_div(k, 16) - 1)), 1))
