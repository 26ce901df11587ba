"""Runs in the formats of others: Google Benchmark's JSON, NVBench's, github-action-benchmark's and Bencher's."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean, median, stdev

from smembench.model.device import DeviceInfo
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
        value = 1e6 * elapsed_ms
        ends = (
            {}
            if row.interval is None
            else {
                "lower_value": value * (1 - row.interval),
                "upper_value": value * (1 + row.interval),
            }
        )
        return {"value": value, **ends}

    return _text({row.case_id: {"latency": of(row, elapsed_ms)} for row, elapsed_ms in _timed(run)})


def nvbench(run: Run) -> str:
    """NVBench's JSON: a benchmark per kernel, with a state per case on a GPU, as its ``nvbench_compare.py`` takes it.

    Its times are means in s, and its noise is the relative standard deviation of all samples.
    """
    version = {"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"}
    timed = [(row, elapsed_ms) for row, elapsed_ms in _timed(run) if row.device != "cpu"]
    of_kernels = groupby(sorted(timed, key=_benchmark), _benchmark)
    return _text(
        {
            "meta": {"argv": ["smembench", *run.description.argv], "version": {"json": version}},
            "devices": [_device(device) for device in run.description.devices if device.kind == "cuda"],
            "benchmarks": [_states(run, index, name, list(cases)) for index, (name, cases) in enumerate(of_kernels)],
        }
    )


def _benchmark(timed: tuple[Row, float]) -> str:
    return f"{timed[0].problem}/{timed[0].kernel}"


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


def _states(run: Run, index: int, name: str, cases: Sequence[tuple[Row, float]]) -> dict[str, object]:
    texts = {row.case_id: row.case_id.removeprefix(f"{name}/{row.device}/") for row, _ in cases}
    axis = {"name": "case", "type": "string", "flags": ""}
    values = [{"input_string": text, "description": "", "value": text} for text in dict.fromkeys(texts.values())]

    def state(row: Row, elapsed_ms: float) -> dict[str, object]:
        samples, text = run.values(row.case_id) or [elapsed_ms], texts[row.case_id]
        mean, noise = fmean(samples), stdev(samples) if len(samples) > 1 else math.inf
        numbers = {
            names.SAMPLES: len(samples),
            f"{names.GPU}mean": mean / 1e3,
            names.NOISE: noise / mean,
            f"{names.GPU}median": elapsed_ms / 1e3,
            **({names.RATE: 1e3 * row.bytes / mean} if row.bytes else {}),
            **({names.CLOCK: 1e6 * row.sm_clock_mhz} if row.sm_clock_mhz else {}),
        }
        return {
            "name": f"Device={_index(row.device)} case={text}",
            "device": _index(row.device),
            "type_config_index": 0,
            "axis_values": [{"name": "case", "type": "string", "value": text}],
            "summaries": [{"tag": tag, "name": tag, "data": [_number(value)]} for tag, value in numbers.items()],
            "is_skipped": False,
        }

    return {
        "name": name,
        "index": index,
        "devices": sorted({_index(row.device) for row, _ in cases}),
        "axes": [{**axis, "values": values}],
        "states": [state(*each) for each in cases],
    }


def _number(value: float) -> dict[str, str]:
    return {"name": "value", "type": "int64" if isinstance(value, int) else "float64", "value": repr(value)}


def _text(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _timed(run: Run) -> Iterator[tuple[Row, float]]:
    """The cases that have a time, each with its ms."""
    return ((row, row.elapsed_ms) for row in run.rows if row.elapsed_ms is not None)


def _context(run: Run) -> dict[str, object]:
    return {"date": run.began.isoformat(), "executable": "smembench", "run_id": run.id}


def _repetitions(run: Run) -> Iterator[dict[str, object]]:
    for family, (row, elapsed_ms) in enumerate(_timed(run)):
        rounds = list(run.samples.get(row.case_id, {}).values()) or [[elapsed_ms]]
        for index, samples in enumerate(rounds):
            time = 1e6 * median(samples)
            yield {
                "name": row.case_id,
                "family_index": family,
                "per_family_instance_index": 0,
                "run_name": row.case_id,
                "run_type": "iteration",
                "repetitions": len(rounds),
                "repetition_index": index,
                "threads": 1,
                "iterations": len(samples),
                "real_time": time,
                "cpu_time": time,
                "time_unit": "ns",
            }


FORMS: Mapping[str, Callable[[Run], str]] = {
    "gbench": google,
    "nvbench": nvbench,
    "smaller": smaller_is_better,
    "bmf": bencher,
}
"""By the names of their forms."""
