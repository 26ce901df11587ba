"""The access problem: what its kernels carry where, what is counted, and what is predicted of them."""

from __future__ import annotations

from dataclasses import replace
from math import gcd
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import programs
from programs import cuda_kernel
from smembench.explain.analysis import explain
from smembench.explain.launch_layouts import pads_of
from smembench.kernels import registry
from smembench.kernels.access.line import apart, by_stride, first_of_warp
from smembench.kernels.access.passes import Layout, LayoutOf, column, row
from smembench.kernels.access.problem import BROADCAST, LINE, READ_COLUMNS, SET_COLUMNS, STAY, tiles
from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Block, Case

ACCESS = PROBLEMS["access"]
SQUARE, RECTANGLE = Block(32, 32), Block(32, 16)


def case_of(kernel: str, **values: Any) -> Case:
    return replace(programs.case_of(cuda_kernel("access", kernel), 64, 4096, dtype="int32"), **values)


def element(layout: Layout, thread: int) -> int:
    return thread % layout.run * layout.step % layout.size + thread // layout.run * layout.next_run


def carried(case: Case, values: np.ndarray[Any, Any], sets: LayoutOf, reads: LayoutOf) -> list[int]:
    """What comes out, thread by thread and pass by pass, as the documents' kernels would do it in tiles."""
    block = case.block or LINE
    threads, count = block.x * block.y, tiles(case.dtype)
    out = []
    for first in range(0, case.n, threads):
        mine = values[first : first + threads].tolist()
        registers = [[value] * count for value in mine + [0] * (threads - len(mine))]
        for _ in range(case.m):
            tile: list[dict[int, int]] = [{} for _ in range(count)]
            for thread in range(threads):
                for number in range(count):
                    tile[number][element(sets(case), thread)] = registers[thread][number]
            for thread in range(threads):
                at = element(reads(case), thread)
                registers[thread] = [tile[(number + 1) % count][at] for number in range(count)]
                registers[thread][0] += 1
        out += [sum(values) for values in registers[: len(mine)]]
    return out


@given(
    st.sampled_from([(STAY, column, column), (READ_COLUMNS, row, column), (SET_COLUMNS, column, row)]),
    st.builds(Block, st.integers(1, 6), st.integers(1, 6)),
    st.integers(1, 5),
    st.integers(1, 50),
    st.integers(0, 2),
    st.sampled_from(ACCESS.dtypes),
)
def test_the_reference_is_what_passes_through_tiles_give(
    pattern: tuple[str, LayoutOf, LayoutOf], block: Block, passes: int, n: int, pad: int, dtype: str
) -> None:
    computes, sets, reads = pattern
    case = case_of("setRowReadColPad", m=passes, n=n, block=block, pad=pad, dtype=dtype)
    inputs = ACCESS.inputs(case, seed=3)
    expected = ACCESS.reference(case, inputs, computes)
    assert expected.dtype == inputs[0].dtype == dtype
    assert expected.tolist() == carried(case, inputs[0], sets, reads)


@pytest.mark.parametrize(
    ("kernel", "computes", "reads"), [("parallelAccess", STAY, apart), ("broadcastAccess", BROADCAST, first_of_warp)]
)
def test_the_reference_of_threads_in_a_line(kernel: str, computes: str, reads: LayoutOf) -> None:
    case = case_of(kernel, m=2, n=600)
    inputs = ACCESS.inputs(case, seed=3)
    assert ACCESS.reference(case, inputs, computes).tolist() == carried(case, inputs[0], apart, reads)


@pytest.mark.parametrize("dtype", ACCESS.dtypes)
def test_the_longest_sums_are_exact(dtype: str) -> None:
    passes = 2**22
    case = case_of("parallelAccess", m=passes, dtype=dtype)
    assert ACCESS.unsupported(case) is None
    largest = np.full(case.n, 2**20 - 1, dtype)
    assert ACCESS.reference(case, (largest,), STAY).tolist() == [tiles(dtype) * (2**20 - 1) + passes] * case.n
    assert "use fewer" in str(ACCESS.unsupported(case_of("parallelAccess", m=passes + 1)))


