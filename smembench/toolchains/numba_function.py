"""PTX and machine code of any Numba kernel, for the types of a launch's arguments and without a GPU.

Numba is imported where it is used, so that listing the toolchains is quick.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from inspect import getsourcelines
from types import FunctionType
from typing import Any, NamedTuple

from smembench.kernels.rebound import Rebound
from smembench.model.errors import UsageError
from smembench.toolchains.machine_code import MachineCode, parse
from smembench.toolchains.numba import by_llvm_alone, link, linked_ptx
from smembench.toolchains.nvvm import compiled

_OPTIONS = ("debug", "fastmath", "opt", "launch_bounds")
"""Options of ``cuda.jit`` that ``cuda.compile`` takes."""
_DEVICE_RUNTIME = "cudaCG"
"""The prefix of CUDA's functions that Numba calls to wait for all blocks of a grid."""


class NumbaCode(NamedTuple):
    """A kernel compiled for a launch: PTX with its lines, and the machine code of that.

    ``machine_code`` is None of a kernel that needs CUDA's device runtime, with which it is linked for a launch alone,
    and without NVIDIA's compilers.
    """

    ptx: str
    machine_code: MachineCode | None


def function_code(function: Any, arguments: Sequence[object], capability: str) -> NumbaCode:
    """A kernel as a process compiles it that does not import this package.

    Device functions of ``cuda.jit``, which Numba compiles only for a GPU that is there, are inlined.

    Args:
        function: with or without ``cuda.jit``, whose options it then has.
        arguments: numbers, and arrays of the launch's dimensions and types.
        capability: the compute capability.

    Raises:
        UsageError: for what does not compile, with the line where it is known, and where a library is missing.
    """
    from smembench.kernels.numba_cuda import typeof

    plain = getattr(function, "py_func", function)
    options = getattr(function, "targetoptions", {})
    if options.get("link"):
        raise UsageError(f"{plain.__name__}: links other files (link=…), which is not traced")
    by_llvm = by_llvm_alone(plain.__name__)
    at_link_time = options.get("lto", True) and not by_llvm
    major, minor = map(int, capability.split("."))
    arch = f"{major}{minor}"
    try:
        code = compiled(
            _inlining(plain),
            tuple(map(typeof, arguments)),
            (major, minor),
            at_link_time=at_link_time,
            by_llvm=by_llvm,
            unsigned=False,
            **{name: options[name] for name in _OPTIONS if name in options},
        )
        ptx = linked_ptx(code, arch) if at_link_time else code.decode()
    except UsageError:
        raise
    except Exception as error:  # the compilers raise their own
        raise UsageError(f"{plain.__name__}{reason(error, plain)}") from None
    if by_llvm or _DEVICE_RUNTIME in ptx:
        return NumbaCode(ptx, None)
    linked = link(code, arch, at_link_time=at_link_time, max_registers=options.get("max_registers"))
    return NumbaCode(ptx, parse(*linked))


_INNER = re.compile(r"Numba\w*Error: (?!Failed in )(.+)|>>> (.+)")
"""The informative part of a report of overloads that Numba has tried: why one was refused, or what was called."""
_MESSAGES = {"RecursionError": "it has a device function that calls itself"}
"""Clearer messages by type of the error."""
_NOT_CONSTANT = (
    "the shape of a shared or local array has to be constant: give numbers, such as (32, 33), or global names"
)


def reason(error: Exception, function: Callable[..., Any]) -> str:
    """The line, if Numba reports it or an unknown name, and the reason."""
    text = str(error)
    place = re.search(r'File "[^"]*", line (\d+)', text)
    line = place[1] if place else ""
    if not line and (name := re.search(r"(?:name|attribute) '(\w+)'", text)):
        source, begin = getsourcelines(function)
        line = next((str(begin + at) for at, row in enumerate(source) if re.search(rf"\b{name[1]}\b", row)), "")
    inner = sorted(_INNER.findall(text), reverse=True)
    lines = [row for row in text.splitlines() if row.strip() and not row.startswith("Failed in ")]
    message = next(filter(None, inner[0])) if inner else "".join(lines[:1])
    if message.startswith("array("):
        message = _NOT_CONSTANT
    message = _MESSAGES.get(type(error).__name__, message)
    return f"{f', line {line}' if line else ''}: Numba does not compile it: {message or type(error).__name__}"


def _inlining(function: FunctionType) -> FunctionType:
    """The function with its device functions in a form that is inlined."""
    from smembench.kernels.numba_cuda import device

    def other(value: Any, name: str) -> Any:
        of_device = getattr(value, "targetoptions", {}).get("device") and hasattr(value, "py_func")
        return device(copies.function(value.py_func)) if of_device else value

    copies = Rebound(other)
    return copies.function(function)
