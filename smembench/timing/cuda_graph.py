"""Timing of CUDA kernels: launches captured into a graph, with the events inside it.

An event pair around a Python launch measures the launch: copyGmem at 1024² takes an H200 about 4 µs and such a
pair reads 45. A graph replays without Python, and event nodes inside it (cudaEventRecordExternal) leave out the
cost of submitting the graph as well.

What remains in a warm figure is the gap between two kernels of a graph, about 1 µs a launch; in a cold one the
launch after an event. An empty event pair is measured at the start and taken off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from statistics import median
from typing import Any

from cuda.bindings import runtime

_SAMPLE_MS = 2.0
"""A warm sample lasts at least this long: the clock of the events ticks in half microseconds."""
_MAX_LAUNCHES = 500
_COLD_LAUNCHES = 5
"""Flush-and-launch pairs in one cold graph, each a sample."""
_WARM_UP_MS = 20.0

Launch = Callable[[], None]


def checked(result: tuple[Any, ...]) -> Any:
    """The value of a CUDA runtime call.

    Raises:
        RuntimeError: with CUDA's name and text for the error.
    """
    error = result[0]
    if error != runtime.cudaError_t.cudaSuccess:
        _, name = runtime.cudaGetErrorName(error)
        _, text = runtime.cudaGetErrorString(error)
        raise RuntimeError(f"{name.decode()}: {text.decode()}")
    return result[1] if len(result) == 2 else result[1:]


class _TimedGraph:
    """A graph of ``bodies``, each between two event nodes, and what may come before each of them."""

    def __init__(
        self,
        stream: int,
        bodies: Sequence[Launch],
        before: Launch,
        quiet: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._stream = stream
        self._pairs = [(checked(runtime.cudaEventCreate()), checked(runtime.cudaEventCreate())) for _ in bodies]
        # ``quiet`` keeps Numba from freeing memory, which a capture forbids.
        with quiet():
            mode = runtime.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
            checked(runtime.cudaStreamBeginCapture(stream, mode))
            try:
                for (begin, end), body in zip(self._pairs, bodies, strict=True):
                    before()
                    self._record(begin)
                    body()
                    self._record(end)
            finally:
                graph = checked(runtime.cudaStreamEndCapture(stream))
        self._graph = checked(runtime.cudaGraphInstantiate(graph, 0))
        checked(runtime.cudaGraphDestroy(graph))

    def _record(self, event: Any) -> None:
        checked(runtime.cudaEventRecordWithFlags(event, self._stream, runtime.cudaEventRecordExternal))

    def replay(self) -> list[float]:
        """Launch, wait, and return each body's ms."""
        checked(runtime.cudaGraphLaunch(self._graph, self._stream))
        checked(runtime.cudaStreamSynchronize(self._stream))
        return [checked(runtime.cudaEventElapsedTime(begin, end)) for begin, end in self._pairs]

    def close(self) -> None:
        """Destroy the graph and its events."""
        checked(runtime.cudaGraphExecDestroy(self._graph))
        for pair in self._pairs:
            for event in pair:
                checked(runtime.cudaEventDestroy(event))


class GraphTimer:
    """Samples of a kernel on one stream.

    Warm: launches back to back, as many as fill 2 ms, divided by their number; the L2 is as the launch before
    left it. Cold: ``flush`` before each launch, outside the timed part.

    Args:
        stream: handle of a non-default stream.
        launch: enqueues one launch on it.
        quiet: a context in which no memory is freed.
        flush: enqueues writes to more bytes than the L2 holds; None for warm samples.

    Raises:
        RuntimeError: when CUDA refuses, with its own words.
    """

    def __init__(
        self,
        stream: int,
        launch: Launch,
        quiet: Callable[[], AbstractContextManager[Any]],
        flush: Launch | None = None,
    ) -> None:
        def graph(bodies: Sequence[Launch], before: Launch = _nothing) -> _TimedGraph:
            return _TimedGraph(stream, bodies, before, quiet)

        once = graph([launch])
        single_ms = min(once.replay()[0] for _ in range(3))
        once.close()
        self._launches = 1
        self._residue_ms = 0.0
        if flush is None:
            self._launches = min(max(math.ceil(_SAMPLE_MS / max(single_ms, 1e-6)), 1), _MAX_LAUNCHES)
            self._graph = graph([_repeat(launch, self._launches)])
        else:
            empty = graph([_nothing] * _COLD_LAUNCHES, flush)
            self._residue_ms = median(empty.replay() + empty.replay())
            empty.close()
            self._graph = graph([launch] * _COLD_LAUNCHES, flush)
        spent = sum(self._graph.replay())
        while spent < _WARM_UP_MS:
            spent += sum(self._graph.replay()) + single_ms

    def take(self) -> Sequence[float]:
        """One sample (warm) or several (cold), in ms a launch."""
        return [ms / self._launches - self._residue_ms for ms in self._graph.replay()]

    def close(self) -> None:
        """Release the graph."""
        self._graph.close()


def _repeat(launch: Launch, times: int) -> Launch:
    def body() -> None:
        for _ in range(times):
            launch()

    return body


def _nothing() -> None:
    pass
