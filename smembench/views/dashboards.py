"""Runs in the formats of dashboards: Google Benchmark's JSON, github-action-benchmark's and Bencher's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from statistics import median

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


FORMS: Mapping[str, Callable[[Run], str]] = {"gbench": google, "smaller": smaller_is_better, "bmf": bencher}
"""By the names of their forms."""
