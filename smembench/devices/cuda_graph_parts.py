"""The kernels of a call one by one: event nodes between the nodes of a captured graph, in a measurement of its own.

A kernel between two events neither begins before the last one ends nor waits for the host, so what the whole call takes
beyond the sum of its kernels are the gaps between them; what it takes less, they overlap.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from cuda.bindings import driver

from smembench.devices.cuda_graph import Launch, Pairs, TimedGraph, new_event
from smembench.kernels.driver import checked, latest
from smembench.model.errors import UsageError
from smembench.model.text import number_of

_MEASURED_MS, _MOST_REPLAYS = 50.0, 20
_TYPES = driver.CUgraphNodeType
_EVENT = _TYPES.CU_GRAPH_NODE_TYPE_EVENT_RECORD
_WORK = {
    _TYPES.CU_GRAPH_NODE_TYPE_KERNEL: "kernel",
    _TYPES.CU_GRAPH_NODE_TYPE_MEMCPY: "copy",
    _TYPES.CU_GRAPH_NODE_TYPE_MEMSET: "fill",
    _TYPES.CU_GRAPH_NODE_TYPE_HOST: "host function",
    _TYPES.CU_GRAPH_NODE_TYPE_GRAPH: "graph",
}


class Undivided(Exception):
    """The kernels of a call are not timed one by one; the message is the reason."""


def described(stream: int, launch: Launch, before: Launch, residue_ms: float) -> str:
    """The kernels of a call, their time one by one and the gaps between them; "" of a single one.

    ``before`` and ``residue_ms`` are those of ``GraphTimer``.

    Raises:
        UsageError: for a call that enqueues nothing on the stream, whose time would be none of its work's.
        RuntimeError: CUDA's error.
    """
    kinds: list[str] = []

    def divide(graph: Any, pairs: Pairs) -> Pairs:
        events, added = _divided(graph, *pairs[-1])
        kinds.extend(added)
        return events

    try:
        parts = TimedGraph(stream, [launch, launch], before, divide)
    except Undivided as reason:
        return f"its kernels are not timed one by one: {reason}"
    if not kinds:
        parts.close()
        raise UsageError("the function enqueues nothing on the stream that is timed; take it as the argument stream")
    whole = TimedGraph(stream, [launch, launch], before)
    replays = min(max(math.ceil(_MEASURED_MS / max(whole.replay()[-1], 1e-6)), 1), _MOST_REPLAYS)
    readings = [(whole.replay()[-1], *parts.replay()) for _ in range(replays if len(kinds) > 1 else 0)]
    whole.close()
    parts.close()
    if not readings:
        return ""
    whole_ms, *parts_ms = (median(values) - residue_ms for values in zip(*readings, strict=True))
    alone_ms = sum(parts_ms)
    counts = " and ".join(number_of(many, kind).replace("copys", "copies") for kind, many in Counter(kinds).items())
    apart_us = 1000 * (whole_ms - alone_ms)
    gaps = f"{apart_us:.1f} µs between them" if apart_us >= 0 else f"{-apart_us:.1f} µs of overlap"
    return f"{counts}: {1000 * alone_ms:.1f} µs one by one, {gaps}"


def _divided(graph: Any, begin: Any, end: Any) -> tuple[Pairs, list[str]]:
    """Record an event behind each work node but the last between two events; the pairs around each, and their kinds.

    Raises:
        Undivided: where the nodes between the events are no chain, or a graph of its own is among them.
    """
    count = checked(driver.cuGraphGetNodes(graph))[1]
    nodes = checked(driver.cuGraphGetNodes(graph, count))[0]
    types = {int(node): checked(driver.cuGraphNodeGetType(node)) for node in nodes}
    behind: dict[int, list[tuple[Any, Any]]] = {node: [] for node in types}
    ahead = Counter[int]()
    for source, target, data in zip(*_edges(graph), strict=True):
        behind[int(source)].append((target, data))
        ahead[int(target)] += 1
    first, last = (_recording(types, event) for event in (begin, end))
    works: list[Any] = []
    node = first
    while int(node) != int(last):
        following = [target for target, _ in behind[int(node)]]
        if len(following) != 1 or ahead[int(following[0])] != 1:
            raise Undivided("they are on several streams")
        (node,) = following
        if types[int(node)] in _WORK:
            works.append(node)
    kinds = [_WORK[types[int(work)]] for work in works]
    if "graph" in kinds:
        raise Undivided("they are in a graph of the function's own")
    events = [begin]
    for work in works[:-1]:
        ((target, data),) = behind[int(work)]
        event = new_event()
        record = checked(driver.cuGraphAddEventRecordNode(graph, [work], 1, event))
        checked(latest("cuGraphRemoveDependencies")(graph, [work], [target], [data], 1))
        checked(latest("cuGraphAddDependencies")(graph, [record], [target], [driver.CUgraphEdgeData()], 1))
        events.append(event)
    return [*zip(events, [*events[1:], end], strict=True)], kinds


def _edges(graph: Any) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """The beginnings, the ends and the data of all edges."""
    get = latest("cuGraphGetEdges")
    *_, count = checked(get(graph))
    sources, targets, data, _ = checked(get(graph, count))
    return sources, targets, data


def _recording(types: dict[int, Any], event: Any) -> Any:
    """The node that records an event."""
    nodes = (driver.CUgraphNode(node) for node, kind in types.items() if kind == _EVENT)
    return next(node for node in nodes if int(checked(driver.cuGraphEventRecordNodeGetEvent(node))) == int(event))
