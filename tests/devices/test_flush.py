"""What a cold sample reads or writes before it, so that the caches hold nothing of the kernel's: twice their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from smembench.devices import cuda as gpu
from smembench.devices import cuda_helpers
from smembench.devices.cpu import CpuDevice
from smembench.devices.cuda import CudaDevice
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import HostFunction
from smembench.model.case import Case
from smembench.model.device import DeviceInfo
from smembench.toolchains.machine_code import parse
from smembench.toolchains.nvrtc import TOOLCHAIN

CACHE_BYTES = 4000


@pytest.mark.parametrize(("cache", "touched"), [("cold", 2 * CACHE_BYTES), ("warm", 0)])
def test_a_cold_sample_on_the_cpu_changes_twice_its_cache(cache: str, touched: int) -> None:
    device = CpuDevice()
    device.info = device.info.model_copy(update={"l2_bytes": CACHE_BYTES})
    kernel = Kernel("transpose", "memcpy", "cpu", build=lambda _: HostFunction(lambda *_: None))
    case = Case("transpose", "memcpy", "cpu", "float32", 8, 8, cache=cache)
    prepared = device.prepare(case, kernel, PROBLEMS["transpose"], (np.zeros(64, np.float32),))
    sampler = prepared.sampler(0.0)
    for taken in (1, 2):
        sampler.take()
        buffer = device._flush_buffer
        assert (0 if buffer is None else np.count_nonzero(buffer == taken)) == touched


def test_a_cold_sample_on_a_gpu_reads_twice_its_l2(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[tuple[Any, ...]] = []

    def launcher(helper: Any, capability: str, stream: int, scalars: Sequence[Any], **sides: int) -> Any:
        return lambda buffer: launched.append((helper, buffer, *scalars))

    monkeypatch.setattr(gpu, "to_device", lambda array: array)
    monkeypatch.setattr(gpu, "launcher", launcher)
    device: Any = object.__new__(CudaDevice)  # opened it would need a GPU
    device.info = DeviceInfo(name="cuda:0", kind="cuda", model="made up", memory_bytes=10**9, l2_bytes=CACHE_BYTES)
    device._flush_l2, device._handle = None, 0
    device._flush()()
    ((helper, buffer, count),) = launched
    assert (helper, buffer.nbytes, count) == ("read_all", 2 * CACHE_BYTES, buffer.size)


def test_the_kernel_ahead_of_an_event_pair_multiplies_once_per_turn_of_its_loop() -> None:
    """Unrolled it would take another time, and the residue that runs subtract is read behind it."""
    if reason := TOOLCHAIN.unavailable():
        pytest.skip(reason)
    code = bytes(cuda_helpers._compiled("9.0").code)
    kinds = {helper: parse("", code, kernel=helper) for helper in ("busy", "read_all")}
    result = {helper: made.kinds for helper, made in kinds.items() if made is not None}
    assert result["busy"]["FMUL"] == 1
    assert (result["read_all"]["FADD"], result["read_all"]["LDG"]) == (1, 2)
