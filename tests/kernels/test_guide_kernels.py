"""The programming guide's MatMulKernel and MatMul: what they share with tiled and with each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from programs import cuda_kernel, numba_kernel
from smembench.explain.analysis import explain
from smembench.kernels.registry import solves
from smembench.model.case import Block, Case

CASE = Case("matmul", "MatMulKernel", "cuda:0", "float32", 100, 70, 50, Block(16, 16))
WHOLE = replace(CASE, kernel="MatMul")


@pytest.mark.parametrize("stride", [None, 128])
def test_the_guides_kernel_accesses_memory_as_tiled_does(stride: int | None) -> None:
    guide, tiled = (explain(replace(CASE, kernel=name, stride=stride)) for name in ("MatMulKernel", "tiled"))
    assert {access.degree for access in guide.shared} == {1}
    assert sum(access.sectors for access in guide.traffic) == sum(access.sectors for access in tiled.traffic)
    assert [access.per_element for access in guide.loads] == [access.per_element for access in tiled.loads]


def test_the_host_function_launches_the_kernel_between_allocations_and_copies() -> None:
    alone, whole = numba_kernel(CASE), numba_kernel(WHOLE)
    assert (whole.grid, whole.block) == (alone.grid, alone.block)
    assert whole.function.__code__ == alone.function.__code__
    assert (alone.on_device, alone.allocates) == (True, False)
    assert (whole.inputs, whole.output, whole.allocates) == ("pageable", "pageable", True)


def test_the_host_function_is_timed_warm_and_dense_and_is_no_candidate_for_tune() -> None:
    whole = cuda_kernel("matmul", "MatMul")
    assert whole.refusal(WHOLE) is None
    assert "timed warm only" in str(whole.refusal(replace(WHOLE, cache="cold")))
    assert "needs a square block" in str(whole.refusal(replace(WHOLE, block=Block(16, 8))))
    assert not whole.strided
    assert (solves(whole), solves(cuda_kernel("matmul", "MatMulKernel"))) == (False, True)
