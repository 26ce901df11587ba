"""Explain a kernel in a file of CUDA C++ or of PTX, or a Python object with CUDA C++: trace its PTX."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from smembench.explain.costs import Costs
from smembench.explain.ptx.costs import Call, explain_ptx
from smembench.explain.ptx.parse import Module, alone, parse
from smembench.explain.ptx.program import PtxKernel
from smembench.launches.cuda_file import Named, compiled_kernel
from smembench.launches.cuda_parameters import check_data, parameter_names
from smembench.launches.ptx_entry import entry_named
from smembench.launches.raw_kernel import RawKernel, compiled_source
from smembench.model.errors import UsageError
from smembench.toolchains.machine_code import MachineCode
from smembench.toolchains.machine_code import parse as parse_code
from smembench.toolchains.nvrtc import Compiled, from_ptx


def explain_cuda(target: str, call: Call, *, capability: str, options: Sequence[str]) -> Costs:
    """Explain the kernel that ``path:name`` names, launched by a call; ``options`` are compilers', such as ``-DN=4``.

    Raises:
        UsageError: for a file that cannot be read or compiled, a kernel that it does not have, and as ``explain_ptx``.
    """
    return _explained(*compiled_kernel(target, capability, options), call, capability)


def explain_raw(kernel: RawKernel, call: Call, *, capability: str) -> Costs:
    """Explain a kernel; its lines are those of its Python file if that has the source once, or else of the source.

    Raises:
        UsageError: for what does not compile, and as ``explain_ptx``.
    """
    return _explained(*compiled_source(kernel, capability), call, capability)


def _explained(compiled: Compiled, named: Named, call: Call, capability: str) -> Costs:
    name, path, source = named
    try:
        module = parse(compiled.ptx)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    kernel = module.kernels[entry_named(module.kernels, compiled.names.get(name, name), path)]
    file = _file(module, kernel, path)
    if file != path and source:  # it stands in a file that this one includes
        source = file.read_text(errors="replace") if file.is_file() else source
    check_data(source, name, call.arguments)
    if names := parameter_names(source, name, len(kernel.parameters)):
        kernel.name_parameters(names)
    return explain_ptx(
        kernel,
        call,
        title=f"{name} in {path.name}",
        filename=str(file),
        code=(capability, _machine_code(compiled, kernel.name, capability)),
    )


def _file(module: Module, kernel: PtxKernel, path: Path) -> Path:
    """The file that a kernel's lines are those of; ``path`` without lines."""
    number = next((op.called_from.file for op in kernel.code if op.called_from.file), 0)
    file = Path(module.files.get(number, path))
    return path if file == path.absolute() else file


def _machine_code(compiled: Compiled, name: str, capability: str) -> MachineCode | None:
    if compiled.code is None:
        code = from_ptx(alone(compiled.ptx, name), capability)
        return None if code is None else parse_code("", code)
    return parse_code("", compiled.code, kernel=name)
