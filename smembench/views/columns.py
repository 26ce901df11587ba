"""Text of a row's figures: headings and values. A problem names the columns that it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from smembench.model.problem import Problem
from smembench.store.relations import OTHERS
from smembench.store.schema import Row
from smembench.studies.difference import Ratio, comparable

_EXACTLY = 5e-5
"""Half-width below which an interval is not shown."""
_NAMED = 3
"""Cases that a note names; for more it gives their number."""


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, whether its cells are numbers, and whether it is left out on a narrow screen."""

    heading: str
    numeric: bool = True
    wide: bool = False

    @property
    def title(self) -> str:
        """The heading on one line: ``occu-\\npancy`` is ``occupancy``."""
        return self.heading.replace("-\n", "").replace("\n", " ")


def milliseconds(value: float | None) -> str:
    """A time in ms, with at least four significant digits where that takes no more than five decimals; "" for None."""
    if value is None:
        return ""
    return f"{value:.1f}" if value >= 1000 else f"{value:.{4 if value >= 0.1 else 5}f}"


def within(value: float | None, relative: float | None) -> str:
    """A time in ms with no more digits than its interval ``value`` × (1 ± ``relative``) leaves certain."""
    return _certain(milliseconds(value), value, relative)


def number(value: float | None, relative: float | None = None) -> str:
    """A rate or a percentage with three to four significant digits, or as many as its interval leaves certain."""
    if value is None:
        return ""
    if 0 < value < 0.01:
        return f"{value:.1g}"
    shown = f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
    return _certain(shown, value, relative)


def _certain(shown: str, value: float | None, relative: float | None) -> str:
    """The text of a value, rounded at the second digit of its interval's half-width."""
    if not value or not relative:
        return shown
    certain = 1 - math.floor(math.log10(value * min(relative, 1)))
    decimals = min(len(shown.partition(".")[2]), certain)
    return f"{round(value, decimals):.{max(decimals, 0)}f}"


def percentage(value: float, sign: str = "") -> str:
    """A percentage with a sign before it; beyond 100 its size says nothing."""
    if value > 100:
        return "over 100 %"
    return f"{sign}{value:.1f} %" if value >= 0.1 or not value else f"{sign}{value:.2f} %"


def scaled(value: float, unit: str) -> str:
    """An amount with a decimal prefix: ``134.2 MB``."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{number(value / factor)} {prefix}{unit}"
    return f"{number(value)} {unit}"


def times(value: float | None, relative: float | None = None) -> str:
    """A speed-up."""
    return "" if value is None else f"{number(value, relative)}×"


def ratio_text(ratio: Ratio) -> str:
    """A ratio with its interval in a table: ``1.837 ±0.4 %``."""
    return " ".join(filter(None, _certain_ratio(ratio)))


def times_text(ratio: Ratio) -> str:
    """A ratio with its interval in a sentence: ``1.837 times (±0.4 %)``."""
    value, apart = _certain_ratio(ratio)
    return f"{value} times{f' ({apart})' if apart else ''}"


def _certain_ratio(ratio: Ratio) -> tuple[str, str]:
    """The digits that the interval leaves certain, four at most, and the interval."""
    if ratio.within is None:
        return number(ratio.value), ""
    half = ratio.value * min(max(ratio.within, _EXACTLY), 1)
    decimals = min(-math.floor(math.log10(half)), 3 - max(math.floor(math.log10(ratio.value)), 0))
    apart = "" if ratio.within < _EXACTLY else f"±{percentage(100 * ratio.within)}"
    return f"{round(ratio.value, decimals):.{max(decimals, 0)}f}", apart


def some(names: Sequence[str], what: str = "cases") -> str:
    """Names of cases in a note; of many their number and the first: ``4 cases (memcpy, …)``."""
    return ", ".join(names) if len(names) <= _NAMED else f"{len(names)} {what} ({names[0]}, …)"


def compact(value: float | None, missing: str = "-") -> str:
    """A small number, without a fraction if it is whole; ``missing`` for None."""
    return missing if value is None else f"{value:.3g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A column of cases.csv as tables show it, with ``{ceiling}`` for the problem's.

    ``text`` gets the value and its relative interval; ``unit`` is the bars'.
    """

    heading: str
    text: Callable[[float | None, float | None], str] = number
    unit: str = ""


FIGURES: dict[str, Figure] = {
    "elapsed_ms": Figure("elapsed ms", within, "ms"),
    "effective_gb_s": Figure("GB/s", unit="GB/s"),
    "gflop_s": Figure("GFLOP/s", unit="GFLOP/s"),
    "percent_of_copygmem": Figure("% of\ncopyGmem"),
    "percent_of_copy": Figure("% of\n{ceiling}"),
    "percent_of_peak": Figure("% of\npeak"),
    "bytes_per_clock": Figure("bytes/clk\nper SM", unit="B/clk"),
    "speedup_vs_cpu": Figure("vs CPU", times),
    "speedup_vs_naive": Figure("vs naive", times),
    "predicted_constant_addresses": Figure("addresses\nper request", lambda value, _: compact(value, missing="")),
}
"""By column of cases.csv."""
_EXACT = ("predicted_constant_addresses",)
_TERA_FROM = 1000.0
"""GFLOP/s."""
_TERA = Figure("TFLOP/s", unit="TFLOP/s")


def value(row: Row, column: str) -> float | None:
    """A row's figure; None if it has none."""
    cell = getattr(row, column)
    return None if cell is None else float(cell)


def in_tera(column: str, rows: Iterable[Row]) -> bool:
    """True if a column is shown in units of 10^12: FLOP rates of which none would need leading zeros."""
    return column == "gflop_s" and min((row.gflop_s for row in rows if row.gflop_s), default=0.0) >= _TERA_FROM


def figures(problem: Problem, names: Iterable[str], rows: Iterable[Row]) -> dict[str, Callable[[Row], str]]:
    """The headings for columns of cases.csv in a table of a problem, and what each shows of a row.

    ``rows`` are those of the table and those they are compared with. A ratio of uncertain times is left out.
    """
    timed = {row.case: row for row in rows}

    def text(column: str, figure: Figure, row: Row) -> str:
        case = OTHERS[column](row.case) if column in OTHERS else None
        involved = [row] if case is None or case not in timed else [row, timed[case]]
        if (column in OTHERS or column == "percent_of_peak") and not comparable(*involved):
            return ""
        exact = column in _EXACT or case == row.case
        relative = None if exact else math.hypot(*(row.interval or 0.0 for row in involved))
        amount = value(row, column)
        return figure.text(amount / 1000 if figure is _TERA and amount else amount, relative)

    shown = {name: _TERA if in_tera(name, timed.values()) else FIGURES[name] for name in names}
    return {
        figure.heading.format(ceiling=problem.ceiling_kernel): partial(text, name, figure)
        for name, figure in shown.items()
    }
