"""Kernels in files of CUDA C++ and of PTX, compiled without a GPU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

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
    if not name or not (re.search(rf"\b{re.escape(_own(name))}\b", source) or '#include "' in source):
        raise unknown_kernel(path, name, declared(source))


def declared(source: str) -> list[str]:
    """The names of the kernels in CUDA C++, as far as they are written out."""
    return [*dict.fromkeys(_KERNEL.findall(source))]


def _own(name: str) -> str:
    """A name without its template's arguments and its namespace."""
    return name.partition("<")[0].rpartition("::")[2]


_NO_CODE = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
"""Comments; text in quotes, which may look like one, is the group."""
_LIST = r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"
_OF_POINTER = re.compile(r"\(\s*[*&]+\s*(\w+)\s*\)")
"""The name of a pointer to an array or a function: ``float (*rows)[32]``."""
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}|<[^<>()]*>")
_QUALIFIERS = re.compile(r"\b(?:const|volatile|struct|class|union|enum|typename|register|__\w+__|__restrict)\b")
_OF_TYPES = ["void", "bool", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "auto"]


def parameter_names(source: str, name: str, count: int) -> list[str]:
    """The parameters of a kernel as the source calls them; none where it does not name each of as many."""
    code = _NO_CODE.sub(lambda match: match[1] or " ", source)
    declaration = re.search(rf"\b{re.escape(_own(name))}\s*{_LIST}\s*\{{", code) if source else None
    if declaration is None:
        return []
    text, more = _QUALIFIERS.sub(" ", _OF_POINTER.sub(r" \1 ", declaration[1])), 1
    while more:
        text, more = _BRACKETS.subn(" ", text)
    names = [_declared_name(parameter.partition("=")[0]) for parameter in text.split(",")]
    return names if all(names) and len(names) == count == len(set(names)) else []


def _declared_name(parameter: str) -> str:
    """The name behind the type of a parameter, which is without brackets and qualifiers; "" for a type alone."""
    named = re.fullmatch(r"(.*[^\w:])([A-Za-z_]\w*)\s*", parameter, re.DOTALL | re.ASCII)
    return named[2] if named and named[1].strip() and named[2] not in _OF_TYPES else ""
