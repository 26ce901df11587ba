"""Numba: Python functions as CUDA kernels, by NVVM and nvJitLink.

Numba optimises launches at link time: NVVM makes LTO-IR, not PTX, and nvJitLink optimises it again before ptxas. The
code made from PTX differs, and is longer for kernels with a tile. Libraries are imported where they are used, so that
listing the toolchains is quick.
"""

from __future__ import annotations

from typing import Any

from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import NumbaKernel
from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.toolchains.cubin import entry
from smembench.toolchains.cuda_libraries import cuda_libraries
from smembench.toolchains.kept_code import kept, variant
from smembench.toolchains.llvm import can_compile
from smembench.toolchains.loaded import Loaded
from smembench.toolchains.nvvm import compiled
from smembench.toolchains.registry import Toolchain


class Numba(Toolchain[NumbaKernel]):
    """Takes Python functions; the default."""

    name = "numba"
    language = "Numba"
    kind = NumbaKernel
    module = "numba_cuda"
    packages = ("numba", "numba-cuda", "llvmlite", "numpy", "cuda-bindings", "cuda-core", "nvidia-nvvm")
    makers = ("numba", "numba-cuda", "nvjitlink")

    def libraries(self) -> dict[str, str]:
        """nvJitLink, which NVVM's code is linked by, if it is there."""
        version = cuda_libraries()["nvJitLink"]
        return {"nvjitlink": version} if version else {}

    @property
    def install(self) -> str:
        """The extra brings NVIDIA's libraries, too."""
        from smembench.kernels.numba_cuda import INSTALL

        return INSTALL

    def try_out(self) -> None:
        """NVVM, NVRTC and nvJitLink have to be there."""
        from smembench.kernels.numba_cuda import uint32

        def nothing(x: Any) -> Any:  # no lambda: Numba warns that it does not find the source of one
            return None

        _linker_version()
        compiled(nothing, (uint32,), (8, 0), at_link_time=False)

    def compile(self, case: Case, program: NumbaKernel, capability: str) -> Loaded[NumbaKernel]:
        """Compiles at once."""
        return loaded(self.machine_code(case, program, capability)[1])

    def machine_code(self, case: Case, program: NumbaKernel, capability: str) -> tuple[str, bytes]:
        """With line information; needs NVVM, NVRTC and nvJitLink."""
        code = by_nvvm(case, program, capability)
        return link(code, program.architecture(capability), at_link_time=not program.constant)


def descriptor(array: Any) -> tuple[int, ...]:
    """A one-dimensional array as Numba passes it: two owners, elements, bytes of one, address, shape, stride."""
    size, itemsize = int(array.size), int(array.dtype.itemsize)
    return (0, 0, size, itemsize, int(array.address), size, itemsize)


def loaded(code: bytes) -> Loaded[NumbaKernel]:
    """A kernel of one-dimensional arrays and scalars, from its machine code."""
    from cuda.core import ObjectCode

    return Loaded(ObjectCode.from_cubin(code), entry(code), passed=descriptor)


def by_nvvm(case: Case, program: NumbaKernel, capability: str, *, by_llvm: bool = False) -> bytes:
    """LTO-IR for the link-time optimiser; PTX for a program with a variable, which that would hide, and by LLVM.

    It is kept on disk: processes that time a kernel and those that explain it compile it once.
    """
    major, minor = map(int, capability.split("."))

    def made() -> tuple[str, bytes]:
        code = compiled(
            program.function,
            _signature(case, program),
            (major, minor, "a") if program.tensor_maps else (major, minor),
            at_link_time=not (program.constant or by_llvm),
            by_llvm=by_llvm,
            launch_bounds=program.launch_bounds,
        )
        return "", code

    maker = "LLVM" if by_llvm else "NVVM"
    return kept(case, TOOLCHAIN, (maker, variant(case, program, capability)), made)[1]


def kernel_ptx(case: Case, program: NumbaKernel, capability: str) -> str:
    """The PTX that ptxas gets for a launch, kept on disk; without NVIDIA's compiler libraries what LLVM makes.

    Raises:
        UsageError: for what LLVM cannot compile.
    """
    by_llvm = by_llvm_alone(case.kernel)
    if by_llvm or program.constant:
        return by_nvvm(case, program, capability, by_llvm=by_llvm).decode()

    def linked() -> tuple[str, bytes]:
        return "", linked_ptx(by_nvvm(case, program, capability), program.architecture(capability)).encode()

    return kept(case, TOOLCHAIN, ("nvJitLink's PTX", variant(case, program, capability)), linked)[1].decode()


def by_llvm_alone(kernel: str) -> bool:
    """True if a library of NVIDIA's that compiles a kernel is missing, so that LLVM has to.

    Raises:
        UsageError: that says what to install, if it cannot.
    """
    from smembench.kernels.numba_cuda import INSTALL

    missing = [name for name, version in cuda_libraries().items() if not version]
    if missing and not can_compile():
        raise UsageError(f"{kernel}: to explain it, install {' and '.join(missing)}: {INSTALL}")
    return bool(missing)


def _signature(case: Case, program: NumbaKernel) -> tuple[Any, ...]:
    """Numba's types of a kernel's arguments: the problem's arrays, its scalars, then its tensor maps."""
    from smembench.kernels.intrinsics.declaration import TENSOR_MAP
    from smembench.kernels.numba_cuda import number, uint32

    problem = PROBLEMS[case.problem]
    arrays = (number(dtype)[::1] for dtype in problem.array_types(case))
    return (*arrays, *[uint32] * len(problem.scalars(case)), *[TENSOR_MAP] * len(program.tensor_maps))


def link(code: bytes, arch: str, *, at_link_time: bool, max_registers: int | None = None) -> tuple[str, bytes]:
    """ptxas's report and machine code with its lines, from LTO-IR or, if not optimised ``at_link_time``, from PTX."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    _linker_version()  # or cuda.core warns once per process that it falls back to the driver
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


def linked_ptx(code: bytes, arch: str) -> str:
    """The PTX that nvJitLink makes of LTO-IR and hands to ptxas."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    _linker_version()
    options = LinkerOptions(arch=f"sm_{arch}", link_time_optimization=True, ptx=True, lineinfo=True, no_cache=True)
    ptx = Linker(ObjectCode.from_ltoir(code), options=options).link("ptx").code
    return bytes(ptx).decode().rstrip("\0")


def _linker_version() -> str:
    """nvJitLink's version.

    Raises:
        Exception: cuda.bindings' own, if it is missing.
    """
    from cuda.bindings import nvjitlink

    return "{}.{}".format(*nvjitlink.version())


TOOLCHAIN = Numba()
