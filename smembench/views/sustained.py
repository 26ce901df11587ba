"""Loads of seconds as a table: times at the beginning and at the end, what the GPU did meanwhile, energy per launch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smembench.model.sustained import Moment
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.views.columns import number, percentage, within
from smembench.views.sections import Section, device_names, labels, table


def sustained(run: Run) -> list[Section]:
    """A section with a line per case that has a load; none without any."""
    rows = [row for row in run.rows if row.steady_ms is not None]
    if not rows:
        return []
    names = dict(zip(rows, labels(rows), strict=True))
    columns: dict[str, Callable[[Row], str]] = {
        "kernel": lambda row: names[row],
        "first\nsecond ms": lambda row: _with_interval(within, row.burst_ms, row.burst_uncertainty),
        "last\nthird ms": lambda row: _with_interval(within, row.steady_ms, row.steady_uncertainty),
        "MHz": lambda row: _course(run.moments.get(row.case_id, ()), "sm_clock_mhz"),
        "°C": lambda row: _course(run.moments.get(row.case_id, ()), "temperature_c"),
        "W": lambda row: _course(run.moments.get(row.case_id, ()), "power_w"),
        "mJ per\nlaunch": energy,
    }
    seconds = max((moments[-1].seconds for moments in run.moments.values()), default=0.0)
    notes = ["launches back to back overlap at their ends, so that they take less than elapsed ms each"]
    if any(row.energy_mj is None for row in rows):
        notes.append("no energy: NVML counts none here, or the load was too short")
    return [
        table(
            f"{device_names(run.only(rows))} · sustained load of {seconds:.0f} s",
            rows,
            columns,
            words=("kernel",),
            wide=("MHz", "°C", "W"),
        ).below(notes=notes)
    ]


def energy(row: Row) -> str:
    """The energy per launch with its interval; "" without."""
    return _with_interval(number, row.energy_mj, row.energy_uncertainty)


def _with_interval(
    text: Callable[[float | None, float | None], str], value: float | None, relative: float | None
) -> str:
    shown = text(value, relative)
    return shown if relative is None else f"{shown} {percentage(100 * relative, '±')}"


def _course(moments: Sequence[Moment], name: str) -> str:
    """The first and the last reading: ``1980–1755``."""
    values = [value for moment in moments if (value := getattr(moment, name)) is not None]
    ends = [f"{value:.0f}" for value in (*values[:1], *values[-1:])]
    return "–".join(dict.fromkeys(ends))
