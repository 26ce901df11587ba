"""What Numba's kernels compute, without a GPU: their PTX, by the engine that is installed, run on values.

Blocks run one after the other, so none may wait for a later one; tensor cores' results are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pytest

from smembench.devices.base import POISON
from smembench.explain.ptx.content import GlobalArray
from smembench.explain.ptx.memory import SPACING
from smembench.explain.ptx.parse import parse
from smembench.explain.ptx.program import PtxKernel
from smembench.explain.ptx.registers import Launch
from smembench.explain.ptx.trace import trace
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import INSTALLED
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case
from smembench.model.formats import carried
from smembench.model.problem import Problem
from smembench.toolchains import numba, numba_cuda_mlir
from smembench.toolchains.kept_code import variant

if TYPE_CHECKING:
    from smembench.model.problem import Array

ENGINE = "numba" if INSTALLED else "mlir"
_CAPABILITY = "9.0"
_MULTIPROCESSORS = 1
"""Only one, so that a persistent block computes several tiles of the output even in a small case."""
_kernels: dict[tuple[object, ...], PtxKernel] = {}
"""Parsed PTX by engine and variant."""


def follows(kernel: Kernel, dtype: str) -> bool:
    """Whether a kernel's results are known from its PTX, in about a second.

    They are not known where it needs tensor cores or other blocks, where the host fills constant memory before a
    launch, and where PTX computes in bfloat16. Several results per thread take seconds.
    """
    unknown = ("constantUniform", "constantDiverging")
    long = kernel.problem == "matmul" and kernel.default_blocks
    return not (kernel.needs or long or kernel.name in unknown or dtype == "bfloat16")


def run(case: Case, kernel: Kernel, problem: Problem, inputs: tuple[Array, ...], engine: str = ENGINE) -> Array:
    """The output of one launch on a poisoned buffer.

    Raises:
        AssertionError: if a thread leaves an array, threads race, or something depends on what is not known.
    """
    output = np.empty(problem.output_length(case), carried(problem.array_types(case)[0]))
    output.view("u1")[:] = POISON
    program = kernel.build(case)
    assert isinstance(program, NumbaKernel), case.id
    program = program.on(_MULTIPROCESSORS)
    if program.zeroed:
        output.view("u1")[:] = 0
    passed: Callable[[Any], tuple[int, ...]] = (numba if engine == "numba" else numba_cuda_mlir).descriptor
    placed, words = list[GlobalArray](), list[int]()
    for number, array in enumerate((output, *inputs), 1):
        flat, first = array.reshape(-1), problem.first(case)
        name, begin = f"array {number}", number * SPACING
        placed.append(GlobalArray(name, begin, flat.nbytes, flat.view(np.uint8), shape=flat.shape, result=True))
        begins = begin + first * flat.itemsize
        words += passed(SimpleNamespace(address=begins, size=flat.size - first, dtype=flat.dtype))
    words += problem.scalars(case)
    compiled = _compiled(case, program, engine)
    parameters = {
        item.name: int(word).to_bytes(item.bytes, "little")
        for item, word in zip(compiled.parameters, words, strict=True)
    }
    launch = Launch((*program.grid, 1), (*program.block, 1), parameters, program.dynamic_bytes)
    traced = trace(compiled, launch, placed, program.function.__code__.co_filename)
    assert not traced.mistakes, [mistake.text for mistake in traced.mistakes]
    assert not traced.unfollowed, [item.text for item in traced.unfollowed]
    return output


@contextmanager
def mlir_as_ptx() -> Iterator[None]:
    """What numba-cuda-mlir compiles is its PTX."""
    compiler = pytest.importorskip("numba_cuda_mlir.compiler")

    def ptx(function: Any, signature: Any, **options: Any) -> bytes:
        options |= {"lto": False, "_compile_output": "ptx"}
        return str(compiler._compile_and_optimize(function, signature, options).ptx).encode()

    with patch.object(compiler, "compile_cubin", ptx):
        yield


def _compiled(case: Case, program: NumbaKernel, engine: str) -> PtxKernel:
    key = (engine, *variant(case, program, _CAPABILITY))
    if key not in _kernels:
        if engine == "numba":
            text = numba.kernel_ptx(case, program, _CAPABILITY)
        else:
            with mlir_as_ptx():
                text = numba_cuda_mlir.compiled(case, program, _CAPABILITY).decode()
        (_kernels[key],) = parse(text).kernels.values()
    return _kernels[key]
