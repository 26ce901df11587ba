"""A GPU with what the probes need of it: CUDA C compiled and launched, samples over trials, sizes of the device.

A kernel takes a pointer to its output, then its arrays, then its scalars as ``unsigned``; what it times itself it reads
from ``clock64()``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings import driver

from smembench.devices.buffers import Output
from smembench.devices.cuda_prepared import CudaPrepared
from smembench.kernels.device_memory import to_device
from smembench.kernels.driver import checked
from smembench.kernels.program import CudaCKernel
from smembench.toolchains.loaded import Loaded
from smembench.toolchains.nvrtc import compiled

if TYPE_CHECKING:
    from smembench.devices.cuda import CudaDevice
    from smembench.model.problem import Array

    Out = tuple[type[np.generic], int]

TRIALS = 15
"""Samples per figure, each of a new launch."""
_WARMUP = 0.01
"""Seconds of launches before a sample that is timed by events."""


class Bench:
    """A GPU on which probes run, one launch at a time.

    Attributes:
        info: the device's properties.
        capability: its compute capability, such as (9, 0).
        sms: its number of multiprocessors.
        shared_bytes: shared memory that a block can have, with dynamic shared memory.
    """

    def __init__(self, gpu: CudaDevice) -> None:
        self.info = gpu.info
        self._architecture = gpu.info.compute_capability or ""
        major, minor = self._architecture.split(".")
        self.capability = int(major), int(minor)
        limits = gpu.limits()
        self.sms = limits.multiprocessors or 0
        self.shared_bytes = limits.max_dynamic_bytes or 0
        self._stream, self._warm = gpu.stream, gpu.warm
        self._handle = int(self._stream.handle)
        self._code: dict[str, Any] = {}

    def launch(
        self, kernel: CudaCKernel, *arguments: Any, out: Out, constant: tuple[str, Array] | None = None
    ) -> Array:
        """Launch a kernel on a poisoned output, wait, and return the output.

        Args:
            kernel: its source is compiled once.
            arguments: NumPy arrays, which are copied to the device, and arrays on the device; then ints.
            out: dtype and length of the output.
            constant: a ``__constant__`` array of the source, by name, and its content.

        Raises:
            RuntimeError: CUDA's error.
        """
        if constant is not None:
            self._compile(kernel).fill(*constant, self._handle)
        prepared = self._prepare(kernel, arguments, out)
        prepared.poison()
        prepared.launch()
        return prepared.output()

    def seconds(self, kernel: CudaCKernel, *arguments: Any, out: Out) -> tuple[float, Array]:
        """Seconds per launch by events in a graph, as runs are timed, and the output of the last of its launches.

        Raises:
            RuntimeError: CUDA's error.
        """
        with closing(self._prepare(kernel, arguments, out)) as prepared:
            prepared.launch()  # loads the code, which a capture forbids
            timer = prepared.sampler(_WARMUP)
            prepared.poison()
            return timer.take() / 1000, prepared.output()

    def set_attribute(self, kernel: CudaCKernel, attribute: str, value: int) -> None:
        """Set an attribute of a kernel for its launches, by its CUDA name without ``CU_FUNC_ATTRIBUTE_``."""
        self._compile(kernel).set_attribute(attribute, value)

    def resident_blocks(self, kernel: CudaCKernel) -> int:
        """Blocks that fit on a multiprocessor at once, by the driver's calculation."""
        function = self._compile(kernel).function(kernel.dynamic_bytes)
        calculate = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor
        return int(checked(calculate(function, kernel.block[0] * kernel.block[1], kernel.dynamic_bytes)))

    def resident_clusters(self, kernel: CudaCKernel) -> int:
        """Clusters that fit on the device at once, likewise, of the size that the kernel declares; 0 if none can."""
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY = kernel.grid
        config.blockDimX, config.blockDimY = kernel.block
        config.gridDimZ = config.blockDimZ = 1
        config.sharedMemBytes = kernel.dynamic_bytes
        function = self._compile(kernel).function(kernel.dynamic_bytes)
        result = driver.cuOccupancyMaxActiveClusters(function, config)
        return 0 if result[0] == driver.CUresult.CUDA_ERROR_INVALID_CLUSTER_SIZE else int(checked(result))

    def trials(self, one: Callable[[], float]) -> list[float]:
        """Samples of a measurement, after one that compiles and warms up."""
        one()
        return [one() for _ in range(TRIALS)]

    def _prepare(self, kernel: CudaCKernel, arguments: tuple[Any, ...], out: Out) -> CudaPrepared:
        code = self._compile(kernel)
        scalars = [np.uint32(argument) for argument in arguments if isinstance(argument, int)]
        arrays = [argument for argument in arguments if not isinstance(argument, int)]
        placed = [to_device(array) if isinstance(array, np.ndarray) else array for array in arrays]
        dtype, count = out
        output = Output(count, dtype, "device")
        enqueue = partial(code.launcher(kernel, self._handle, scalars), output.array, *placed)
        residue_ms = (self.info.event_pair_us or 0.0) / 1000
        timing = (self._stream, self._handle, residue_ms, self._warm, True)
        return CudaPrepared([enqueue], [output], [placed], code, *timing)

    def _compile(self, kernel: CudaCKernel) -> Loaded[CudaCKernel]:
        """A kernel of its source, which is compiled once."""
        if kernel.source not in self._code:
            self._code[kernel.source] = compiled(kernel, self._architecture)
        return Loaded(self._code[kernel.source], kernel.entry)
