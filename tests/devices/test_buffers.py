"""Where the CUDA device puts the arrays of a case, with host memory in the place of a GPU's."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from cuda.bindings import driver
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from smembench.devices.base import GUARD_BYTES, POISON, OutOfBounds
from smembench.devices.buffers import BufferPool
from smembench.devices.cuda import CudaDevice
from smembench.devices.host_clock import HostClock
from smembench.kernels import registry
from smembench.kernels.numba_cuda import cuda
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.program import LibraryCall, NumbaKernel
from smembench.kernels.registry import Kernel
from smembench.model.case import Block, Case
from smembench.model.device import DeviceInfo

Array = NDArray[Any]
GUARD = GUARD_BYTES // 4
TRANSFERS = [kernel for kernel in registry.kernels() if (kernel.problem, kernel.kind) == ("transfer", "cuda")]
ROUND_TRIPS = [kernel for kernel in registry.kernels() if (kernel.problem, kernel.kind) == ("roundtrip", "cuda")]
EXPECTED = {
    "h2dPageable": ("pageable", "device"),
    "h2dPinned": ("pinned", "device"),
    "d2hPageable": ("device", "pageable"),
    "d2hPinned": ("device", "pinned"),
}


class DeviceArray:
    """Host memory that says it is on a device."""

    def __init__(self, content: Array) -> None:
        self.content = content

    @property
    def size(self) -> int:
        return self.content.size

    @property
    def dtype(self) -> Any:
        return self.content.dtype

    @property
    def device_ctypes_pointer(self) -> Any:
        return SimpleNamespace(value=self.content.ctypes.data)

    def __getitem__(self, index: slice) -> DeviceArray:
        return DeviceArray(self.content[index])

    def view(self, dtype: Any) -> DeviceArray:
        return DeviceArray(self.content.view(dtype))

    def copy_to_host(self) -> Array:
        return self.content.copy()

    def copy_to_device(self, array: Array) -> None:
        DeviceArray.uploads += 1
        self.content[:] = array

    uploads: ClassVar[int]


@dataclass
class Gpu:
    """A ``CudaDevice`` on memory of the host, and what was done with it: copies and launches in order."""

    device: CudaDevice
    pinned: list[Array] = field(default_factory=list)
    log: list[str] = field(default_factory=list)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    device = object.__new__(CudaDevice)
    device._given, device._placed, device._pool, device._compiled = (), {}, BufferPool(), {}
    device._handle, device._residue_ms, device._flush_buffer = 7, 0.0, None
    device.info = DeviceInfo(name="cuda:0", sm_count=1)
    device._stream, device._context = SimpleNamespace(synchronize=lambda: None), None
    fake = Gpu(device)
    monkeypatch.setattr(DeviceArray, "uploads", 0, raising=False)

    def pinned_array(count: int, dtype: Any) -> Array:
        fake.pinned.append(np.empty(count, dtype))
        return fake.pinned[-1]

    def memcpy(target: int, source: int, size: int, stream: int) -> tuple[int]:
        assert stream == 7
        ctypes.memmove(target, source, size)
        fake.log.append(f"copy {size} bytes")
        return (0,)

    def memset(target: int, value: int, size: int, stream: int) -> tuple[int]:
        ctypes.memset(target, value, size)
        return (0,)

    class Dispatcher:
        def __init__(self, function: Callable[..., None], **options: object) -> None:
            self._function, self.options = function, options

        def __getitem__(self, config: tuple[Any, ...]) -> Callable[..., None]:
            def launch(*arguments: Any) -> None:
                fake.log.append("launch")
                self._function(*arguments)

            return launch

        def compile(self, signature: tuple[object, ...]) -> SimpleNamespace:
            module = SimpleNamespace(handle=(self, len(signature)))
            return SimpleNamespace(library=SimpleNamespace(get_cufunc=lambda: SimpleNamespace(module=module)))

    monkeypatch.setattr(cuda, "device_array", lambda count, dtype: DeviceArray(np.empty(count, dtype)))
    monkeypatch.setattr(cuda, "pinned_array", pinned_array)
    monkeypatch.setattr(cuda, "jit", Dispatcher)
    monkeypatch.setattr(cuda, "external_stream", lambda handle: handle)
    monkeypatch.setattr(driver, "cuMemcpyAsync", memcpy)
    monkeypatch.setattr(driver, "cuMemsetD8Async", memset)
    monkeypatch.setattr(driver, "cuCtxSetCurrent", lambda context: (0,))
    return fake


def case_of(kernel: Kernel, n: int = 100) -> Case:
    return Case(kernel.problem, kernel.name, "cuda:0", "int32", 1, n, None, Block(128, 1) if kernel.blocks else None)


def add_one(out: DeviceArray, inp: DeviceArray, n: np.uint32) -> None:
    out.content[:n] = inp.content[:n] + 1


def with_function(kernel: Kernel, function: Callable[..., None]) -> Kernel:
    """The kernel with another function, its arrays where they were."""

    def build(case: Case) -> NumbaKernel | LibraryCall:
        program = kernel.build(case)
        if isinstance(program, LibraryCall):
            return replace(program, enqueue=function)
        assert isinstance(program, NumbaKernel)
        return replace(program, function=function)

    return replace(kernel, build=build)


@pytest.mark.parametrize("kernel", TRANSFERS, ids=lambda kernel: kernel.name)
def test_a_copy_goes_from_where_its_name_says_to_where_it_says(gpu: Gpu, kernel: Kernel) -> None:
    case, problem = case_of(kernel), PROBLEMS["transfer"]
    program = kernel.build(case)
    assert isinstance(program, LibraryCall)
    assert (program.inputs, program.output) == EXPECTED[kernel.name]
    assert not program.on_device

    inputs = problem.inputs(case, seed=1)
    prepared = gpu.device.prepare(case, kernel, problem, inputs)
    prepared.poison()
    assert (prepared.output().view("u1") == POISON).all()
    prepared.launch()
    assert (prepared.output() == inputs[0]).all()
    assert gpu.log == ["copy 400 bytes"]
    assert len(gpu.pinned) == ("Pinned" in kernel.name)
    assert DeviceArray.uploads == kernel.name.startswith("d2h")
    prepared.close()


@pytest.mark.parametrize("kernel", ROUND_TRIPS, ids=lambda kernel: kernel.name)
def test_a_round_trip_is_a_copy_a_launch_and_a_copy(gpu: Gpu, kernel: Kernel) -> None:
    case, problem = case_of(kernel), PROBLEMS["roundtrip"]
    inputs = problem.inputs(case, seed=1)
    prepared = gpu.device.prepare(case, with_function(kernel, add_one), problem, inputs)
    prepared.poison()
    prepared.launch()
    verdict = problem.check(case, problem.reference(case, inputs, ""), prepared.output())
    assert verdict.passed, verdict.detail
    assert gpu.log == ["copy 400 bytes", "launch", "copy 400 bytes"]
    assert len(gpu.pinned) == 2 * kernel.name.endswith("Pinned")


@pytest.mark.parametrize("index", [GUARD - 1, GUARD + 100])
def test_a_kernel_that_writes_beside_its_output_on_the_device_is_caught(gpu: Gpu, index: int) -> None:
    def careless(out: DeviceArray, inp: DeviceArray, n: np.uint32) -> None:
        add_one(out, inp, n)
        assert out.content.base is not None
        out.content.base[index] = 0

    kernel, problem = ROUND_TRIPS[0], PROBLEMS["roundtrip"]
    case = case_of(kernel)
    prepared = gpu.device.prepare(case, with_function(kernel, careless), problem, problem.inputs(case, seed=1))
    prepared.poison()
    prepared.launch()
    with pytest.raises(OutOfBounds):
        prepared.output()


def test_a_copy_that_is_too_long_is_caught_in_host_memory(gpu: Gpu) -> None:
    def too_long(stream: int, out: Array, inp: DeviceArray) -> None:
        assert out.base is not None
        out.base[GUARD + out.size] = 0

    kernel, problem = next(kernel for kernel in TRANSFERS if kernel.name == "d2hPageable"), PROBLEMS["transfer"]
    case = case_of(kernel)
    prepared = gpu.device.prepare(case, with_function(kernel, too_long), problem, problem.inputs(case, seed=1))
    prepared.poison()
    prepared.launch()
    with pytest.raises(OutOfBounds, match="after it"):
        prepared.output()


def test_inputs_are_placed_once_for_every_place_until_others_come(gpu: Gpu) -> None:
    problem = PROBLEMS["transfer"]
    first, second = (problem.inputs(case_of(TRANSFERS[0]), seed) for seed in (1, 2))
    for _ in range(2):
        for kernel in TRANSFERS:
            gpu.device.prepare(case_of(kernel), kernel, problem, first)
    assert gpu.device._placed["pageable"][0] is first[0]
    assert DeviceArray.uploads == 1
    inputs_pinned = sum(array.size == 100 for array in gpu.pinned)
    assert inputs_pinned == 1
    gpu.device.prepare(case_of(TRANSFERS[0]), TRANSFERS[0], problem, second)
    assert list(gpu.device._placed) == ["pageable"]
    assert gpu.device._placed["pageable"][0] is second[0]


@pytest.mark.parametrize("kernel", [*TRANSFERS, *ROUND_TRIPS], ids=lambda kernel: kernel.name)
def test_arrays_in_host_memory_are_timed_by_the_hosts_clock(gpu: Gpu, kernel: Kernel) -> None:
    case, problem = case_of(kernel), PROBLEMS[kernel.problem]
    chosen = kernel if kernel.problem == "transfer" else with_function(kernel, add_one)
    prepared = gpu.device.prepare(case, chosen, problem, problem.inputs(case, seed=1))
    sampler = prepared.sampler(0.0)
    assert isinstance(sampler, HostClock)
    assert sampler.take() > 0
    prepared.close()


def test_an_input_is_copied_to_constant_memory_each_time_a_case_is_prepared(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = []
    monkeypatch.setattr("smembench.toolchains.symbols.copy_to_symbol", lambda *given: copied.append(given))
    case, problem = (
        Case("constant", "constantUniform", "cuda:0", "float32", 1, 100, None, Block(16, 1)),
        PROBLEMS["constant"],
    )
    first, second = (problem.inputs(case, seed) for seed in (1, 2))
    for inputs in (first, second):
        gpu.device.prepare(case, registry.kernel_of(case), problem, inputs)
    (compiled,) = gpu.device._compiled.values()
    dispatcher = compiled._dispatcher  # type: ignore[attr-defined]
    assert dispatcher.options["lto"] is False
    library = (dispatcher, 4)
    assert copied == [(library, "coefficients", values, 7) for _, values in (first, second)]
    plain = replace(case, kernel="sharedUniform")
    gpu.device.prepare(plain, registry.kernel_of(plain), problem, first)
    assert len(copied) == 2


def beginning(array: DeviceArray) -> int:
    return int(array.device_ctypes_pointer.value)


@given(sizes=st.lists(st.integers(1, 5000), min_size=1, max_size=12), slot=st.integers(0, 2))
def test_arrays_of_a_place_that_was_reserved_begin_where_all_others_do(sizes: list[int], slot: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda, "device_array", lambda count, dtype: DeviceArray(np.empty(count, dtype)))
        pool = BufferPool()
        pool.reserve([4 * max(sizes)] * 3, free=12 * max(sizes))
        begins = {beginning(pool.take(slot, size, np.float32)) for size in sizes}
        assert len(begins) == 1
        assert all(pool.take(slot, size, np.float32).size == size for size in sizes)


def test_places_are_not_reserved_where_they_do_not_fit_and_grow_when_they_must(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocated: list[int] = []

    def device_array(count: int, dtype: Any) -> DeviceArray:
        allocated.append(count)
        return DeviceArray(np.empty(count, dtype))

    monkeypatch.setattr(cuda, "device_array", device_array)
    pool = BufferPool()
    pool.reserve([100, 100], free=199)
    assert allocated == []
    pool.take(1, 10, np.float32)
    pool.reserve([100, 40], free=100)
    pool.take(1, 10, np.float32)
    pool.take(1, 11, np.float32)
    assert allocated == [40, 100, 44]


def test_cases_of_a_run_share_the_places_of_their_arrays(gpu: Gpu) -> None:
    gpu.device._pool.reserve([8192, 8192], free=2**20)
    kernel, problem = next(kernel for kernel in TRANSFERS if kernel.name == "d2hPageable"), PROBLEMS["transfer"]
    begins = set()
    for n in (100, 1000, 7):
        case = case_of(kernel, n)
        gpu.device.prepare(case, kernel, problem, problem.inputs(case, seed=1))
        begins.add(beginning(gpu.device._placed["device"][0]))
    assert len(begins) == 1
