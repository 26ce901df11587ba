"""Shared-memory throughput from samples to the table: bytes per clock, what is impossible, and the sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from smembench.explain.prediction import predict
from smembench.kernels import registry
from smembench.model.case import Block, Case
from smembench.model.device import DeviceInfo, Limits
from smembench.model.errors import DeviceUnavailable, UsageError
from smembench.model.measurement import Conditions, Measurement, Status, Trial
from smembench.run.config import from_flags
from smembench.run.plan import Plan
from smembench.store import schema
from smembench.store.assemble import assemble
from smembench.store.run import Run
from smembench.store.schema import Row, row_of
from smembench.views.sections import sections

GPU = DeviceInfo(
    name="cuda:0",
    kind="cuda",
    model="H200",
    memory_bytes=10**11,
    compute_capability="9.0",
    sm_count=100,
    l2_bytes=2**40,
    peak_gb_s=1.0,
)
CLOCK = Conditions(sm_clock_mhz=1000)
LIMITS = Limits(
    free_bytes=2**36, max_threads=1024, max_block=(1024, 1024), max_shared_bytes=48 * 1024, multiprocessors=100
)
PASSES, THREADS = 64, 100 * 1024


def case_of(kernel: str, **values: Any) -> Case:
    result = registry.find("access", kernel, "cuda")
    assert result is not None
    case = Case(
        "access", kernel, "cuda:0", "int32", PASSES, THREADS, pad=None if result.pad is None else int(result.pad)
    )
    return replace(case, **{"block": Block(32, 32) if result.blocks else None} | values)


def measured(kernel: str, per_clock: float, conditions: Conditions = CLOCK, **values: Any) -> Measurement:
    """A measurement in which a multiprocessor moved so many bytes per clock of 1 GHz."""
    case = case_of(kernel, **values)
    elapsed = PASSES * THREADS * 64 / (per_clock * 1e6 * 100)
    trial = Trial(case, 0, Status.OK, "2026-01-01T00:00:00+00:00", verified=True, samples=(elapsed,) * 9)
    (made,) = assemble([case], [replace(trial, conditions=conditions)], {"cuda:0": GPU}, {"cuda": 0.005}, predict)
    return made


def row(kernel: str, per_clock: float, **values: Any) -> Row:
    return row_of("run", measured(kernel, per_clock, **values), {})


def test_bytes_a_clock_and_their_share_of_what_the_banks_deliver() -> None:
    result = measured("setRowReadRow", 96.0)
    assert result.bytes_per_clock == pytest.approx(96)
    assert result.percent_of_peak == pytest.approx(75)
    assert result.within_cache is None
    stored = schema.from_fields(dict(zip(schema.COLUMNS, schema.to_fields(row("setRowReadRow", 96.0)), strict=True)))
    assert stored.bytes_per_clock == result.bytes_per_clock


def test_where_the_clock_is_unknown_there_is_no_figure() -> None:
    result = measured("setRowReadRow", 500.0, Conditions())
    assert result.ok
    assert result.bytes_per_clock is result.percent_of_peak is None
    (section,) = sections(Run([row_of("run", result, {})]))
    assert section.bars == []
    assert "bytes per clock" not in section.sentence


@pytest.mark.parametrize(
    ("kernel", "dtype", "per_clock", "possible"),
    [
        ("parallelAccess", "int32", 129.0, True),
        ("parallelAccess", "int32", 130.0, False),
        ("setRowReadRowDynPad", "int64", 130.0, False),
        ("broadcastAccess", "int32", 130.0, False),
        ("broadcastAccess", "int64", 200.0, True),
        ("broadcastAccess", "int64", 260.0, False),
    ],
)
def test_more_than_the_banks_deliver_is_no_figure(kernel: str, dtype: str, per_clock: float, possible: bool) -> None:
    result = measured(kernel, per_clock, dtype=dtype)
    assert result.ok is possible
    assert result.reason.startswith("impossible: ") is not possible
    assert possible or result.bytes_per_clock is None


def test_a_table_has_conflicts_beside_bytes_a_clock_and_says_what_they_cost() -> None:
    rates = {"setRowReadRow": 120.0, "setRowReadCol": 7.5, "setRowReadColPad": 115.0, "serialAccess": 4.0}
    (section,) = sections(Run([row(kernel, rate) for kernel, rate in rates.items()]))
    headings = [" ".join(column.heading.split()) for column in section.columns]
    cells = [dict(zip(headings, line, strict=True)) for line in section.cells]
    assert [line["conflicts ld / st"] for line in cells] == ["1 / 1", "32 / 1", "1 / 1", "32 / 32"]
    assert [line["bytes/clk per SM"] for line in cells] == ["120.0", "7.50", "115.0", "4.00"]
    assert not next(column for column in section.columns if column.heading.startswith("conflicts")).wide
    for phrase in (
        "setRowReadRow 32x32, reaches 120.0 bytes per clock, 94 % of what the banks deliver",
        "serialAccess (32-way conflicts of loads and 32-way conflicts of stores) is slower",
        "it takes 30.00 times",
        "is 15.33 times as fast as setRowReadCol (32-way conflicts of loads become no conflicts)",
    ):
        assert phrase in section.sentence
    (section,) = sections(Run([row("setRowReadRow", 120.0), row("setRowReadRowPad", 119.0)]))
    assert section.sentence.endswith("1.008 times as long (no conflicts in both).")


def test_strides_are_rows_of_one_table() -> None:
    (section,) = sections(Run([row("strided", 128.0 / stride, stride=stride) for stride in (1, 2, 32)]))
    place = [column.heading for column in section.columns].index("stride")
    assert [line[place] for line in section.cells] == ["1", "2", "32"]
    assert [bar.label for bar in section.bars] == ["strided stride 1", "strided stride 2", "strided stride 32"]
    assert "stride" not in section.heading
    assert "it takes 32.00 times" in section.sentence


def planned(resolve: str = "cuda:0", **sweep: Any) -> list[Case]:
    config = from_flags({"sweep": [{"problem": "access", **sweep}]})
    names = {"auto": resolve, "cpu": "cpu"}
    return [item.case for item in Plan.of(config, names).cases({"cuda:0": LIMITS, "cpu": Limits(2**36)})]


def test_the_usual_run_fills_the_gpu_and_fits_a_screen() -> None:
    cases = planned()
    assert {(case.m, case.n, case.dtype) for case in cases} == {(256, 100 * 24576, "int32")}
    assert {case.block for case in cases} == {Block(32, 32), Block(32, 16), None}
    assert len(cases) == 13
    assert [case.stride for case in planned(kernel="strided")] == list(range(1, 33))


def test_a_stride_that_no_kernel_takes_is_refused() -> None:
    assert [case.stride for case in planned(kernel="strided", stride="4,8")] == [4, 8]
    with pytest.raises(UsageError, match=r"stride 4: setRowReadRow cannot take one; name only strided$"):
        planned(kernel="strided,setRowReadRow", stride="4,8")
    with pytest.raises(UsageError, match=r"stride 4: setRowReadRow, .* cannot take one; name only strided"):
        planned(stride="4")
    with pytest.raises(UsageError, match="stride 64: the 32 banks repeat; use 1 to 32"):
        planned(kernel="strided", stride="64")


@pytest.mark.parametrize("kernel", ["", "setRowReadRow"])
def test_without_a_gpu_there_is_a_way_out(kernel: str) -> None:
    named = {"kernel": kernel} if kernel else {}
    with pytest.raises(DeviceUnavailable, match=r"only on a GPU, and none is usable .*; smembench explain needs none"):
        planned("cpu", **named)
    with pytest.raises(UsageError, match="only on a GPU, not on cpu"):
        planned("cpu", device="cpu", **named)
