"""CUDA C ports: what they share with their Numba kernels, how they are planned, and that NVRTC takes them."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product

import pytest

from programs import cuda_c_kernel, numba_kernel
from smembench.explain.trace import trace
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import GpuKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import DEFAULT_COMPILER, Block, Case
from smembench.model.device import Limits
from smembench.model.errors import UsageError
from smembench.model.hardware import STATIC_SHARED_BYTES
from smembench.model.measurement import Measurement, Sample, Status
from smembench.run.config import from_flags
from smembench.run.plan import plan
from smembench.store.relations import relate
from smembench.toolchains.machine_code import machine_code

DOCUMENTED = ("copyGmem", "naiveGmem", "transposeSmem", "transposeSmemPad", "naive", "tiled")
PORTS = [kernel for kernel in registry.kernels() if kernel.compiler == "nvrtc"]
FREE = {"cuda:0": Limits(free_bytes=2**34), "cpu": Limits(free_bytes=2**34)}


def nvrtc_is_missing() -> bool:
    from cuda.pathfinder import load_nvidia_dynamic_lib

    try:
        load_nvidia_dynamic_lib("nvrtc")
    except Exception:
        return True
    return False


def case_of(kernel: Kernel, dtype: str = "float32") -> Case:
    return Case(kernel.problem, kernel.name, "cuda:0", dtype, 40, 56, 32, Block(16, 16), 1 if kernel.pad else 0)


def planned(problem: str, **sweep: object) -> list[tuple[str, str]]:
    config = from_flags({"sweep": [{"problem": problem, "n": 64, "block": "16x16", "device": "cuda", **sweep}]})
    return [(item.case.kernel, item.case.compiler) for item in plan(config, FREE, {"cuda:0": "cuda:0"})]


def by_both_compilers(name: str, side: int) -> tuple[Case, Case]:
    (kernel,) = (port for port in PORTS if port.name == name)
    case = replace(case_of(kernel), block=Block(side, side))
    return replace(case, compiler=DEFAULT_COMPILER), replace(case, compiler=kernel.compiler)


def test_each_kernel_of_the_documents_has_a_port() -> None:
    assert set(DOCUMENTED) <= {port.name for port in PORTS}


@pytest.mark.parametrize(("name", "side"), [(n, s) for n, s in product(DOCUMENTED, (16, 32)) if n != "naive"])
def test_numba_makes_as_little_of_the_documents_kernels_as_cuda_c(name: str, side: int) -> None:
    numba, nvrtc = (machine_code(case, "9.0") for case in by_both_compilers(name, side))
    if numba is None or nvrtc is None:
        pytest.skip("needs NVIDIA's compiler libraries")
    assert numba.registers <= nvrtc.registers
    assert numba.instructions <= 1.02 * nvrtc.instructions  # other versions may need one more
    assert numba.spilled_bytes == nvrtc.spilled_bytes == 0


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.name)
def test_a_port_differs_from_its_numba_kernel_in_the_compiler_alone(port: Kernel) -> None:
    numba = registry.find(port.problem, port.name, "cuda")
    assert numba is not None
    assert replace(port, compiler="numba", build=numba.build, unsupported=numba.unsupported) == numba
    ours, theirs = cuda_c_kernel(port, case_of(port)), numba_kernel(numba, case_of(numba))
    for field in fields(GpuKernel):
        if field.name != "persistent_blocks":
            assert getattr(ours, field.name) == getattr(theirs, field.name)
    assert [ours.on(count).grid for count in (1, 7, 132)] == [theirs.on(count).grid for count in (1, 7, 132)]
    assert ours.entry == port.name


@pytest.mark.skipif(nvrtc_is_missing(), reason="needs the NVRTC library")
@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.name)
def test_nvrtc_compiles_a_port_for_every_dtype(port: Kernel) -> None:
    from smembench.toolchains.nvrtc import compiled

    done = []
    for dtype in PROBLEMS[port.problem].dtypes:
        numba = registry.find(port.problem, port.name, "cuda")
        assert numba is not None
        cases = [replace(case_of(port, dtype), block=Block(x, y)) for x, y in ((16, 16), (16, 8), (8, 8))]
        fit = (c for c in cases if numba.unsupported(c) is None and numba.shared_bytes(c) <= STATIC_SHARED_BYTES)
        case = next(fit, None)
        if case is not None:
            assert port.name.encode() in bytes(compiled(cuda_c_kernel(port, case), "9.0").code)
            done.append(dtype)
    assert "float32" in done


def test_rows_of_both_compilers_stand_side_by_side_and_the_yardstick_runs_once() -> None:
    found = planned("transpose", kernel="copyGmem,naiveGmem", compiler="numba,nvrtc")
    assert found == [
        ("memcpy", "numba"),
        ("copyGmem", "numba"),
        ("copyGmem", "nvrtc"),
        ("naiveGmem", "numba"),
        ("naiveGmem", "nvrtc"),
    ]


def test_every_stencil_on_a_gpu_has_a_port() -> None:
    found = planned("constant", compiler="nvrtc")
    assert [kernel for kernel, compiler in found if compiler == "nvrtc"] == list(registry.names("constant"))


def test_the_cpu_baseline_runs_whatever_the_compiler() -> None:
    assert planned("matmul", compiler="nvrtc") == [("cpu", "numba"), ("naive", "nvrtc"), ("tiled", "nvrtc")]


def test_a_kernel_without_a_port_is_refused_by_name_with_those_that_have_one() -> None:
    with pytest.raises(UsageError, match=r"transposeSmemDyn' has no port for --compiler nvrtc \(there are: copyGmem"):
        planned("transpose", kernel="transposeSmemDyn", compiler="nvrtc")
    with pytest.raises(UsageError, match="--compiler 'gcc': no such compiler"):
        planned("transpose", compiler="gcc")


def test_a_port_is_not_traced() -> None:
    port = PORTS[0]
    with pytest.raises(UsageError, match="CUDA C is not traced"):
        trace(port, case_of(port))


def test_a_port_is_compared_with_the_naive_kernel_of_its_own_compiler() -> None:
    def measured(kernel: str, compiler: str, elapsed_ms: float) -> Measurement:
        block = None if kernel == "memcpy" else Block(16, 16)
        case = Case("transpose", kernel, "cuda:0", "float32", 64, 64, None, block, compiler=compiler)
        return Measurement(case, Status.OK, "", 2**15, 0, 0, samples=(Sample(0, 0, elapsed_ms),))

    done = [
        measured("memcpy", "numba", 1.0),
        measured("naiveGmem", "numba", 8.0),
        measured("naiveGmem", "nvrtc", 6.0),
        measured("copyGmem", "nvrtc", 2.0),
    ]
    related = relate(done)[done[3].case]
    assert (related.percent_of_copy, related.speedup_vs_naive) == (50.0, 3.0)


def test_naives_port_refuses_what_its_indices_do_not_reach() -> None:
    (naive,) = (port for port in PORTS if port.name == "naive")
    reached, beyond = (
        Case("matmul", "naive", "cuda:0", "float32", side, side, 8, Block(16, 16)) for side in (46340, 46341)
    )
    assert naive.unsupported(reached) is None
    assert "int indices, which reach 2147483647 elements, not 2147488281" in str(naive.unsupported(beyond))
