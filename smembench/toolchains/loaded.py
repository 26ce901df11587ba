"""Machine code on the current GPU: loaded and launched through cuda.core, as Numba launches its own kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from smembench.kernels.program import CudaCKernel, NumbaKernel, TritonKernel
from smembench.model.hardware import STATIC_SHARED_BYTES
from smembench.model.measurement import Resources
from smembench.toolchains.cubin import code_hash
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


def _attributes(cluster: Sequence[int], cooperative: bool) -> list[Any]:
    """The attributes of a launch, as ``cuLaunchKernelEx`` takes them."""
    from cuda.bindings import driver

    attributes = []
    if cluster:
        sides = driver.CUlaunchAttribute()
        sides.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        sides.value.clusterDim.x, sides.value.clusterDim.y, sides.value.clusterDim.z = cluster
        attributes.append(sides)
    if cooperative:
        together = driver.CUlaunchAttribute()
        together.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        together.value.cooperative = 1
        attributes.append(together)
    return attributes


class Parameter(NamedTuple):
    """A parameter of a kernel: PTX type and size; a structure is of type ``b8`` with many bytes."""

    name: str
    type: str
    bytes: int


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
        self._code, self._entry, self._kernel = code, entry, code.get_kernel(entry)
        self._passed, self._last, self._dynamic_bytes = passed, last, dynamic_bytes
        self._maps = Maps()

    def launcher(self, program: G, stream: int, scalars: Sequence[np.uint32]) -> Callable[..., Any]:
        """A launch with the arrays, then the scalars, then the tensor maps."""
        from cuda.core import LaunchConfig, Stream, launch

        if program.tensor_maps:
            return self._mapped(program, stream, scalars)
        queue, kernel, passed = Stream.from_handle(stream), self._kernel, self._passed
        dynamic_bytes = program.dynamic_bytes + self._dynamic_bytes
        self._allow(dynamic_bytes)
        config = LaunchConfig(**_grid(program), block=program.block, shmem_size=dynamic_bytes)

        def enqueue(*arrays: Any) -> None:
            addresses = (argument for array in arrays for argument in passed(array))
            launch(queue, config, kernel, *addresses, *scalars, *self._last)

        return enqueue

    def _mapped(self, program: G, stream: int, scalars: Sequence[np.uint32]) -> Callable[..., Any]:
        """The same by the bytes of all parameters, made once per arrays: cuda.core's launch takes no tensor map."""
        ready: dict[tuple[int, ...], Callable[[], Any]] = {}

        def enqueue(*arrays: Any) -> None:
            places = tuple(int(array.address) for array in arrays)
            if places not in ready:
                words = [word.to_bytes(8, "little") for array in arrays for word in self._passed(array)]
                ready[places] = self.with_bytes(
                    stream,
                    (program.grid, program.block, (program.cluster,) if program.cluster > 1 else ()),
                    [*words, *(scalar.tobytes() for scalar in scalars), *self._maps.of(program.tensor_maps, arrays)],
                    shared_bytes=program.dynamic_bytes,
                    cooperative=False,
                )
            ready[places]()

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

    def with_bytes(
        self,
        stream: int,
        sides: tuple[Sequence[int], Sequence[int], Sequence[int]],
        parameters: Sequence[bytes],
        *,
        shared_bytes: int,
        cooperative: bool,
        keep: object = None,
    ) -> Callable[[], Any]:
        """A function that enqueues a launch with the bytes of all parameters.

        Args:
            stream: a handle.
            sides: grid, block and cluster in up to three dimensions, the grid in blocks; no cluster if empty.
            parameters: in order.
            shared_bytes: dynamic shared memory.
            cooperative: whether all blocks have to be resident at once.
            keep: an object that has to live as long as the function.
        """
        import numpy as np
        from cuda.bindings import driver

        from smembench.kernels.driver import checked

        grid, block, cluster = ((*extent, 1, 1)[:3] for extent in sides)
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = grid
        config.blockDimX, config.blockDimY, config.blockDimZ = block
        config.sharedMemBytes, config.hStream = shared_bytes, driver.CUstream(stream)
        config.attrs = _attributes(cluster if sides[2] else (), cooperative)
        config.numAttrs = len(config.attrs)
        function = self.function(shared_bytes)
        values = [np.frombuffer(content, np.uint8).copy() for content in parameters]
        pointers = np.array([value.ctypes.data for value in values], np.uint64)
        kept = (values, keep, self)

        def enqueue() -> None:
            assert kept
            checked(driver.cuLaunchKernelEx(config, function, pointers.ctypes.data, 0))

        return enqueue

    def fill(self, variable: str, values: Array, stream: int) -> None:
        """Loads the code if it is not yet loaded."""
        from smembench.toolchains.symbols import copy_to_symbol

        copy_to_symbol(self._code.handle, variable, values, stream)

    def resources(self) -> Resources:
        """Attributes of the kernel on the current device, and the hash of its machine code."""
        return Resources(self._attribute("NUM_REGS"), self._attribute("LOCAL_SIZE_BYTES"), self._code_hash)

    @cached_property
    def _code_hash(self) -> str | None:
        """None of what the driver compiles."""
        code = self._code.code
        return code_hash(code, self._entry) if self._code.code_type == "cubin" and isinstance(code, bytes) else None

    def _attribute(self, name: str) -> int:
        from cuda.bindings import driver

        from smembench.kernels.driver import checked

        which = getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return int(checked(driver.cuKernelGetAttribute(which, self._kernel.handle, checked(driver.cuCtxGetDevice()))))
