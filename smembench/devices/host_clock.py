"""Timing of CPU kernels by the host's monotonic clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter_ns

_SAMPLE_NS = 2_000_000
"""A sample lasts at least this long, so that the clock's own cost (about 50 ns) is under 0.01 %."""


class HostClock:
    """Samples of a host function.

    Warm: calls back to back, as many as fill 2 ms, divided by their number. Cold: ``flush`` before each single
    call, outside the timed part.

    Args:
        call: what is timed.
        flush: what is called before each call; None for warm samples.
        warmup: seconds of calls before the first sample.
    """

    def __init__(self, call: Callable[[], None], flush: Callable[[], None] | None = None, warmup: float = 0.02) -> None:
        self._call = call
        self._flush = flush
        fastest = spent = self._time(1)
        # The case was called before, to be checked. A call longer than the warm-up is a sample like any other, and
        # on a slow case too dear to throw away.
        self._first = spent if spent >= max(warmup * 1e9, _SAMPLE_NS) and flush is None else None
        while spent < warmup * 1e9:
            elapsed = self._time(1)
            fastest, spent = min(fastest, elapsed), spent + max(elapsed, 1)
        self._calls = 1 if flush else math.ceil(_SAMPLE_NS / max(fastest, 1))

    def take(self) -> float:
        """One sample in ms a call."""
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
