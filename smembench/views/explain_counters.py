"""``smembench explain``: the hardware's counters, beside predictions or of a report of ncu."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.explain.counters import Comparison
from smembench.explain.ncu import Profiled
from smembench.views.columns import number
from smembench.views.records import Record, values
from smembench.views.sections import Section, block, table


def comparison(comparisons: Sequence[Comparison], heading: str) -> Section:
    """Predictions and counters side by side."""
    judged = [item for item in comparisons if item.agrees is not None]
    agreeing = sum(item.agrees is True for item in judged)
    return table(
        heading,
        comparisons,
        {
            "kernel": lambda item: item.case.kernel,
            "block": lambda item: block(item.case),
            "dtype": lambda item: item.case.dtype,
            "figure": lambda item: item.figure,
            "predicted": lambda item: number(item.predicted),
            "counted": lambda item: number(item.counted),
            "agrees": lambda item: {True: "yes", False: "NO", None: ""}[item.agrees],
        },
        words=("kernel", "block", "dtype", "figure", "agrees"),
    ).below(sentence=f"{agreeing} of {len(judged)} predictions agree with the counters.")


def counter_records(comparisons: Sequence[Comparison]) -> list[Record]:
    """The same for programs."""
    names = ("figure", "predicted", "counted", "agrees")
    return [{"case_id": item.case.id, **values(item, names)} for item in comparisons]


def profiled(counts: Sequence[tuple[Profiled, str, float]], heading: str) -> Section:
    """The counters of a report's kernels."""
    return table(
        heading,
        counts,
        {
            "kernel": lambda item: item[0].kernel,
            "grid": lambda item: str(item[0].grid),
            "block": lambda item: str(item[0].block),
            "launches": lambda item: str(item[0].launches),
            "figure": lambda item: item[1],
            "counted": lambda item: number(item[2]),
        },
        words=("kernel", "figure"),
    )


def profiled_records(counts: Sequence[tuple[Profiled, str, float]]) -> list[Record]:
    """The same for programs."""
    names = ("kernel", "grid", "block", "launches")
    return [{**values(kernel, names), "figure": figure, "counted": value} for kernel, figure, value in counts]
