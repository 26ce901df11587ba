"""On a real GPU: the contract of every CUDA kernel, and the timers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

import pytest

from smembench.axes import Block
from smembench.case import Case
from smembench.devices.cuda import CudaDevice, gpu_info, gpu_uuid, why_unusable
from smembench.explain.machine_code import machine_code
from smembench.kernels import registry
from smembench.kernels.registry import Kernel
from smembench.measurement import Resources
from smembench.problems import PROBLEMS

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(bool(why_unusable()), reason=str(why_unusable()))]

CUDA = [kernel for kernel in registry.kernels() if kernel.kind == "cuda"]
SHAPES = [(1, 1, 1), (33, 65, 17), (1000, 517, 300), (1000, 520, 300), (128, 4097, 64)]
BLOCKS = [Block(32, 32), Block(16, 16), Block(32, 8), Block(8, 32), Block(64, 4)]
COPY = Case("transpose", "copyGmem", "cuda:0", "float32", 4096, 4096, None, Block(32, 32))


@pytest.fixture(scope="module")
def gpu() -> CudaDevice:
    return CudaDevice()


@pytest.mark.parametrize("kernel", CUDA, ids=lambda k: f"{k.problem}-{k.compiler}-{k.name}")
def test_every_kernel_is_right_on_ragged_sizes(gpu: CudaDevice, kernel: Kernel) -> None:
    problem = PROBLEMS[kernel.problem]
    limit = gpu.limits().max_shared_bytes or 0
    blocks = list(dict.fromkeys([*kernel.default_blocks, *BLOCKS])) if kernel.blocks else [None]
    # Every element type and every block, but not each with each: a compilation takes longer than a launch.
    compiled = dict.fromkeys([*product(problem.dtypes, blocks[:1]), *product(problem.dtypes[:1], blocks)])
    for (dtype, block), (m, n, k) in product(compiled, SHAPES):
        pad = {None: None, False: 0, True: 1}[kernel.pad]
        depth = k if "k" in problem.size_axes else None
        case = Case(kernel.problem, kernel.name, "cuda:0", dtype, m, n, depth, block, pad, compiler=kernel.compiler)
        if kernel.refuse(case) or kernel.shared_bytes(case) > limit:
            continue
        inputs = problem.inputs(case, seed=1)
        prepared = gpu.prepare(case, kernel, problem, inputs)
        prepared.poison()
        prepared.launch()
        verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), prepared.output())
        prepared.close()
        assert verdict.passed, f"{case.id}: {verdict.detail}"


@pytest.mark.parametrize("name", ["serpentine", "serpentine16x8", "slicedK", "slicedK12x6"])
def test_what_is_left_over_by_whole_tiles_is_right(gpu: CudaDevice, name: str) -> None:
    problem = PROBLEMS["matmul"]
    kernel = registry.find("matmul", name, "cuda")
    assert kernel is not None
    (block,) = kernel.default_blocks
    down, across = block.y * kernel.results[1], block.x * kernel.results[0]
    # Few of each, since every width of an access is compiled anew.
    shapes = [("float32", 1, 1, 257), ("float32", 4, 0, 1000), ("float32", 0, 3, 1), ("float64", 1, 2, 99)]
    for dtype, rows, columns, k in shapes:
        case = Case("matmul", name, "cuda:0", dtype, 3 * down + rows, 5 * across + columns, k, block)
        if kernel.refuse(case):
            continue
        assert kernel.build(case).dealt
        inputs = problem.inputs(case, seed=1)
        prepared = gpu.prepare(case, kernel, problem, inputs)
        prepared.poison()
        prepared.launch()
        verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), prepared.output())
        prepared.close()
        assert verdict.passed, f"{case.id}: {verdict.detail}"


@pytest.mark.parametrize("dtype", PROBLEMS["transpose"].dtypes)
def test_a_persistent_grid_goes_round_more_than_once(gpu: CudaDevice, dtype: str) -> None:
    problem, multiprocessors = PROBLEMS["transpose"], gpu.info.sm_count or 1
    case = Case("transpose", "transposePersistent", "cuda:0", dtype, 8192, 4112, None, Block(8, 16), 0)
    kernel = registry.kernel_of(case)
    program = kernel.build(case)
    assert prod(program.grid) > 2 * prod(program.on(multiprocessors).grid)
    inputs = problem.inputs(case, seed=1)
    prepared = gpu.prepare(case, kernel, problem, inputs)
    prepared.poison()
    prepared.launch()
    verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), prepared.output())
    prepared.close()
    assert verdict.passed, verdict.detail


@pytest.mark.parametrize(
    "kernel", [k for k in CUDA if k.problem == "matmul" and k.strided], ids=lambda k: f"{k.name}-{k.compiler}"
)
def test_products_of_sub_matrices_touch_nothing_between_their_rows(gpu: CudaDevice, kernel: Kernel) -> None:
    problem = PROBLEMS["matmul"]
    for (m, n, k), gap in product(SHAPES, (0, 1, 64)):
        (block, *_) = kernel.default_blocks or (Block(16, 16),)
        case = Case("matmul", kernel.name, "cuda:0", "float32", m, n, k, block, stride=max(n, k) + gap)
        case = replace(case, compiler=kernel.compiler)
        if kernel.refuse(case):
            continue
        inputs = problem.inputs(case, seed=1)
        prepared = gpu.prepare(case, kernel, problem, inputs)
        prepared.poison()
        prepared.launch()
        verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), prepared.output())
        prepared.close()
        assert verdict.passed, f"{case.id}: {verdict.detail}"


def test_registers_are_those_of_the_code_that_runs(gpu: CudaDevice) -> None:
    # In 16×16 blocks tiled takes other registers with link-time optimisation than without.
    case = Case("matmul", "tiled", "cuda:0", "float32", 64, 64, 64, Block(16, 16))
    problem, kernel = PROBLEMS["matmul"], registry.kernel_of(case)
    assert gpu.info.compute_capability is not None
    found = machine_code(case, gpu.info.compute_capability)
    assert found is not None
    prepared = gpu.prepare(case, kernel, problem, problem.inputs(case, seed=1))
    prepared.launch()
    assert prepared.resources() == Resources(found.registers, 0)
    prepared.close()


@pytest.mark.parametrize("compiler", registry.COMPILERS)
def test_the_driver_says_what_a_kernel_of_either_compiler_takes(gpu: CudaDevice, compiler: str) -> None:
    case = Case("transpose", "copyGmem", "cuda:0", "float32", 64, 64, None, Block(32, 32), compiler=compiler)
    problem = PROBLEMS["transpose"]
    prepared = gpu.prepare(case, registry.kernel_of(case), problem, problem.inputs(case, seed=1))
    prepared.launch()
    found = prepared.resources()
    prepared.close()
    assert found.registers is not None
    assert 0 < found.registers <= 64
    assert found.local_bytes == 0


@pytest.mark.parametrize("cache", ["warm", "cold"])
@pytest.mark.parametrize("n", [256, 4096])
def test_samples_are_positive_and_close_together(gpu: CudaDevice, cache: str, n: int) -> None:
    case, problem = replace(COPY, cache=cache, m=n, n=n), PROBLEMS["transpose"]
    prepared = gpu.prepare(case, registry.kernel_of(case), problem, problem.inputs(case, seed=1))
    prepared.launch()
    sampler = prepared.sampler(0.02)
    ordered = sorted(sampler.take() for _ in range(40))
    prepared.close()
    assert ordered[0] > 0
    assert ordered[30] < 1.1 * ordered[10]


def test_cold_takes_longer_than_warm_where_the_cache_helps(gpu: CudaDevice) -> None:
    medians = {}
    for cache in ("warm", "cold"):
        case, problem = replace(COPY, cache=cache, m=1024, n=1024), PROBLEMS["transpose"]
        prepared = gpu.prepare(case, registry.kernel_of(case), problem, problem.inputs(case, seed=1))
        prepared.launch()
        sampler = prepared.sampler(0.02)
        medians[cache] = sorted(sampler.take() for _ in range(31))[15]
        prepared.close()
    assert medians["cold"] > 1.2 * medians["warm"]


def test_timed_launches_leave_the_result_right(gpu: CudaDevice) -> None:
    case = Case("transpose", "transposeSmemPad", "cuda:0", "float32", 1000, 3000, None, Block(32, 32), 1)
    problem, kernel = PROBLEMS["transpose"], registry.kernel_of(case)
    inputs = problem.inputs(case, seed=1)
    prepared = gpu.prepare(case, kernel, problem, inputs)
    prepared.launch()
    sampler = prepared.sampler(0.0)
    prepared.poison()
    sampler.take()
    verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), prepared.output())
    prepared.close()
    assert verdict.passed


def test_the_residue_and_the_description_are_plausible(gpu: CudaDevice) -> None:
    info = gpu.info
    assert info.event_pair_us is not None
    assert 0.1 < info.event_pair_us < 10
    assert info.empty_kernel_us is not None
    assert 0.1 < info.empty_kernel_us < 20
    assert info.peak_gb_s is not None
    assert info.peak_gb_s > 50
    assert info.uuid is not None
    assert info.uuid.startswith("GPU-")
    assert info.uuid == gpu_uuid(0)
    assert gpu_info(0) == replace(info, event_pair_us=None, empty_kernel_us=None)
    assert gpu_info(99) is None
    assert gpu_uuid(99) is None
