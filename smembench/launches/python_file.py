"""Kernels in Python files: import the file, look up a name in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from functools import reduce
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock, get_ident
from traceback import extract_tb
from types import FunctionType, ModuleType
from typing import Any

from smembench.kernels.files import importable
from smembench.launches.cuda_file import declared
from smembench.launches.raw_kernel import raw_kernel, source_of
from smembench.model.errors import UsageError
from smembench.toolchains.triton_function import inner, is_triton

_INSTALLED = {"triton": "triton", "cupy": "cupy-cuda13x"}
"""Packages to install for libraries of kernels that this package does without."""


def plain_function(value: Any) -> FunctionType | None:
    """The Python function of a kernel, of a device function or of a function; None for anything else."""
    function = getattr(value, "py_func", None) or getattr(value, "fn", None) or value
    return function if isinstance(function, FunctionType) else None


def is_in_file(kernel: str) -> bool:
    """True if a kernel is named as ``path.py:function``; the names of the package's kernels have no colon."""
    return ":" in kernel or kernel.endswith(".py")


def kernel_in(target: str) -> Any:
    """The kernel that ``path.py:name`` names: a function for Numba or Triton, or CUDA C++ of CuPy's.

    ``path.py:module.kernel`` is a kernel in a RawModule of CuPy's, and ``path.py:Class.function`` one in a class.

    Its file is imported: what it does at import, it does here. Signatures of ``cuda.jit`` are ignored, because
    compiling for them needs a GPU.

    Raises:
        UsageError: for a file that cannot be imported, and without such a kernel.
    """
    return _value_in(target, lambda value: raw_kernel(value) is not None or plain_function(inner(value)) is not None)


def callable_in(target: str) -> Any:
    """The kernel or the function, such as a reference, that ``path.py:name`` names; raises as ``kernel_in``."""
    return _value_in(target, lambda value: raw_kernel(value) is not None or callable(value))


def is_kernel(value: Any) -> bool:
    """True if a value is a kernel of CuPy's, Triton's or Numba's, which takes no NumPy arrays."""
    return raw_kernel(value) is not None or is_triton(value) or hasattr(value, "py_func")


def _value_in(target: str, fits: Callable[[Any], bool]) -> Any:
    path_text, colon, name = target.partition(".py:")
    path = Path(f"{path_text}.py" if colon else target)
    module = _imported(path)
    names = sorted(kernel for known, value in vars(module).items() for kernel in _kernels(known, value, module))
    if not name:
        raise UsageError(f"{path}: name a function in it, {path}:NAME; it has {', '.join(names) or 'none'}")
    value = _named(module, name, path)
    if not fits(value):
        raise UsageError(f"{path}: has no function {name!r}; it has {', '.join(names) or 'none'}")
    return value


def _named(module: ModuleType, name: str, path: Path) -> Any:
    """The value of a name in a module; behind a RawModule of CuPy's it names a kernel in its source."""
    first, _, rest = name.partition(".")
    value = getattr(module, first, None)
    if (raw := raw_kernel(value, rest, path)) is not None:
        return raw
    try:
        return reduce(getattr, filter(None, rest.split(".")), value)
    except AttributeError:
        return None


def _kernels(name: str, value: Any, module: ModuleType) -> Sequence[str]:
    """The names of the kernels in a module that a value of it is or has."""
    plain = plain_function(inner(value))
    if raw_kernel(value) is not None or (plain is not None and plain.__module__ == module.__name__):
        return [name]
    return [f"{name}.{kernel}" for kernel in declared(source_of(value))]


def _imported(path: Path) -> ModuleType:
    if not path.is_file():
        file = Path(str(path).partition(":")[0])
        why = f"{file}: is of a kind that is not read" if file.is_file() else f"{path}: no such file"
        raise UsageError(f"{why}; give path.py:name, path.cu:name or path.ptx:name")
    spec = spec_from_file_location(f"explained_{path.stem}", path)  # a name of its own: it may be called random.py
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: is no Python file; give path.py:name, path.cu:name or path.ptx:name")
    module = sys.modules[spec.name] = module_from_spec(spec)  # where dataclasses look for it
    try:
        source = path.read_bytes()
        signatures = _without_signatures() if b"numba" in source else nullcontext()  # others do without Numba
        with redirect_stdout(sys.stderr), signatures, importable(path):
            # Not by the loader, which writes bytecode beside the file, and takes it for a file edited in that second.
            exec(compile(source, str(spec.origin), "exec", dont_inherit=True), vars(module))
    except (Exception, SystemExit) as error:
        message = " ".join(f"{type(error).__name__}: {error}".split())
        if isinstance(error, ModuleNotFoundError) and error.name in _INSTALLED:
            message = f"it needs {error.name}: pip install {_INSTALLED[error.name]}"
        if type(error).__module__.startswith(("numba.cuda", "numba_cuda", "cuda.")):
            message = (
                "it uses a GPU when it is imported, and there is none to use; put launches and copies under "
                f'if __name__ == "__main__" ({message})'
            )
        raise UsageError(f"{path}{_line(error, str(spec.origin))}: cannot be imported: {message}") from None
    return module


def _line(error: BaseException, file: str) -> str:
    """The innermost line of a file in which an error was raised, ", line 7"; "" if it was not raised there."""
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
    return f", line {lines[-1]}" if lines else ""


_importing = Lock()


@contextmanager
def _without_signatures() -> Iterator[None]:
    """Let ``cuda.jit`` compile at the first launch, whatever its signature, for what this thread imports."""
    from smembench.kernels.numba_cuda import INSTALLED, cuda

    if not INSTALLED:  # a file of Triton's or CuPy's does without
        yield
        return
    jit: Callable[..., Any] = cuda.jit
    importer = get_ident()

    def lazily(function_or_signature: Any = None, *arguments: Any, **options: Any) -> Any:
        if get_ident() != importer:
            return jit(function_or_signature, *arguments, **options)
        function = function_or_signature if callable(function_or_signature) else None
        options.pop("argtypes", None)
        return jit(function, **options)

    with _importing:
        cuda.jit = lazily
        try:
            yield
        finally:
            cuda.jit = jit
