"""NVIDIA GPUs through cuda.core, in the primary context, which Numba, PyTorch and CuPy share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from cuda.bindings import driver
from cuda.core import Device as Gpu

from smembench.devices.base import Prepared, copies_of, with_copies
from smembench.devices.buffers import (
    BufferPool,
    Enqueue,
    Output,
    after_zeros,
    between_allocations,
    between_copies,
    from_element,
    new_stream,
    place_input,
    pooled_outputs,
)
from smembench.devices.cuda_description import (
    attribute,
    check_gpu,
    compute_capability,
    describe,
    gpu_uuid,
)
from smembench.devices.cuda_graph import Ahead, calibrate
from smembench.devices.cuda_helpers import launcher
from smembench.devices.cuda_launch import LaunchPrepared, Timing
from smembench.devices.cuda_prepared import CudaPrepared
from smembench.devices.nvml import Nvml
from smembench.kernels.device_memory import to_device
from smembench.kernels.driver import checked
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import GpuKernel, HostFunction, MemoryKind, Program
from smembench.launches.contract import Contract
from smembench.launches.subject import Subject
from smembench.launches.subjects import subject_of
from smembench.model.case import Case
from smembench.model.device import Limits
from smembench.model.formats import carried
from smembench.model.hardware import STATIC_SHARED_BYTES
from smembench.model.measurement import Conditions
from smembench.model.problem import Problem
from smembench.model.user_launch import UserLaunch
from smembench.toolchains.kept_code import variant
from smembench.toolchains.registry import Compiled, toolchain_of

if TYPE_CHECKING:
    from smembench.model.problem import Array

_INDEX_LIMIT = 2**32
"""Kernels index with uint32."""
_WAKE_SECONDS = 0.3
_BUSY_ROUNDS = 2000
"""Iterations of ``busy``, a multiplication of 4 clocks in a loop: 4 µs."""
_BUSY_ROUNDS_PER_SECOND, _MOST_BUSY_ROUNDS = 0.5e9, 2**31
"""At the clocks of today's GPUs, 2 GHz at most; and a few seconds."""
_L2_GUESS, _SM_GUESS = 2**26, 128


