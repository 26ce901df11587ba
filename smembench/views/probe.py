"""The data sheet of a GPU: a table per family, and the figures as CSV and JSON."""

from __future__ import annotations

from dataclasses import fields

from smembench.model.groups import grouped
from smembench.model.measurement import Status
from smembench.store.csv_files import table_text
from smembench.studies.probe import FAMILIES
from smembench.studies.probe.figure import Figure
from smembench.studies.probe.sheet import Sheet
from smembench.views.columns import number, percentage
from smembench.views.export import Result
from smembench.views.sections import Section, libraries, table

_NAMED = 3
"""Figures whose names stand before their method."""


def sections(sheet: Sheet) -> list[Section]:
    """A table per family, below the device; the methods are its notes."""
    device = sheet.device
    heading = (
        f"{device.model} · compute capability {device.compute_capability} · {device.sm_count} SMs · "
        f"driver {device.driver} · {libraries(sheet.versions, ('nvrtc',))} · {sheet.measured_at_utc}"
    )
    families = grouped(sheet.figures, lambda figure: figure.family)
    return [Section(heading, [], []), *(_family(name, figures) for name, figures in families.items())]


def _family(name: str, figures: list[Figure]) -> Section:
    measured = [figure for figure in figures if figure.status is Status.OK]
    missing = [figure for figure in figures if figure.status is not Status.OK]
    methods = grouped(measured, lambda figure: figure.method)
    return table(
        f"{name}: {FAMILIES.get(name, '')}",
        measured,
        {
            "figure": lambda figure: figure.name,
            "value": _value,
            "unit": lambda figure: figure.unit,
            "95 % CI": interval,
            "published": lambda figure: figure.published or "",
        },
        words=("figure", "unit", "published"),
    ).below(
        notes=[
            *(f"{names(those)}: {method}" if len(methods) > 1 else method for method, those in methods.items()),
            *(f"{figure.name}: {figure.status}: {figure.reason}" for figure in missing),
        ]
    )


def _value(figure: Figure) -> str:
    """Four significant digits or the whole part: a share such as 0.998 must not become 1."""
    return f"{figure.value:.4g}" if figure.value is not None and abs(figure.value) < 1000 else number(figure.value)


def names(figures: list[Figure]) -> str:
    """The figures' names: of many the first and the last."""
    found = [figure.name for figure in figures]
    return "; ".join(found) if len(found) <= _NAMED else f"{found[0]} to {found[-1]}"


def interval(figure: Figure) -> str:
    """Half of the width of the median's 95 % interval, in % of the median."""
    if not figure.value or figure.low is None or figure.high is None:
        return ""
    return percentage(50 * (figure.high - figure.low) / abs(figure.value), "±")


def result(sheet: Sheet) -> Result:
    """The tables; as CSV the figures, as JSON the sheet."""
    columns = ["family", *(field.name for field in fields(Figure) if field.name != "family")]
    return Result(
        sections=sections(sheet),
        data=lambda: sheet.model_dump(mode="json", exclude_none=True),
        rows=lambda: table_text(columns, ([getattr(figure, name) for name in columns] for figure in sheet.figures)),
    )
