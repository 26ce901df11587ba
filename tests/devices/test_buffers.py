"""Buffers of a GPU, with host memory in its place. The whole path of a case: test_driver_measures.py."""

from __future__ import annotations

import ctypes
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver
from hypothesis import given
from hypothesis import strategies as st

from programs import case_of, cuda_kernel
from smembench.devices import buffers
from smembench.devices.base import GUARD_BYTES, POISON, OutOfBounds, with_copies
from smembench.devices.buffers import BufferPool, Output, after_zeros, between_allocations
from smembench.kernels.program import LibraryCall


class DeviceArray:
    """Host memory that says it is on a device."""

    def __init__(self, content: np.ndarray[Any, Any]) -> None:
        self.content, self.size, self.dtype = content, content.size, content.dtype
        self.address = content.ctypes.data

    def __getitem__(self, index: slice) -> DeviceArray:
        return DeviceArray(self.content[index])

    def copy_to_host(self) -> np.ndarray[Any, Any]:
        return self.content.copy()

    def view(self, dtype: Any) -> DeviceArray:
        return DeviceArray(self.content.view(dtype))


def allocations(patch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is allocated on the device from now on."""
    sizes: list[int] = []

    def device_array(count: int, dtype: Any) -> DeviceArray:
        sizes.append(count)
        return DeviceArray(np.empty(count, dtype))

    patch.setattr(buffers, "device_array", device_array)
    return sizes


def memset(address: int, byte: int, size: int, stream: int) -> tuple[driver.CUresult]:
    """In place of cuMemsetD8Async."""
    ctypes.memset(address, byte, size)
    return (driver.CUresult.CUDA_SUCCESS,)


def copied(target: int, source: int, size: int, stream: int) -> tuple[driver.CUresult]:
    """In place of cuMemcpyAsync."""
    ctypes.memmove(target, source, size)
    return (driver.CUresult.CUDA_SUCCESS,)


@pytest.mark.parametrize(
    ("kernel", "places"),
    [
        ("h2dPageable", ("pageable", "device")),
        ("h2dPinned", ("pinned", "device")),
        ("d2hPageable", ("device", "pageable")),
        ("d2hPinned", ("device", "pinned")),
    ],
)
def test_a_copy_goes_from_where_its_name_says_to_where_it_says(kernel: str, places: tuple[str, str]) -> None:
    declared = cuda_kernel("transfer", kernel)
    program = declared.build(case_of(declared, 1, 100, dtype="int32"))
    assert isinstance(program, LibraryCall)
    assert (program.inputs, program.output, program.on_device) == (*places, False)


@pytest.mark.parametrize(("index", "side"), [(-1, "before"), (100, "after")])
def test_a_write_beside_an_output_in_host_memory_is_caught(index: int, side: str) -> None:
    output = Output(100, np.int32, "pageable")
    output.poison(0)
    assert (output.read().view("u1") == POISON).all()
    output.array.base[GUARD_BYTES // 4 + index] = 0
    with pytest.raises(OutOfBounds, match=side):
        output.read()


@given(sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=12), slot=st.integers(0, 2))
def test_arrays_of_a_place_that_was_reserved_begin_where_all_others_do(sizes: list[int], slot: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        allocations(patch)
        pool = BufferPool()
        pool.reserve([4 * max(sizes)] * 3, free=12 * max(sizes))
        taken = [pool.take(slot, size, np.float32)[0] for size in sizes]
        assert len({array.address for array in taken}) == 1
        assert [array.size for array in taken] == sizes


@given(size=st.integers(1, 5000), copies=st.integers(2, 9))
def test_copies_of_an_array_are_apart_aligned_and_within_what_was_reserved(size: int, copies: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        allocated = allocations(patch)
        pool = BufferPool()
        pool.reserve([with_copies(4 * size, copies)], free=2**30)
        taken = pool.take(0, size, np.float32, copies)
        begins = [array.address - taken[0].address for array in taken]
        assert all(begin % 512 == 0 for begin in begins)
        assert all(later - begin >= 4 * size for begin, later in pairwise(begins))
        assert len(taken) == copies
        assert len(allocated) == 1


def test_places_are_not_reserved_where_they_do_not_fit_and_grow_when_they_must(monkeypatch: pytest.MonkeyPatch) -> None:
    allocated = allocations(monkeypatch)
    pool = BufferPool()
    pool.reserve([100, 100], free=199)
    assert allocated == []
    pool.take(1, 10, np.float32)
    pool.reserve([100, 40], free=100)
    pool.take(1, 10, np.float32)
    pool.take(1, 11, np.float32)
    assert allocated == [40, 100, 44]


def test_a_launch_that_adds_to_its_output_finds_zeros_there_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(output: DeviceArray, summand: int) -> None:
        output.content += summand

    monkeypatch.setattr(driver, "cuMemsetD8Async", memset)
    output = DeviceArray(np.full(3, -1, np.int32))
    enqueue = after_zeros(7, launch)
    for summand in (5, 4):
        enqueue(output, summand)
        assert output.content.tolist() == [summand] * 3


def test_a_launch_that_allocates_has_arrays_of_its_own_and_the_first_one_after_poison_is_filled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allocated = allocations(monkeypatch)
    monkeypatch.setattr(driver, "cuMemcpyAsync", copied)
    monkeypatch.setattr(driver, "cuMemsetD8Async", memset)
    outcome: list[tuple[int, list[int]]] = []

    def launch(output: DeviceArray, one: DeviceArray, other: DeviceArray) -> None:
        outcome.append((output.address, output.content.tolist()))
        output.content[:] = one.content + other.content

    inputs = [np.arange(3, dtype=np.int32), np.arange(3, dtype=np.int32)]
    output = Output(3, np.int32, "pageable")
    enqueue, result, staged = between_allocations(7, launch, inputs, output)
    assert allocated == []
    for poisoned in (True, False):
        if poisoned:
            result.poison(7)
        output.array[:] = 0
        enqueue()
        assert output.array.tolist() == [0, 2, 4]
        assert (outcome[-1][1] == [-1] * 3) == poisoned
        result.read()
        assert [array.content.tolist() for array in staged] == [[0, 1, 2]] * 2
    assert allocated == [3, 3, 3 + 2 * GUARD_BYTES // 4] * 2


def test_a_write_beside_an_output_that_a_launch_allocates_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    allocations(monkeypatch)
    monkeypatch.setattr(driver, "cuMemcpyAsync", copied)
    monkeypatch.setattr(driver, "cuMemsetD8Async", memset)

    def launch(output: DeviceArray) -> None:
        whole: Any = output.content.base
        whole[GUARD_BYTES // 4 - 1] = 0

    enqueue, result, _ = between_allocations(7, launch, (), Output(3, np.int32, "pageable"))
    result.poison(7)
    enqueue()
    with pytest.raises(OutOfBounds, match="before"):
        result.read()
