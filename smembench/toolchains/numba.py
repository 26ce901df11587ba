"""Numba: Python functions as CUDA kernels, by NVVM and nvJitLink.

Numba optimises launches at link time: NVVM makes LTO-IR, not PTX, and nvJitLink optimises it again before ptxas. The
code made from PTX differs, and is longer for kernels with a tile. Libraries are imported where they are used, so that
listing the toolchains is quick.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case
from smembench.model.measurement import Resources
from smembench.toolchains.cubin import entry
from smembench.toolchains.loaded import Loaded
from smembench.toolchains.nvvm import compiled
from smembench.toolchains.registry import Compiled, Toolchain

if TYPE_CHECKING:
    import numpy as np

    from smembench.model.problem import Array


class _Dispatcher(Compiled[NumbaKernel]):
    """A Numba dispatcher, which compiles the kernel at its first launch."""

    def __init__(self, case: Case, program: NumbaKernel) -> None:
        from smembench.kernels.numba_cuda import cuda

        # Optimisation at link time hides a module's variables from the host.
        options = {"lto": False} if program.constant else {}
        self._dispatcher: Any = cuda.jit(program.function, launch_bounds=program.launch_bounds, **options)
        self._signature = _signature(case, program)

    def launcher(self, program: NumbaKernel, stream: int, scalars: Sequence[np.uint32]) -> Callable[..., Any]:
        """A launch through Numba."""
        from smembench.kernels.numba_cuda import cuda

        queue = cuda.external_stream(stream)
        configured = self._dispatcher[program.grid, program.block, queue]
        return lambda *arrays: configured(*arrays, *scalars)

    def fill(self, variable: str, values: Array, stream: int) -> None:
        """Compiles first: variables are filled before the first launch."""
        from smembench.toolchains.symbols import copy_to_symbol

        module = self._dispatcher.compile(self._signature).library.get_cufunc().module
        copy_to_symbol(module.handle, variable, values, stream)

    def resources(self) -> Resources:
        """The maximum over the compiled signatures; a case has one."""
        registers, local = self._dispatcher.get_regs_per_thread(), self._dispatcher.get_local_mem_per_thread()
        return Resources(max(registers.values()), max(local.values()))


class Numba(Toolchain[NumbaKernel]):
    """Takes Python functions; the default."""

    name = "numba"
    language = "Numba"
    kind = NumbaKernel
    packages = ("numba", "numba-cuda", "llvmlite", "numpy", "cuda-bindings", "cuda-core", "nvidia-nvvm")
    makers = ("numba", "numba-cuda", "nvjitlink")

    def libraries(self) -> dict[str, str]:
        """nvJitLink: without it Numba does not optimise at link time."""
        from cuda.bindings import nvjitlink

        return {"nvjitlink": "{}.{}".format(*nvjitlink.version())}

    def unavailable(self) -> str | None:
        """NVVM and NVRTC have to be there; nvJitLink need not."""
        from smembench.kernels.numba_cuda import cuda, uint32

        try:
            cuda.compile_ptx(lambda x: None, (uint32,), cc=(8, 0))
        except Exception as error:  # whichever library is missing raises its own
            return " ".join(str(error).split())[:200]
        return None

    def compile(self, case: Case, program: NumbaKernel, capability: str) -> Compiled[NumbaKernel]:
        """A ``cuda.jit`` dispatcher, or loaded code.

        Numba's launch takes no tensor maps, and no more shared memory than a kernel gets unasked.
        """
        if not program.tensor_maps and not program.dynamic_bytes:
            return _Dispatcher(case, program)
        from cuda.core import ObjectCode

        code = self.machine_code(case, program, capability)[1]
        return Loaded(ObjectCode.from_cubin(code), entry(code), passed=descriptor)

    def machine_code(self, case: Case, program: NumbaKernel, capability: str) -> tuple[str, bytes]:
        """By the same steps as for a launch, and with line information; needs NVVM, NVRTC and nvJitLink."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a missing nvJitLink
            code = by_nvvm(case, program, capability)
            return link(code, program.architecture(capability), at_link_time=not program.constant)


def descriptor(array: Any) -> tuple[int, ...]:
    """A one-dimensional array as Numba passes it: two owners, elements, bytes of one, address, shape, stride."""
    size, itemsize = int(array.size), int(array.dtype.itemsize)
    return (0, 0, size, itemsize, int(array.device_ctypes_pointer.value), size, itemsize)


def by_nvvm(case: Case, program: NumbaKernel, capability: str) -> bytes:
    """LTO-IR for the link-time optimiser; PTX for a program with a variable, which that would hide."""
    major, minor = map(int, capability.split("."))
    return compiled(
        program.function,
        _signature(case, program),
        (major, minor, "a") if program.tensor_maps else (major, minor),
        at_link_time=not program.constant,
        launch_bounds=program.launch_bounds,
    )


def _signature(case: Case, program: NumbaKernel) -> tuple[Any, ...]:
    """Numba's types of a kernel's arguments: the problem's arrays, then its scalars."""
    from smembench.kernels.numba_cuda import number, uint32, uint64

    problem = PROBLEMS[case.problem]
    arrays = (number(dtype)[::1] for dtype in problem.array_types(case))
    return (*arrays, *[uint32] * len(problem.scalars(case)), *[uint64] * len(program.tensor_maps))


def link(code: bytes, arch: str, *, at_link_time: bool, max_registers: int | None = None) -> tuple[str, bytes]:
    """ptxas's report and machine code with its lines, from LTO-IR or, if not optimised ``at_link_time``, from PTX."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    # Without a cache: what the linker finds there has no report.
    options = LinkerOptions(
        arch=f"sm_{arch}",
        link_time_optimization=at_link_time or None,
        ptxas_options=["-v"],
        lineinfo=True,
        max_register_count=max_registers,
        no_cache=True,
    )
    linker = Linker(ObjectCode.from_ltoir(code) if at_link_time else ObjectCode.from_ptx(code), options=options)
    linked = bytes(linker.link("cubin").code)
    return str(linker.get_info_log()), linked


TOOLCHAIN = Numba()
