from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle, product
from typing import Any

import numpy as np
import pytest

from programs import assert_right, case_of
from smembench.devices.base import GUARD_BYTES, POISON, OutOfBounds
from smembench.devices.cpu import CpuDevice, CpuPrepared
from smembench.devices.host_clock import HostClock
from smembench.kernels import registry
from smembench.kernels.kernel import Kernel
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import HostFunction
from smembench.model.case import Block, Case

KERNELS = [kernel for kernel in registry.kernels() if kernel.kind == "cpu"]
SIZES = [(1, 1, 1), (9, 17, 7), (16, 8, 8)]
"""m, n and k: less than a block, one more than a block or two each way, and whole blocks."""
COPIES = ("memcpy", "hostCopy")
"""Kernels that are NumPy's functions; Numba compiles the others."""
BLOCKS = [Block(8, 8), Block(8, 4)]


@pytest.fixture(scope="module")
def cpu() -> CpuDevice:
    return CpuDevice()


def verify(cpu: CpuDevice, kernel: Kernel, case: Case) -> None:
    def run(inputs: tuple[Any, ...]) -> Any:
        prepared = cpu.prepare(case, kernel, PROBLEMS[kernel.problem], inputs)
        prepared.poison()
        prepared.launch()
        output = prepared.output()
        prepared.close()
        return output

    assert_right(case, run)


def cases_of(kernel: Kernel) -> Iterator[Case]:
    """Cases of a kernel: every block and every second of many element types, as both are compiled in; sub-matrices.

    Kernels beside each other meet different types.
    """
    dtypes = PROBLEMS[kernel.problem].dtypes
    chosen = dtypes[KERNELS.index(kernel) % 2 :: 2] if len(dtypes) > 3 else dtypes
    for (dtype, block), (m, n, k) in product(zip(chosen, cycle(BLOCKS), strict=False), SIZES):
        case = case_of(kernel, m, n, k, dtype, block)
        yield case_of(kernel, m, n, k, dtype, BLOCKS[0]) if kernel.refusal(case) else case
    if kernel.strided:
        yield case_of(kernel, 33, 12, 40, chosen[0], BLOCKS[0], stride=73)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.problem}-{kernel.name}")
def test_every_kernel_is_right_on_ragged_sizes_and_sub_matrices(cpu: CpuDevice, kernel: Kernel) -> None:
    for case in cases_of(kernel):
        verify(cpu, kernel, case)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{kernel.problem}-{kernel.name}")
def test_what_a_kernel_closes_over_has_the_same_name_in_every_process(kernel: Kernel) -> None:
    """By these names its machine code is kept."""
    program = kernel.build(next(cases_of(kernel)))
    assert isinstance(program, HostFunction)
    compiled: Any = program.compiled or program.function
    assert hasattr(compiled, "py_func") is (kernel.name not in COPIES)
    closed = [] if kernel.name in COPIES else compiled.py_func.__closure__
    assert not [cell for cell in closed if " at 0x" in repr(cell.cell_contents)]


@pytest.mark.parametrize(("index", "side"), [(-1, "before"), (4, "after")])
def test_a_write_beside_the_output_is_caught(index: int, side: str) -> None:
    def careless(out: Any, inp: Any, *sides: int) -> None:
        out.base[GUARD_BYTES // 4 + index] = 0

    case = Case("transpose", "memcpy", "cpu", "float32", 2, 2)
    prepared = CpuPrepared(careless, (np.ones(4, np.float32),), case, PROBLEMS["transpose"], None)
    prepared.poison()
    assert (prepared.output().view("u1") == POISON).all()
    prepared.launch()
    with pytest.raises(OutOfBounds, match=f"outside its output, {side} it"):
        prepared.output()


@pytest.mark.parametrize("cold", [False, True], ids=["warm", "cold"])
def test_the_clock_measures_a_known_sleep(cold: bool) -> None:
    calls: list[str] = []

    def call() -> None:
        calls.append("call")
        time.sleep(0.005)

    def flush() -> None:
        calls.append("flush")
        time.sleep(0.02)

    clock = HostClock(call, flush if cold else None)
    calls.clear()
    elapsed = [clock.take() for _ in range(5)]
    assert 5 <= min(elapsed) < 20  # the flush is not in it
    assert calls == ["flush", "call"] * 5 if cold else "flush" not in calls


def test_a_short_function_is_called_many_times_a_sample() -> None:
    calls: list[int] = []
    clock = HostClock(lambda: calls.append(sum(range(2000))))
    calls.clear()
    begun = time.perf_counter()
    elapsed = clock.take()
    lasted_ms = (time.perf_counter() - begun) * 1e3
    assert len(calls) > 10
    assert elapsed * len(calls) == pytest.approx(lasted_ms, rel=0.1)


def test_the_cpu_says_what_it_is(cpu: CpuDevice) -> None:
    info = cpu.info
    assert (info.name, info.kind) == ("cpu", "cpu")
    assert info.model
    assert 0 < cpu.limits().free_bytes <= info.memory_bytes
    assert "uuid" not in info.known
