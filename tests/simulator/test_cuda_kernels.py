"""Kernels whose PTX does not tell their results, and the simulator itself: threads that meet, or fail to.

Collected only where NUMBA_ENABLE_CUDASIM is set (see conftest.py). Most kernels' results: tests/values.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest

import by_ptx
import simulated
from programs import NUMBA, assert_right, ragged
from smembench.kernels import registry
from smembench.kernels.common.grids import block_of, covering
from smembench.kernels.intrinsics.warp_group import GROUP, meet_group
from smembench.kernels.kernel import Kernel
from smembench.kernels.numba_cuda import cuda, number
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import NumbaKernel
from smembench.kernels.transpose.problem import TRANSPOSE
from smembench.model.case import Block, Case

ONE_IN = 3
"""One case in so many, and what it takes for each axis to meet all its values."""
AXES = (attrgetter("dtype"), attrgetter("block"), attrgetter("pad"), attrgetter("m", "n", "k"))


def verify(case: Case, kernel: Kernel | None = None) -> None:
    """Check a case, with another kernel than its own if one is given."""
    chosen = kernel or registry.kernel_of(case)
    assert_right(case, lambda inputs: simulated.run(case, chosen, PROBLEMS[case.problem], inputs), chosen.computes)


def cases_of(kernel: Kernel) -> list[Case]:
    allowed = [case for case in ragged(kernel) if not by_ptx.follows(kernel, case.dtype)]
    chosen = allowed[::ONE_IN]
    for axis in AXES:
        chosen += {axis(case): case for case in allowed if axis(case) not in map(axis, chosen)}.values()
    return chosen


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for kernel in NUMBA for case in cases_of(kernel)])
def test_every_kernel_is_right_on_ragged_sizes(case: Case) -> None:
    verify(case)


def as_kernel(function: Any) -> Kernel:
    def build(case: Case) -> NumbaKernel:
        return NumbaKernel(function, grid=covering(case.n, case.m, block_of(case)), block=block_of(case))

    return replace(NUMBA[-1], build=build, computes=TRANSPOSE)


WRONG = Case("transpose", "wrong", "cuda:0", "float32", 5, 7, None, Block(4, 4))


def test_an_error_before_a_barrier_ends_the_threads_that_wait_there() -> None:
    def negative(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        if cuda.threadIdx.x == 3:
            out[0] = cuda.threadIdx.x + -1  # NumPy refuses what wraps around on a GPU
        cuda.syncthreads()

    with pytest.raises(OverflowError, match="out of bounds"):
        verify(replace(WRONG, m=1, n=8, block=Block(8, 1)), as_kernel(negative))


def in_lines(function: Any) -> None:
    """Hold a copy of 64 elements by two warps to the reference."""
    verify(replace(WRONG, m=1, n=64, block=Block(64, 1)), as_kernel(function))


def test_shuffles_give_what_the_lanes_behind_hold_while_other_warps_wait() -> None:
    def shuffled(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        at = cuda.threadIdx.x
        if at < 32:
            behind = cuda.shfl_down_sync(0xFFFFFFFF, inp[at], 3)
            again = cuda.shfl_down_sync(0xFFFFFFFF, behind, 1)
            if at < 28:
                out[at + 4] = again
            if at < 4:
                out[at] = inp[at]
            assert at < 29 or behind == inp[at]
        cuda.syncthreads()
        if at >= 32:
            out[at] = inp[at]

    in_lines(shuffled)


def test_a_lane_that_its_warp_waits_for_in_vain_is_an_error() -> None:
    def alone(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        if cuda.threadIdx.x != 5:
            cuda.syncwarp()

    with pytest.raises(AssertionError, match=r"lanes \[5\] are missing"):
        in_lines(alone)


@pytest.mark.parametrize("synchronised", [True, False])
def test_lanes_see_what_others_wrote_after_a_barrier_of_their_warp(synchronised: bool) -> None:
    def shifted(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array(64, number("float32"))
        at = cuda.threadIdx.x
        tile[at] = inp[at]
        if synchronised:
            cuda.syncwarp()
        out[at ^ 1] = tile[at ^ 1]

    if synchronised:
        in_lines(shifted)
    else:
        with pytest.raises(AssertionError, match="elements differ"):
            in_lines(shifted)


def in_groups(function: Any) -> None:
    """Hold a copy of 256 elements by two warp groups to the reference."""
    verify(replace(WRONG, m=1, n=256, block=Block(256, 1)), as_kernel(function))


def test_a_thread_that_its_group_waits_for_in_vain_is_an_error() -> None:
    def alone(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        if cuda.threadIdx.x != 5:
            meet_group(1 + cuda.threadIdx.x // GROUP)

    with pytest.raises(AssertionError, match="threads are missing where their group waits"):
        in_groups(alone)


@pytest.mark.parametrize("synchronised", [True, False])
def test_threads_see_what_others_wrote_after_a_barrier_of_their_group(synchronised: bool) -> None:
    def shifted(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array(256, number("float32"))
        at = cuda.threadIdx.x
        tile[at] = inp[at]
        if synchronised:
            meet_group(1 + at // GROUP)
        out[at ^ 64] = tile[at ^ 64]

    if synchronised:
        in_groups(shifted)
    else:
        with pytest.raises(AssertionError, match="elements differ"):
            in_groups(shifted)


@pytest.mark.parametrize("way", [1, 7], ids=["from threads after", "from threads before"])
def test_a_missing_barrier_is_caught(way: int) -> None:
    """Even where all threads but one read what a thread before them has written."""

    def shifted(out: Any, inp: Any, nx: Any, ny: Any) -> None:
        tile = cuda.shared.array(8, number("float32"))
        at = cuda.threadIdx.x
        cuda.syncthreads()
        tile[at] = inp[at]
        out[at] = tile[(at + way) % 8]

    with pytest.raises(AssertionError, match="elements differ"):
        verify(replace(WRONG, m=1, n=8, block=Block(8, 1)), as_kernel(shifted))
