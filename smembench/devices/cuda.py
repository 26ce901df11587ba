"""NVIDIA GPUs, through Numba."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings import runtime

from smembench.case import Case
from smembench.devices.base import GUARD_BYTES, POISON, DeviceInfo, Limits, check_guards
from smembench.devices.cuda_api import SIMULATED, cuda
from smembench.errors import DeviceUnavailable
from smembench.kernels.registry import Kernel, Program
from smembench.measurement import Conditions
from smembench.problems.base import Problem
from smembench.telemetry import Nvml
from smembench.timing.cuda_graph import GraphTimer, checked

if TYPE_CHECKING:
    from smembench.problems.base import Array
    from smembench.timing.sampling import Sampler

_STATIC_SHARED_BYTES = 48 * 1024
"""Static shared memory a block may have; more needs dynamic shared memory, on every compute capability."""
_INDEX_LIMIT = 2**32
"""Kernels index with uint32."""


def why_unusable() -> str | None:
    """Why no GPU can be used here, in one line, or None when one can."""
    if SIMULATED:
        return "NUMBA_ENABLE_CUDASIM is set, and the simulator's times say nothing of a GPU; unset it"
    if not cuda.is_available():
        reason = " ".join(str(cuda.cuda_error() or "").split()) or "no CUDA device was found"
        return f"{reason} (see: smembench doctor)"
    return None


def gpu_count() -> int:
    """GPUs that CUDA shows, 0 where there is none to use."""
    return 0 if why_unusable() else len(cuda.gpus)


class CudaDevice:
    """One GPU.

    Raises:
        DeviceUnavailable: when there is no usable GPU of that index.
    """

    def __init__(self, index: int = 0) -> None:
        if reason := why_unusable():
            raise DeviceUnavailable(f"device cuda: {reason}")
        if index >= len(cuda.gpus):
            raise DeviceUnavailable(f"device cuda:{index}: there are {len(cuda.gpus)} GPUs, counted from cuda:0")
        cuda.select_device(index)
        self._index = index
        self._gpu = cuda.get_current_device()
        self._stream = cuda.stream()
        self._nvml = Nvml(self.uuid)
        self._compiled: dict[tuple[object, ...], Any] = {}
        self._placed: tuple[tuple[Array, ...], list[Any]] | None = None
        self._flush_buffer: Any = None
        self.info = self._describe()

    @property
    def uuid(self) -> str:
        """The GPU's UUID as NVML writes it."""
        uuid = self._gpu.uuid
        return uuid.decode() if isinstance(uuid, bytes) else str(uuid)

    def _attribute(self, name: str) -> int:
        attribute = getattr(runtime.cudaDeviceAttr, f"cudaDevAttr{name}")
        return int(checked(runtime.cudaDeviceGetAttribute(attribute, self._index)))

    def _describe(self) -> DeviceInfo:
        name = self._gpu.name
        version = checked(runtime.cudaDriverGetVersion())
        clock_khz, bus_bits = self._attribute("MemoryClockRate"), self._attribute("GlobalMemoryBusWidth")
        _, total = checked(runtime.cudaMemGetInfo())
        return DeviceInfo(
            name=f"cuda:{self._index}",
            kind="cuda",
            model=name.decode() if isinstance(name, bytes) else str(name),
            memory_bytes=int(total),
            uuid=self.uuid,
            compute_capability=".".join(map(str, self._gpu.compute_capability)),
            sm_count=self._attribute("MultiProcessorCount"),
            l2_bytes=self._attribute("L2CacheSize"),
            peak_gb_s=2 * clock_khz * bus_bits / 8 / 1e6 or None,
            cuda=f"{version // 1000}.{version % 1000 // 10}",
            **self._nvml.settings(),
        )

    def limits(self) -> Limits:
        """Limits of this GPU and its free memory now."""
        free, _ = checked(runtime.cudaMemGetInfo())
        return Limits(
            free_bytes=int(free),
            max_threads=self._attribute("MaxThreadsPerBlock"),
            max_block=(self._attribute("MaxBlockDimX"), self._attribute("MaxBlockDimY")),
            max_grid=(self._attribute("MaxGridDimX"), self._attribute("MaxGridDimY")),
            max_shared_bytes=_STATIC_SHARED_BYTES,
            max_elements=_INDEX_LIMIT - 1,
        )

    def prepare(self, case: Case, kernel: Kernel, problem: Problem, inputs: tuple[Array, ...]) -> CudaPrepared:
        """Compile, place the inputs unless they are there already, and allocate the output."""
        key = (case.problem, case.kernel, case.dtype, case.block, case.pad)
        program = kernel.build(case)
        if key not in self._compiled:
            self._compiled[key] = cuda.jit(program.function)
        if self._placed is None or self._placed[0] is not inputs:
            self._placed = None  # freed before the next are allocated
            self._placed = (inputs, [cuda.to_device(array) for array in inputs])
        output = cuda.device_array(
            problem.output_length(case) + 2 * (GUARD_BYTES // inputs[0].itemsize), inputs[0].dtype
        )
        scalars = tuple(np.uint32(value) for value in problem.scalars(case))
        flush_buffer = self._flush() if case.cache == "cold" else None
        return CudaPrepared(self._compiled[key], program, output, self._placed[1], scalars, self._stream, flush_buffer)

    def _flush(self) -> Any:
        """A buffer of twice the L2, kept for later cases."""
        if self._flush_buffer is None:
            self._flush_buffer = cuda.device_array(2 * (self.info.l2_bytes or 2**26), np.uint8)
        return self._flush_buffer

    def conditions(self) -> Conditions:
        """NVML's view now."""
        return self._nvml.conditions()

    def close(self) -> None:
        """Free the inputs, the flush buffer and the compiled kernels."""
        self._placed = self._flush_buffer = None
        self._compiled.clear()


def _released() -> None:
    """Stands in for the launch of a closed case."""


class CudaPrepared:
    """A compiled kernel with its arrays on a GPU."""

    def __init__(
        self,
        dispatcher: Any,
        program: Program,
        buffer: Any,
        inputs: list[Any],
        scalars: tuple[np.uint32, ...],
        stream: Any,
        flush_buffer: Any,
    ) -> None:
        self._guard = GUARD_BYTES // buffer.dtype.itemsize
        self._buffer: Any = buffer
        self._output: Any = buffer[self._guard : -self._guard]
        self._stream = stream
        self._handle = int(getattr(stream.handle, "value", stream.handle))
        self._flush_buffer = flush_buffer
        self._timer: GraphTimer | None = None
        configured = dispatcher[program.grid, program.block, stream]
        arguments = (self._output, *inputs, *scalars)
        self._enqueue: Callable[[], Any] = lambda: configured(*arguments)

    def _fill(self, buffer: Any, byte: int) -> None:
        checked(
            runtime.cudaMemsetAsync(
                buffer.device_ctypes_pointer.value, byte, buffer.size * buffer.dtype.itemsize, self._handle
            )
        )

    def poison(self) -> None:
        """Fill the output and its guards."""
        self._fill(self._buffer, POISON)

    def launch(self) -> None:
        """Launch once and wait; compiles on the first call."""
        with warnings.catch_warnings():
            # Numba warns of small grids; here they are asked for.
            warnings.simplefilter("ignore")
            self._enqueue()
        self._stream.synchronize()

    def output(self) -> Array:
        """Copy the output to the host and look at its guards."""
        self._stream.synchronize()
        host: Array = self._buffer.copy_to_host()
        check_guards(host[: self._guard], host[-self._guard :])
        return host[self._guard : -self._guard]

    def sampler(self) -> Sampler:
        """Graph-captured samples."""
        flush = None if self._flush_buffer is None else lambda: self._fill(self._flush_buffer, 0)
        self._timer = GraphTimer(self._handle, self._enqueue, cuda.defer_cleanup, flush)
        return self._timer

    def close(self) -> None:
        """Release the timer's graph and the output."""
        if self._timer is not None:
            self._timer.close()
            self._timer = None
        self._buffer = self._output = None
        self._enqueue = _released
