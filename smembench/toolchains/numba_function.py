"""Machine code of any Numba kernel, for the types of a launch's arguments and without a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from smembench.kernels.numba_cuda import cuda, typeof
from smembench.toolchains.numba import link

_OPTIONS = ("debug", "fastmath", "opt", "launch_bounds")
"""Those of ``cuda.jit`` that ``cuda.compile`` takes."""


def function_code(
    function: Any, arguments: Sequence[object], capability: str, *, lines: bool = False
) -> tuple[str, bytes]:
    """ptxas's report and the machine code, as a process compiles the kernel that does not import this package.

    Args:
        function: with or without ``cuda.jit``, whose options it then has.
        arguments: numbers, and arrays of the launch's dimensions and types.
        lines: with line information.

    Raises:
        Exception: a missing library's or the compiler's own; Numba compiles device functions of ``cuda.jit`` only
            where there is a GPU.
    """
    from smembench.kernels.intrinsics.unsigned import suspended  # cannot be imported where Numba simulates

    options = getattr(function, "targetoptions", {})
    if options.get("link"):
        raise LookupError("other files are linked")
    at_link_time = options.get("lto", True)
    major, minor = map(int, capability.split("."))
    with warnings.catch_warnings(), suspended():
        warnings.simplefilter("ignore")  # about a missing nvJitLink
        code, _ = cuda.compile(
            getattr(function, "py_func", function),
            tuple(map(typeof, arguments)),
            device=False,
            abi="numba",
            output="ltoir" if at_link_time else "ptx",
            cc=(major, minor),
            lineinfo=lines,
            **{name: options[name] for name in _OPTIONS if name in options},
        )
        return link(
            code.encode() if isinstance(code, str) else bytes(code),
            f"{major}{minor}",
            at_link_time=at_link_time,
            lines=lines,
            max_registers=options.get("max_registers"),
        )
