"""CUDA C ports of Numba kernels, compiled at run time by NVRTC and launched in the same way.

A port has its Numba kernel's name, grid, block and shared memory; only the compiler differs, so a difference in time is
the compiler's. Where the order of the arithmetic decides which registers ptxas chooses, each has the one that suits it.
The documents' kernels have a port, a sum, the stencils, and one fast product; what ports of other steps showed is in
results/reference/notes/limits.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace

from smembench.kernels.kernel import Kernel
from smembench.kernels.program import CudaCKernel, GpuKernel
from smembench.model.case import Case

# Without a header NVRTC has no type of 16-bit floats: their arrays are of bits.
_C_TYPES = {
    "float16": "unsigned short",
    "float32": "float",
    "float64": "double",
    "int32": "int",
}


def _no_constants(case: Case) -> dict[str, int]:
    return {}


def port(
    kernel: Kernel,
    source: str,
    constants: Callable[[Case], Mapping[str, int]] = _no_constants,
    unsupported: Callable[[Case], str | None] | None = None,
) -> Kernel:
    """The CUDA C port of a Numba kernel.

    Args:
        kernel: the Numba kernel.
        source: CUDA C of a kernel of the same name. ``T`` is the element type, ``BX`` and ``BY`` the block's sides and
            ``PAD`` the extra columns of its tile; arguments are the output, the inputs and the problem's
            scalars as ``unsigned``. Where the program has a ``constant``, it declares a ``__constant__`` array of that
            name.
        constants: further constants of a case by name.
        unsupported: why the port cannot run a case, the kernel's own reasons when None.
    """

    def build(case: Case) -> CudaCKernel:
        program = kernel.build(case)
        assert isinstance(program, GpuKernel), kernel.name
        given = {"BX": program.block[0], "BY": program.block[1], "PAD": case.pad or 0, **constants(case)}
        # Not macros: NVRTC's own headers use such short names.
        declared = "".join(f"constexpr unsigned {name} = {value};\n" for name, value in given.items())
        launch = {field.name: getattr(program, field.name) for field in fields(GpuKernel)}
        return CudaCKernel(f"typedef {_C_TYPES[case.dtype]} T;\n{declared}{source}", kernel.name, **launch)

    return replace(kernel, compiler="nvrtc", build=build, unsupported=unsupported or kernel.unsupported)
