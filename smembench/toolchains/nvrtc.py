"""CUDA C compiled at run time by NVRTC and launched through cuda.core, as Numba launches its own kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TextIO

import numpy as np
from cuda.core import LaunchConfig, ObjectCode, ProgramOptions, Stream, launch
from cuda.core import Program as CudaProgram

from smembench.kernels.common.cuda_c import Source
from smembench.kernels.registry import Program


def compiled(source: Source, capability: str, log: TextIO | None = None) -> ObjectCode:
    """Machine code for a compute capability such as ``9.0``, with ptxas's report of it into ``log``. Needs no GPU.

    Where there is a driver, NVRTC keeps what it compiled, and says nothing of what it finds again; for a report it
    compiles anew.

    Raises:
        Exception: NVRTC's, with its log, for a source that does not compile.
    """
    arch = f"sm_{capability.replace('.', '')}"
    options = ProgramOptions(arch=arch, std="c++17", ptxas_options=["-v"], no_cache=log is not None)
    return CudaProgram(source.text, "c++", options).compile("cubin", logs=log)


def launcher(kernel: Any, program: Program, stream: int, scalars: Sequence[np.uint32]) -> Callable[..., Any]:
    """What enqueues a launch when it is called with arrays on the device: their pointers, then the scalars."""
    queue = Stream.from_handle(stream)
    config = LaunchConfig(grid=program.grid, block=program.block, shmem_size=program.dynamic_bytes)

    def enqueue(*arrays: Any) -> None:
        launch(queue, config, kernel, *(array.device_ctypes_pointer.value for array in arrays), *scalars)

    return enqueue
