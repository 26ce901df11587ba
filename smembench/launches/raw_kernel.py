"""Python objects with CUDA C++, such as CuPy's RawKernel, compiled by NVRTC, as CuPy does."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from smembench.launches.cuda_file import Named
from smembench.toolchains.nvrtc import Compiled, compile_source


class RawKernel(NamedTuple):
    """CUDA C++, a kernel's name in it, NVRTC's options, and the Python file that has the text, None if unknown."""

    code: str
    name: str
    options: Sequence[str]
    file: Path | None = None


def raw_kernel(value: Any, name: str = "", file: Path | None = None) -> RawKernel | None:
    """The kernel of an object with ``code``, ``options`` and ``name``, as CuPy's RawKernel has; else None.

    CuPy's RawModule has many kernels, and the ``name`` of one is to be given.
    """
    if isinstance(value, RawKernel):
        return value
    code, own = source_of(value), getattr(value, "name", None)
    if not code or bool(name) == isinstance(own, str):
        return None
    library = sys.modules.get(type(value).__module__.partition(".")[0])
    headers = [Path(folder, "_core", "include") for folder in getattr(library, "__path__", ())]
    paths = [f"-I{folder}" for root in headers for folder in (root, *root.glob("cupy/_cccl/*")) if folder.is_dir()]
    return RawKernel(code, name or str(own), [*value.options, *paths], file)


def source_of(value: Any) -> str:
    """The CUDA C++ of an object of CuPy's, "" of anything else."""
    code = getattr(value, "code", None)
    return code if isinstance(code, str) and hasattr(value, "options") and not isinstance(value, type) else ""


def compiled_source(kernel: RawKernel, capability: str) -> tuple[Compiled, Named]:
    """The kernel compiled by NVRTC; its lines are those of its Python file if that has the source once.

    Raises:
        UsageError: for what does not compile.
    """
    code, path = kernel.code, kernel.file
    text = path.read_text(errors="replace") if path else ""
    if path and text.count(code) == 1:
        code = f'#line {text[: text.index(code)].count(chr(10)) + 1} "{path}"\n{code}'
    else:
        path = Path(f"source of {kernel.name}")
        linecache.cache[str(path)] = len(code), None, code.splitlines(keepends=True), str(path)
    compiled = compile_source(code, path, capability, [kernel.name], kernel.options)
    return compiled, Named(kernel.name, path, code)
