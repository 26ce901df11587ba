"""On a real GPU: the timers, and what the driver says of kernels and devices."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import ladder
from on_gpu import launched, samples
from programs import assert_right
from smembench.devices.cuda import CudaDevice
from smembench.devices.cuda_description import gpu_info, gpu_uuid, why_unusable
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block, Case
from smembench.model.measurement import Resources
from smembench.run.sampling import BATCH_SECONDS
from smembench.toolchains import registry as toolchains
from smembench.toolchains.machine_code import parse

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable()))]

COPY = Case("transpose", "copyGmem", "cuda:0", "float32", 4096, 4096, None, Block(32, 32))


@pytest.mark.untimed
@pytest.mark.parametrize("compiler", [item.name for item in toolchains.compilers() if item.installed])
def test_registers_are_those_of_the_code_that_runs(gpu: CudaDevice, compiler: str) -> None:
    # In 16×16 blocks tiled takes other registers with link-time optimisation than without.
    case = Case("matmul", "tiled", "cuda:0", "float32", 64, 64, 64, Block(16, 16), compiler=compiler)
    program = registry.kernel_of(case).build(case)
    toolchain = toolchains.toolchain_of(program, compiler)
    assert gpu.info.compute_capability is not None
    with launched(gpu, case) as prepared:
        result = [parse(*toolchain.machine_code(case, program, gpu.info.compute_capability)) for _ in range(2)]
        assert result[0] is not None
        assert result[1] == result[0]  # compiled before, and kept by the driver
        resources = prepared.resources()
        assert resources == Resources(result[0].registers, 0, resources.code_hash)
        assert resources.code_hash


@pytest.mark.parametrize("cache", ["warm", "cold"])
@pytest.mark.parametrize("n", [256, 4096])
def test_samples_are_positive_and_close_together(gpu: CudaDevice, cache: str, n: int) -> None:
    ordered = samples(gpu, replace(COPY, cache=cache, m=n, n=n), 40)
    assert ordered[0] > 0
    assert ordered[30] < 1.1 * ordered[10]


def test_cold_takes_longer_than_warm_where_the_cache_helps(gpu: CudaDevice) -> None:
    warm, cold = (median(samples(gpu, replace(COPY, cache=cache, m=1024, n=1024), 31)) for cache in ("warm", "cold"))
    assert cold > 1.2 * warm


def test_rotated_launches_find_their_arrays_where_cold_ones_do(gpu: CudaDevice) -> None:
    """Each launch also writes back what those before it left in the L2."""
    warm, cold, rotated = (
        median(samples(gpu, replace(COPY, cache=cache, m=1024, n=1024), 31)) for cache in ("warm", "cold", "rotated")
    )
    assert rotated > 1.2 * warm
    assert 0.8 < rotated / cold < 1.6


def test_every_copy_of_the_arrays_is_right_after_timed_launches(gpu: CudaDevice) -> None:
    case = replace(COPY, cache="rotated", m=1024, n=1024)
    (inputs,) = PROBLEMS["transpose"].inputs(case, seed=1)
    with launched(gpu, case, (inputs,)) as prepared:
        sampler = prepared.sampler(0.0)
        prepared.poison()
        sampler.take()
        outputs = [output for output in prepared.outputs() if np.array_equal(output, inputs)]
    assert len(outputs) > 2 * (gpu.info.l2_bytes or 0) / (2 * inputs.nbytes)


def test_a_load_has_no_pauses_and_takes_energy(gpu: CudaDevice) -> None:
    alone = median(samples(gpu, COPY, 11))
    with launched(gpu, COPY) as prepared:
        load = prepared.load()
        assert load is not None
        before = gpu.conditions().energy_j
        batches = list(load.batches(2.0))
        after = gpu.conditions().energy_j
        load.close()
    assert sum(launches * elapsed_ms for launches, elapsed_ms in batches) >= 2000
    assert 0.7 * alone < median(elapsed_ms for _, elapsed_ms in batches) < 1.1 * alone
    if before is not None and after is not None:
        assert 50 < (after - before) / 2 < 1500  # watts


@pytest.mark.untimed
@pytest.mark.parametrize(
    "case",
    [
        ladder.transpose("transposeSmemPad", columns=3000, rows=1000),
        ladder.matmul("splitK", n=300, k=5000),
        ladder.matmul("mmaAsync", "bfloat16", n=1000),
        ladder.matmul("wgmmaStored", "bfloat16", n=1000),
        ladder.matmul("wgmmaClustered", "float8_e4m3", n=1008),
    ],
    ids=lambda case: case.kernel,
)
def test_timed_launches_leave_the_result_right(gpu: CudaDevice, case: Case) -> None:
    if reason := registry.kernel_of(case).refusal(case, gpu.info.compute_capability):
        pytest.skip(reason)

    def timed(inputs: tuple[Any, ...]) -> Any:
        with launched(gpu, case, inputs) as prepared:
            sampler = prepared.sampler(0.0)
            prepared.poison()
            sampler.take()
            return prepared.output()

    assert_right(case, timed)


def test_the_residue_and_the_description_are_plausible(gpu: CudaDevice) -> None:
    info = gpu.info
    assert 0.1 < (info.event_pair_us or 0) < 10
    assert 0.1 < (info.empty_kernel_us or 0) < 20
    assert (info.peak_gb_s or 0) > 50
    assert str(info.uuid).startswith("GPU-")
    assert info.uuid == gpu_uuid(0)
    assert gpu_info(0) == info.model_copy(update={"event_pair_us": None, "empty_kernel_us": None})
    assert gpu_info(99) is None
    assert gpu_uuid(99) is None


def test_reading_the_state_takes_little_of_the_time_between_two_readings(gpu: CudaDevice) -> None:
    def seconds() -> float:
        begun = perf_counter()
        assert gpu.conditions().sm_clock_mhz
        return perf_counter() - begun

    assert median(seconds() for _ in range(20)) < 0.1 * BATCH_SECONDS
