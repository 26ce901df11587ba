"""The child process that launches requests under ``ncu``, a launch each: python -m … SEED COUNT X.Y COUNTERS STOP."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from cuda.bindings import driver
from cuda.core import Device

from smembench.devices.buffers import new_stream
from smembench.kernels.device_memory import to_device
from smembench.kernels.driver import checked
from smembench.kernels.program import CudaCKernel
from smembench.model.hardware import WARP
from smembench.toolchains.loaded import Loaded
from smembench.toolchains.nvrtc import compiled
from warp_requests.kernels import AT_ONCE, BUFFER_BYTES, SOURCE, SPAN_BYTES
from warp_requests.requests import drawn, part
from warp_requests.watched import say_launched


def launch(seed: int, count: int, capability: str, what: str, stop: Path) -> None:
    """Launch the requests that these of the ``COUNTERS`` count, in their order, until the file ``stop`` is there."""
    major, minor = capability.split(".")
    requests = part(drawn(seed, count, (int(major), int(minor))), what)
    addresses = np.full((-(-len(requests) // AT_ONCE) * AT_ONCE, WARP), -1, np.int16)
    for row, request in zip(addresses, requests, strict=False):
        row[:] = [-1 if address is None else address for address in request.addresses]
    kernel = CudaCKernel(source=SOURCE, entry="", grid=(1, 1), block=(WARP, 1), dynamic_bytes=SPAN_BYTES)
    Device().set_current()
    buffer = to_device(np.zeros(BUFFER_BYTES, np.uint8))
    stream = new_stream()
    handle = int(stream.handle)
    code = compiled(kernel, capability)
    entries: dict[str, Loaded[CudaCKernel]] = {
        name: Loaded(code, name) for name in {request.family.entry for request in requests}
    }
    checked(driver.cuProfilerStart())
    for number, request in enumerate(requests):
        if stop.exists():
            break
        if number % AT_ONCE == 0:
            entries[request.family.entry].fill("addresses", addresses[number : number + AT_ONCE], handle)
        entries[request.family.entry].launcher(kernel, handle, [np.uint32(number % AT_ONCE)])(buffer)
        say_launched(number + 1)
    stream.sync()
    checked(driver.cuProfilerStop())


if __name__ == "__main__":
    launch(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], Path(sys.argv[5]))