def test_a_pass_left_out_shows() -> None:
    case = case_of("setRowReadCol", m=7)
    inputs = ACCESS.inputs(case, seed=3)
    reference = ACCESS.reference(case, inputs, READ_COLUMNS)
    assert ACCESS.check(case, reference, reference).passed
    two_fewer = ACCESS.reference(case_of("setRowReadCol", m=5), inputs, READ_COLUMNS)
    assert ACCESS.check(case, reference, two_fewer).error == 1.0


@pytest.mark.parametrize("stride", [1, 2, 3, 6, 31, 32])
def test_no_two_threads_of_a_line_share_an_element(stride: int) -> None:
    layout = by_stride(case_of("strided", stride=stride))
    elements = [element(layout, thread) for thread in range(LINE.x)]
    assert len(set(elements)) == LINE.x
    assert max(elements) < layout.size
    apart = {(elements[lane + 1] - elements[lane]) % layout.size for lane in range(31)}
    assert apart == {stride % layout.size}


@pytest.mark.parametrize("dtype", ACCESS.dtypes)
def test_bytes_are_those_stored_and_loaded(dtype: str) -> None:
    case = case_of("setRowReadCol", m=10, n=1000, dtype=dtype)
    assert ACCESS.bytes_moved(case) == ACCESS.operations(case) == 10 * 1000 * 2 * 32


def test_without_a_size_every_multiprocessor_gets_as_many_threads() -> None:
    (shape,) = ACCESS.shapes({})
    case = case_of("setRowReadCol", m=shape.m, n=shape.n)
    assert ACCESS.on_device(case, 132).n == 132 * 24576
    assert ACCESS.on_device(case_of("setRowReadCol", n=100), 132).n == 100
    assert ACCESS.texts.size(case_of("setRowReadCol", m=256, n=1000)) == "256 passes of 1000 threads"


@pytest.mark.parametrize(
    ("values", "reason"), [({"stride": 33}, "use 1 to 32"), ({"cache": "cold"}, "leave cache out")]
)
def test_what_makes_no_sense_is_refused(values: dict[str, Any], reason: str) -> None:
    assert reason in str(ACCESS.unsupported(case_of("strided", **values)))


@pytest.mark.parametrize("suffix", ["", "Dyn"])
@pytest.mark.parametrize(
    ("pattern", "block", "load", "store"),
    [
        ("setRowReadRow", SQUARE, 1, 1),
        ("setColReadCol", SQUARE, 32, 32),
        ("setRowReadCol", SQUARE, 32, 1),
        ("setColReadRow", SQUARE, 1, 32),
        ("setRowReadCol", RECTANGLE, 16, 1),
    ],
)
def test_conflicts_of_patterns(pattern: str, suffix: str, block: Block, load: int, store: int) -> None:
    explained = explain(case_of(pattern + suffix, block=block))
    assert (explained.degree("load"), explained.degree("store")) == (load, store)


@pytest.mark.parametrize(("block", "pad"), [(SQUARE, 1), (RECTANGLE, 2), (Block(16, 16), None)])
def test_the_pad_that_frees_both_sides(block: Block, pad: int | None) -> None:
    (result,) = pads_of(explain(case_of("setRowReadColPad", block=block, pad=0)), row=block.x)
    assert (result.best and result.best.layout.pad) == pad


@pytest.mark.parametrize("stride", [1, 3, 4, 12, 32])
def test_strides_of_words_conflict_by_their_common_divisor_with_the_banks(stride: int) -> None:
    explained = explain(case_of("strided", stride=stride, dtype="float32"))
    assert explained.degree("load") == explained.degree("store") == gcd(stride, 32)


def test_the_three_situations() -> None:
    parallel, serial, broadcast = (explain(case_of(f"{name}Access")) for name in ("parallel", "serial", "broadcast"))
    assert (parallel.degree("load"), serial.degree("load"), broadcast.degree("load")) == (1, 32, 1)
    assert [access.broadcast for access in broadcast.shared] == [False, True]
    assert not any(access.broadcast for access in parallel.shared)


@pytest.mark.parametrize("kernel", registry.names("access"))
def test_a_trace_stands_for_all_passes_and_blocks(kernel: str) -> None:
    case = case_of(kernel, m=256, n=3 * 1024)
    explained = explain(case)
    requests = sum(access.requests for access in explained.shared)
    assert requests * 32 * 4 == ACCESS.bytes_moved(case)
