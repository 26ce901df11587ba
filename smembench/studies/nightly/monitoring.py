"""A run for a monitoring system: one line of JSON, and metrics for node_exporter's textfile collector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from smembench.model.text import json_text, visible
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.store.schema import Row, to_text
from smembench.studies.compare import Comparison

Compared = Sequence[tuple[str, Comparison]]
"""Comparisons, each with the name of what it compares with: ``last``, ``baseline`` or a path."""

Samples = list[tuple[dict[str, str], float]]
"""Samples of a gauge with their labels."""

GAUGES = {
    "smembench_elapsed_seconds": "Median time of one launch.",
    "smembench_effective_bandwidth_bytes_per_second": "Bytes the problem has to move over the median time.",
    "smembench_case_ok": "1 for a case that was verified and timed, 0 for one that failed or was skipped.",
    "smembench_failed_cases": "Cases that failed or computed a wrong result.",
    "smembench_slower_cases": "Cases on a device that are slower than in the runs compared with, and not accepted.",
    "smembench_throttled_cases": "Cases on a device that were measured while it throttled, so that no time counts.",
    "smembench_compared_cases": "Cases that could be compared; without any, none can be found to be slower.",
    "smembench_run_started_timestamp_seconds": "When the run began.",
    "smembench_run_exit_code": "0 all ok, 3 a case is slower, 1 one failed or is missing, 5 nothing could be compared.",
}
"""The gauges of a run, each with its help."""


def json_line(run: Run, compared: Compared, exit_code: int) -> str:
    """A run as one line of JSON: how it ended, the slower cases, and the median of every case in ms."""
    described = run.description
    line = {
        "run_id": described.run_id,
        "started_at_utc": described.started_at_utc,
        "config": described.config.name,
        "host": described.host.name if described.host else None,
        "devices": [device.model for device in described.devices],
        "exit_code": exit_code,
        "failed": {row.case_id: row.status for row in run.failed},
        "compared": [
            {
                "with": asked,
                "base": list(comparison.base),
                "cases": {verdict.value: count for verdict, count in comparison.counts.items()},
                "threshold": comparison.threshold,
                "slower": {case.case.id: case.ratio for case in comparison.regressions},
                "causes": {case.case.id: list(map(str, case.causes)) for case in comparison.regressions},
            }
            for asked, comparison in compared
        ],
        "elapsed_ms": {row.case_id: row.elapsed_ms for row in run.rows if row.ok},
    }
    return json_text(line) + "\n"


def open_metrics(run: Run, compared: Compared, exit_code: int) -> str:
    """A run as gauges, valid both as OpenMetrics 1.0 and as Prometheus text format 0.0.4.

    The textfile collector reads the latter, in which ``# EOF`` is a comment, and rejects timestamps of samples, so
    the start of the run is a gauge of its own. Cases that failed have no time, and 0 in ``smembench_case_ok``.
    """
    of_run = {"config": run.description.config.name}
    done = [row for row in run.rows if row.ok]
    labels = {row.case_id: {**of_run, **_labels(row, run.description)} for row in run.rows}
    moment = run.description.started_at_utc
    comparisons = [({**of_run, "compared_with": asked}, comparison) for asked, comparison in compared]
    devices = {
        device.name: {**of_run, **_of_device(run.description, device.name)} for device in run.description.devices
    }
    throttled = Counter(row.device for row in run.rows if row.throttle_reasons not in (None, "none"))
    began = [(of_run, datetime.fromisoformat(moment).timestamp())] if moment else []
    samples: dict[str, Samples] = {
        "smembench_elapsed_seconds": [
            (labels[row.case_id], row.elapsed_ms / 1e3) for row in done if row.elapsed_ms is not None
        ],
        "smembench_effective_bandwidth_bytes_per_second": [
            (labels[row.case_id], row.effective_gb_s * 1e9) for row in done if row.effective_gb_s is not None
        ],
        "smembench_case_ok": [(labels[row.case_id], float(row.ok)) for row in run.rows],
        "smembench_failed_cases": [(of_run, float(len(run.failed)))],
        "smembench_slower_cases": [
            ({**labelled, **of_device}, float(sum(case.case.device == name for case in comparison.regressions)))
            for labelled, comparison in comparisons
            for name, of_device in devices.items()
        ],
        "smembench_throttled_cases": [(of_device, float(throttled[name])) for name, of_device in devices.items()],
        "smembench_compared_cases": [(labelled, float(comparison.judged)) for labelled, comparison in comparisons],
        "smembench_run_started_timestamp_seconds": began,
        "smembench_run_exit_code": [(of_run, float(exit_code))],
    }
    return exposition(GAUGES, samples)


def exposition(helps: Mapping[str, str], samples: Mapping[str, Samples]) -> str:
    """Gauges as text, each with its help and its samples; those without samples are left out."""
    lines = []
    for name, help_text in helps.items():
        if own := samples[name]:
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} gauge"]
            lines += [f"{name}{_braced(labelled)} {to_text(value)}" for labelled, value in own]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _labels(row: Row, run: Description) -> dict[str, str]:
    named = {"case": row.case_id, "problem": row.problem, "kernel": row.kernel}
    return {**named, **_of_device(run, row.device), "dtype": row.dtype, "cache": row.cache}


def _of_device(run: Description, name: str) -> dict[str, str]:
    """Labels of a device: its name, model, and a GPU's UUID, or in an anonymous run its pseudonym."""
    device = run.device(name)
    return {"device": name, "uuid": (device.uuid if device else None) or "", "model": device.model if device else ""}


def _braced(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return visible(value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
