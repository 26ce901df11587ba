"""One line a visit, for --verbose."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.model.measurement import Status, Visit
from smembench.stats.summary import Summary


def visit_line(visit: Visit) -> str:
    """The case, its round, the device's state, its samples and those discarded."""
    where = f"round {visit.round + 1} {visit.case.id}"
    if visit.status is not Status.OK or not visit.samples:
        return f"{where}: {visit.status}: {visit.reason or 'no samples'}"
    summary = Summary.of(visit.samples)
    state = visit.conditions
    parts = [
        f"{summary.count} samples of {summary.median:.5f} ms ({summary.min:.5f} to {summary.max:.5f})",
        f"{visit.discarded} discarded",
        f"{visit.seconds:.2f} s",
        f"SM {state.sm_clock_mhz} MHz" if state.sm_clock_mhz else "",
        f"{state.temperature_c} °C" if state.temperature_c else "",
        f"{state.power_w:.0f} W" if state.power_w else "",
        f"throttled: {state.throttle_reasons}" if state.throttled else "",
        f"waited {100 * state.cpu_waiting:.1f} % for a core" if state.cpu_waiting is not None else "",
        f"{state.other_processes} other processes" if state.other_processes else "",
    ]
    thrown_away = f"; discarded: {_values(visit.discarded_ms)}" if visit.discarded_ms else ""
    return f"{where}: {', '.join(part for part in parts if part)}: {_values(visit.samples)}{thrown_away}"


def _values(samples: Sequence[float]) -> str:
    return " ".join(f"{value:.5f}" for value in samples)
