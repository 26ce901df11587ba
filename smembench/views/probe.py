"""The data sheet of a GPU: a table per family, and the figures as CSV and JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

from smembench.model.groups import grouped
from smembench.model.measurement import Status
from smembench.model.text import capital, number_of
from smembench.store.csv_files import table_text
from smembench.studies.probe import FAMILIES
from smembench.studies.probe.figure import Figure
from smembench.studies.probe.sheet import Sheet
from smembench.views.columns import number, percentage
from smembench.views.export import Result
from smembench.views.sections import Section, libraries, table

_NAMED = 3
"""Figures whose names stand before their method."""
_LEADING: Mapping[str, Sequence[str]] = {
    "latency": ("shared memory", "L1 cache", "L2 cache, near", "L2 cache, far", "global memory"),
    "constant": ("L1 cache", "L1.5 cache"),
    "bandwidth": ("32-bit loads", "128-bit loads", "128-bit loads, all SMs"),
    "conflicts": ("2-way conflict", "32-way conflict"),
    "atomics": ("shared, 32 bits, own words", "shared, 32 bits, one word", "global, 32 bits, one word"),
    "matrices": ("ldmatrix.x4: latency", "ldmatrix.x4: throughput"),
    "copies": ("cp.async of 16 bytes: latency of 128 B", "load and store: all SMs together"),
    "clusters": ("clusters of 2: latency", "clusters of 2: bandwidth"),
}
"""The figures of a data sheet on one screen, by family."""
_SOURCE = re.compile(r" \([^)]*\)")


def sections(sheet: Sheet, *, methods: bool = True) -> list[Section]:
    """The device, then a table per family."""
    families = grouped(sheet.figures, lambda figure: figure.family)
    return [
        Section(_device(sheet), [], []),
        *(_family(name, figures, methods=methods) for name, figures in families.items()),
    ]


def digest(sheet: Sheet) -> list[Section]:
    """A table of the leading figures of each family, with notes on what could not be measured."""
    shown = [
        figure
        for figure in sheet.figures
        if figure.value is not None and figure.name in _LEADING.get(figure.family, ())
    ]
    missing = [figure for figure in sheet.figures if figure.status is not Status.OK]
    leading = table(
        _device(sheet),
        shown,
        {
            "family": lambda figure: figure.family,
            **_columns(),
            "published": lambda figure: _SOURCE.sub("", figure.published or ""),
        },
        words=("family", "figure", "unit", "published"),
    )
    every = f"{len(shown)} of {number_of(len(sheet.figures), 'figure')}; --full shows all, with methods and sources."
    return [leading.below(sentence=every, notes=_missing(missing))]


def _device(sheet: Sheet) -> str:
    device = sheet.device
    return (
        f"{device.model} · compute capability {device.compute_capability} · {device.sm_count} SMs · "
        f"driver {device.driver} · {libraries(sheet.versions, ('nvrtc',))} · {sheet.measured_at_utc}"
        f"{f' · {sheet.processes} processes' if sheet.processes > 1 else ''}"
    )


def _family(name: str, figures: list[Figure], *, methods: bool) -> Section:
    measured = [figure for figure in figures if figure.status is Status.OK]
    by_method = grouped(measured, lambda figure: figure.method) if methods else {}
    several = len(by_method) > 1
    texts = [f"{names(alike)}: {method}." if several else f"{method}." for method, alike in by_method.items()]
    return table(
        f"{name}: {FAMILIES.get(name, '')}", measured, _columns(), words=("figure", "unit", "published")
    ).below(
        sentence="\n".join(capital(text) for text in texts),
        notes=_missing([figure for figure in figures if figure.status is not Status.OK]),
    )


def _columns() -> dict[str, Callable[[Figure], str]]:
    return {
        "figure": lambda figure: figure.name,
        "value": _value,
        "unit": lambda figure: figure.unit,
        "95 % CI": interval,
        "published": lambda figure: figure.published or "",
    }


def _missing(figures: Sequence[Figure]) -> list[str]:
    named = ((figure, "" if figure.name == figure.family else f"{figure.family}: ") for figure in figures)
    return [f"{family}{figure.name}: {figure.status}: {figure.reason}" for figure, family in named]


def _value(figure: Figure) -> str:
    """Four significant digits or the whole part: a share such as 0.998 must not become 1."""
    return f"{figure.value:.4g}" if figure.value is not None and abs(figure.value) < 1000 else number(figure.value)


def names(figures: list[Figure]) -> str:
    """The figures' names: of many the first and the last."""
    labels = [figure.name for figure in figures]
    return "; ".join(labels) if len(labels) <= _NAMED else f"{labels[0]} to {labels[-1]}"


def interval(figure: Figure) -> str:
    """Half of the width of the median's 95 % interval, in % of the median."""
    if not figure.value or figure.low is None or figure.high is None:
        return ""
    return percentage(50 * (figure.high - figure.low) / abs(figure.value), "±")


def result(sheet: Sheet, shown: Sequence[Section]) -> Result:
    """These tables; as CSV the figures, as JSON the sheet."""
    columns = ["family", *(field.name for field in fields(Figure) if field.name != "family")]
    return Result(
        sections=shown,
        data=lambda: sheet.model_dump(mode="json", exclude_none=True),
        rows=lambda: table_text(columns, ([getattr(figure, name) for name in columns] for figure in sheet.figures)),
    )
