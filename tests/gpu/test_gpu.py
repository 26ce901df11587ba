"""On a real GPU: the contract of every CUDA kernel, and the timers."""

from __future__ import annotations

from itertools import product

import pytest

from smembench.axes import Block
from smembench.case import Case
from smembench.devices.cuda import CudaDevice, why_unusable
from smembench.kernels import registry
from smembench.problems import PROBLEMS

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable()))]

CUDA = [kernel for kernel in registry.kernels() if kernel.kind == "cuda"]
SHAPES = [(1, 1, 1), (33, 65, 17), (1000, 517, 300), (128, 4097, 64)]
BLOCKS = [Block(32, 32), Block(16, 16), Block(32, 8), Block(8, 32), Block(64, 4)]


@pytest.fixture(scope="module")
def gpu() -> CudaDevice:
    return CudaDevice()


@pytest.mark.parametrize("kernel", CUDA, ids=lambda kernel: f"{kernel.problem}-{kernel.name}")
def test_every_kernel_is_right_on_ragged_sizes(gpu: CudaDevice, kernel: registry.Kernel) -> None:
    problem = PROBLEMS[kernel.problem]
    for dtype, (m, n, k), block in product(problem.dtypes, SHAPES, BLOCKS):
        pad = {None: None, False: 0, True: 1}[kernel.pad]
        case = Case(kernel.problem, kernel.name, "cuda:0", dtype, m, n, k if problem.cpu_kernel else None, block, pad)
        if kernel.refuse(case) or kernel.shared_bytes(case) > 48 * 1024:
            continue
        inputs = problem.inputs(case, seed=1)
        prepared = gpu.prepare(case, kernel, problem, inputs)
        prepared.poison()
        prepared.launch()
        verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), prepared.output())
        prepared.close()
        assert verdict.passed, f"{case.id}: {verdict.detail}"


@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_samples_are_positive_and_close_together(gpu: CudaDevice, cache: str) -> None:
    case = Case("transpose", "copyGmem", "cuda:0", "float32", 4096, 4096, None, Block(32, 32), cache=cache)
    problem = PROBLEMS["transpose"]
    prepared = gpu.prepare(case, registry.kernel_of(case), problem, problem.inputs(case, seed=1))
    prepared.launch()
    sampler = prepared.sampler()
    values = [value for _ in range(20) for value in sampler.take()]
    prepared.close()
    assert min(values) > 0
    ordered = sorted(values)
    assert ordered[len(ordered) * 3 // 4] < 1.2 * ordered[len(ordered) // 4]


def test_sampling_leaves_the_result_right(gpu: CudaDevice) -> None:
    case = Case("transpose", "transposeSmemPad", "cuda:0", "float32", 1000, 3000, None, Block(32, 32), 1)
    problem, kernel = PROBLEMS["transpose"], registry.kernel_of(case)
    inputs = problem.inputs(case, seed=1)
    prepared = gpu.prepare(case, kernel, problem, inputs)
    prepared.launch()
    sampler = prepared.sampler()
    prepared.poison()
    sampler.take()
    verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), prepared.output())
    prepared.close()
    assert verdict.passed
