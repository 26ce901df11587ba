"""Kernels that take some of their problem's element types."""

from __future__ import annotations

from dataclasses import replace

from smembench.kernels.kernel import Kernel
from smembench.model.case import Case


def only(kernel: Kernel, *dtypes: str) -> Kernel:
    """The same kernel for these element types alone."""

    def unsupported(case: Case) -> str | None:
        return not_taken(case.kernel, case.dtype, dtypes) or kernel.unsupported(case)

    return replace(kernel, unsupported=unsupported)


def not_taken(kernel: str, dtype: str, dtypes: tuple[str, ...]) -> str | None:
    """Why a kernel for these element types does not take another, or None."""
    return None if dtype in dtypes else f"{kernel} takes {' and '.join(dtypes)}, not {dtype}"
