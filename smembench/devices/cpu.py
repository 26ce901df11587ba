"""The host's CPU; its kernels keep their tiles in the cache."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from smembench.devices.base import GUARD_BYTES, POISON, Prepared, check_guards
from smembench.devices.host_clock import HostClock
from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.model.case import Case
from smembench.model.device import DeviceInfo, Limits
from smembench.model.formats import carried
from smembench.model.measurement import Conditions, Resources
from smembench.model.problem import Problem
from smembench.toolchains.host_code import keep

if TYPE_CHECKING:
    from smembench.devices.base import Sampler
    from smembench.model.problem import Array

_DEFAULT_FLUSH_BYTES = 256 * 2**20
_TILE_LIMIT_BYTES = 2**26
_TASKS, _SCHEDSTAT = Path("/proc/self/task"), Path("/proc/self/schedstat")


def _read(path: str | Path) -> str:
    """The text of a small system file; "" if there is none."""
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _proc_field(path: str, field: str) -> str:
    """The value of the first line ``field: value`` of a file under /proc, or ""."""
    lines = (line.partition(":") for line in _read(path).splitlines())
    return next((value.strip() for name, _, value in lines if name.strip() == field), "")


def _memory(field: str) -> int:
    """A field of /proc/meminfo in bytes; without that file, the physical memory that sysconf reports."""
    text = _proc_field("/proc/meminfo", field)
    return int(text.split()[0]) * 1024 if text else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _scheduled() -> tuple[int, int]:
    """Nanoseconds on the clock, and the total that this process's threads have waited for a core."""
    waited = 0
    for task in _TASKS.glob("*/schedstat"):
        fields = _read(task).split()  # time on a core, time waiting for one, turns
        waited += int(fields[1]) if len(fields) > 1 else 0
    return perf_counter_ns(), waited


def _last_level_cache_bytes() -> int | None:
    sizes = (_read(path) for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"))
    return max((int(size[:-1]) * 1024 for size in sizes if size.endswith("K")), default=None)


class CpuDevice:
    """All cores of this machine."""

    def __init__(self) -> None:
        self.info = DeviceInfo(
            name="cpu",
            kind="cpu",
            model=_proc_field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
            memory_bytes=_memory("MemTotal"),
            threads=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            l2_bytes=_last_level_cache_bytes(),
        )
        self._flush_buffer: Array | None = None
        self._given: tuple[Array, ...] = ()
        self._placed: tuple[Array, ...] = ()
        self._scheduled = _scheduled()
        self._compiled: dict[tuple[object, ...], Any] = {}

    def limits(self) -> Limits:
        """Free memory, and a limit for tiles."""
        return Limits(free_bytes=_memory("MemAvailable"), max_shared_bytes=_TILE_LIMIT_BYTES)

    def reserve(self, sizes: Sequence[int]) -> None:
        """Does nothing: NumPy allocates the arrays."""

    def prepare(self, case: Case, kernel: Kernel, problem: Problem, inputs: tuple[Array, ...]) -> CpuPrepared:
        """Allocate the output and copy the inputs; compiled kernels are kept for later cases."""
        if self._given is not inputs:
            self._placed = ()  # freed before the next are allocated
            self._given, self._placed = inputs, tuple(array.copy() for array in inputs)
        key = (case.problem, case.kernel, case.dtype, case.b_layout, case.block, case.pad, case.parameters)
        if key not in self._compiled:
            program = kernel.build(case)
            assert isinstance(program, HostFunction), case.id
            if not kernel.file:  # which may import others
                keep(program.compiled or program.function)
            self._compiled[key] = program.function
        flush = self._flush if case.cache == "cold" else None
        return CpuPrepared(self._compiled[key], self._placed, case, problem, flush)

    def _flush(self) -> None:
        import numpy as np

        if self._flush_buffer is None:
            size = 2 * (self.info.l2_bytes or _DEFAULT_FLUSH_BYTES // 2)
            self._flush_buffer = np.zeros(size, np.uint8)
        self._flush_buffer += 1

    def conditions(self) -> Conditions:
        """Frequency and governor of the first core, load average of one minute, and waiting since the last call."""
        mhz = _proc_field("/proc/cpuinfo", "cpu MHz")
        before, self._scheduled = self._scheduled, _scheduled()
        passed, waited = (now - then for now, then in zip(self._scheduled, before, strict=True))
        return Conditions(
            cpu_mhz=float(mhz) if mhz else None,
            cpu_governor=_read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or None,
            cpu_load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            cpu_waiting=waited / passed if passed and _SCHEDSTAT.exists() else None,
        )

    def close(self) -> None:
        """Release buffers and compiled kernels."""
        self._flush_buffer = None
        self._given = self._placed = ()
        self._compiled.clear()


class CpuPrepared(Prepared):
    """A compiled kernel with its arrays in host memory."""

    def __init__(self, function: Any, inputs: tuple[Array, ...], case: Case, problem: Problem, flush: Any) -> None:
        import numpy as np

        dtype = np.dtype(carried(problem.array_types(case)[0]))
        self._guard = GUARD_BYTES // dtype.itemsize
        self._buffer: Any = np.empty(problem.output_length(case) + 2 * self._guard, dtype)
        self._output: Any = self._buffer[self._guard : -self._guard]
        self._flush = flush
        self._inputs = inputs
        # Numba's CPU target has no float16; copying its bits is the same work.
        first, scalars = problem.first(case), problem.scalars(case)
        arrays = [array[first:] for array in (self._output, *inputs)]
        arrays = [array.view("u2") if array.dtype == np.float16 else array for array in arrays]
        self._call: Any = lambda: function(*arrays, *scalars)

    def poison(self) -> None:
        """Fill the output and its guards."""
        self._buffer.view("u1")[:] = POISON

    def launch(self) -> None:
        """Call it once; the first call compiles."""
        self._call()

    def output(self) -> Array:
        """A view of the output, after a check of its guards."""
        check_guards(self._buffer[: self._guard], self._buffer[-self._guard :])
        output: Array = self._output
        return output

    def inputs(self) -> Iterator[tuple[int, Array]]:
        """The inputs that the kernel is called with."""
        return enumerate(self._inputs)

    def resources(self) -> Resources:
        """Unknown on a CPU."""
        return Resources()

    def sampler(self, warmup: float) -> Sampler:
        """Samples by the host's clock."""
        return HostClock(self._call, self._flush, warmup)

    def close(self) -> None:
        """Release the output."""
        self._buffer = self._output = self._call = None
        self._inputs = ()
