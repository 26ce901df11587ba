"""Threads of a block that run together do what each of them does alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs import NUMBA, case_of, cuda_kernel, first_dtype, numba_kernel
from smembench.explain import trace as tracing
from smembench.explain.lockstep import Group, run
from smembench.explain.trace import Trace, trace
from smembench.kernels.kernel import Kernel
from smembench.model.case import Block

Way = Callable[[Any, Callable[[Any], None]], None]
"""A kernel of a thread's number, and what it calls with what is to be noted."""

TRACEABLE = [kernel for kernel in NUMBA if kernel.blocks and (kernel.problem != "access" or kernel.name == "strided")]
"""Of the access kernels one, since all are the same passes and alone they take a second each."""


def alone(threads: int, kernel: Callable[[Group], None]) -> None:
    for thread in range(threads):
        kernel(Group(np.array([thread])))


def noted(way: Way, threads: int) -> tuple[list[list[int]], int]:
    """What each thread notes when all run together, and how often the kernel was called."""
    found: list[dict[int, int]] = [{} for _ in range(threads)]
    calls = 0

    def kernel(group: Group) -> None:
        nonlocal calls
        calls += 1
        count = 0

        def note(number: Any) -> None:
            nonlocal count
            going = group.threads[group.going]
            for thread, value in zip(going, np.broadcast_to(group.own(number), going.shape), strict=True):
                found[thread][count] = int(value)
            count += 1

        way(group.number(np.arange(threads)), note)

    run(threads, kernel)
    assert all(list(notes) == list(range(len(notes))) for notes in found)
    return [list(notes.values()) for notes in found], calls


def straight(thread: Any, note: Callable[[Any], None]) -> None:
    note(np.uint32(7))
    note(np.uint32(thread % 8) * 4 + thread // 8)
    note((thread ^ 5) << 1)


def branches(thread: Any, note: Callable[[Any], None]) -> None:
    note(thread)
    if thread % 3 == 0 and thread > 9:
        note(-thread)
    else:
        note(min(thread, 5))
    note(max(thread, 20))


def halves(thread: Any, note: Callable[[Any], None]) -> None:
    step = 16
    while step > 0:
        if thread < step:
            note(thread + step)
        step //= 2
    note(thread)


def loops(thread: Any, note: Callable[[Any], None]) -> None:
    place = np.uint32(thread)
    while place < 10:
        note(place)
        place += np.uint32(3)
    for step in range(thread % 3):
        note(step)
    note(thread)  # place was another name for it


def indexes(thread: Any, note: Callable[[Any], None]) -> None:
    held = np.zeros(4, np.float32)
    held[thread % 4] += 1  # data: nothing is noted of it
    note(int(thread // 4))
    if held[thread % 4] > 0:
        note(thread)


@pytest.mark.parametrize(
    ("way", "calls"),
    [
        pytest.param(straight, 1, id="one way"),
        pytest.param(branches, 8, id="seven ways"),
        pytest.param(halves, 8, id="half of them leave each time"),
    ],
)
def test_threads_that_take_the_same_way_run_once(way: Way, calls: int) -> None:
    found, often = noted(way, 32)
    assert found == own_ways(way, 32)
    assert often <= calls


@given(threads=st.integers(1, 70))
@pytest.mark.parametrize("way", [straight, branches, halves, loops, indexes])
def test_each_thread_notes_what_it_notes_alone(way: Way, threads: int) -> None:
    assert noted(way, threads)[0] == own_ways(way, threads)


def own_ways(way: Way, threads: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(threads)]
    for thread in range(threads):
        way(thread, found[thread].append)
    return found


def test_what_one_thread_raises_is_raised() -> None:
    def way(thread: Any, note: Callable[[Any], None]) -> None:
        note(100 // int(13 - thread))

    with pytest.raises(ZeroDivisionError):
        noted(way, 32)


@pytest.mark.parametrize("kernel", TRACEABLE, ids=lambda kernel: f"{kernel.problem}-{kernel.name}")
def test_a_trace_of_threads_together_is_that_of_threads_alone(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> None:
    """Of the last block, in which the most threads go ways of their own."""
    # Small blocks where they fit: alone, threads take their time.
    small = [Block(8, 8), *(kernel.default_blocks or [Block(16, 16)])]
    cases = [case_of(kernel, 75, 139, 17, first_dtype(kernel), block) for block in small]
    case = next(case for case in cases if kernel.refusal(case) is None)
    across, down = numba_kernel(case).grid
    monkeypatch.setattr(tracing, "kinds_of_blocks", lambda *_, **__: {(across - 1, down - 1): 1})
    together = trace(kernel, case)
    monkeypatch.setattr(tracing, "run", alone)
    assert in_order(together) == in_order(trace(kernel, case))


def test_threads_with_places_of_their_own_in_local_memory_run_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """transposeVectorized holds a column's places in the tile; its six kinds of blocks have 3072 threads."""
    calls = 0

    def counted(threads: int, kernel: Callable[[Group], None]) -> None:
        def called(group: Group) -> None:
            nonlocal calls
            calls += 1
            kernel(group)

        run(threads, called)

    monkeypatch.setattr(tracing, "run", counted)
    kernel = cuda_kernel("transpose", "transposeVectorized")
    trace(kernel, case_of(kernel, 75, 139, None, "float32", Block(16, 32)))
    assert 4 < calls < 200


def in_order(traced: Trace) -> Any:
    return sorted(map(str, traced.requests)), traced.shared, traced.blocks
