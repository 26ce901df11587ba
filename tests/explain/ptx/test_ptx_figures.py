"""CUDA C++ traced by its PTX: figures that other tracers give, that counters counted, and that all blocks add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product
from math import gcd, prod
from pathlib import Path

import numpy as np
import pytest

from programs import case_of, cuda_c_kernel
from smembench.explain.analysis import explain
from smembench.explain.costs import Costs
from smembench.explain.ptx import kinds
from smembench.explain.ptx.costs import Call, explain_ptx
from smembench.explain.ptx.parse import parse
from smembench.explain.ptx.program import PtxKernel
from smembench.explain.requests import AccessSite
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.launches.array_argument import ArrayArgument
from smembench.model.case import Block, Case
from smembench.model.formats import carried
from smembench.toolchains.machine_code import parse as parse_code
from smembench.toolchains.nvrtc import Compiled, compile_source

pytest.importorskip("cuda.bindings.nvrtc")

SUMS = """
extern "C" __global__ void sums(float *out, const float *in, int rows, int columns, int stride) {
    extern __shared__ float partial[];
    int row = blockIdx.y, t = threadIdx.x;
    float sum = 0;
    for (int column = blockIdx.x * blockDim.x + t; column < columns; column += blockDim.x * gridDim.x)
        sum += in[row * stride + column];
    partial[t] = sum;
    __syncthreads();
    for (int s = 1; s < blockDim.x; s *= 2) {
        int at = 2 * s * t;
        if (at + s < blockDim.x) partial[at] += partial[at + s];
        __syncthreads();
    }
    if (t == 0) atomicAdd(&out[row], partial[0]);
}
extern "C" __global__ void shifted(short *out, const short *in, int nx, int ny) {
    __shared__ short tile[16][24];
    int ix = blockIdx.x * 24 + threadIdx.x, iy = blockIdx.y * 16 + threadIdx.y;
    if (ix < nx && iy < ny) tile[threadIdx.y][threadIdx.x] = in[iy * nx + ix];
    __syncthreads();
    int t = threadIdx.y * 24 + threadIdx.x, down = t / 16, across = t % 16;
    ix = blockIdx.y * 16 + across, iy = blockIdx.x * 24 + down;
    if (ix < ny && iy < nx) out[iy * ny + ix] = tile[across][down];
}
"""


def of_name(name: str, compiler: str) -> Kernel:
    (result,) = (k for k in registry.kernels("cuda") if (k.name, k.compiler) == (name, compiler))
    return result


def by_ptx(case: Case, *, compiled: bool = False) -> Costs:
    """A port of the package, by its PTX; with ``compiled`` as in its machine code."""
    program, problem = cuda_c_kernel(case), PROBLEMS[case.problem]
    made = compile_source(program.source, Path("port.cu"), "9.0", [])
    shapes = zip(problem.lengths(case), problem.array_types(case), strict=True)
    arrays = [ArrayArgument((length,), np.dtype(carried(dtype))) for length, dtype in shapes]
    scalars = [np.uint32(value) for value in problem.scalars(case)]
    assert made.code is not None
    code = parse_code("", made.code, kernel=program.entry) if compiled else None
    return explain_ptx(
        parse(made.ptx).kernels[program.entry],
        Call(program.grid, program.block, [*arrays, *scalars], program.dynamic_bytes),
        title=case.kernel,
        filename="port.cu",
        code=("9.0", code),
    )


def figures(result: Costs) -> dict[tuple[str, str], tuple[int, float]]:
    """Requests, and wavefronts or sectors, of all loads and all stores of a memory."""
    total: dict[tuple[str, str], tuple[int, float]] = {}
    costs = [(access, access.of_all) for access in result.shared] + [
        (access, access.of_all) for access in result.memory
    ]
    for access, of_all in costs:
        key = access.site.space, access.site.kind
        requests, cost = total.get(key, (0, 0.0))
        total[key] = requests + access.requests, cost + of_all
    return total


@pytest.mark.parametrize(
    ("block", "m", "n"),
    [(Block(32, 32), 4096, 4096), (Block(32, 32), 301, 499), (Block(16, 16), 301, 499), (Block(24, 16), 100, 70)],
)
@pytest.mark.parametrize("name", ["copyGmem", "naiveGmem", "transposeSmem", "transposeSmemPad"])
def test_a_transpose_costs_what_the_same_kernel_in_numba_costs(name: str, block: Block, m: int, n: int) -> None:
    case = case_of(of_name(name, "nvrtc"), m, n, block=block)
    numba = explain(case_of(of_name(name, "numba"), m, n, block=block))
    result = by_ptx(case)
    assert not result.trace.mistakes
    assert not result.trace.unfollowed
    for key, expected in figures(numba).items():
        assert figures(result)[key] == pytest.approx(expected), key


@pytest.mark.parametrize(
    ("block", "sectors"),
    [(Block(24, 16), 3.855), (Block(8, 64), 2.920)],  # counted by Nsight Compute on an H200, 2026-11-27
    ids=str,
)
def test_blocks_whose_rows_begin_elsewhere_in_a_sector_are_told_apart(block: Block, sectors: float) -> None:
    result = by_ptx(case_of(of_name("transposeSmem", "nvrtc"), 1777, 1777, dtype="float16", block=block))
    assert result.sectors("store") == pytest.approx(sectors, abs=0.0005)


def test_loads_that_ptxas_makes_wider_are_wider() -> None:
    plain, compiled = (by_ptx(case_of(of_name("tiled", "nvrtc"), 64, 64, 64), compiled=item) for item in (False, True))
    assert {access.site.width for access in plain.shared if access.site.kind == "load"} == {4}
    assert {access.site.width for access in compiled.shared if access.site.kind == "load"} == {4, 16}
    assert plain.wavefronts("load") == 1
    assert compiled.wavefronts("load") == pytest.approx(1.2)  # as counted on an H100
    assert compiled.trace.unmatched == ()


@pytest.fixture(scope="module")
def own() -> Compiled:
    return compile_source(SUMS, Path("own.cu"), "9.0", [])


def test_a_tree_of_interleaved_sums_has_the_wavefronts_that_an_h100_counted(own: Compiled) -> None:
    """Of one block of 256 threads: 95 of loads and 55 of stores (Nsight Compute, 2026-11-27)."""
    floats = ArrayArgument((256,), np.dtype("float32"))
    call = Call((1, 1), (256,), [floats, floats, 1, 256, 256], 4 * 256)
    result = explain_ptx(parse(own.ptx).kernels["sums"], call, title="sums", filename="own.cu")
    assert figures(result)["shared", "load"][1] == 95
    assert figures(result)["shared", "store"][1] == 55


def traced(kernel: PtxKernel, call: Call) -> Counter[tuple[AccessSite, float]]:
    result = explain_ptx(kernel, call, title="own", filename="own.cu")
    assert not result.trace.mistakes
    assert not result.trace.unfollowed
    counts: Counter[tuple[AccessSite, float]] = Counter()
    for shared in result.shared:
        counts[shared.site, round(shared.of_all, 6)] += shared.requests
    for memory in result.memory:
        counts[memory.site, round(memory.of_all, 6)] += memory.requests
    return counts


@pytest.mark.parametrize("seed", range(2))
def test_blocks_of_each_kind_stand_for_all(own: Compiled, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Against a trace of every block, on random ragged sizes."""
    random = np.random.default_rng(seed)
    rows, columns = (int(side) for side in random.integers(40, 130, 2))
    numbers = ArrayArgument((rows * columns,), np.dtype("int16"))
    shifted = Call((-(-columns // 24), -(-rows // 16)), (24, 16), [numbers, numbers, columns, rows])
    stride = columns + int(random.integers(0, 9))
    floats = ArrayArgument((rows * stride,), np.dtype("float32"))
    sums = Call((2, rows), (96,), [floats, floats, rows, columns, stride], 4 * 96)
    module = parse(own.ptx)
    few = [traced(module.kernels[name], call) for name, call in (("shifted", shifted), ("sums", sums))]

    def every(grid: tuple[int, ...], *_: object) -> tuple[dict[tuple[int, ...], int], bool]:
        return dict.fromkeys(product(*map(range, grid)), 1), False

    monkeypatch.setattr("smembench.explain.ptx.trace.kinds_of_grid", every)
    assert few == [traced(module.kernels[name], call) for name, call in (("shifted", shifted), ("sums", sums))]


@pytest.mark.parametrize("count", [1, 2, 9, 10, 37, 1000])
def test_kinds_of_an_axis_are_its_runs_and_periods(count: int) -> None:
    def structure(index: tuple[int, ...]) -> str:
        return "last" if index[0] == count - 1 else "inside"

    result, is_sample = kinds.kinds_of_grid((count, 1, 1), structure, lambda index: index[0] % 4, lambda: 9)
    assert not is_sample
    assert sum(result.values()) == count
    if count > 10:
        assert len(result) == 5


def test_a_block_unlike_others_does_not_stand_for_those_a_period_later() -> None:
    result, is_sample = kinds.kinds_of_grid(
        (1000, 1, 1), lambda index: index[0] == 3, lambda index: index[0] % 8, lambda: 9
    )
    assert not is_sample
    assert sum(result.values()) == 1000
    assert result[3, 0, 0] == 1


def test_of_very_many_kinds_some_blocks_are_run() -> None:
    result, is_sample = kinds.kinds_of_grid((100, 100, 1), lambda _: 0, lambda index: index, lambda: 9)
    assert is_sample
    assert sum(result.values()) == 10_000
    assert len(result) == 9


UNLIKE = """
extern "C" __global__ void strides(float *x) { x[(threadIdx.x * blockIdx.x & 1023) * 8] = 1; }
extern "C" __global__ void masks(float *x) { x[(threadIdx.x & (blockIdx.x >> 3 | 1)) * 8] = 1; }
extern "C" __global__ void banks(float *x) {
    __shared__ volatile float s[4096];
    s[threadIdx.x * blockIdx.x & 4095] = threadIdx.x;
}
extern "C" __global__ void longer(float *out, const float *x) {
    float sum = 0;
    for (int j = 0; j < 64 * (blockIdx.x + 1); j++) sum += x[j * 32 + threadIdx.x];
    out[blockIdx.x * 32 + threadIdx.x] = sum;
}
extern "C" __global__ void triangle(float *x) {
    if (blockIdx.y >= blockIdx.x) x[(blockIdx.y * 128 + blockIdx.x) * 32 + threadIdx.x] = 1;
}
"""


def of_blocks(count: int, cost: Callable[[int], int]) -> float:
    return sum(map(cost, range(count)))


@pytest.mark.parametrize(
    ("name", "grid", "space", "requests", "of_all"),
    [
        ("strides", (20_000,), "global", 20_000, of_blocks(20_000, lambda b: len({t * b & 1023 for t in range(32)}))),
        ("masks", (20_000,), "global", 20_000, of_blocks(20_000, lambda b: 2 ** ((b >> 3 | 1) & 31).bit_count())),
        ("banks", (20_000,), "shared", 20_000, of_blocks(20_000, lambda b: gcd(b, 32) if b % 4096 else 1)),
        ("longer", (600,), "global", 64 * 300 * 601 + 600, 4 * (64 * 300 * 601 + 600)),
        ("triangle", (128, 128), "global", 64 * 129, 4 * 64 * 129),
    ],
)
def test_blocks_that_none_of_a_few_kinds_stands_for_are_sampled(
    name: str, grid: tuple[int, ...], space: str, requests: int, of_all: float
) -> None:
    module = parse(compile_source(UNLIKE, Path("unlike.cu"), "9.0", []).ptx)
    x = ArrayArgument((2_000_000,), np.dtype("float32"))
    kernel = module.kernels[name]
    result = explain_ptx(
        kernel,
        Call(grid, (32,), [x] * (2 if name == "longer" else 1)),
        title=name,
        filename="unlike.cu",
        code=("9.0", None),
    )
    accesses = result.shared if space == "shared" else result.memory
    assert sum(access.requests for access in accesses) == pytest.approx(requests, rel=0.03)
    assert sum(access.of_all for access in accesses) == pytest.approx(of_all, rel=0.03)
    assert (result.trace.sampled is None) == (len(result.trace.blocks) == prod(grid))
