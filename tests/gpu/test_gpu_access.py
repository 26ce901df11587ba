"""On a real GPU: the access kernels measure the banks, and conflicts cost what the model says."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Any

import pytest
from numba import types

import programs
from on_gpu import output, samples
from programs import assert_right, cuda_kernel, numba_kernel
from smembench.devices.cuda import CudaDevice
from smembench.devices.cuda_description import why_unusable
from smembench.explain.analysis import explain
from smembench.kernels import registry
from smembench.kernels.access.problem import tiles
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block, Case
from smembench.model.hardware import WAVEFRONT_BYTES
from smembench.toolchains.nvvm import compiled

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable()))]

ACCESS = PROBLEMS["access"]


def elapsed_ms(gpu: CudaDevice, case: Case) -> float:
    """The median of a few samples of a case that is right."""
    assert_right(case, output(gpu, case))
    return median(samples(gpu, case, 15))


def case_of(gpu: CudaDevice, kernel: str, **values: Any) -> Case:
    case = replace(programs.case_of(cuda_kernel("access", kernel), 256, 0, dtype="int32"), **values)
    return ACCESS.on_device(case, gpu.limits().multiprocessors)


@pytest.mark.untimed
@pytest.mark.parametrize("kernel", registry.names("access"))
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_the_compiler_leaves_no_access_out(kernel: str, dtype: str) -> None:
    """Nor does it write any twice: the loop has a store and a load of each tile."""
    case = Case("access", kernel, "cuda:0", dtype, 256, 4096, None, Block(32, 32), 1)
    array, number = getattr(types, dtype)[::1], types.uint32
    text = compiled(numba_kernel(case).function, (array, array, number, number), (9, 0), at_link_time=False).decode()
    assert text.count("ld.shared") == text.count("st.shared") == tiles(dtype)


@pytest.mark.parametrize("kernel", ["parallelAccess", "broadcastAccess", "setRowReadRow", "setRowReadColPad"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_without_conflicts_most_of_what_the_banks_deliver_is_reached(gpu: CudaDevice, kernel: str, dtype: str) -> None:
    case = case_of(gpu, kernel, dtype=dtype)
    elapsed = elapsed_ms(gpu, case)
    mhz, multiprocessors = gpu.conditions().sm_clock_mhz, gpu.info.sm_count
    if mhz is None or multiprocessors is None:
        pytest.skip("the SM clock is not known here")
    per_clock = ACCESS.bytes_moved(case) / (elapsed * mhz * 1e3 * multiprocessors)
    assert per_clock > 0.7 * WAVEFRONT_BYTES


@pytest.mark.parametrize("stride", [2, 4, 8, 16, 32])
def test_the_staircase(gpu: CudaDevice, stride: int) -> None:
    """Twice the conflicts take twice the time, once they are all that counts."""
    one, half, whole = (elapsed_ms(gpu, case_of(gpu, "strided", stride=item)) for item in (1, stride // 2, stride))
    assert whole / half == pytest.approx(2, rel=0.25)
    assert whole / one == pytest.approx(stride, rel=0.25)


@pytest.mark.parametrize("kernel", ["setColReadCol", "setRowReadCol", "setColReadRow", "setRowReadColDyn"])
def test_patterns_take_the_time_of_their_wavefronts(gpu: CudaDevice, kernel: str) -> None:
    case = case_of(gpu, kernel)
    explained = explain(case)
    loads, stores = explained.wavefronts("load"), explained.wavefronts("store")
    assert loads is not None
    assert stores is not None
    free = elapsed_ms(gpu, case_of(gpu, "setRowReadRow"))
    assert elapsed_ms(gpu, case) / free == pytest.approx((loads + stores) / 2, rel=0.25)
