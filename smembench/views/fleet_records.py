"""A fleet as records for programs: its devices, its metrics, every figure with the device's state, and who is slow."""

from __future__ import annotations

from dataclasses import asdict, fields

from smembench.studies.fleet.verdict import Distance, Verdict
from smembench.views.export import Result
from smembench.views.fleet import deviation, fleet_sections
from smembench.views.records import Record, values

_STATE = (
    *("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w", "throttle_reasons", "other_processes"),
    *("ecc_corrected", "ecc_uncorrected", "pcie_generation", "pcie_width", "nvlinks_up"),
)
"""Columns of cases.csv that say in which state a device was."""


def result(verdict: Verdict) -> Result:
    """The tables; as CSV the figures, as JSON all of it."""
    return Result(
        sections=fleet_sections(verdict, fine=True),
        data=lambda: {
            "fleet": {"path": str(verdict.fleet.path), **asdict(verdict.rules), "exit_code": verdict.exit_code},
            "devices": devices(verdict),
            "metrics": metrics(verdict),
            "figures": figures(verdict),
            "slow": slow(verdict),
            "unknown": list(verdict.unknown),
        },
        rows=lambda: figures(verdict),
    )


def devices(verdict: Verdict) -> list[Record]:
    """A record per device, measured or not."""
    slow_ones = {one.member.identity for one in verdict.slow}
    return [
        {
            **member.which,
            "run_id": member.run.id if member.run else None,
            "slow": member.identity in slow_ones,
            "reason": member.reason or None,
            "failed": {row.case_id: f"{row.status}: {row.reason}" for row in (member.run.failed if member.run else [])},
        }
        for member in verdict.fleet.members
    ]


def metrics(verdict: Verdict) -> list[Record]:
    """A record per metric of each model."""
    return [
        {"model": group.model, "metric": one.name, "median_ms": one.median_ms, "spread": one.spread, "limit": one.limit}
        for group in verdict.groups
        for one in group.metrics
    ]


def figures(verdict: Verdict) -> list[Record]:
    """A record per device and metric: the centre of its rounds, distances as fractions, and the state of the device."""
    return [
        {
            **member.which,
            "metric": one.name,
            "elapsed_ms": figure.centre_ms,
            "deviation": deviation(figure, one),
            **_distance("fleet", figure.fleet),
            **_distance("history", figure.history),
            **values(figure.row, _STATE),
        }
        for group in verdict.groups
        for one in group.metrics
        for member, figure in zip(group.members, one.figures, strict=True)
        if figure
    ]


def slow(verdict: Verdict) -> list[Record]:
    """A record per slow device, with its metrics and what else was seen on it."""
    return [
        {
            **one.member.which,
            "reasons": [
                {"metric": reason.metric, "against": reason.against.value, **asdict(reason.distance)}
                for reason in one.reasons
            ],
            "seen": list(one.seen),
        }
        for one in verdict.slow
    ]


def _distance(against: str, distance: Distance | None) -> dict[str, object]:
    values = asdict(distance) if distance else dict.fromkeys(field.name for field in fields(Distance))
    return {f"{against}_{name}": value for name, value in values.items()}
