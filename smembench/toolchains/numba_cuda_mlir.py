"""numba-cuda-mlir, NVIDIA's successor to numba-cuda: Numba's dialect compiled by MLIR, NVVM and nvJitLink."""

from __future__ import annotations

from typing import Any

from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import MAP_ALIGNMENT, NumbaKernel
from smembench.model.case import Case
from smembench.model.formats import carried
from smembench.model.text import visible
from smembench.toolchains.cubin import entry
from smembench.toolchains.loaded import Loaded
from smembench.toolchains.registry import Refused, Toolchain

_MOST = 200
"""Characters of the reason why a kernel is refused; messages have pages."""


class NumbaCudaMlir(Toolchain[NumbaKernel]):
    """Takes the Python functions of Numba's kernels as far as its dialect does."""

    name = "mlir"
    language = "numba-cuda-mlir"
    kind = NumbaKernel
    module = "numba_cuda_mlir"
    packages = ("numba-cuda-mlir",)
    makers = ("numba-cuda-mlir", "nvjitlink")

    def compile(self, case: Case, program: NumbaKernel, capability: str) -> Loaded[NumbaKernel]:
        """Compiles at once."""
        from cuda.core import ObjectCode

        code = compiled(case, program, capability)
        return Loaded(ObjectCode.from_cubin(code), entry(code), passed=descriptor)

    def machine_code(self, case: Case, program: NumbaKernel, capability: str) -> tuple[str, bytes]:
        """Compile by the same call as for a launch. There is no report of ptxas."""
        return "", compiled(case, program, capability)


def descriptor(array: Any) -> tuple[int, ...]:
    """A one-dimensional array as MLIR passes it (``memref``): buffer, address of elements, offset, size and stride."""
    address = int(array.address)
    return (address, address, 0, int(array.size), 1)


def compiled(case: Case, program: NumbaKernel, capability: str) -> bytes:
    """Machine code for a compute capability, optimised at link time as Numba's is.

    Raises:
        Refused: if the dialect lacks what the kernel uses.
        Exception: a missing library's own.
    """
    from numba_cuda_mlir import types

    from smembench.kernels.numba_cuda import private
    from smembench.toolchains.mlir.dialect import compiling, translated

    major, minor = capability.split(".")
    problem = PROBLEMS[case.problem]
    arrays = [getattr(types, carried(dtype))[::1] for dtype in problem.array_types(case)]
    # Not types.CUTensorMap, since both functions change the type that they are given.
    tensor_map = types.grid_constant(types.alignas(types.byval_ptr(types.CUTensorMapStorage), MAP_ALIGNMENT))
    maps = [tensor_map] * len(program.tensor_maps)
    signature = types.void(*arrays, *[types.uint32] * len(problem.scalars(case)), *maps)
    compile_cubin = private("numba_cuda_mlir.compiler.compile_cubin")
    refusals = (
        private("numba_cuda_mlir.errors.InternalCompilerError"),
        private("numba_cuda_mlir.errors.UserFacingInternalCompilerError"),
        private("numba_cuda_mlir.numba_cuda.core.errors.NumbaError"),
        NotImplementedError,
        AttributeError,  # of its module cuda
    )
    options = {"chip": f"sm_{program.architecture(capability)}", "lto": not program.constant}
    options |= {} if program.launch_bounds is None else {"launch_bounds": program.launch_bounds}
    try:
        with compiling((int(major), int(minor))):
            return bytes(compile_cubin(translated(program.function), signature, **options))
    except refusals as error:
        raise Refused(_reason(error)) from error


def _reason(error: Exception) -> str:
    """The beginning of its message, without the line that names the compiler's pass."""
    lines = (line for line in str(error).splitlines() if not line.startswith("Failed in"))
    return visible(" ".join(" ".join(lines).split()))[:_MOST]


TOOLCHAIN = NumbaCudaMlir()
