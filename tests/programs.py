"""Kernels by name, cases for them, their programs, plans, and whether an output is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import CudaCKernel, NumbaKernel
from smembench.kernels.registry import find, kernel_of, kernels
from smembench.model.case import Block, Case
from smembench.model.device import Limits
from smembench.model.formats import NARROW, produced, rounded, widened
from smembench.run.config import from_flags
from smembench.run.plan import Plan, Planned

if TYPE_CHECKING:
    from smembench.model.problem import Array

NUMBA = [kernel for kernel in kernels() if (kernel.kind, kernel.compiler) == ("cuda", "numba")]
RAGGED = [(1, 1, 1), (5, 7, 3), (9, 4, 6), (4, 8, 17), (1, 37, 2)]
"""m, n and k: one element, ragged both ways, whole blocks with a ragged k, a row of several blocks."""
SMALL_BLOCKS = [Block(4, 4), Block(8, 2), Block(2, 8), Block(3, 3)]
PORTS = [kernel for kernel in kernels() if kernel.compiler == "nvrtc"]


def cuda_kernel(problem: str, name: str) -> Kernel:
    kernel = find(problem, name, "cuda")
    assert kernel is not None
    return kernel


def dtypes_of(kernel: Kernel) -> tuple[str, ...]:
    """The element types that a kernel takes."""
    return kernel.dtypes or PROBLEMS[kernel.problem].dtypes


def first_dtype(kernel: Kernel) -> str:
    return dtypes_of(kernel)[0]


def case_of(
    kernel: Kernel,
    m: int,
    n: int,
    k: int | None = None,
    dtype: str = "float32",
    block: Block | None = None,
    stride: int | None = None,
) -> Case:
    """A case of a kernel in its default block, k if the problem has one, the narrowest pad, the usual layout."""
    problem = PROBLEMS[kernel.problem]
    if not kernel.blocks:
        block = None
    elif block is None:
        block = (kernel.default_blocks or problem.default_blocks)[0]
    k = k if "k" in {axis.name for axis in problem.sizes} else None
    device, pad = ("cpu" if kernel.kind == "cpu" else "cuda:0"), None if kernel.pad is None else int(kernel.pad)
    case = Case(problem.name, kernel.name, device, dtype, m, n, k, block, pad, stride=stride, compiler=kernel.compiler)
    return replace(case, b_layout=problem.usual_b_layout(dtype))


def ragged(kernel: Kernel) -> list[Case]:
    """Those at ragged sizes that a kernel takes, for every element type of its problem, small block and two pads."""
    pads = [None, 2] if kernel.pad else [None]
    cases = [
        replace(case, pad=case.pad if pad is None else pad)
        for dtype, size, block, pad in product(PROBLEMS[kernel.problem].dtypes, RAGGED, SMALL_BLOCKS, pads)
        if (kernel.blocks or block == SMALL_BLOCKS[0]) and (case := case_of(kernel, *size, dtype, block))
    ]
    return [case for case in cases if not kernel.refusal(case) and isinstance(kernel.build(case), NumbaKernel)]


def numba_kernel(case: Case) -> NumbaKernel:
    program = kernel_of(case).build(case)
    assert isinstance(program, NumbaKernel)
    return program


def cuda_c_kernel(case: Case) -> CudaCKernel:
    program = kernel_of(case).build(case)
    assert isinstance(program, CudaCKernel)
    return program


def planned(*sweeps: dict[str, object]) -> list[Planned]:
    """The plan of these sweeps on a machine with a GPU, which auto and cuda mean."""
    free = {"cuda:0": Limits(free_bytes=2**34), "cpu": Limits(free_bytes=2**34)}
    names = dict.fromkeys(("auto", "cuda:0"), "cuda:0")
    return list(Plan.of(from_flags({"sweep": list(sweeps)}), names).cases(free))


def multiplied(dtype: str, a: Array, b: Array) -> Array:
    """The product of matrices of this element type; of narrow ones by float32."""
    if dtype not in NARROW:
        product: Array = a @ b
        return product
    return rounded(widened(a, dtype, "float32") @ widened(b, dtype, "float32"), produced(dtype))


def assert_right(
    case: Case, run: Callable[[tuple[Array, ...]], Array], computes: str | None = None, seed: int = 1
) -> None:
    """Hold what ``run`` makes of a case's inputs to the reference of its kernel, or to that of ``computes``."""
    problem = PROBLEMS[case.problem]
    inputs = problem.inputs(case, seed)
    reference = problem.reference(case, inputs, kernel_of(case).computes if computes is None else computes)
    verdict = problem.check(case, reference, run(inputs))
    assert verdict.passed, f"{case.id}: {verdict.detail}"
