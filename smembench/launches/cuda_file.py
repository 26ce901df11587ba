"""Kernels in files of CUDA C++ and of PTX, compiled without a GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from smembench.launches.cuda_parameters import own_name
from smembench.launches.ptx_entry import listed, unknown_kernel
from smembench.model.errors import UsageError
from smembench.toolchains.nvcc import compile_file, text_of
from smembench.toolchains.nvrtc import Compiled
from smembench.toolchains.source_lines import without_lines_of_assembler

_SUFFIXES = (".cu", ".ptx")


class Named(NamedTuple):
    """A kernel's name, its file, and its source of CUDA C++, "" where there is only PTX."""

    name: str
    path: Path
    source: str


def is_cuda_file(target: str) -> bool:
    """True if a kernel is named as ``kernel.cu:name`` or ``kernel.ptx:name``."""
    path, colon, name = target.partition(":")
    return (path if colon else name or target).endswith(_SUFFIXES)


def compiled_kernel(target: str, capability: str, options: Sequence[str] = ()) -> tuple[Compiled, Named]:
    """The kernel that ``path:name`` names, compiled; ``options`` are the compiler's, such as ``-DN=4``.

    Raises:
        UsageError: for a file that cannot be read or compiled, and a kernel that it does not have.
    """
    text, _, name = target.partition(":")
    path = Path(text)
    try:
        source = text_of(path)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "is no text"
        raise UsageError(f"{path}: {why}; give kernel.cu:name or kernel.ptx:name") from None
    if path.suffix != ".cu":
        if options:
            raise UsageError(f"{options[0]}: goes with CUDA C++, which PTX no longer is")
        return Compiled(without_lines_of_assembler(source), {}), Named(name, path, "")
    _check_declared(path, source, name)
    return _compiled(path, source, name, capability, tuple(options)), Named(name, path, source)


@lru_cache(maxsize=64)
def _compiled(path: Path, source: str, name: str, capability: str, options: tuple[str, ...]) -> Compiled:
    """A kernel of a file with this source, compiled once for several launches."""
    try:
        return compile_file(path, name, capability, options)
    except UsageError as error:
        of_name = str(error).startswith(f"{path}: {name}: ")
        raise UsageError(f"{error}{listed(declared(source)) if of_name else ''}") from None


_ATTRIBUTES = r"(?:(?:static|inline|__\w+__)\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*)*"
_KERNEL = re.compile(rf"__global__\s+{_ATTRIBUTES}void\s+{_ATTRIBUTES}(\w+)\s*\(")


def _check_declared(path: Path, source: str, name: str) -> None:
    """Raise UsageError for a name that the source does not have, before a compiler is asked for it."""
    if not name or not (re.search(rf"\b{re.escape(own_name(name))}\b", source) or '#include "' in source):
        raise unknown_kernel(path, name, declared(source))


def declared(source: str) -> list[str]:
    """The names of the kernels in CUDA C++, as far as they are written out."""
    return [*dict.fromkeys(_KERNEL.findall(source))]
