"""On a real GPU: constant memory and copies between host and device."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest
from cuda.bindings import driver

from on_gpu import launched, output, samples
from programs import assert_right, case_of, cuda_kernel
from smembench.devices.buffers import BufferPool, allocate, place_input
from smembench.devices.cuda import CudaDevice
from smembench.devices.cuda_description import why_unusable
from smembench.devices.host_clock import HostClock
from smembench.kernels import registry
from smembench.kernels.driver import checked
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block, Case
from smembench.toolchains.registry import compilers

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable()))]

MISSING = [toolchain.name for toolchain in compilers() if not toolchain.installed]
ON_LINK = [
    kernel
    for kernel in registry.kernels("cuda")
    if kernel.problem in ("transfer", "roundtrip") and kernel.name != "addOneDevice" and kernel.compiler not in MISSING
]
MEMORY = {
    "device": driver.CUmemorytype.CU_MEMORYTYPE_DEVICE,
    "pinned": driver.CUmemorytype.CU_MEMORYTYPE_HOST,
    "pageable": 0,  # what the driver says of memory it does not know
}


@pytest.mark.untimed
@pytest.mark.parametrize("place", MEMORY)
def test_arrays_are_in_the_kind_of_memory_asked_for(gpu: CudaDevice, place: Any) -> None:
    problem = PROBLEMS["transfer"]
    kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    (array,) = problem.inputs(Case("transfer", "any", "cuda:0", "int32", 1, 2**20), seed=1)
    for made in (allocate(2**20, array.dtype, place), *place_input(array, place, BufferPool(), 1)):
        address = made.address if place == "device" else made.ctypes.data
        assert checked(driver.cuPointerGetAttributes(1, [kind], address)) == [MEMORY[place]]


@pytest.mark.untimed
@pytest.mark.parametrize("kernel", ON_LINK, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("n", [1, 1000, 10_000_019])
def test_timed_copies_leave_the_result_right(gpu: CudaDevice, kernel: Kernel, n: int) -> None:
    case = case_of(kernel, 1, n, dtype="int32")

    def timed(inputs: tuple[Any, ...]) -> Any:
        with launched(gpu, case, inputs) as prepared:
            sampler = prepared.sampler(0.0)
            assert isinstance(sampler, HostClock)
            prepared.poison()
            for _ in range(2):  # the first sample of a long copy is one of the warm-up, before the poison
                assert sampler.take() > 0
            return prepared.output()

    assert_right(case, timed)


def test_a_longer_copy_takes_longer(gpu: CudaDevice) -> None:
    cases = [Case("transfer", "h2dPinned", "cuda:0", "int32", 1, n) for n in (2**18, 2**24)]
    short, long = (median(samples(gpu, case, 31)) for case in cases)
    assert long > 8 * short


def test_diverging_reads_of_constant_memory_are_served_one_after_the_other(gpu: CudaDevice) -> None:
    kernels = [cuda_kernel("constant", name) for name in ("constantUniform", "constantDiverging")]
    uniform, diverging = (median(samples(gpu, case_of(kernel, 1, 2**22), 31)) for kernel in kernels)
    assert diverging > 1.2 * uniform


@pytest.mark.untimed
@pytest.mark.parametrize("compiler", ["numba", "nvrtc"])
@pytest.mark.parametrize("name", ["constantUniform", "constantDiverging"])
@pytest.mark.parametrize("dtype", PROBLEMS["constant"].dtypes)
def test_each_check_finds_its_own_coefficients_in_constant_memory(
    gpu: CudaDevice, name: str, compiler: str, dtype: str
) -> None:
    """The module is compiled once, so that what a case before it copied there would still be there."""
    case = Case("constant", name, "cuda:0", dtype, 1, 10_007, None, Block(256, 1), compiler=compiler)
    for seed in (1, 2, 3):
        assert_right(case, output(gpu, case), seed=seed)
