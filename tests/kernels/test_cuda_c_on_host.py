"""CUDA C ports run on the host: their source as C++, the threads of a block in turns from barrier to barrier."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fake_driver.host_code import COMPILER, compile_for_host, first_kernel, port
from programs import cuda_c_kernel, size_names
from smembench.kernels import registry
from smembench.kernels.common.grids import ceil_div
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import CudaCKernel
from smembench.kernels.registry import Kernel, kernel_of
from smembench.model.case import Block, Case

Launch = Callable[..., Any]

PORTS = [kernel for kernel in registry.kernels() if kernel.compiler == "nvrtc"]
SIZES = [(1, 1, 1), (5, 7, 3), (9, 4, 6), (33, 21, 17), (8, 4, 12), (72, 140, 20), (141, 272, 36), (128, 256, 64)]
"""m, n and k: one element, ragged every way, whole vectors, tiles moved inwards, and whole tiles."""


def grids(program: CudaCKernel) -> list[tuple[int, int]]:
    """Those to launch: where blocks share tiles, fewer and more of them than there are."""
    return [program.grid] + ([(1, 1), (3, 1), (7, 1)] if program.persistent_blocks else [])


@pytest.mark.skipif(not COMPILER, reason="needs g++")
@pytest.mark.parametrize("kernel", PORTS, ids=lambda kernel: kernel.name)
def test_a_port_is_right_on_ragged_sizes(kernel: Kernel, tmp_path: Path) -> None:
    problem, pad = PROBLEMS[kernel.problem], 1 if kernel.pad else 0
    (*_, block) = kernel.default_blocks or (Block(4, 4) if kernel.name == "tiled" else Block(8, 2),)
    compiled_for = Case(kernel.problem, kernel.name, "cuda:0", "float32", 8, 8, 8, block, pad)
    launch = first_kernel(compile_for_host([port(compiled_for)], tmp_path))
    done = 0
    for m, n, k in SIZES:
        strides: tuple[int | None, ...] = (None, max(n, k) + 4) if kernel.strided else (None,)
        for stride in strides:
            depth = k if "k" in size_names(problem) else None
            case = Case(kernel.problem, kernel.name, "cuda:0", "float32", m, n, depth, block, pad, stride=stride)
            if kernel.unsupported(case):
                continue
            done += 1
            inputs = problem.inputs(case, seed=1)
            reference = problem.reference(case, inputs, kernel.computes)
            program = cuda_c_kernel(kernel, case)
            constant = inputs[problem.arrays.index(program.constant) - 1].tobytes() if program.constant else b""
            for grid in grids(program):
                output = np.full(problem.output_length(case) * 4, 0xFF, np.uint8).view(np.float32)
                launch(grid, (output, *inputs), problem.scalars(case), constant)
                verdict = problem.check(case, reference, output)
                assert verdict.passed, f"{case.id} in {grid} blocks: {verdict.detail}"
    assert done >= 2


@pytest.fixture(scope="module")
def stream_k(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    compiled_for = Case("matmul", "streamK", "cuda:0", "float32", 128, 128, 16, Block(16, 16))
    return first_kernel(compile_for_host([port(compiled_for)], tmp_path_factory.mktemp("port")))


@pytest.mark.skipif(not COMPILER, reason="needs g++")
@settings(max_examples=30)
@given(
    m=st.integers(128, 400),
    n=st.integers(32, 100).map(lambda vectors: 4 * vectors),
    k=st.integers(4, 40).map(lambda vectors: 4 * vectors),
    share=st.floats(0, 1),
)
def test_any_number_of_blocks_shares_any_product(stream_k: Launch, m: int, n: int, k: int, share: float) -> None:
    """From one block to as many as there are steps; a block without one would hand over nothing."""
    case = Case("matmul", "streamK", "cuda:0", "float32", m, n, k, Block(16, 16), compiler="nvrtc")
    assume(kernel_of(case).unsupported(case) is None)
    blocks = 1 + int(share * (ceil_div(m, 128) * ceil_div(n, 128) * ceil_div(k, 16) - 1))
    problem = PROBLEMS["matmul"]
    inputs = problem.inputs(case, seed=1)
    output = np.full(problem.output_length(case) * 4, 0xFF, np.uint8).view(np.float32)
    stream_k((blocks, 1), (output, *inputs), problem.scalars(case), b"")
    verdict = problem.check(case, problem.reference(case, inputs, ""), output)
    assert verdict.passed, verdict.detail
