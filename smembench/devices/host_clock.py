"""Timing by the host's monotonic clock: of CPU functions, and of GPU launches with copies."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter_ns

_SAMPLE_NS = 2_000_000
"""Least duration of a sample, so that reading the clock (about 50 ns) costs under 0.01 %."""


class HostClock:
    """Samples of a host function.

    Warm: the mean of calls back to back, enough to fill 2 ms. Cold: a single call, after ``flush``, which is not
    timed. The function is called for ``warmup`` seconds before the first sample.
    """

    def __init__(self, call: Callable[[], None], flush: Callable[[], None] | None = None, warmup: float = 0.02) -> None:
        self._call = call
        self._flush = flush
        fastest = spent = self._time(1)
        # The case was called before, to check it. So a call longer than the warm-up is a valid sample, and in a slow
        # case too expensive to discard.
        self._first = spent if spent >= max(warmup * 1e9, _SAMPLE_NS) and flush is None else None
        while spent < warmup * 1e9:
            elapsed = self._time(1)
            fastest, spent = min(fastest, elapsed), spent + max(elapsed, 1)
        self._calls = 1 if flush else math.ceil(_SAMPLE_NS / max(fastest, 1))

    def take(self) -> float:
        """A sample in ms per call."""
        if self._first is not None:
            first, self._first = self._first, None
            return first / 1e6
        if self._flush is not None:
            self._flush()
        return self._time(self._calls) / self._calls / 1e6

    def _time(self, calls: int) -> int:
        begun = perf_counter_ns()
        for _ in range(calls):
            self._call()
        return perf_counter_ns() - begun
