"""Runs in the formats of others: Google Benchmark's JSON, NVBench's, github-action-benchmark's and Bencher's."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean, median, stdev

from smembench.model.device import DeviceInfo
from smembench.model.errors import UsageError
from smembench.model.groups import grouped
from smembench.store import nvbench as names
from smembench.store.run import Run
from smembench.store.schema import Row


def google(run: Run) -> str:
    """Google Benchmark's JSON: a repetition per round, whose median is in ns, as its ``compare.py`` takes it.

    Its ``cpu_time`` is what the CPU's work takes, which is not measured here: it is that of the launch, too.
    """
    return _text({"context": _context(run), "benchmarks": list(_repetitions(run))})


def smaller_is_better(run: Run) -> str:
    """github-action-benchmark's ``customSmallerIsBetter``: medians in µs, with half of their 95 % interval as range."""

    def of(row: Row, elapsed_ms: float) -> dict[str, object]:
        width = {} if row.interval is None else {"range": f"± {1000 * elapsed_ms * row.interval:.4g}"}
        device = run.description.device(row.device)
        extra = run.id if device is None else f"{device.model}, {run.id}"
        return {"name": row.case_id, "unit": "µs", "value": 1000 * elapsed_ms, **width, "extra": extra}

    return _text([of(row, elapsed_ms) for row, elapsed_ms in _timed(run)])


def bencher(run: Run) -> str:
    """Bencher Metric Format: medians as ``latency`` in ns, with the ends of their 95 % interval."""

    def of(row: Row, elapsed_ms: float) -> dict[str, float]:
        value, width = 1e6 * elapsed_ms, row.interval
        if width is None:
            return {"value": value}
        return {"value": value, "lower_value": value * max(1 - width, 0.0), "upper_value": value * (1 + width)}

    return _text({row.case_id: {"latency": of(row, elapsed_ms)} for row, elapsed_ms in _timed(run)})


def nvbench(run: Run) -> str:
    """NVBench's JSON of the cases on a GPU, in s, with the relative standard deviation of all samples as noise.

    A case is a benchmark of its own, with a state per GPU: NVBench's ``nvbench_compare.py`` leaves out benchmarks that
    one side lacks, and fails for states.

    Raises:
        UsageError: for a run without times of a GPU.
    """
    timed = [(row, elapsed_ms) for row, elapsed_ms in _timed(run) if row.device != "cpu"]
    if not timed:
        raise UsageError("--export: NVBench's JSON has times of a GPU only, and this run has none; take another suffix")
    version = {"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"}
    benchmarks = grouped(timed, lambda pair: pair[0].case_id.replace(f"/{pair[0].device}/", "/", 1))
    return _text(
        {
            "meta": {"argv": ["smembench", *run.description.argv], "version": {"json": version}},
            "devices": [_device(device) for device in run.description.devices if device.kind == "cuda"],
            "benchmarks": [
                {
                    "name": name,
                    "index": index,
                    "devices": [_index(row.device) for row, _ in cases],
                    "axes": None,
                    "states": [_state(run, row, elapsed_ms) for row, elapsed_ms in cases],
                }
                for index, (name, cases) in enumerate(benchmarks.items())
            ],
        }
    )


def _index(device: str) -> int:
    return int(device.partition(":")[2])


def _device(device: DeviceInfo) -> dict[str, object]:
    major, _, minor = (device.compute_capability or "0.0").partition(".")
    return {
        "id": _index(device.name),
        "name": device.model,
        "sm_version": 100 * int(major) + 10 * int(minor),
        "number_of_sms": device.sm_count or 0,
        "global_memory_size": device.memory_bytes,
        "global_memory_bus_bandwidth": round(1e9 * (device.peak_gb_s or 0.0)),
        "l2_cache_size": device.l2_bytes or 0,
        "ecc_state": bool(device.ecc),
    }


def _state(run: Run, row: Row, elapsed_ms: float) -> dict[str, object]:
    samples = run.values(row.case_id) or [elapsed_ms]
    mean, noise = fmean(samples), stdev(samples) if len(samples) > 1 else math.inf
    quantiles = {name: getattr(row, f"elapsed_ms_{name}") for name in ("min", "q1", "q3", "max")}
    times = {"mean": mean, "median": elapsed_ms, **{name: value for name, value in quantiles.items() if value}}
    numbers = {
        names.SAMPLES: row.samples,
        **{f"{names.GPU}{name}": value / 1e3 for name, value in times.items()},
        names.NOISE: noise / mean,
        **({names.RATE: 1e3 * row.bytes / mean} if row.bytes else {}),
        **({names.CLOCK: 1e6 * row.sm_clock_mhz} if row.sm_clock_mhz else {}),
    }
    return {
        "name": f"Device={_index(row.device)}",
        "device": _index(row.device),
        "type_config_index": 0,
        "axis_values": None,
        "summaries": [{"tag": tag, "name": tag, "data": [_number(value)]} for tag, value in numbers.items()],
        "is_skipped": False,
    }


def _number(value: float) -> dict[str, str]:
    return {"name": "value", "type": "int64" if isinstance(value, int) else "float64", "value": repr(value)}


def _text(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _timed(run: Run) -> Iterator[tuple[Row, float]]:
    """The cases that have a time, each with its ms."""
    return ((row, row.elapsed_ms) for row in run.rows if row.elapsed_ms is not None)


def _context(run: Run) -> dict[str, object]:
    date = {"date": run.began.isoformat()} if run.began.year > 1 else {}  # NVBench's files have none
    return {**date, "executable": "smembench", "run_id": run.id}


def _repetitions(run: Run) -> Iterator[dict[str, object]]:
    for family, (row, elapsed_ms) in enumerate(_timed(run)):
        rounds = list(run.samples.get(row.case_id, {}).values())
        repetitions = [(median(samples), len(samples)) for samples in rounds] or [(elapsed_ms, row.samples)]
        for index, (elapsed_ms, count) in enumerate(repetitions):
            time = 1e6 * elapsed_ms
            name = {"name": row.case_id, "family_index": family, "per_family_instance_index": 0}
            kind = {"run_name": row.case_id, "run_type": "iteration"}
            turn = {"repetitions": len(repetitions), "repetition_index": index, "threads": 1}
            times = {"iterations": count, "real_time": time, "cpu_time": time, "time_unit": "ns"}
            yield {**name, **kind, **turn, **times}


FORMS: Mapping[str, Callable[[Run], str]] = {
    "gbench": google,
    "nvbench": nvbench,
    "smaller": smaller_is_better,
    "bmf": bencher,
}
"""By the names of their forms."""
