"""CUDA C ports: what they share with their Numba kernels, how they are planned, and that NVRTC takes them."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product

import pytest

import programs
from programs import PORTS, case_of, cuda_c_kernel, cuda_kernel, dtypes_of, first_dtype, numba_kernel
from smembench.explain.analysis import explain
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import GpuKernel
from smembench.model.case import DEFAULT_COMPILER, Block, Case
from smembench.model.errors import UsageError
from smembench.model.hardware import STATIC_SHARED_BYTES
from smembench.toolchains.machine_code import machine_code

DOCUMENTED = ("copyGmem", "naiveGmem", "transposeSmem", "transposeSmemPad", "naive", "tiled")
SQUARE = Block(16, 16)


def nvrtc_is_missing() -> bool:
    from cuda.pathfinder import load_nvidia_dynamic_lib

    try:
        load_nvidia_dynamic_lib("nvrtc")
    except Exception:
        return True
    return False


def port_of(name: str) -> Kernel:
    return next(port for port in PORTS if port.name == name)


def case(kernel: Kernel, dtype: str = "float32", block: Block = SQUARE) -> Case:
    return case_of(kernel, 40, 56, 32, dtype, block)


def planned(problem: str, **sweep: object) -> list[tuple[str, str]]:
    plan = programs.planned({"problem": problem, "n": 64, "block": "16x16", "device": "cuda", **sweep})
    return [(item.case.kernel, item.case.compiler) for item in plan]


@pytest.mark.usefixtures("by_nvvm")
@pytest.mark.parametrize(("name", "side"), [(n, s) for n, s in product(DOCUMENTED, (16, 32)) if n != "naive"])
def test_numba_makes_as_little_of_the_documents_kernels_as_cuda_c(name: str, side: int) -> None:
    by_nvrtc = case(port_of(name), block=Block(side, side))
    nvrtc, numba = (machine_code(entry, "9.0") for entry in (by_nvrtc, replace(by_nvrtc, compiler=DEFAULT_COMPILER)))
    if numba is None or nvrtc is None:
        pytest.skip("needs NVIDIA's compiler libraries")
    assert numba.registers <= nvrtc.registers + 1  # 14 and 13 of transposeSmemPad: a thread is allocated 16
    # Other versions may need one more; the tile loop of tiled counts in 64 bits, where that of the port has an int.
    assert numba.instructions <= (1.25 if name == "tiled" else 1.02) * nvrtc.instructions
    assert numba.spilled_bytes == nvrtc.spilled_bytes == 0


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.name)
def test_a_port_differs_from_its_numba_kernel_in_the_compiler_alone(port: Kernel) -> None:
    numba = cuda_kernel(port.problem, port.name)
    assert replace(port, compiler="numba", build=numba.build, unsupported=numba.unsupported) == numba
    dtype = first_dtype(port)
    ours, theirs = cuda_c_kernel(case(port, dtype)), numba_kernel(case(numba, dtype))
    for field in fields(GpuKernel):
        assert getattr(ours, field.name) == getattr(theirs, field.name)
    assert ours.entry == port.name


@pytest.mark.skipif(nvrtc_is_missing(), reason="needs the NVRTC library")
@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.name)
def test_nvrtc_compiles_a_port_for_every_dtype(port: Kernel) -> None:
    from smembench.toolchains.nvrtc import compiled

    done = []
    for dtype in dtypes_of(port):
        cases = (case_of(port, 256, 256, 64, dtype, Block(x, y)) for x, y in ((16, 16), (16, 8), (8, 8)))
        taken = (c for c in cases if port.refusal(c) is None)
        fit = (c for c in taken if port.static_bytes(c) <= STATIC_SHARED_BYTES)
        if chosen := next(fit, None):
            assert port.name.encode() in bytes(compiled(cuda_c_kernel(chosen), "9.0").code)
            done.append(dtype)
    assert done[0] == first_dtype(port)


def test_rows_of_both_compilers_stand_side_by_side_and_the_yardstick_runs_once() -> None:
    both = product(("copyGmem", "naiveGmem"), ("numba", "nvrtc"))
    assert planned("transpose", kernel="copyGmem,naiveGmem", compiler="numba,nvrtc") == [("memcpy", "numba"), *both]


def test_the_cpu_baseline_runs_whatever_the_compiler() -> None:
    assert planned("matmul", compiler="nvrtc") == [("cpu", "numba"), ("naive", "nvrtc"), ("tiled", "nvrtc")]


def test_a_kernel_without_a_port_is_refused_by_name_with_those_that_have_one() -> None:
    with pytest.raises(UsageError, match=r"transposeSmemDyn' has no port for --compiler nvrtc .*copyGmem"):
        planned("transpose", kernel="transposeSmemDyn", compiler="nvrtc")
    with pytest.raises(UsageError, match="--compiler 'gcc': no such compiler"):
        planned("transpose", compiler="gcc")


def test_a_port_is_not_traced() -> None:
    port = PORTS[0]
    with pytest.raises(UsageError, match="CUDA C is not traced"):
        explain(case(port))


def test_naives_port_refuses_what_its_indices_do_not_reach() -> None:
    naive = port_of("naive")
    reached, beyond = (case_of(naive, side, side, 8) for side in (46340, 46341))
    assert naive.refusal(reached) is None
    assert "int indices, which reach 2147483647 elements, not 2147488281" in str(naive.refusal(beyond))
