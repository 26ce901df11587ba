"""NVRTC: CUDA C compiled at run time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from smembench.kernels.program import CudaCKernel
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.install import CUDA
from smembench.toolchains.compile_errors import first_error
from smembench.toolchains.loaded import Loaded
from smembench.toolchains.registry import Toolchain


class Nvrtc(Toolchain[CudaCKernel]):
    """Takes CUDA C; NVIDIA's run-time compiler."""

    name = "nvrtc"
    language = "CUDA C"
    kind = CudaCKernel
    makers = ("nvrtc",)

    def libraries(self) -> dict[str, str]:
        """NVRTC's own version."""
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
        return {"nvrtc": f"{major}.{minor}"}

    def compile(self, case: Case, program: CudaCKernel, capability: str) -> Loaded[CudaCKernel]:
        """Compiles at once."""
        return Loaded(compiled(program, capability), program.entry)

    def machine_code(self, case: Case, program: CudaCKernel, capability: str) -> tuple[str, bytes]:
        """Compiled by the same call as for a launch."""
        log = StringIO()
        code = bytes(compiled(program, capability, log).code)
        return log.getvalue(), code


def compiled(program: CudaCKernel, capability: str, log: TextIO | None = None) -> Any:
    """Machine code (``cuda.core.ObjectCode``) for a compute capability; ptxas writes its report to ``log``.

    With a driver, NVRTC caches what it compiled, and gives no report for cached code; so the cache is off if a ``log``
    is given.

    Raises:
        Exception: NVRTC's, with its log, if the source does not compile.
    """
    from cuda.core import Program, ProgramOptions

    arch = program.architecture(capability)
    options = ProgramOptions(arch=f"sm_{arch}", std="c++17", ptxas_options=["-v"], no_cache=log is not None)
    return Program(program.source, "c++", options).compile("cubin", logs=log)


def capabilities() -> tuple[str, ...]:
    """The compute capabilities that NVRTC compiles for; empty where it is missing."""
    try:
        from cuda.bindings import nvrtc

        _, numbers = nvrtc.nvrtcGetSupportedArchs()
    except Exception:  # no package, or no library
        return ()
    return tuple(f"{number // 10}.{number % 10}" for number in numbers)


class Compiled(NamedTuple):
    """A source file as PTX and as machine code, the names there of names in the source, and the compiler's log."""

    ptx: str
    names: Mapping[str, str]
    code: bytes | None = None
    log: str = ""


def compile_source(
    source: str, path: Path, capability: str, names: Sequence[str], options: Sequence[str] = ()
) -> Compiled:
    """Compile a file of CUDA C++ without host code, with the lines of the source, without a GPU.

    Args:
        source: the file's text; ``path`` is where headers beside it are looked for.
        capability: the compute capability, such as 9.0.
        names: kernels, whose templates are instantiated: ``tile<float, 32>``.
        options: NVRTC's own, such as ``-DN=4``.

    Raises:
        UsageError: where NVRTC is missing, and for what it does not compile, with the first line of its log.
    """
    try:
        from cuda.bindings import nvrtc

        error, program = nvrtc.nvrtcCreateProgram(source.encode(), str(path).encode(), 0, [], [])
    except Exception:  # no package, or no library
        raise UsageError(f"{path}: compiling CUDA C++ needs nvcc, or NVRTC: {CUDA}") from None
    for name in names:
        nvrtc.nvrtcAddNameExpression(program, name.encode())
    architecture = f"--gpu-architecture=sm_{capability.replace('.', '')}"
    own = [architecture, "-lineinfo", f"-I{path.parent}", *options]
    (error,) = nvrtc.nvrtcCompileProgram(program, len(own), [option.encode() for option in own])
    log = _text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog).decode(errors="replace").rstrip("\0")
    if error != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise UsageError(_mistake(log, path, ", ".join(names)))
    ptx = _text(program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX).decode().rstrip("\0")
    lowered = {name: nvrtc.nvrtcGetLoweredName(program, name.encode())[1].decode() for name in names}
    return Compiled(ptx, lowered, _text(program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN), log)


def _text(program: Any, size: Callable[..., Any], get: Callable[..., Any]) -> bytes:
    """An output of NVRTC for a program; texts end with a zero."""
    _, count = size(program)
    content = bytes(count)
    get(program, content)
    return content


_HOST = (
    "NVRTC takes no host code, such as main, and none of its headers: cut them out, or install nvcc, which takes them"
)


def _mistake(log: str, path: Path, name: str) -> str:
    """The error of a source in a line; of host code, with the way out."""
    error = first_error(log, path, name, "__nv_name_map") or f"{path}: {log.strip().partition(chr(10))[0]}"
    if "--gpu-architecture" in error:
        return f"{path}: NVRTC here does not compile for this compute capability; give another one with --cc"
    where, missing, header = error.partition('cannot open source file "')
    if missing:
        return f"{where}there is no {header.rstrip(chr(34))} here; give its folder with -I; {_HOST}"
    where, host, _ = error.partition("A function without execution space annotations")
    return f"{where}is host code; {_HOST}" if host else error


def from_ptx(ptx: str, capability: str) -> bytes | None:
    """Machine code of PTX, as a driver makes it; None where nvJitLink is missing or does not take it.

    Of the same PTX, the compiler in NVRTC, which is that in nvcc, merges accesses that this one leaves apart.
    """
    try:
        from cuda.bindings import nvjitlink
        from cuda.core import Program, ProgramOptions

        nvjitlink.version()  # without it cuda.core warns, and tries the driver
        target = re.search(r"\.target\s+sm_\d+([af]?)", ptx)
        arch = f"sm_{capability.replace('.', '')}{target[1] if target else ''}"
        options = ProgramOptions(arch=arch, lineinfo=True)
        return bytes(Program(ptx, "ptx", options).compile("cubin").code)
    except Exception:  # each library raises its own; explanations work without machine code
        return None


TOOLCHAIN = Nvrtc()
