"""Timing of CUDA kernels: launches captured into a graph, each between two event nodes.

A graph replays without Python, so the launch from Python is not timed. Event nodes in the graph
(CU_EVENT_RECORD_EXTERNAL) exclude the cost of submitting the graph, too. Each launch is timed separately: back to back,
the end of one kernel would overlap the beginning of the next, and the mean would be shorter than one kernel takes.

An empty event pair does not read zero. This residue is measured at the start of every run, recorded, and subtracted
from samples. ``smembench doctor --timing`` compares the result with Nsight Compute's gpu__time_duration.sum.

Warm: the L2 is as the previous launch left it. Behind a kernel of a few µs the GPU waits for the graph's next node, and
an event pair reads 0.3 µs of that wait on an H200. So a short kernel has another ahead of its pair, of 4 µs, which uses
one multiprocessor and reads 4 bytes. Cold: more bytes than the L2 has are read before each launch, so that it is full
of other, clean lines. Writes would leave dirty lines, and the kernel's time would include their write-back. Rotated:
launches take copies of their arrays in turn, in all over twice the L2, and find the L2 full of the launches' before.

A graph has few launches: while the GPU still fetches the nodes of a long one, launches read 0.2 to 0.3 µs more on an
H200. Measurements: results/reference/notes/timing.md.

By cuda.bindings: cuda.core's graph builder records no external events in a capture.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple

from cuda.bindings import driver

from smembench.kernels.driver import checked

_SAMPLE_MS = 1.0
"""Least duration of a sample, a mean over several launches: event times have a resolution of 32 ns."""
_MAX_LAUNCHES = 100
_LAUNCHES_PER_GRAPH = 10
_COLD_LAUNCHES = 5
_CALIBRATION_REPLAYS = 10
_SHORT_MS = 0.02
"""A pair behind a kernel of this duration reads no wait."""

Launch = Callable[[], Any]
Pairs = Sequence[tuple[Any, Any]]
"""Events around each body of a graph."""


def nothing() -> None:
    """Enqueue nothing."""


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Let no array in a cycle be freed, which a capture forbids."""
    usual = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if usual:
            gc.enable()


def new_event() -> Any:
    """An event that takes a time."""
    return checked(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DEFAULT))


class TimedGraph:
    """A graph of ``bodies``, each between two event nodes; ``before`` runs ahead of each pair.

    ``divide`` adds event nodes to the captured graph, and returns the pairs of events to read in place of these.
    """

    def __init__(
        self, stream: int, bodies: Sequence[Launch], before: Launch, divide: Callable[[Any, Pairs], Pairs] | None = None
    ) -> None:
        self._stream = stream
        self._pairs: Pairs = [(new_event(), new_event()) for _ in bodies]
        self._events = {event for pair in self._pairs for event in pair}
        try:
            self._graph = self._instantiated(bodies, before, divide)
        except BaseException:
            for event in self._events:
                driver.cuEventDestroy(event)  # unchecked, as below
            raise

    def _instantiated(
        self, bodies: Sequence[Launch], before: Launch, divide: Callable[[Any, Pairs], Pairs] | None
    ) -> Any:
        stream = self._stream
        with _without_garbage_collection():
            mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
            checked(driver.cuStreamBeginCapture(stream, mode))
            try:
                for (begin, end), body in zip(self._pairs, bodies, strict=True):
                    before()
                    self._record(begin)
                    body()
                    self._record(end)
            except BaseException:
                # Unchecked: its error would hide the one that ended the capture.
                driver.cuStreamEndCapture(stream)
                raise
            graph = checked(driver.cuStreamEndCapture(stream))
        try:
            if divide is not None:
                self._pairs = divide(graph, self._pairs)
                self._events |= {event for pair in self._pairs for event in pair}
            return checked(driver.cuGraphInstantiate(graph, 0))
        finally:
            checked(driver.cuGraphDestroy(graph))

    def _record(self, event: Any) -> None:
        external = driver.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
        checked(driver.cuEventRecordWithFlags(event, self._stream, external))

    def launch(self) -> None:
        """Enqueue it once."""
        checked(driver.cuGraphLaunch(self._graph, self._stream))

    def replay(self) -> list[float]:
        """Launch, wait, and return the ms of each body."""
        self.launch()
        checked(driver.cuStreamSynchronize(self._stream))
        return [checked(driver.cuEventElapsedTime(begin, end)) for begin, end in self._pairs]

    def close(self) -> None:
        """Destroy the graph and its events."""
        checked(driver.cuGraphExecDestroy(self._graph))
        for event in self._events:
            checked(driver.cuEventDestroy(event))


