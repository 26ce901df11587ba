"""Reading Nsight Compute's CSV, and what counts as agreement."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from fake_driver.process import FakeDriver
from smembench.cli.app import app
from smembench.devices import select
from smembench.explain import kernel_records
from smembench.explain.kernel_records import KernelRecords, per_launch
from smembench.explain.ncu import parse
from smembench.explain.ncu_child import WORK, Work
from smembench.model.device import DeviceInfo
from smembench.run import session
from smembench.studies.doctor import timing
from smembench.studies.doctor.timing import CASES, METRIC, Agreement
from smembench.views.doctor import section, timing_records

OUTPUT = """==PROF== Connected to process 42
"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","copy","gpu__time_duration.sum","ns","1,856"
"1","copy","gpu__time_duration.sum","ns","103877056.5"
"""


def test_readings_are_read_in_the_order_of_the_launches() -> None:
    assert parse(OUTPUT) == {METRIC: [1856.0, 103877056.5]}
    assert parse("==ERROR== no GPU\n") == {}


@pytest.mark.parametrize(
    ("ours", "readings", "agrees"),
    [
        (2.10, (1.8, 1.82, 1.86), True),
        (2.12, (1.8, 1.82, 1.86), False),
        (1.56, (1.8, 1.82, 1.86), True),
        (1.54, (1.8, 1.82, 1.86), False),
        (101.1, (99, 100, 100.2), True),
        (101.3, (99, 100, 100.2), False),
        (1.9, (), None),
    ],
)
def test_agreement_is_0_25_microseconds_or_1_percent_beyond_the_readings(
    ours: float, readings: tuple[float, ...], agrees: bool | None
) -> None:
    assert Agreement(CASES[0], (ours,), readings).agrees is agrees


class Cupti:
    """What is used of cupti.cupti: kernels are records once they are flushed."""

    ActivityKind = SimpleNamespace(CONCURRENT_KERNEL=10)

    def __init__(self) -> None:
        self.waiting: list[Any] = []

    def activity_enable(self, kind: int) -> None:
        assert kind == 10

    def activity_register_callbacks(self, requested: Any, completed: Any) -> None:
        size, most = requested()
        assert (size > 0, most) == (True, 0)
        self.completed = completed

    def activity_flush_all(self, flag: int) -> None:
        result, self.waiting = self.waiting, []
        self.completed(result)


def test_kernel_records_are_those_since_the_last_without_the_timers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = Cupti()
    monkeypatch.setitem(sys.modules, "cupti", ModuleType("cupti"))
    monkeypatch.setattr(sys.modules["cupti"], "cupti", cupti, raising=False)
    records = KernelRecords()

    def ran(name: str, start: int, end: int, kind: int = 10) -> None:
        cupti.waiting.append(SimpleNamespace(kind=kind, name=name, start=start, end=end))

    ran("copy", 5000, 7000)
    ran("busy", 1000, 4000)
    ran("memset", 1000, 4000, kind=2)
    ran("sums", 0, 1000)
    assert records.take() == [0.001, 0.002]
    assert records.take() == []


def test_the_kernels_of_a_launch_are_added_up_if_they_are_whole_launches() -> None:
    assert per_launch([1.0, 2.0, 1.5, 2.5], 2) == [3.0, 4.0]
    for kernels, count in (([1.0, 2.0, 3.0], 2), ([], 1), ([1.0], 0)):
        with pytest.raises(ValueError, match="whole number of launches"):
            per_launch(kernels, count)


def test_without_ncu_the_table_has_the_clocks_that_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "why_missing", lambda: "")
    monkeypatch.setattr("shutil.which", lambda name: None)  # no ncu
    monkeypatch.setattr(timing, "sampled", lambda work: [0.001 if work.records else 0.002] * len(work.cases))
    notes: list[str] = []
    (result,) = timing.compare(CASES[:1], notes.append)
    assert result == Agreement(CASES[0], (2.0,) * 5, (), 1.0)
    assert "ncu (Nsight Compute) is not on the PATH" in notes[0]
    shown = section([result], DeviceInfo(name="cuda:0"), {})
    assert [column.title for column in shown.columns] == ["kernel", "size", "cache", "smembench µs", "CUPTI µs"]
    assert shown.sentence == "They are +1.00 to +1.00 µs beside CUPTI's kernel records."
    assert timing_records([result])[0]["agrees"] is None


def test_where_cupti_is_missing_a_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_records, "find_spec", lambda name: None)
    monkeypatch.setattr(timing, "sampled", lambda work: [0.002] * len(work.cases))
    monkeypatch.setattr(timing, "profile", lambda work, *_, **__: [{METRIC: 1900.0}] * len(work.cases))
    notes: list[str] = []
    (result,) = timing.compare(CASES[:1], notes.append)
    assert result == Agreement(CASES[0], (2.0,) * 5, (1.9,) * 5)
    assert notes == ["no kernel records: cupti-python is missing (pip install 'smembench[cupti]')"]


def test_both_clocks_have_arrays_at_the_same_five_places(monkeypatch: pytest.MonkeyPatch) -> None:
    sampled: list[Work] = []
    profiled: list[Work] = []

    def sample(work: Work) -> list[float]:
        sampled.append(work)
        return [0.002] * len(work.cases)

    def profile(work: Work, *_: object, **__: object) -> list[dict[str, float]]:
        profiled.append(work)
        return [{METRIC: 1900.0}] * len(work.cases)

    monkeypatch.setattr(timing, "why_missing", lambda: "")
    monkeypatch.setattr(timing, "sampled", sample)
    monkeypatch.setattr(timing, "profile", profile)
    list(timing.compare(CASES[:1]))
    assert [work.ahead_mib for work in sampled if not work.records] == [0, 48, 96, 144, 192]
    assert [work.ahead_mib for work in profiled] == [0, 48, 96, 144, 192]
    assert [work.ahead_mib for work in sampled if work.records] == [0]


@pytest.mark.parametrize(("ahead_mib", "fits"), [(0, True), (30, True), (48, False), (100, False)])
def test_memory_ahead_of_the_arrays_is_kept(fake_driver: FakeDriver, ahead_mib: int, *, fits: bool) -> None:
    work = Work([replace(CASES[0], m=2048, n=2048)], launches=1, ahead_mib=ahead_mib)
    child = fake_driver("smembench.explain.ncu_child", WORK.dump_json(work).decode(), memory=72 * 2**20)
    _, err = child.communicate(timeout=120)
    assert (child.returncode == 0, "CUDA_ERROR_OUT_OF_MEMORY" in err) == (fits, not fits), err


@pytest.mark.parametrize(("interrupted", "places"), [(0, 0), (1, 0), (2, 1), (5, 2)])
def test_places_read_by_both_clocks_before_ctrl_c_are_kept(
    monkeypatch: pytest.MonkeyPatch, interrupted: int, places: int
) -> None:
    """The clocks are read in turn, ncu's first."""
    readings = iter(range(100))

    def read(answer: object) -> Callable[..., list[object]]:
        def take(work: Work, *_: object, **__: object) -> list[object]:
            if next(readings) == interrupted:
                raise KeyboardInterrupt
            return [answer] * len(work.cases)

        return take

    monkeypatch.setattr(timing, "why_missing", lambda: "none")
    monkeypatch.setattr(timing, "sampled", read(0.002))
    monkeypatch.setattr(timing, "profile", read({METRIC: 1900.0}))
    result: list[Agreement] = []
    with pytest.raises(KeyboardInterrupt):
        result.extend(timing.compare(CASES[:2]))
    kept = [Agreement(case, (2.0,) * places, (1.9,) * places) for case in CASES[:2]]
    assert result == (kept if places else [])


def test_what_was_measured_before_ctrl_c_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def compared(*_: object) -> Iterator[Agreement]:
        yield Agreement(CASES[0], (2.5,), (2.4,))
        raise KeyboardInterrupt

    monkeypatch.setattr(timing, "compare", compared)
    monkeypatch.setattr(session, "locked", lambda devices: nullcontext())
    monkeypatch.setattr(select, "open_device", lambda name: SimpleNamespace(info=DeviceInfo(name="cuda:0")))
    ended = CliRunner().invoke(app, ["doctor", "--timing", "--export", str(tmp_path / "timing.csv")])
    assert ended.exit_code
    assert (tmp_path / "timing.csv").read_text().count("copyGmem") == 1
