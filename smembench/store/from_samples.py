"""Rows of an edited cases.csv, with times and what follows from them computed anew from the run's intact samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from smembench.model.device import DeviceInfo
from smembench.model.measurement import Conditions, Measurement, Prediction, Resources, Sample, Status
from smembench.model.sustained import Moment
from smembench.stats.summary import ci_width
from smembench.store.assemble import ci_widths
from smembench.store.csv_files import CASES, SAMPLES, Samples
from smembench.store.plausibility import bytes_per_clock, peak_percent
from smembench.store.relations import relate
from smembench.store.run_json import Description
from smembench.store.schema import Row, row_of


def from_samples(
    rows: Sequence[Row],
    description: Description,
    samples: Mapping[str, Samples],
    moments: Mapping[str, Sequence[Moment]],
) -> list[Row]:
    """The rows with their samples' figures; an ok case without samples was not in the run, and fails."""
    measured = {
        row.case_id: _measurement(row, description, samples.get(row.case_id, {}), moments.get(row.case_id, ()))
        for row in rows
        if row.ok
    }
    relations = relate(measured.values())
    return [
        replace(row_of(row.run_id, measured[row.case_id], relations), case_id=row.case_id) if row.ok else row
        for row in rows
    ]


def _measurement(row: Row, description: Description, rounds: Samples, moments: Sequence[Moment]) -> Measurement:
    states = {field.name: getattr(row, field.name, None) for field in fields(Conditions)}
    predicted = {field.name: getattr(row, f"predicted_{field.name}", None) for field in fields(Prediction)}
    blank = Measurement(
        case=row.case,
        status=Status.FAILED,
        reason=f"{CASES} was edited: {SAMPLES} has no samples of this case",
        started_at_utc=row.started_at_utc,
        bytes_moved=row.bytes,
        flops=row.flops or 0,
        shared_bytes=row.shared_bytes or 0,
        discarded=row.samples_discarded or 0,
        conditions=Conditions(**states),
        resources=Resources(row.registers, row.local_bytes, row.code_hash),
        notes=row.notes,
    )
    values = [Sample(place, index, ms) for place, times in rounds.items() for index, ms in enumerate(times)]
    if not values:
        return blank
    width = ci_width([sample.elapsed_ms for sample in values])
    precision = description.config.data.get("precision")
    targets = ci_widths(precision if isinstance(precision, (int, float)) else None)
    measured = replace(
        blank,
        status=Status.OK,
        reason="",
        verified=row.verified,
        max_error=row.max_error,
        samples=tuple(values),
        rounds=len(rounds),
        ci_width=width,
        converged=width <= targets[row.case.kind],
        within_cache=row.within_cache,
        prediction=Prediction(**predicted),
        moments=tuple(moments),
    )
    info = description.device(row.device) or DeviceInfo(name=row.device)
    return replace(
        measured, percent_of_peak=peak_percent(measured, info), bytes_per_clock=bytes_per_clock(measured, info)
    )