def _typical(readings: Sequence[float]) -> float:
    """The mean of the middle half: some readings have something else in them, and a median is a multiple of 32 ns."""
    out = len(readings) // 4
    return fmean(sorted(readings)[out : len(readings) - out])


def calibrate(stream: int, busy: Launch, empty_kernel: Launch) -> tuple[float, float]:
    """Readings of an event pair around nothing and around an empty kernel, in ms.

    ``busy``, a kernel of a few µs, runs before each pair, as another launch does in a sample. After a shorter kernel
    the GPU would wait for the graph's next node, and the pair would read that wait.

    Raises:
        RuntimeError: CUDA's error.
    """

    def reading(body: Launch) -> float:
        graph = TimedGraph(stream, [body] * _LAUNCHES_PER_GRAPH, busy)
        graph.replay()
        readings = [reading for _ in range(_CALIBRATION_REPLAYS) for reading in graph.replay()]
        graph.close()
        return _typical(readings)

    return reading(nothing), reading(empty_kernel)


class Ahead(NamedTuple):
    """The work ahead of each launch, outside its time.

    Attributes:
        enqueue: enqueues a kernel of a few µs, or reads of more bytes than the L2 has.
        cold: whether it is these reads.
    """

    enqueue: Launch
    cold: bool


class GraphTimer:
    """Samples of a kernel on one stream.

    Args:
        stream: handle of a non-default stream.
        turns: enqueue one launch each on it, on copies of the arrays, in turn.
        residue_ms: reading of an empty event pair.
        ahead: work ahead of each launch; of a warm one only if it is short.
        warmup: seconds of launches before the first sample.
        restore: enqueues what each launch has to find, outside its time and ahead of everything else.

    Raises:
        RuntimeError: CUDA's error.
    """

    def __init__(
        self,
        stream: int,
        turns: Sequence[Launch],
        residue_ms: float,
        ahead: Ahead,
        warmup: float,
        restore: Launch = nothing,
    ) -> None:
        self._residue_ms = residue_ms

        def before() -> None:
            restore()
            ahead.enqueue()

        once = TimedGraph(stream, turns[:1], before)
        single_ms = once.replay()[0]
        if single_ms < _SAMPLE_MS:  # the first launch after a pause can be slow: too few launches would follow from it
            single_ms = min(single_ms, once.replay()[0], once.replay()[0])
        once.close()
        wanted = math.ceil(_SAMPLE_MS / max(single_ms, 1e-6))
        launches = min(max(wanted, 1), _COLD_LAUNCHES if ahead.cold else _MAX_LAUNCHES)
        # For the same reason the first of a graph's warm launches is not counted.
        self._uncounted = 0 if ahead.cold or launches == 1 else 1
        alone = not ahead.cold and single_ms - residue_ms >= _SHORT_MS
        bodies = [*turns] * math.ceil((launches + self._uncounted) / len(turns))
        parts = math.ceil(len(bodies) / _LAUNCHES_PER_GRAPH)
        ends = [len(bodies) * part // parts for part in range(parts + 1)]
        self._graphs = [TimedGraph(stream, bodies[a:b], restore if alone else before) for a, b in pairwise(ends)]
        spent_ms = sum(self._readings())
        while spent_ms < 1000 * warmup:
            spent_ms += sum(self._readings())

    def _readings(self) -> list[float]:
        return [reading for graph in self._graphs for reading in graph.replay()[self._uncounted :]]

    def take(self) -> float:
        """A sample: ms per launch, the mean of the middle half of its launches."""
        return _typical(self._readings()) - self._residue_ms

    def close(self) -> None:
        """Release the graphs."""
        for graph in self._graphs:
            graph.close()
