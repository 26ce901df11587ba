"""Timing by graphs on a made-up driver, whose launches take times that are known."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from smembench.devices import cuda_graph
from smembench.devices.cuda_graph import Ahead, GraphTimer, calibrate, nothing

RESIDUE_MS = 0.25
"""What an event adds to a reading."""
WARM_MS, COLD_MS, EMPTY_MS = 0.5, 2.0, 0.125
"""A launch behind another, one behind a flush, and an empty kernel."""
PAUSE_MS = 0.125
"""What the first node of a graph takes more, an event that follows neither a launch nor a flush, and a short launch
behind another."""
SHORT_MS = 2.0**-7
FETCH_MS, FETCHED = 0.125, 30
"""What a launch takes more while the driver has more than so many other launches of its graph to fetch."""
OUTLIER_MS = 64.0
"""What every tenth empty pair reads more, because of something else."""

Node = tuple[str, Any]


class Driver:
    """CUDA's driver with a clock of its own; a stream holds nodes while it is captured."""

    CUevent_flags = SimpleNamespace(CU_EVENT_DEFAULT=0)
    CUevent_record_flags = SimpleNamespace(CU_EVENT_RECORD_EXTERNAL=1)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=1)

    def __init__(self) -> None:
        self.captured: list[Node] = []
        self.now = 0.0
        self.events: dict[int, float] = {}
        self.destroyed: list[int] = []
        self.pairs = 0
        self.warm_ms = WARM_MS
        self.launches, self.outlier_ms = 0, 0.0

    def enqueue(self, node: str) -> Callable[[], None]:
        return lambda: self.captured.append((node, None))

    def cuEventCreate(self, flags: int) -> int:
        self.events[len(self.events)] = 0.0
        return len(self.events) - 1

    def cuEventRecordWithFlags(self, event: int, stream: int, flags: int) -> None:
        assert flags == self.CUevent_record_flags.CU_EVENT_RECORD_EXTERNAL
        self.captured.append(("event", event))

    def cuStreamBeginCapture(self, stream: int, mode: int) -> None:
        self.captured = []

    def cuStreamEndCapture(self, stream: int) -> list[Node]:
        return self.captured

    def cuGraphInstantiate(self, graph: list[Node], flags: int) -> list[Node]:
        return graph

    def cuGraphLaunch(self, graph: list[Node], stream: int) -> None:
        before = "pause"
        waiting = [node for node, _ in graph].count("launch")
        for node, event in graph:
            match node:
                case "launch":
                    waiting -= 1
                    self.now += FETCH_MS if waiting > FETCHED else 0
                    self.now += COLD_MS if "flush" in before else self.warm_ms
                    waits = before == "event event" and self.warm_ms < SHORT_MS
                    self.now += PAUSE_MS if before == "pause event" or waits else 0
                    self.launches += 1
                    self.now += self.outlier_ms if self.launches % 5 == 0 else 0
                case "empty":
                    self.now += EMPTY_MS
                case "event":
                    self.now += RESIDUE_MS
                    if before == "event event":  # nothing was ahead of this empty pair
                        self.now += PAUSE_MS
                    if before == "busy event":
                        self.pairs += 1
                        self.now += OUTLIER_MS if self.pairs % 10 == 0 else 0
                    self.events[event] = self.now
            before = f"{before.split()[-1]} {node}"

    def cuEventElapsedTime(self, begin: int, end: int) -> float:
        return self.events[end] - self.events[begin]

    def nothing(self, *_: object) -> None:
        """Synchronise, or destroy."""

    def cuEventDestroy(self, event: int) -> None:
        self.destroyed.append(event)

    cuStreamSynchronize = cuGraphDestroy = cuGraphExecDestroy = nothing


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made_up = Driver()
    monkeypatch.setattr(cuda_graph, "driver", made_up)
    monkeypatch.setattr(cuda_graph, "checked", lambda result: result)
    return made_up


@pytest.mark.parametrize("residue_ms", [0.0, RESIDUE_MS])
def test_a_warm_sample_is_a_launch_behind_others_without_what_the_events_add(driver: Driver, residue_ms: float) -> None:
    timer = GraphTimer(0, [driver.enqueue("launch")], residue_ms, Ahead(driver.enqueue("busy"), cold=False), warmup=0)
    assert timer.take() == WARM_MS + RESIDUE_MS - residue_ms


def test_a_short_warm_sample_is_behind_another_kernel_and_not_behind_the_wait_for_its_node(driver: Driver) -> None:
    driver.warm_ms = SHORT_MS / 2
    timer = GraphTimer(0, [driver.enqueue("launch")], RESIDUE_MS, Ahead(driver.enqueue("busy"), cold=False), warmup=0)
    assert timer.take() == pytest.approx(SHORT_MS / 2)


def test_no_sample_has_launches_of_a_graph_that_is_still_fetched(driver: Driver) -> None:
    driver.warm_ms = SHORT_MS
    turns = [driver.enqueue("launch")] * (FETCHED + 20)
    timer = GraphTimer(0, turns, RESIDUE_MS, Ahead(driver.enqueue("busy"), cold=False), warmup=0)
    assert timer.take() == pytest.approx(SHORT_MS)


def test_a_few_launches_with_something_else_in_them_are_left_out(driver: Driver) -> None:
    driver.warm_ms, driver.outlier_ms = SHORT_MS, OUTLIER_MS
    timer = GraphTimer(0, [driver.enqueue("launch")], RESIDUE_MS, Ahead(driver.enqueue("busy"), cold=False), warmup=0)
    assert timer.take() == pytest.approx(SHORT_MS)


def test_a_cold_sample_is_a_launch_behind_a_flush_that_is_not_in_it(driver: Driver) -> None:
    timer = GraphTimer(0, [driver.enqueue("launch")], RESIDUE_MS, Ahead(driver.enqueue("flush"), cold=True), warmup=0)
    assert timer.take() == COLD_MS


def test_launches_take_copies_of_their_arrays_in_turn_and_each_as_often_in_every_sample(driver: Driver) -> None:
    turns: list[int] = []
    launch = driver.enqueue("launch")

    def on(copy: int) -> Callable[[], None]:
        def enqueue() -> None:
            turns.append(copy)
            launch()

        return enqueue

    timer = GraphTimer(0, [on(0), on(1), on(2)], RESIDUE_MS, Ahead(driver.enqueue("busy"), cold=False), warmup=0)
    (first, *graph) = turns  # the first launch tells how many a sample takes
    assert first == 0
    assert graph == [0, 1, 2] * (len(graph) // 3)
    assert timer.take() == WARM_MS


def test_an_empty_pair_is_read_behind_a_kernel_and_without_outliers(driver: Driver) -> None:
    outcome = calibrate(0, driver.enqueue("busy"), driver.enqueue("empty"))
    assert outcome == (RESIDUE_MS, RESIDUE_MS + EMPTY_MS)


@pytest.mark.parametrize("where", ["a launch", "the division"])
def test_a_graph_that_cannot_be_made_leaves_no_event(driver: Driver, where: str) -> None:
    def fails(*_: object) -> Any:
        raise RuntimeError(where)

    body, divide = (fails, None) if where == "a launch" else (driver.enqueue("launch"), fails)
    with pytest.raises(RuntimeError, match=where):
        cuda_graph.TimedGraph(0, [body] * 2, nothing, divide)
    assert sorted(driver.destroyed) == sorted(driver.events)
    assert len(driver.events) == 4
