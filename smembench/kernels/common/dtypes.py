"""Kernels that take some of their problem's element types."""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case


def only(kernel: Kernel, *dtypes: str) -> Kernel:
    """The same kernel for these element types alone."""

    def unsupported(case: Case) -> str | None:
        return not_taken(case.kernel, case.dtype, dtypes) or kernel.unsupported(case)

    return replace(kernel, unsupported=unsupported)


def taken_by(kernel: Kernel) -> tuple[str, ...]:
    """The element types of its problem that a kernel takes, in its usual block; all if it takes none there."""
    problem = PROBLEMS[kernel.problem]
    (shape, *_), (parameters, *_) = problem.shapes({}), problem.combinations({})
    block = (kernel.default_blocks or problem.default_blocks)[0] if kernel.blocks else None
    case = Case(problem.name, kernel.name, kernel.kind, "", shape.m, shape.n, shape.k, block, parameters=parameters)
    found = (dtype for dtype in problem.dtypes if kernel.unsupported(replace(case, dtype=dtype)) is None)
    return tuple(found) or problem.dtypes


def not_taken(kernel: str, dtype: str, dtypes: tuple[str, ...]) -> str | None:
    """Why a kernel for these element types does not take another, or None."""
    return None if dtype in dtypes else f"{kernel} takes {' and '.join(dtypes)}, not {dtype}"
