"""Launches back to back for seconds: graphs of many, with an event behind each batch of them.

A batch is always enqueued before the last one ends, so that the GPU never waits for the host.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from cuda.bindings import driver

from smembench.devices.cuda_graph import Launch, TimedGraph, new_event, nothing
from smembench.kernels.driver import checked

_GRAPH_MS, _MOST_LAUNCHES = 10.0, 1000
_BATCH_MS = 50.0
"""Power and clocks are read as often."""


class GraphLoad:
    """A load on a GPU; see ``devices.base.Load``.

    Args:
        stream: handle of a non-default stream.
        turns: enqueue one launch each on it, in turn.

    Raises:
        RuntimeError: CUDA's error.
    """

    def __init__(self, stream: int, turns: Sequence[Launch]) -> None:
        self._stream = stream
        once = TimedGraph(stream, turns[:1], nothing)
        single_ms = max(min(once.replay()[0], once.replay()[0]), 1e-6)
        once.close()
        times = math.ceil(min(math.ceil(_GRAPH_MS / single_ms), _MOST_LAUNCHES) / len(turns))

        def every() -> None:
            for launch in [*turns] * times:
                launch()

        self._graph = TimedGraph(stream, [every], nothing)
        self._replays = math.ceil(_BATCH_MS / (single_ms * len(turns) * times))
        self._launches = self._replays * len(turns) * times
        self._events = [new_event() for _ in range(3)]

    def batches(self, seconds: float) -> Iterator[tuple[int, float]]:
        """See ``Load``."""
        self._record(0)
        self._enqueue(1)
        number, passed_ms = 0, 0.0
        while passed_ms < 1000 * seconds:
            number += 1
            self._enqueue(number + 1)
            begin, end = self._events[(number - 1) % 3], self._events[number % 3]
            checked(driver.cuEventSynchronize(end))
            batch_ms = float(checked(driver.cuEventElapsedTime(begin, end)))
            passed_ms += batch_ms
            yield self._launches, batch_ms / self._launches
        checked(driver.cuStreamSynchronize(self._stream))

    def _enqueue(self, number: int) -> None:
        for _ in range(self._replays):
            self._graph.launch()
        self._record(number)

    def _record(self, number: int) -> None:
        checked(driver.cuEventRecord(self._events[number % 3], self._stream))

    def close(self) -> None:
        """Destroy the graph and the events."""
        self._graph.close()
        for event in self._events:
            checked(driver.cuEventDestroy(event))
