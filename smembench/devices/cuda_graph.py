"""Timing of CUDA kernels: launches captured into a graph, each between two event nodes.

An event pair around a Python launch measures the launch: copyGmem at 1024² takes an H200 4 µs and such a pair
reads 45. A graph replays without Python, and event nodes inside it (CU_EVENT_RECORD_EXTERNAL) leave out the cost
of submitting the graph as well. Launches are timed one by one, not back to back: in a row of launches the end of
one kernel overlaps the beginning of the next, and the quotient reads up to 40 % less than the kernel takes.

An event pair with nothing in between reads about 1.25 µs on an H200. That residue is measured on the device at
the start of every run, recorded, and taken off. ``smembench doctor --timing`` holds what is left against Nsight
Compute's gpu__time_duration.sum on the device at hand; on an H200 all 32 cases agreed within 3 % or 0.7 µs, kernels
below 35 µs between -0.3 and 0.5 µs apart.

Warm: the L2 is as the launch before left it. Cold: before each launch more bytes than the L2 holds are read, so
that it is full of other, clean lines. Flushing by writing would leave it full of dirty ones, whose way back to
memory is then charged to the kernel (copyGmem at 2048² read 20.5 µs on an H200 after a memset, 17.1 after reads,
Nsight Compute 15.6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from statistics import fmean
from typing import Any

from cuda.bindings import driver

from smembench.kernels.numba_cuda import checked

_SAMPLE_MS = 1.0
"""A sample is the mean of as many launches as fill this: event times come in steps of 32 ns."""
_MAX_LAUNCHES = 100
_COLD_LAUNCHES = 5
_CALIBRATION_PAIRS = 50

Launch = Callable[[], Any]
Quiet = Callable[[], AbstractContextManager[Any]]
"""A context in which Numba frees no memory, which a capture forbids."""


def nothing() -> None:
    """An empty body."""


def _event() -> Any:
    return checked(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DEFAULT))


class TimedGraph:
    """A graph of ``bodies``, each between two event nodes, and ``before`` in front of each pair."""

    def __init__(self, stream: int, bodies: Sequence[Launch], before: Launch, quiet: Quiet) -> None:
        self._stream = stream
        self._pairs = [(_event(), _event()) for _ in bodies]
        with quiet():
            mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
            checked(driver.cuStreamBeginCapture(stream, mode))
            try:
                for (begin, end), body in zip(self._pairs, bodies, strict=True):
                    before()
                    self._record(begin)
                    body()
                    self._record(end)
            except BaseException:
                # Unchecked: it could only say that the capture is spoiled, in the place of why.
                driver.cuStreamEndCapture(stream)
                raise
            graph = checked(driver.cuStreamEndCapture(stream))
        self._graph = checked(driver.cuGraphInstantiate(graph, 0))
        checked(driver.cuGraphDestroy(graph))

    def _record(self, event: Any) -> None:
        external = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
        checked(driver.cuEventRecordWithFlags(event, self._stream, external))

    def replay(self) -> list[float]:
        """Launch, wait, and return each body's ms."""
        checked(driver.cuGraphLaunch(self._graph, self._stream))
        checked(driver.cuStreamSynchronize(self._stream))
        return [checked(driver.cuEventElapsedTime(begin, end)) for begin, end in self._pairs]

    def close(self) -> None:
        """Destroy the graph and its events."""
        checked(driver.cuGraphExecDestroy(self._graph))
        for pair in self._pairs:
            for event in pair:
                checked(driver.cuEventDestroy(event))


def calibrate(stream: int, busy: Launch, empty_kernel: Launch, quiet: Quiet) -> tuple[float, float]:
    """What an event pair reads around nothing and around an empty kernel, in ms.

    Each is the mean of the middle half of many readings: they come in steps of 32 ns, of which a median is one.

    ``busy`` comes before each pair, a kernel of some µs, as before a sample's launch there is another. With a shorter
    one in front the GPU has to wait for the graph itself, and reads that: behind empty kernels pairs read up to 2.02 µs
    in 6 of 14 processes on an H200, behind kernels of 4 and 6 µs 1.25 to 1.31 in all (2026-11-20).

    Raises:
        RuntimeError: when CUDA refuses.
    """

    def reading(body: Launch) -> float:
        graph = TimedGraph(stream, [body] * _CALIBRATION_PAIRS, busy, quiet)
        graph.replay()
        found = sorted(graph.replay() + graph.replay())
        graph.close()
        return fmean(found[len(found) // 4 : -len(found) // 4])

    return reading(nothing), reading(empty_kernel)


class GraphTimer:
    """Samples of a kernel on one stream.

    Args:
        stream: handle of a non-default stream.
        launch: enqueues one launch on it.
        quiet: a context in which no memory is freed.
        residue_ms: what an empty event pair reads.
        flush: enqueues reads of more bytes than the L2 holds; None for warm samples.
        warmup: seconds of launches before the first sample.

    Raises:
        RuntimeError: when CUDA refuses, with its own words.
    """

    def __init__(
        self,
        stream: int,
        launch: Launch,
        quiet: Quiet,
        residue_ms: float,
        flush: Launch | None = None,
        warmup: float = 0.02,
    ) -> None:
        self._residue_ms = residue_ms
        once = TimedGraph(stream, [launch], flush or nothing, quiet)
        single_ms = once.replay()[0]
        if single_ms < _SAMPLE_MS:  # the first launch after a pause can be slow, and would make few of many
            single_ms = min(single_ms, once.replay()[0], once.replay()[0])
        once.close()
        wanted = math.ceil(_SAMPLE_MS / max(single_ms, 1e-6))
        launches = min(max(wanted, 1), _COLD_LAUNCHES if flush else _MAX_LAUNCHES)
        # For the same reason the first of several warm launches is not counted.
        self._uncounted = 0 if flush or launches == 1 else 1
        self._graph = TimedGraph(stream, [launch] * (launches + self._uncounted), flush or nothing, quiet)
        spent_ms = sum(self._graph.replay())
        while spent_ms < 1000 * warmup:
            spent_ms += sum(self._graph.replay())

    def take(self) -> float:
        """One sample: the mean of one replay's launches, in ms a launch."""
        return fmean(self._graph.replay()[self._uncounted :]) - self._residue_ms

    def close(self) -> None:
        """Release the graph."""
        self._graph.close()
