"""Buffers of a GPU, with host memory in its place. The whole path of a case: test_driver_measures.py."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver
from hypothesis import given
from hypothesis import strategies as st

from programs import case_of, cuda_kernel
from smembench.devices.base import GUARD_BYTES, POISON, OutOfBounds
from smembench.devices.buffers import BufferPool, Output, after_zeros
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.program import LibraryCall


class DeviceArray:
    """Host memory that says it is on a device."""

    def __init__(self, content: np.ndarray[Any, Any]) -> None:
        self.content, self.size, self.dtype = content, content.size, content.dtype
        self.device_ctypes_pointer = SimpleNamespace(value=content.ctypes.data)

    def __getitem__(self, index: slice) -> DeviceArray:
        return DeviceArray(self.content[index])

    def view(self, dtype: Any) -> DeviceArray:
        return DeviceArray(self.content.view(dtype))


def allocations(patch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is allocated on the device from now on."""
    sizes: list[int] = []

    def device_array(count: int, dtype: Any) -> DeviceArray:
        sizes.append(count)
        return DeviceArray(np.empty(count, dtype))

    patch.setattr(cuda, "device_array", device_array)
    return sizes


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
        taken = [pool.take(slot, size, np.float32) for size in sizes]
        assert len({array.device_ctypes_pointer.value for array in taken}) == 1
        assert [array.size for array in taken] == sizes


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
    def memset(address: int, byte: int, size: int, stream: int) -> tuple[driver.CUresult]:
        memory = (ctypes.c_ubyte * size).from_address(address)
        memory[:] = [byte] * size
        return (driver.CUresult.CUDA_SUCCESS,)

    def launch(output: DeviceArray, summand: int) -> None:
        output.content += summand

    monkeypatch.setattr(driver, "cuMemsetD8Async", memset)
    output = DeviceArray(np.full(3, -1, np.int32))
    enqueue = after_zeros(7, launch)
    for summand in (5, 4):
        enqueue(output, summand)
        assert output.content.tolist() == [summand] * 3
