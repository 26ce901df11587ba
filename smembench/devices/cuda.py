"""NVIDIA GPUs, through Numba."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from cuda.bindings import driver, runtime

from smembench.case import Case
from smembench.cuda_api import SIMULATED, checked, cuda
from smembench.devices.base import GUARD_BYTES, POISON, DeviceInfo, Limits, check_guards
from smembench.devices.cuda_helpers import empty, read_all
from smembench.errors import DeviceUnavailable
from smembench.kernels.registry import Kernel
from smembench.measurement import Conditions
from smembench.problems.base import Problem
from smembench.telemetry import Nvml
from smembench.timing.cuda_graph import GraphTimer, calibrate, nothing

if TYPE_CHECKING:
    from smembench.problems.base import Array
    from smembench.timing.sampling import Sampler

_STATIC_SHARED_BYTES = 48 * 1024
"""Static shared memory a block may have; more needs dynamic shared memory, on every compute capability."""
_INDEX_LIMIT = 2**32
"""Kernels index with uint32."""
_WAKE_SECONDS = 0.3
_L2_GUESS, _SM_GUESS = 2**26, 128


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


def gpu_uuid(index: int) -> str | None:
    """The UUID of a GPU as NVML writes it, without making a context on it; None when there is no such GPU."""
    if index >= gpu_count():
        return None
    device = checked(driver.cuDeviceGet(index))
    return f"GPU-{UUID(bytes=bytes(checked(driver.cuDeviceGetUuid(device)).bytes))}"


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
        self._handle = int(getattr(self._stream.handle, "value", self._stream.handle))
        self._nvml = Nvml(self.uuid)
        self._compiled: dict[tuple[object, ...], Any] = {}
        self._placed: tuple[tuple[Array, ...], list[Any]] | None = None
        self._flush_buffer: Any = None
        self._residue_ms, empty_kernel_ms = self._calibrate()
        self.info = replace(
            self._describe(),
            event_pair_us=1000 * self._residue_ms,
            empty_kernel_us=1000 * (empty_kernel_ms - self._residue_ms),
        )

    @property
    def uuid(self) -> str:
        """The GPU's UUID as NVML writes it."""
        uuid = self._gpu.uuid
        return uuid.decode() if isinstance(uuid, bytes) else str(uuid)

    def _calibrate(self) -> tuple[float, float]:
        """What an event pair reads around nothing and around an empty kernel, in ms."""
        launch: Callable[[], Any] = cuda.jit(empty)[1, 1, self._stream]
        launch()
        # An idle GPU has low clocks: keep it busy until they are up.
        deadline = perf_counter() + _WAKE_SECONDS
        while perf_counter() < deadline:
            launch()
        self._stream.synchronize()
        return calibrate(self._handle, launch, cuda.defer_cleanup)

    def _attribute(self, name: str) -> int:
        attribute = getattr(runtime.cudaDeviceAttr, f"cudaDevAttr{name}")
        return int(checked(runtime.cudaDeviceGetAttribute(attribute, self._index)))

    def _describe(self) -> DeviceInfo:
        name = self._gpu.name
        version = checked(runtime.cudaDriverGetVersion())
        _, total = checked(runtime.cudaMemGetInfo())
        settings = self._nvml.settings()
        # NVML's is the clock the memory runs at; CUDA's attribute is 2 % lower on an H200.
        memory_mhz = settings["memory_clock_max_mhz"] or self._attribute("MemoryClockRate") / 1000
        return DeviceInfo(
            name=f"cuda:{self._index}",
            kind="cuda",
            model=name.decode() if isinstance(name, bytes) else str(name),
            memory_bytes=int(total),
            uuid=self.uuid,
            compute_capability=".".join(map(str, self._gpu.compute_capability)),
            sm_count=self._attribute("MultiProcessorCount"),
            l2_bytes=self._attribute("L2CacheSize"),
            peak_gb_s=2 * memory_mhz * self._attribute("GlobalMemoryBusWidth") / 8 / 1000 or None,
            cuda=f"{version // 1000}.{version % 1000 // 10}",
            **settings,
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
        if self._placed is None or self._placed[0] is not inputs:
            self._placed = None  # freed before the next are allocated
            self._placed = (inputs, [cuda.to_device(array) for array in inputs])
        guard = GUARD_BYTES // inputs[0].itemsize
        output = cuda.device_array(problem.output_length(case) + 2 * guard, inputs[0].dtype)
        arrays = (output[guard:-guard], *self._placed[1])
        program = kernel.build(case)
        enqueue: Callable[[], Any]
        if program.on_host:
            enqueue = partial(program.function, self._handle, *arrays)
        else:
            key = (case.problem, case.kernel, case.dtype, case.block, case.pad, program.variant)
            compiled = cuda.jit(program.function, launch_bounds=program.launch_bounds)
            dispatcher = self._compiled.setdefault(key, compiled)
            scalars = (np.uint32(value) for value in problem.scalars(case))
            enqueue = partial(
                dispatcher[program.grid, program.block, self._stream, program.dynamic_bytes], *arrays, *scalars
            )
        flush = self._flush() if case.cache == "cold" else None
        return CudaPrepared(enqueue, output, guard, self._stream, self._handle, self._residue_ms, flush)

    def _flush(self) -> Callable[[], Any]:
        """Enqueues reads of twice the L2, from a buffer and by a kernel kept for later cases."""
        count = 2 * (self.info.l2_bytes or _L2_GUESS) // 4
        if self._flush_buffer is None:
            self._flush_buffer = cuda.to_device(np.zeros(count, np.float32))
        dispatcher = self._compiled.setdefault(("flush",), cuda.jit(read_all))
        blocks = 4 * (self.info.sm_count or _SM_GUESS)
        return partial(dispatcher[blocks, 1024, self._stream], self._flush_buffer, np.uint32(count))

    def conditions(self) -> Conditions:
        """NVML's view now."""
        return self._nvml.conditions()

    def close(self) -> None:
        """Free the inputs, the flush buffer and the compiled kernels."""
        self._placed = self._flush_buffer = None
        self._compiled.clear()


class CudaPrepared:
    """A compiled kernel with its arrays on a GPU."""

    def __init__(
        self,
        enqueue: Callable[[], Any],
        buffer: Any,
        guard: int,
        stream: Any,
        handle: int,
        residue_ms: float,
        flush: Callable[[], Any] | None,
    ) -> None:
        self._enqueue = enqueue
        self._buffer: Any = buffer
        self._guard = guard
        self._stream = stream
        self._handle = handle
        self._residue_ms = residue_ms
        self._flush = flush
        self._timer: GraphTimer | None = None

    def poison(self) -> None:
        """Fill the output and its guards."""
        size = self._buffer.size * self._buffer.dtype.itemsize
        checked(runtime.cudaMemsetAsync(self._buffer.device_ctypes_pointer.value, POISON, size, self._handle))

    def launch(self) -> None:
        """Launch once and wait; compiles on the first call."""
        self._enqueue()
        self._stream.synchronize()

    def output(self) -> Array:
        """Copy the output to the host and look at its guards."""
        self._stream.synchronize()
        host: Array = self._buffer.copy_to_host()
        check_guards(host[: self._guard], host[-self._guard :])
        return host[self._guard : -self._guard]

    def sampler(self, warmup: float) -> Sampler:
        """Graph-captured samples."""
        if self._flush is not None:
            self._flush()  # compiles, which a capture forbids
            self._stream.synchronize()
        self._timer = GraphTimer(self._handle, self._enqueue, cuda.defer_cleanup, self._residue_ms, self._flush, warmup)
        return self._timer

    def close(self) -> None:
        """Release the timer's graph and the output."""
        if self._timer is not None:
            self._timer.close()
            self._timer = None
        self._buffer = None
        self._enqueue = nothing
