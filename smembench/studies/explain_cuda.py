"""Explain a kernel in a file of CUDA C++ or of PTX: compile it, find it, trace it with the given arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from smembench.explain.costs import Costs
from smembench.explain.ptx.costs import Call, explain_ptx
from smembench.explain.ptx.parse import Module, alone, parse
from smembench.explain.ptx.program import PtxKernel, readable
from smembench.model.errors import UsageError
from smembench.toolchains.machine_code import MachineCode
from smembench.toolchains.machine_code import parse as parse_code
from smembench.toolchains.nvcc import compile_file
from smembench.toolchains.nvrtc import Compiled, from_ptx
from smembench.toolchains.source_lines import without_lines_of_assembler

_SUFFIXES = (".cu", ".ptx")


def is_cuda_file(target: str) -> bool:
    """Whether a kernel is named as ``kernel.cu:name`` or ``kernel.ptx:name``."""
    path, colon, name = target.partition(":")
    return (path if colon else name or target).endswith(_SUFFIXES)


def explain_cuda(target: str, call: Call, *, capability: str = "9.0", options: Sequence[str] = ()) -> Costs:
    """Explain the kernel that ``path:name`` names, launched by a call; ``options`` are compilers', such as ``-DN=4``.

    Raises:
        UsageError: for a file that cannot be read or compiled, a kernel that it does not have, and as ``explain_ptx``.
    """
    text, _, name = target.partition(":")
    path = Path(text)
    try:
        source = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "is no text"
        raise UsageError(f"{path}: {why}; give kernel.cu:name or kernel.ptx:name") from None
    if path.suffix == ".cu":
        _check_declared(path, source, name)
        compiled = compile_file(path, name, capability, options)
    elif options:
        raise UsageError(f"{options[0]}: goes with CUDA C++, which PTX no longer is")
    else:
        compiled = Compiled(without_lines_of_assembler(source), {})
    named = Named(name, path, source if path.suffix == ".cu" else "")
    return explain_compiled(compiled, named, call, capability)


class Named(NamedTuple):
    """A kernel's name, its file, and its source of CUDA C++, "" where there is only PTX."""

    name: str
    path: Path
    source: str


def explain_compiled(compiled: Compiled, named: Named, call: Call, capability: str) -> Costs:
    """Explain a kernel of compiled code, launched by a call.

    Raises:
        UsageError: for a kernel that it does not have, and as ``explain_ptx``.
    """
    name, path, source = named
    module = parse(compiled.ptx)
    kernel = _found(module, compiled.names.get(name, name), path)
    file = _file(module, kernel, path)
    if file != path and source:  # it stands in a file that this one includes
        source = file.read_text(errors="replace") if file.is_file() else source
    if source:
        _name_parameters(kernel, source, name)
    return explain_ptx(
        kernel,
        call,
        title=f"{name} in {path.name}",
        filename=str(file),
        code=(capability, _machine_code(compiled, kernel.name, capability)),
    )


def _found(module: Module, name: str, path: Path) -> PtxKernel:
    """The kernel of a name, of C++ without what C++ adds to it.

    Raises:
        UsageError: for none or several.
    """
    if name in module.kernels:
        return module.kernels[name]
    alike = [known for known in module.kernels if readable(known) == name]
    if len(alike) > 1:
        raise UsageError(f"{path}: has {len(alike)} kernels {name}: give one of {', '.join(alike)}")
    if not alike:
        raise _unknown(path, name, map(readable, module.kernels))
    return module.kernels[alike[0]]


def _file(module: Module, kernel: PtxKernel, path: Path) -> Path:
    """The file that a kernel's lines are those of; ``path`` without lines."""
    number = next((each.called_from.file for each in kernel.code if each.called_from.file), 0)
    file = Path(module.files.get(number, path))
    return path if file == path.absolute() else file


_BOUNDS = r"(?:__launch_bounds__\s*\([^)]*\)\s*)?"
_KERNEL = re.compile(rf"__global__\s+{_BOUNDS}void\s+{_BOUNDS}(\w+)\s*\(")


def _check_declared(path: Path, source: str, name: str) -> None:
    """Raise UsageError for a name that is that of no kernel, before a compiler is asked for it."""
    known = declared(source)
    if not name or (known and _own(name) not in known and '#include "' not in source):
        raise _unknown(path, name, known)


def declared(source: str) -> list[str]:
    """The names of the kernels in CUDA C++, as far as they are written out."""
    return [*dict.fromkeys(_KERNEL.findall(source))]


def _own(name: str) -> str:
    """A name without its template's arguments and its namespace."""
    return name.partition("<")[0].rpartition("::")[2]


def _unknown(path: Path, name: str, known: Iterable[str]) -> UsageError:
    asked = f"has no kernel {name!r}" if name else f"name a kernel in it, {path}:NAME"
    return UsageError(f"{path}: {asked}; it has {', '.join(sorted(known)) or 'none'}")


def _machine_code(compiled: Compiled, name: str, capability: str) -> MachineCode | None:
    if compiled.code is None:
        target = re.search(r"\.target\s+sm_\d+([af]?)", compiled.ptx)
        code = from_ptx(alone(compiled.ptx, name), capability + (target[1] if target else ""))
        return None if code is None else parse_code("", code)
    return parse_code("", compiled.code, kernel=name)


def _name_parameters(kernel: PtxKernel, source: str, name: str) -> None:
    """Call the parameters as the source does, where its declaration is found and has as many."""
    found = re.search(rf"\b{re.escape(_own(name))}\s*\(([^()]*)\)\s*\{{", source)
    if found is None:
        return
    words = [re.sub(r"\[[^\]]*\]", "", each).replace("&", " ").split() for each in found[1].split(",")]
    names = [each[-1].lstrip("*") for each in words if each]
    if len(names) == len(kernel.parameters) == len(set(names)):
        kernel.name_parameters(names)
