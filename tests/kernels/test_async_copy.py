"""Asynchronous copies as the compiler takes them. What they copy: tests/simulator."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numba
import pytest

from smembench.kernels.intrinsics.async_copy import (
    commit_copies,
    copy_element_async,
    copy_vector_async,
    wait_for_copies,
)
from smembench.kernels.intrinsics.vector import ALIGNMENT
from smembench.kernels.numba_cuda import cuda, number
from smembench.model.problem import ITEMSIZE
from smembench.toolchains import nvvm

types: Any = numba.types


def compiled(function: Callable[..., None], dtype: str) -> str:
    """PTX of a kernel of two arrays and an index."""
    arrays = (number(dtype)[::1],) * 2
    text = nvvm.compiled(function, (*arrays, types.uint32), (9, 0), at_link_time=False).decode()
    return str(text)


def two_groups(out: Any, inp: Any, index: Any) -> None:
    tile = cuda.shared.array(16, inp.dtype, alignment=ALIGNMENT)
    copy_vector_async(tile, 0, inp, index)
    commit_copies()
    copy_vector_async(tile, 8, inp, 8)
    commit_copies()
    wait_for_copies(1)
    out[0] = tile[index]
    wait_for_copies(0)
    out[1] = tile[8]


def single_elements(out: Any, inp: Any, index: Any) -> None:
    tile = cuda.shared.array(16, inp.dtype, alignment=ALIGNMENT)
    copy_element_async(tile, 3, inp, index)
    commit_copies()
    wait_for_copies(0)
    out[0] = tile[3]


VECTOR = "cp.async.cg.shared.global, 16"
COMMIT, *WAIT = "cp.async.commit_group", "cp.async.wait_group 0", "cp.async.wait_group 1"
TWO_GROUPS = [VECTOR, COMMIT, VECTOR, COMMIT, WAIT[1], "ld.shared", WAIT[0], "ld.shared"]


@pytest.mark.usefixtures("ptx")
@pytest.mark.parametrize(
    ("function", "dtype", "expected"),
    [
        *[(two_groups, dtype, TWO_GROUPS) for dtype in sorted(ITEMSIZE)],
        *[
            (single_elements, dtype, [f"cp.async.ca.shared.global, {size}", COMMIT, WAIT[0], "ld.shared"])
            for dtype, size in (("float32", 4), ("float64", 8))
        ],
    ],
)
def test_copies_go_past_the_registers_and_waits_stay_in_their_order(
    function: Callable[..., None], dtype: str, expected: list[str]
) -> None:
    result = re.findall(r"cp\.async[^;]*|(?:ld|st)\.shared|ld\.global", compiled(function, dtype))
    assert [re.sub(r" \[.*\]", "", instruction) for instruction in result] == expected


def half_an_element(out: Any, inp: Any, index: Any) -> None:
    copy_element_async(cuda.shared.array(16, types.float16, alignment=ALIGNMENT), 0, inp, index)


def waits_for_some(out: Any, inp: Any, index: Any) -> None:
    wait_for_copies(index)


def copies_into_other_elements(out: Any, inp: Any, index: Any) -> None:
    copy_vector_async(cuda.shared.array(16, types.int8, alignment=ALIGNMENT), 0, inp, index)


@pytest.mark.usefixtures("ptx")
@pytest.mark.parametrize("function", [waits_for_some, copies_into_other_elements, half_an_element])
def test_what_no_instruction_does_is_no_kernel(function: Callable[..., None]) -> None:
    with pytest.raises(Exception, match="No implementation of function"):
        compiled(function, "float32")
