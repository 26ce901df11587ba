"""Machine code on the current GPU: loaded and launched through cuda.core, as Numba launches its own kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from smembench.kernels.program import CudaCKernel, NumbaKernel, TritonKernel
from smembench.model.hardware import STATIC_SHARED_BYTES
from smembench.model.measurement import Resources
from smembench.toolchains.registry import Compiled
from smembench.toolchains.tensor_maps import Maps

if TYPE_CHECKING:
    import numpy as np

    from smembench.model.problem import Array


G = TypeVar("G", bound=NumbaKernel | CudaCKernel | TritonKernel)


def pointer(array: Any) -> tuple[int, ...]:
    """An array on the device as an argument in C: its address."""
    return (int(array.address),)


def _grid(program: NumbaKernel | CudaCKernel | TritonKernel) -> dict[str, int | tuple[int, int]]:
    """The grid as cuda.core counts it: with clusters in clusters, not in blocks."""
    if program.cluster > 1:
        x, y = program.grid
        return {"grid": (x // program.cluster, y), "cluster": program.cluster}
    return {"grid": program.grid}


class Loaded(Compiled[G]):
    """A kernel of an object file (``cuda.core.ObjectCode``), which is loaded at its first use.

    Args:
        code: the object file.
        entry: the kernel's name in it.
        passed: the arguments that an array becomes.
        last: arguments after the scalars and the tensor maps.
        dynamic_bytes: shared memory per block that the compiler asks a launch for.
    """

    def __init__(
        self,
        code: Any,
        entry: str,
        *,
        passed: Callable[[Any], tuple[int, ...]] = pointer,
        last: Sequence[int] = (),
        dynamic_bytes: int = 0,
    ) -> None:
        self._code, self._kernel = code, code.get_kernel(entry)
        self._passed, self._last, self._dynamic_bytes = passed, last, dynamic_bytes
        self._maps = Maps()

    def launcher(self, program: G, stream: int, scalars: Sequence[np.uint32]) -> Callable[..., Any]:
        """A launch with the arrays, then the scalars, then the tensor maps."""
        from cuda.core import LaunchConfig, Stream, launch

        queue, kernel, passed = Stream.from_handle(stream), self._kernel, self._passed
        dynamic_bytes = program.dynamic_bytes + self._dynamic_bytes
        self._allow(dynamic_bytes)
        config = LaunchConfig(**_grid(program), block=program.block, shmem_size=dynamic_bytes)

        def enqueue(*arrays: Any) -> None:
            addresses = (argument for array in arrays for argument in passed(array))
            maps = self._maps.addresses(program.tensor_maps, arrays)
            launch(queue, config, kernel, *addresses, *scalars, *maps, *self._last)

        return enqueue

    def _allow(self, dynamic_bytes: int) -> None:
        """Let launches have more shared memory, with what the kernel declares, than it gets unasked."""
        from cuda.bindings import driver

        from smembench.kernels.driver import checked

        needed = dynamic_bytes + self._attribute("SHARED_SIZE_BYTES")
        if needed <= STATIC_SHARED_BYTES:
            return
        optin = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        most = checked(driver.cuDeviceGetAttribute(optin, checked(driver.cuCtxGetDevice())))
        if needed > most:
            raise RuntimeError(f"needs {needed} bytes of shared memory per block; this GPU has {most} at most")
        self.set_attribute("MAX_DYNAMIC_SHARED_SIZE_BYTES", dynamic_bytes)

    def set_attribute(self, attribute: str, value: int) -> None:
        """Set an attribute for launches on the current device, by its name without ``CU_FUNC_ATTRIBUTE_``."""
        from cuda.bindings import driver

        from smembench.kernels.driver import checked

        name = getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{attribute}")
        checked(driver.cuKernelSetAttribute(name, value, self._kernel.handle, checked(driver.cuCtxGetDevice())))

    def function(self, dynamic_bytes: int) -> Any:
        """The driver's ``CUfunction`` on the current device, allowed so much dynamic shared memory."""
        from cuda.bindings import driver

        from smembench.kernels.driver import checked

        self._allow(dynamic_bytes)
        return checked(driver.cuKernelGetFunction(self._kernel.handle))

    def fill(self, variable: str, values: Array, stream: int) -> None:
        """Loads the code if it is not yet loaded."""
        from smembench.toolchains.symbols import copy_to_symbol

        copy_to_symbol(self._code.handle, variable, values, stream)

    def resources(self) -> Resources:
        """Attributes of the kernel on the current device."""
        return Resources(self._attribute("NUM_REGS"), self._attribute("LOCAL_SIZE_BYTES"))

    def _attribute(self, name: str) -> int:
        from cuda.bindings import driver

        from smembench.kernels.driver import checked

        which = getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(checked(driver.cuKernelGetAttribute(which, self._kernel.handle, checked(driver.cuCtxGetDevice()))))
