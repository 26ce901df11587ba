"""Numba kernels compiled by numba-cuda-mlir as they are."""

from __future__ import annotations

from dataclasses import fields, replace

from smembench.kernels.kernel import Kernel
from smembench.kernels.program import MlirKernel, NumbaKernel
from smembench.model.case import Case


def port(kernel: Kernel) -> Kernel:
    """The same Python function, grid and block for numba-cuda-mlir."""

    def build(case: Case) -> MlirKernel:
        program = kernel.build(case)
        assert isinstance(program, NumbaKernel), kernel.name
        return MlirKernel(**{field.name: getattr(program, field.name) for field in fields(program)})

    return replace(kernel, compiler="mlir", build=build)
