"""The child process that launches requests under ``ncu``, a launch each: python -m … SEED COUNT."""

from __future__ import annotations

import sys

import numpy as np

from smembench.devices.cuda import CudaDevice
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.program import CudaCKernel
from smembench.model.hardware import WARP
from smembench.studies.doctor.requests import drawn
from smembench.studies.doctor.requests_c import BUFFER_BYTES, SOURCE, SPAN_BYTES
from smembench.toolchains.loaded import Loaded
from smembench.toolchains.nvrtc import compiled


def launch(seed: int, count: int) -> None:
    """Launch every request that is drawn for this GPU, in their order."""
    capability = CudaDevice().info.compute_capability or ""
    major, minor = capability.split(".")
    requests = drawn(seed, count, (int(major), int(minor)))
    kernel = CudaCKernel(source=SOURCE, entry="", grid=(1, 1), block=(WARP, 1), dynamic_bytes=SPAN_BYTES)
    code = compiled(kernel, capability)
    names = {request.family.entry for request in requests}
    entries: dict[str, Loaded[CudaCKernel]] = {name: Loaded(code, name) for name in names}
    stream = cuda.stream()
    handle = int(getattr(stream.handle, "value", stream.handle))
    buffer = cuda.to_device(np.zeros(BUFFER_BYTES, np.uint8))
    cuda.profile_start()
    for request in requests:
        loaded = entries[request.family.entry]
        addresses = np.array([-1 if address is None else address for address in request.addresses], np.int32)
        loaded.fill("addresses", addresses, handle)
        loaded.launcher(kernel, handle, ())(buffer)
        stream.synchronize()  # before the addresses are freed
    cuda.profile_stop()


if __name__ == "__main__":
    launch(int(sys.argv[1]), int(sys.argv[2]))