class CudaDevice:
    """A GPU with its context, stream and buffers.

    Raises:
        DeviceUnavailable: if there is no usable GPU with that index.
    """

    def __init__(self, index: int = 0) -> None:
        check_gpu(index)
        self._index, self._gpu = index, Gpu(index)
        self._gpu.set_current()
        self.stream = new_stream()
        self._handle = int(self.stream.handle)
        uuid = gpu_uuid(index) or ""
        self._nvml = Nvml(uuid)
        self._compiled: dict[tuple[object, ...], Compiled[Any]] = {}
        self._subjects: dict[UserLaunch, Subject] = {}
        self._given: tuple[Array, ...] = ()
        self._placed: dict[tuple[MemoryKind, int], Sequence[Sequence[Any]]] = {}
        self._pool = BufferPool()
        self._flush_l2: Enqueue | None = None
        self._residue_ms, empty_kernel_ms = self._calibrate()
        overhead = {
            "event_pair_us": 1000 * self._residue_ms,
            "empty_kernel_us": 1000 * (empty_kernel_ms - self._residue_ms),
        }
        self.info = describe(index, uuid, self._nvml).model_copy(update=overhead)

    def _calibrate(self) -> tuple[float, float]:
        """Readings of an event pair around nothing and around an empty kernel, in ms."""
        capability = compute_capability(self._index)
        launch = launcher("empty", capability, self._handle, grid=1, block=1)
        self._zero = to_device(np.zeros(1, np.float32))
        rounds = [np.uint32(_BUSY_ROUNDS)]
        before = partial(launcher("busy", capability, self._handle, rounds, grid=1, block=1), self._zero)
        self.warm = Ahead(before, cold=False)
        launch()
        before()
        # An idle GPU has low clocks: keep it busy until they rise.
        deadline = perf_counter() + _WAKE_SECONDS
        while perf_counter() < deadline:
            launch()
        self.stream.sync()
        return calibrate(self._handle, before, launch)

    def _select(self) -> None:
        """Make this GPU the current one: if several are open, another may be."""
        self._gpu.set_current()

    def limits(self) -> Limits:
        """Limits of this GPU and its free memory now."""
        self._select()
        free, _ = checked(driver.cuMemGetInfo())
        return Limits(
            free_bytes=int(free),
            flush_bytes=self._flush_bytes,
            max_threads=attribute(self._index, "MAX_THREADS_PER_BLOCK"),
            max_block=(attribute(self._index, "MAX_BLOCK_DIM_X"), attribute(self._index, "MAX_BLOCK_DIM_Y")),
            max_grid=(attribute(self._index, "MAX_GRID_DIM_X"), attribute(self._index, "MAX_GRID_DIM_Y")),
            max_shared_bytes=STATIC_SHARED_BYTES,
            max_dynamic_bytes=attribute(self._index, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            max_elements=_INDEX_LIMIT - 1,
            multiprocessors=attribute(self._index, "MULTIPROCESSOR_COUNT"),
            capability=compute_capability(self._index),
        )

    def reserve(self, sizes: Sequence[int]) -> None:
        """See ``BufferPool``."""
        self._select()
        self._pool.reserve(sizes, self.limits().free_bytes)

    def prepare(self, case: Case, kernel: Kernel, problem: Problem, inputs: tuple[Array, ...]) -> Prepared:
        """Compile, place the inputs unless they already are, and allocate the output."""
        self._select()
        if isinstance(problem, Contract):
            return self._prepare_launch(case, problem, inputs)
        program = kernel.build(case)
        assert not isinstance(program, HostFunction), case.id
        if isinstance(program, GpuKernel):
            program = program.on(self.info.sm_count or _SM_GUESS)
        copies = copies_of(case, sum(problem.sizes_of_arrays(case, problem.lengths(case))), self._flush_bytes)
        given = [*self._place(inputs, program.inputs, copies)]
        of_output, count = np.dtype(carried(problem.array_types(case)[0])), problem.output_length(case)
        if program.output == "device":
            outputs = pooled_outputs(count, of_output, self._pool, copies)
        else:
            outputs = [Output(count, of_output, program.output)]
        compiled = self._compile(case, program)
        launch = compiled.launcher(program, self._handle, [np.uint32(value) for value in problem.scalars(case)])
        if isinstance(program, GpuKernel) and program.zeroed:
            launch = after_zeros(self._handle, launch)
        if first := problem.first(case):
            launch = from_element(first, launch)
        turns: list[Enqueue] = [partial(launch, out.array, *placed) for out, placed in zip(outputs, given, strict=True)]
        if isinstance(program, GpuKernel):
            if program.constant:
                values = inputs[problem.arrays.index(program.constant) - 1]  # the first array is the output
                compiled.fill(program.constant, values, self._handle)
            if not program.on_device:
                surround = between_allocations if program.allocates else between_copies
                turns[0], on_device, staged = surround(self._handle, launch, given[0], outputs[0])
                outputs.append(on_device)
                given.append(staged)
        timing = (self.stream, self._handle, self._residue_ms, self._ahead(case), program.on_device)
        return CudaPrepared(turns, outputs, given, compiled, *timing)

    def _prepare_launch(self, case: Case, contract: Contract, inputs: tuple[Array, ...]) -> LaunchPrepared:
        """A launch of the user's; its arrays take the places of those of other cases."""
        self._given, self._placed = (), {}
        launch = contract.launch
        if launch not in self._subjects:
            self._subjects[launch] = subject_of(launch, self.info.compute_capability or "")
        copies = copies_of(case, sum(launch.array_bytes), self._flush_bytes)
        sizes = [with_copies(size, copies) for size in launch.array_bytes]
        self._pool.make_room(sizes, self.limits().free_bytes - launch.saved_bytes)
        timing = Timing(self.stream, self._handle, self._residue_ms, self._ahead(case), self._busy)
        return LaunchPrepared(self._subjects[launch], contract, inputs, self._pool, timing, copies)

    def _place(self, inputs: tuple[Array, ...], place: MemoryKind, copies: int) -> Sequence[Sequence[Any]]:
        """Copies of the inputs where a program needs them, kept until the inputs change."""
        if self._given is not inputs:
            self._placed = {}  # freed before the next are allocated
            self._given = inputs
        if (place, copies) not in self._placed:
            by_input = [place_input(array, place, self._pool, slot, copies) for slot, array in enumerate(inputs, 1)]
            self._placed[place, copies] = [*zip(*by_input, strict=True)] or [()] * copies
        return self._placed[place, copies]

    def _compile(self, case: Case, program: Program) -> Compiled[Any]:
        """A program compiled by its toolchain, kept for later cases."""
        capability = self.info.compute_capability or ""
        key = variant(case, program, capability)
        if key not in self._compiled:
            self._compiled[key] = toolchain_of(program, case.compiler).compile(case, program, capability)
        return self._compiled[key]

    def _ahead(self, case: Case) -> Ahead:
        return Ahead(self._flush(), cold=True) if case.cache == "cold" else self.warm

    @property
    def _flush_bytes(self) -> int:
        return 2 * (self.info.l2_bytes or _L2_GUESS)

    def _flush(self) -> Callable[[], Any]:
        """A function that enqueues reads of twice the size of the L2; buffer and kernel are kept for later cases."""
        if self._flush_l2 is None:
            count = self._flush_bytes // 4
            blocks = 4 * (self.info.sm_count or _SM_GUESS)
            capability = self.info.compute_capability or ""
            read = launcher("read_all", capability, self._handle, [np.uint32(count)], grid=blocks, block=1024)
            self._flush_l2 = partial(read, to_device(np.zeros(count, np.float32)))
        return self._flush_l2

    def _busy(self, seconds: float) -> None:
        """Enqueue a kernel that takes ``seconds``, or a little longer."""
        rounds = [np.uint32(min(seconds * _BUSY_ROUNDS_PER_SECOND, _MOST_BUSY_ROUNDS))]
        capability = self.info.compute_capability or ""
        launcher("busy", capability, self._handle, rounds, grid=1, block=1)(self._zero)

    def conditions(self) -> Conditions:
        """Read from NVML."""
        return self._nvml.conditions()

    def close(self) -> None:
        """Free the arrays, the flush buffer and the compiled kernels."""
        self._given, self._placed = (), {}
        self._pool.clear()
        self._flush_l2 = None
        self._compiled.clear()
        self._subjects.clear()
