"""Machine code and PTX of any ``triton.jit`` function, for the types of a launch's arguments and without a GPU."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Collection, Mapping
from contextlib import redirect_stdout
from typing import Any, NamedTuple

from smembench.model.errors import UsageError
from smembench.model.hardware import WARP
from smembench.toolchains.source_lines import without_lines_of_assembler

_DIVISIBLE = [["tt.divisibility", 16]]


class CompiledFunction(NamedTuple):
    """A compiled function: PTX, machine code, threads of a block, bytes of shared memory, and of scratch memory."""

    ptx: str
    code: bytes
    threads: int
    shared_bytes: int
    scratch_bytes: int


def is_triton(value: Any) -> bool:
    """True if a value is a function of ``triton.jit``, also inside of ``triton.autotune`` or ``heuristics``."""
    return type(value).__module__.partition(".")[0] == "triton" and hasattr(inner(value), "arg_names")


def inner(function: Any) -> Any:
    """The function of ``triton.jit`` in what ``triton.autotune`` and ``triton.heuristics`` made of it."""
    while not hasattr(function, "params") and hasattr(function, "fn"):
        function = function.fn
    return function


def constant(value: Any) -> Any:
    """A value; Triton's own for text such as ``tl.float16``.

    Raises:
        UsageError: if Triton has no such name.
    """
    if not isinstance(value, str) or not value.startswith("tl."):
        return value
    import triton.language as tl

    try:
        return getattr(tl, value.removeprefix("tl."))
    except AttributeError:
        raise UsageError(f"{value}: triton.language has no such name") from None


def compile_function(
    function: Any,
    types: Mapping[str, str],
    constants: Mapping[str, Any],
    divisible: Collection[str],
    capability: str,
    options: Mapping[str, int],
) -> CompiledFunction:
    """Compile a function as its first launch does. Triton keeps what it compiled on disk.

    Args:
        function: of ``triton.jit``.
        types: Triton's types of all parameters, ``constexpr`` of those in ``constants``.
        constants: their values.
        divisible: the parameters with a multiple of 16.
        capability: the compute capability, such as 9.0.
        options: Triton's own, such as ``num_warps``.

    Raises:
        UsageError: for what does not compile.
    """
    with warnings.catch_warnings(), redirect_stdout(sys.stderr):  # of static_print
        warnings.simplefilter("ignore")  # about defaults of a later version
        try:
            done, source, target = built(function, types, constants, divisible, capability, options)
        except Exception as error:
            raise UsageError(f"{function.__name__}{_reason(function, error)}") from None
        ptx, code = _with_lines(done, source, target, options)
    figures = done.metadata
    counted = re.search(r"\.(?:req|max)ntid\s+(\d+)", ptx)
    threads = int(counted[1]) if counted else figures.num_warps * WARP
    return CompiledFunction(ptx, bytes(code), threads, figures.shared, getattr(figures, "global_scratch_size", 0))


def built(
    function: Any,
    types: Mapping[str, str],
    constants: Mapping[str, Any],
    divisible: Collection[str],
    capability: str,
    options: Mapping[str, int],
) -> tuple[Any, Any, Any]:
    """Triton's ``CompiledKernel``, its source and its target; the arguments are those of ``compile_function``."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = function.arg_names
    source = getattr(function, "ASTSource", ASTSource)(
        function,
        {name: types[name] for name in names},
        dict(constants),
        {(names.index(name),): _DIVISIBLE for name in divisible},
    )
    target = GPUTarget("cuda", int(capability.replace(".", "")), WARP)
    return triton.compile(source, target=target, options=dict(options)), source, target


def _with_lines(done: Any, source: Any, target: Any, options: Mapping[str, int]) -> tuple[str, Any]:
    """PTX and machine code in which loads and stores, which Triton writes as inline assembler, have their lines."""
    ptx = without_lines_of_assembler(done.asm["ptx"])
    if ptx == done.asm["ptx"]:
        return ptx, done.asm["cubin"]
    try:
        from triton.compiler import make_backend

        backend, stages = make_backend(target), dict[str, Any]()
        backend.add_stages(stages, backend.parse_options(dict(options)), source.language)
        return ptx, stages["cubin"](ptx, {})
    except Exception:  # this is no interface that versions of Triton keep
        return done.asm["ptx"], done.asm["cubin"]


def _reason(function: Any, error: BaseException) -> str:
    """The line of an error of Triton's compiler, if it has one, and its message."""
    place = ""
    while True:
        first = getattr(function, "def_file_line_number", None)
        if first is not None and (line := getattr(getattr(error, "node", None), "lineno", None)):
            place = f", line {first + line - 1}"
        if error.__cause__ is None:
            break
        error = error.__cause__
    message = getattr(error, "error_message", None) or str(error) or type(error).__name__
    return f"{place}: does not compile: {' '.join(message.split())}"
