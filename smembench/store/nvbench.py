"""NVBench's JSON, read as a run of one round per state."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from warnings import warn

from pydantic import BaseModel, ConfigDict, model_validator

from smembench.kernels.time.problem import NO_DTYPE
from smembench.model.case import CACHES, Case
from smembench.model.device import DeviceInfo
from smembench.model.errors import Dropped, UsageError
from smembench.model.measurement import Conditions, Measurement, Sample, Status
from smembench.model.ranges import Count
from smembench.stats.summary import MIN_SAMPLES, ci_width
from smembench.store.files import read_whole
from smembench.store.run import Run
from smembench.store.run_json import Description, read_json
from smembench.store.schema import Row

NVBENCH = "nvbench"
"""In place of a compiler, in the cases of NVBench's files."""
GPU = "nv/cold/time/gpu/"
"""The summaries of a state's GPU times, in s."""
SAMPLES, CLOCK, RATE = "nv/cold/sample_size", "nv/cold/sm_clock_rate/mean", "nv/cold/bw/global/bytes_per_second"
NOISE = f"{GPU}stdev/relative"
_READ = "give a run's folder, a cases.csv or NVBench's JSON"
TIMES = "nv/json/bin:nv/cold/sample_times"
"""The summary that names a file of samples in s, little-endian float32, beside the JSON."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)


class _Value(_Part):
    name: str
    type: str = "string"
    value: str | None = None


class _Summary(_Part):
    tag: str
    data: list[_Value] | None = None


class _State(_Part):
    device: Count | None = None
    axis_values: list[_Value] | None = None
    summaries: list[_Summary] | None = None
    is_skipped: bool = False
    skip_reason: str = "skipped by NVBench"

    def text(self, tag: str, name: str = "value") -> str:
        """A value of a summary; "" if there is none."""
        values = next((summary.data for summary in self.summaries or () if summary.tag == tag), None)
        return next((value.value or "" for value in values or () if value.name == name), "")

    def number(self, tag: str) -> float | None:
        """A summary's number; None if there is none, or it is negative or not finite."""
        with suppress(ValueError):
            return value if 0 <= (value := float(self.text(tag))) < math.inf else None
        return None


class _Benchmark(_Part):
    name: str
    states: list[_State] | None = None


