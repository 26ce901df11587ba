"""Programs of kernels whose kind a test knows."""

from __future__ import annotations

from smembench.kernels.program import CudaCKernel, NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import Case
from smembench.model.problem import Problem


def numba_kernel(kernel: Kernel, case: Case) -> NumbaKernel:
    program = kernel.build(case)
    assert isinstance(program, NumbaKernel)
    return program


def cuda_c_kernel(kernel: Kernel, case: Case) -> CudaCKernel:
    program = kernel.build(case)
    assert isinstance(program, CudaCKernel)
    return program


def size_names(problem: Problem) -> list[str]:
    """Names of the sizes that a problem takes, such as ``k`` of a product."""
    return [axis.name for axis in problem.sizes]
