"""NVRTC: CUDA C compiled at run time and launched through cuda.core, as Numba launches its own kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO

from smembench.kernels.program import CudaCKernel
from smembench.model.case import Case
from smembench.model.measurement import Resources
from smembench.toolchains.registry import Compiled, Toolchain

if TYPE_CHECKING:
    import numpy as np

    from smembench.model.problem import Array


class _Module(Compiled[CudaCKernel]):
    """Machine code, loaded at its first use, and the kernel in it."""

    def __init__(self, code: Any, entry: str) -> None:
        self._code, self._kernel = code, code.get_kernel(entry)

    def launcher(self, program: CudaCKernel, stream: int, scalars: Sequence[np.uint32]) -> Callable[..., Any]:
        """A launch with the arrays' pointers, then the scalars."""
        from cuda.core import LaunchConfig, Stream, launch

        queue, kernel = Stream.from_handle(stream), self._kernel
        config = LaunchConfig(grid=program.grid, block=program.block, shmem_size=program.dynamic_bytes)

        def enqueue(*arrays: Any) -> None:
            launch(queue, config, kernel, *(array.device_ctypes_pointer.value for array in arrays), *scalars)

        return enqueue

    def fill(self, variable: str, values: Array, stream: int) -> None:
        """Loads the code if it is not yet loaded."""
        from smembench.toolchains.symbols import copy_to_symbol

        copy_to_symbol(self._code.handle, variable, values, stream)

    def resources(self) -> Resources:
        """Attributes of the kernel on the current device."""
        from cuda.bindings import driver

        from smembench.kernels.numba_cuda import checked

        names = driver.CUfunction_attribute
        wanted = (names.CU_FUNC_ATTRIBUTE_NUM_REGS, names.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)
        device = checked(driver.cuCtxGetDevice())
        return Resources(*(checked(driver.cuKernelGetAttribute(name, self._kernel.handle, device)) for name in wanted))


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

    def compile(self, case: Case, program: CudaCKernel, capability: str) -> _Module:
        """Compiles at once."""
        return _Module(compiled(program, capability), program.entry)

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

    arch = f"sm_{capability.replace('.', '')}"
    options = ProgramOptions(arch=arch, std="c++17", ptxas_options=["-v"], no_cache=log is not None)
    return Program(program.source, "c++", options).compile("cubin", logs=log)


TOOLCHAIN = Nvrtc()
