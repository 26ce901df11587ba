"""Explain a kernel in anybody's file: import the file, find the function, trace it with the given arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import reduce
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock, get_ident
from types import ModuleType
from typing import Any

from smembench.explain.foreign_cuda import plain_function
from smembench.kernels.files import importable
from smembench.kernels.numba_cuda import cuda
from smembench.model.errors import UsageError
from smembench.toolchains.triton_function import inner, is_triton

_INSTALLED = {"triton": "triton", "cupy": "cupy-cuda13x"}
"""How to install what kernels are written with that this package does without."""


def is_in_file(kernel: str) -> bool:
    """Whether a kernel is named as ``path.py:function``; the names of the package's kernels have no colon."""
    return ":" in kernel or kernel.endswith(".py")


def kernel_in(target: str) -> Any:
    """The kernel that ``path.py:name`` names: a function for Numba or Triton, or one of CuPy's with its source.

    Its file is imported: what it does at import, it does here. Signatures of ``cuda.jit`` are ignored, since compiling
    for them needs a GPU.

    Raises:
        UsageError: for a file that cannot be imported, and without such a kernel.
    """
    path_text, colon, name = target.partition(".py:")
    path = Path(f"{path_text}.py" if colon else target)
    module = _imported(path)
    found = sorted(known for known, value in vars(module).items() if _is_kernel(value, module))
    if not name:
        raise UsageError(f"{path}: name a function in it, {path}:NAME; it has {', '.join(found) or 'none'}")
    try:
        kernel = reduce(getattr, name.split("."), module)
    except AttributeError:
        kernel = None
    if not _is_kernel(kernel):
        raise UsageError(f"{path}: has no function {name!r}; it has {', '.join(found) or 'none'}")
    return kernel


def _is_kernel(value: Any, module: ModuleType | None = None) -> bool:
    """Whether a value is a kernel, in a module one that is defined there."""
    if is_triton(value):
        return module is None or inner(value).__module__ == module.__name__
    plain = plain_function(value)
    return plain is not None and (module is None or plain.__module__ == module.__name__)


def _imported(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path}: no such file; give path.py:function")
    spec = spec_from_file_location(f"explained_{path.stem}", path)  # a name of its own: it may be called random.py
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: is no Python file; give path.py:function")
    module = sys.modules[spec.name] = module_from_spec(spec)  # where dataclasses look for it
    try:
        with redirect_stdout(sys.stderr), _without_signatures(), importable(path):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        if isinstance(error, ModuleNotFoundError) and error.name in _INSTALLED:
            said = f"it needs {error.name}: pip install {_INSTALLED[error.name]}"
        if type(error).__module__.startswith(("numba.cuda", "numba_cuda", "cuda.")):
            said = (
                "it uses a GPU when it is imported, and there is none to use; put launches and copies under "
                f'if __name__ == "__main__" ({said})'
            )
        raise UsageError(f"{path}: cannot be imported: {said}") from None
    return module


_importing = Lock()


@contextmanager
def _without_signatures() -> Iterator[None]:
    """Let ``cuda.jit`` compile at the first launch, whatever its signature, for what this thread imports."""
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
