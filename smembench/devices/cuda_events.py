"""Timing of work that no graph can capture, such as waits for the GPU: by events behind a kernel that keeps it busy."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean, median
from time import perf_counter
from typing import Any

from cuda.bindings import driver

from smembench.devices.cuda_graph import Launch, new_event
from smembench.kernels.driver import checked

_SAMPLE_MS = 1.0
_MOST_CALLS = 100
_EMPTY_PAIRS = 20
_BEHIND = 2.0
"""The time that the GPU is kept busy, over the host's time to enqueue a call."""


class EventTimer:
    """Samples of a call on one stream.

    The GPU is busy while the host enqueues the call, so that the time between two events around it is the GPU's. Of a
    call that itself waits for the GPU that is impossible: its time then has the host's share.

    Args:
        stream: handle of a non-default stream.
        launch: enqueues one call on it.
        before: enqueues what each call has to find, and the flush, outside its time.
        busy: enqueues a kernel that keeps the GPU busy for a number of seconds.
        warmup: seconds of calls before the first sample.

    Raises:
        RuntimeError: CUDA's error.
    """

    def __init__(
        self, stream: int, launch: Launch, before: Launch, busy: Callable[[float], Any], warmup: float
    ) -> None:
        self._stream, self._launch, self._before, self._busy = stream, launch, before, busy
        self._pair = [new_event() for _ in range(2)]
        begun = perf_counter()
        launch()
        self._hold = _BEHIND * (perf_counter() - begun)
        checked(driver.cuStreamSynchronize(stream))
        self._residue_ms = median(self._once(lambda: None) for _ in range(_EMPTY_PAIRS))
        single_ms = min(self._once(launch) for _ in range(3))
        self._calls = min(max(math.ceil(_SAMPLE_MS / max(single_ms, 1e-6)), 1), _MOST_CALLS)
        deadline = perf_counter() + warmup  # the host's time, which is most of a short call's
        while perf_counter() < deadline:
            self._once(launch)

    def take(self) -> float:
        """A sample: the mean of some calls, in ms per call."""
        return fmean(self._once(self._launch) for _ in range(self._calls)) - self._residue_ms

    def _once(self, call: Launch) -> float:
        begin, end = self._pair
        self._before()
        self._busy(self._hold)
        checked(driver.cuEventRecord(begin, self._stream))
        call()
        checked(driver.cuEventRecord(end, self._stream))
        checked(driver.cuStreamSynchronize(self._stream))
        return float(checked(driver.cuEventElapsedTime(begin, end)))

    def close(self) -> None:
        """Destroy the events."""
        for event in self._pair:
            checked(driver.cuEventDestroy(event))
