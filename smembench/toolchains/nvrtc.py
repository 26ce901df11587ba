"""NVRTC: CUDA C compiled at run time."""

from __future__ import annotations

from io import StringIO
from typing import Any, TextIO

from smembench.kernels.program import CudaCKernel
from smembench.model.case import Case
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


TOOLCHAIN = Nvrtc()
