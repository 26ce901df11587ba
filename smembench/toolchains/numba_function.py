"""Machine code and PTX of any Numba kernel, for the types of a launch's arguments and without a GPU.

Numba is imported where it is used, so that listing the toolchains is quick.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from inspect import getsourcelines
from types import FunctionType
from typing import Any

from smembench.kernels.rebound import Rebound
from smembench.model.errors import UsageError
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


def function_ptx(function: Any, arguments: Sequence[object], capability: str) -> str:
    """NVVM's PTX of a kernel, with its lines.

    Raises:
        UsageError: for what does not compile, with the line where it is known, and where a library is missing.
    """
    from smembench.kernels.numba_cuda import typeof

    plain = getattr(function, "py_func", function)
    major, minor = map(int, capability.split("."))
    try:
        types = tuple(map(typeof, arguments))
        return compiled(_inlining(plain), types, (major, minor), at_link_time=False, unsigned=False).decode()
    except Exception as error:  # a missing library or the compiler raises its own
        raise UsageError(f"{plain.__name__}{_reason(error, plain)}") from None


_INNER = re.compile(r"Numba\w*Error: (.+)|>>> (.+)")
"""What says most in a report of overloads that Numba has tried: why one was refused, or what was called."""
_NEEDS_GPU = "it uses what Numba compiles only where there is a GPU, such as functions of NumPy"
_NOT_CONSTANT = (
    "the shape of a shared or local array has to be constant: give numbers, such as (32, 33), or global names"
)


def _reason(error: Exception, function: FunctionType) -> str:
    """The line, if Numba tells it or the name that it does not know, and the reason."""
    text = str(error)
    found = re.search(r'File "[^"]*", line (\d+)', text)
    line = found[1] if found else ""
    if not line and (name := re.search(r"(?:name|attribute) '(\w+)'", text)):
        source, begin = getsourcelines(function)
        line = next((str(begin + at) for at, each in enumerate(source) if re.search(rf"\b{name[1]}\b", each)), "")
    inner = sorted(_INNER.findall(text), reverse=True)
    lines = [each for each in text.splitlines() if each.strip() and not each.startswith("Failed in ")]
    said = next(filter(None, inner[0])) if inner else "".join(lines[:1])
    if said.startswith("array("):
        said = _NOT_CONSTANT
    if type(error).__name__ == "CudaSupportError":
        said = _NEEDS_GPU
    return f"{f', line {line}' if line else ''}: Numba does not compile it: {said or type(error).__name__}"


def _inlining(function: FunctionType) -> FunctionType:
    """The function with its device functions in a form that is inlined."""
    from smembench.kernels.numba_cuda import device

    def other(value: Any, name: str) -> Any:
        of_device = getattr(value, "targetoptions", {}).get("device") and hasattr(value, "py_func")
        return device(copies.function(value.py_func)) if of_device else value

    copies = Rebound(other)
    return copies.function(function)
