"""Machine code of any Numba kernel, for the types of a launch's arguments and without a GPU.

Numba is imported where it is used, so that listing the toolchains is quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

from smembench.kernels.rebound import Rebound
from smembench.toolchains.numba import link
from smembench.toolchains.nvvm import compiled

_OPTIONS = ("debug", "fastmath", "opt", "launch_bounds")
"""Those of ``cuda.jit`` that ``cuda.compile`` takes."""


def function_code(function: Any, arguments: Sequence[object], capability: str) -> tuple[str, bytes]:
    """ptxas's report and the machine code, as a process compiles it that does not import this package, with its lines.

    Device functions of ``cuda.jit``, which Numba compiles only for a GPU that is there, are inlined.

    Args:
        function: with or without ``cuda.jit``, whose options it then has.
        arguments: numbers, and arrays of the launch's dimensions and types.

    Raises:
        Exception: a missing library's or the compiler's own.
    """
    from smembench.kernels.numba_cuda import typeof

    options = getattr(function, "targetoptions", {})
    if options.get("link"):
        raise LookupError("other files are linked")
    at_link_time = options.get("lto", True)
    major, minor = map(int, capability.split("."))
    code = compiled(
        _inlining(getattr(function, "py_func", function)),
        tuple(map(typeof, arguments)),
        (major, minor),
        at_link_time=at_link_time,
        unsigned=False,
        **{name: options[name] for name in _OPTIONS if name in options},
    )
    return link(code, f"{major}{minor}", at_link_time=at_link_time, max_registers=options.get("max_registers"))


def _inlining(function: FunctionType) -> FunctionType:
    """The function with its device functions in a form that is inlined."""
    from smembench.kernels.numba_cuda import device

    def other(value: Any, name: str) -> Any:
        of_device = getattr(value, "targetoptions", {}).get("device") and hasattr(value, "py_func")
        return device(copies.function(value.py_func)) if of_device else value

    copies = Rebound(other)
    return copies.function(function)
