"""What NVVM makes of a Numba kernel, without a GPU: LTO-IR or PTX with line information.

Numba's own line information tells NVVM where variables are, too, as for a debugger, and with that NVVM orders the
instructions of some kernels otherwise. Lines alone change nothing: the code is what a launch runs. Numba also gives an
inlined helper's lines as the kernel's first if their numbers are smaller, though they are another file's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def compiled(
    function: Callable[..., None],
    signature: tuple[Any, ...],
    capability: tuple[int | str, ...],
    *,
    at_link_time: bool,
    **options: Any,
) -> bytes:
    """LTO-IR for the link-time optimiser, or PTX.

    Args:
        signature: Numba's types of the arguments.
        capability: such as (9, 0), or (9, 0, "a").
        options: of ``cuda.compile``.

    Raises:
        Exception: a missing library's or the compiler's own.
    """
    from smembench.kernels.numba_cuda import cuda

    output = "ltoir" if at_link_time else "ptx"
    with _lines_alone():
        code, _ = cuda.compile(
            function,
            signature,
            device=False,
            abi="numba",
            output=output,
            cc=capability,
            lineinfo=not options.get("debug"),
            **options,
        )
    return code.encode() if isinstance(code, str) else bytes(code)


@contextmanager
def _lines_alone() -> Iterator[None]:
    from numba.cuda.debuginfo import CUDADIBuilder
    from numba.cuda.lowering import CUDALower
    from numba.cuda.target import CUDATargetContext

    class Lines(CUDADIBuilder):  # type: ignore[misc]
        def mark_variable(self, *described: Any, **more: Any) -> None:
            """Leave a variable out."""

        update_variable = mark_variable

    usual = CUDATargetContext.DIBuilder
    CUDATargetContext.DIBuilder = Lines
    CUDALower._adjust_line_if_prologue = lambda _, line: line
    try:
        yield
    finally:
        CUDATargetContext.DIBuilder = usual
        del CUDALower._adjust_line_if_prologue
