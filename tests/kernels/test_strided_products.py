"""Products of sub-matrices on the CPU: what lies between the rows is neither read nor written."""

from __future__ import annotations

import pytest

from smembench.devices.cpu import CpuDevice
from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block, Case

KERNELS = [kernel for kernel in registry.kernels() if (kernel.problem, kernel.kind) == ("matmul", "cpu")]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_products_of_sub_matrices_touch_nothing_between_their_rows(kernel: registry.Kernel) -> None:
    cpu, problem = CpuDevice(), PROBLEMS["matmul"]
    assert kernel.strided
    for dtype, stride in (("float32", 40), ("float64", 41)):
        case = Case(
            "matmul", kernel.name, "cpu", dtype, 33, 12, 40, Block(8, 8) if kernel.blocks else None, stride=stride
        )
        inputs = problem.inputs(case, seed=1)
        prepared = cpu.prepare(case, kernel, problem, inputs)
        prepared.poison()
        prepared.launch()
        verdict = problem.check(case, problem.reference(case, inputs, kernel.computes), prepared.output())
        prepared.close()
        assert verdict.passed, f"{case.id}: {verdict.detail}"