class _Device(_Part):
    id: Count
    name: str
    sm_version: Count
    number_of_sms: Count = 0
    global_memory_size: Count = 0
    global_memory_bus_bandwidth: Count = 0
    l2_cache_size: Count = 0
    ecc_state: bool | None = None

    @property
    def info(self) -> DeviceInfo:
        """The file's description of a GPU, without a UUID."""
        major, minor = divmod(self.sm_version // 10, 10)
        return DeviceInfo(
            name=f"cuda:{self.id}",
            model=self.name,
            memory_bytes=self.global_memory_size,
            compute_capability=f"{major}.{minor}",
            sm_count=self.number_of_sms or None,
            l2_bytes=self.l2_cache_size or None,
            peak_gb_s=self.global_memory_bus_bandwidth / 1e9 or None,
            ecc=self.ecc_state,
        )


class _Meta(_Part):
    argv: list[str] | None = None


class _File(_Part):
    meta: _Meta = _Meta()
    devices: list[_Device] | None = None
    benchmarks: list[_Benchmark] | None = None
    run: Any = None
    context: Any = None

    @model_validator(mode="before")
    @classmethod
    def _object(cls, data: Any) -> Any:
        return data if isinstance(data, dict) else {}

    @property
    def other(self) -> str:
        """What the file is, if it is not NVBench's JSON."""
        if self.benchmarks is not None:
            return "Google Benchmark's JSON" if self.context is not None else ""
        return "the JSON that --export writes of a run" if self.run is not None else "not NVBench's JSON"


def read_nvbench(path: Path) -> Run:
    """The GPU times of NVBench's JSON: of its samples where the files that it names are there, else of its summaries.

    Integer axes become parameters of a case; other axes are part of the kernel's name. NVBench flushes the L2 before a
    sample, so the cache is cold, except for cases that smembench exported, whose names end with their cache mode. There
    are no results to verify, no rounds, no UUID, driver, date or machine code.

    Raises:
        UsageError: for a file that is no such JSON or has a case twice, or samples that are not as many as it says.
    """
    file = read_json(path, _File, _READ)
    assert file is not None
    if file.other:
        raise UsageError(f"{path}: {file.other}; {_READ}")
    devices = [device.info for device in file.devices or ()]
    description = Description(devices=devices, argv=file.meta.argv or [])
    states = [
        (_case(benchmark.name, state), state) for benchmark in file.benchmarks or () for state in benchmark.states or ()
    ]
    for case_id, number in Counter(case.id for case, _ in states).items():
        if number > 1:
            raise UsageError(f"{path}: {case_id} is there {number} times; give each measurement a file of its own")
    sampled = {case.id: values for case, state in states if (values := _samples(path, state))}
    run = Run.of(description, [_measurement(case, state, sampled.get(case.id, ())) for case, state in states], path)
    rows = [
        row if row.case_id in sampled else _summarised(row, state)
        for row, (_, state) in zip(run.rows, states, strict=True)
    ]
    return replace(run, rows=rows, samples={name: run.samples[name] for name in sampled})


def _case(name: str, state: _State) -> Case:
    axes = state.axis_values or ()
    whole = [axis for axis in axes if re.fullmatch(r"[A-Za-z]\w*=\d+", f"{axis.name}={axis.value}", re.ASCII)]
    others = ",".join(f"{axis.name}={axis.value}" for axis in axes if axis not in whole)
    kernel = (f"{name}[{others}]" if others else name).replace("/", ":")
    parameters = tuple((axis.name, int(axis.value or 0)) for axis in whole)
    device = "cpu" if state.device is None else f"cuda:{state.device}"
    last = name.rpartition("/")[2]  # of the names that smembench exports
    given = {"cache": last if last in CACHES else "cold", "compiler": NVBENCH, "parameters": parameters}
    return Case("time", kernel, device, NO_DTYPE, 1, 1, **given)  # type: ignore[arg-type]


def _samples(path: Path, state: _State) -> list[float]:
    """The samples in ms; empty if the file of them is not named or not there."""
    if state.is_skipped or not (name := state.text(TIMES, "filename")):
        return []
    beside = path.parent.joinpath(*Path(name).parts[-2:])  # older ones have the folder of the JSON, too
    try:
        seconds = array("f", read_whole(beside))
    except (OSError, ValueError):
        warn(f"{beside.parent}: has not all samples, whose summaries are used", Dropped, stacklevel=2)
        return []
    times = [1e3 * value for value in seconds if 0 < value < math.inf]
    if str(len(times)) != (size := state.text(TIMES, "size")):
        raise UsageError(f"{beside}: holds {len(times)} times, and {path} says {size}; measure again")
    return times


def _measurement(case: Case, state: _State, samples: Sequence[float]) -> Measurement:
    mean, clock = state.number(f"{GPU}mean"), state.number(CLOCK)
    centre = state.number(f"{GPU}median") or mean  # older files have no median
    reason = state.skip_reason if state.is_skipped else "" if centre else f"NVBench's file has no {GPU}mean"
    values = () if reason else samples or (1e3 * (centre or 0.0),)
    return Measurement(
        case,
        Status.SKIPPED if reason else Status.OK,
        started_at_utc="",
        bytes_moved=round((state.number(RATE) or 0.0) * (mean or 0.0)),
        flops=0,
        shared_bytes=0,
        reason=reason,
        samples=tuple(Sample(0, index, value) for index, value in enumerate(values)),
        rounds=1,
        ci_width=ci_width(values) if len(values) >= MIN_SAMPLES else None,
        conditions=Conditions(sm_clock_mhz=round(clock / 1e6) if clock else None),
    )


def _summarised(row: Row, state: _State) -> Row:
    """The row with what NVBench's summaries say of the samples; ``precision`` is the mean's, 1.96 σ/√n."""
    if not row.ok:
        return row
    count, noise = int(state.number(SAMPLES) or 0), state.number(NOISE)
    width = 1.96 * noise / math.sqrt(count) if noise is not None and count >= MIN_SAMPLES else None
    low, q1, q3, high = (_ms(state.number(f"{GPU}{name}")) for name in ("min", "q1", "q3", "max"))
    row = replace(row, samples=count, precision=width, uncertainty=width)
    return replace(row, elapsed_ms_min=low, elapsed_ms_q1=q1, elapsed_ms_q3=q3, elapsed_ms_max=high)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds
