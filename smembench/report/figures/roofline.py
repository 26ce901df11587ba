"""The roofline of a device, with every kernel below it.

The roof over a kernel of arithmetic intensity I is min(I · peak bandwidth, peak arithmetic) (Williams, Waterman,
Patterson, Roofline: an insightful visual performance model, 2009). I counts the problem's compulsory bytes. Kernels
without arithmetic have I = 0, which has no place on a logarithmic axis: their roof is the bandwidth.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import TYPE_CHECKING, Any

from smembench.kernels.problems import PROBLEMS
from smembench.model.device import DeviceInfo
from smembench.model.peaks import peak_gflop_s
from smembench.report.canvas import INK, MARKERS, MUTED, SERIES, Canvas, Plot, file_name, label_ends, tick
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.views.columns import number
from smembench.views.sections import Section, grouped, label, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def rooflines(run: Run) -> list[Plot]:
    """A figure for each device whose peaks the run records."""
    found = []
    moving = [row for row in run.rows if row.ok and PROBLEMS[row.problem].memory == "device"]
    for info in run.description.devices:
        under = [row for row in moving if row.device == info.name]
        if under and info.peak_gb_s is not None:
            found.append(_plot(under, info, info.peak_gb_s))
    return found


def without_roof(run: Run) -> list[str]:
    """A sentence for each device with results but without a roofline."""
    known = {device.name for device in run.description.devices if device.peak_gb_s is not None}
    used = dict.fromkeys(row.device for row in run.rows if row.ok)
    return [f"No roofline of {name}: the run does not record its peaks." for name in used if name not in known]


def _plot(rows: Sequence[Row], info: DeviceInfo, peak_gb_s: float) -> Plot:
    moving = [row for row in rows if not row.flops]
    computing = [row for row in rows if row.gflop_s]
    kernels = list(dict.fromkeys(row.kernel for row in moving))

    def draw(canvas: Canvas) -> None:
        if moving and computing:
            left, right = canvas.figure.subplots(1, 2, width_ratios=[1, 1.2])
        else:
            left = right = canvas.figure.subplots()
        if moving:
            _bandwidths(canvas, left, moving, kernels, peak_gb_s)
        if computing:
            _roof(canvas, right, computing, info, peak_gb_s)

    roofs = f"{number(peak_gb_s)} GB/s of memory"
    roofs += "".join(f", {number(peak)} GFLOP/s {dtype}" for dtype, peak in _peaks(computing, info).items())
    return Plot(
        name=file_name(f"roofline-{info.name}"),
        title=f"Roofline: {info.model}",
        caption=(
            f"Every case of {info.model} that moves device memory, below its roof ({roofs}), by the problem's "
            "compulsory bytes. Kernels without arithmetic are shown by bandwidth. Hollow: the "
            "arrays fit the cache, whose bandwidth may exceed the memory's."
        ),
        size=(7.0, max(3.4, 0.9 + 0.2 * len(kernels))),
        draw=draw,
        data=_table(rows, info, peak_gb_s),
    )


def _peaks(rows: Sequence[Row], info: DeviceInfo) -> dict[str, float]:
    """The arithmetic peaks for the dtypes of the rows, in GFLOP/s, as far as they are known."""
    found = {row.dtype: peak_gflop_s(row.dtype, info) for row in rows}
    return {dtype: peak for dtype, peak in found.items() if peak is not None}


def _bandwidths(canvas: Canvas, axes: Axes, rows: Sequence[Row], kernels: Sequence[str], peak: float) -> None:
    axes.axvline(peak, color=INK, linewidth=1.4)
    for row in rows:
        rate = row.effective_gb_s or 0.0
        (point,) = axes.plot(rate, kernels.index(row.kernel), marker="o", **_look(row, 0))
        canvas.mark(point, f"{_named(row)}: {number(rate)} GB/s")
    canvas.rows(axes, kernels)
    axes.set_xlim(0, 1.08 * max(peak, *(row.effective_gb_s or 0.0 for row in rows)))
    axes.set_xlabel("GB/s")
    axes.set_title(f"no arithmetic, under {number(peak)} GB/s")


def _roof(canvas: Canvas, axes: Axes, rows: Sequence[Row], info: DeviceInfo, peak_gb_s: float) -> None:
    from matplotlib.ticker import NullFormatter

    intensities = [_intensity(row) for row in rows]
    peaks = list(_peaks(rows, info).values())
    ridges = [peak / peak_gb_s for peak in peaks]
    low, high = _decade(min(*intensities, *ridges, 1e9) / 2), 2 * max(*intensities, *ridges, 0.0)
    rates = [row.gflop_s or 0.0 for row in rows]
    axes.set(xscale="log", yscale="log", xlim=(low, high))
    axes.set_ylim(_decade(min(*rates, low * peak_gb_s)), 1.6 * max(*rates, *peaks, 0.0))
    for peak in peaks or [high * peak_gb_s]:
        axes.plot([low, peak / peak_gb_s, high], [low * peak_gb_s, peak, peak], color=INK, linewidth=1.4)
    ends = []
    for place, (kernel, members) in enumerate(grouped(rows, lambda row: row.kernel).items()):
        for row in members:
            look = _look(row, place)
            (point,) = axes.plot(_intensity(row), row.gflop_s or 0.0, marker=MARKERS[place % len(MARKERS)], **look)
            canvas.mark(point, f"{_named(row)}: {number(row.gflop_s)} GFLOP/s at {number(_intensity(row))} FLOP/byte")
        ends.append((max(row.gflop_s or 0.0 for row in members), kernel, SERIES[place % len(SERIES)]))
    ends += [(peak, f"{number(peak)} GFLOP/s", MUTED) for peak in peaks]
    label_ends(axes, ends)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(tick)
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("FLOP/byte")
    axes.set_ylabel("GFLOP/s")
    axes.set_title("arithmetic")


def _decade(place: float) -> float:
    """The power of ten at a place or below it, so that an axis which begins there has a number."""
    return float(10 ** floor(log10(place)))


def _look(row: Row, place: int) -> dict[str, Any]:
    colour = SERIES[place % len(SERIES)]
    return {"color": colour, "markerfacecolor": "none" if row.within_cache else colour}


def _intensity(row: Row) -> float:
    return (row.flops or 0) / row.bytes


def _named(row: Row) -> str:
    return f"{label(row)}, {row.case.size} {row.dtype}, {row.cache}"


def _table(rows: Sequence[Row], info: DeviceInfo, peak_gb_s: float) -> Section:
    def roof(row: Row) -> float:
        slope, peak = _intensity(row) * peak_gb_s, peak_gflop_s(row.dtype, info)
        return peak_gb_s if not row.flops else slope if peak is None else min(slope, peak)

    def rate(row: Row) -> float | None:
        return row.gflop_s if row.flops else row.effective_gb_s

    return table(
        f"Roofline: {info.model}",
        rows,
        {
            "case": label,
            "size": lambda row: row.case.size,
            "dtype": lambda row: row.dtype,
            "cache": lambda row: row.cache,
            "FLOP/byte": lambda row: number(_intensity(row)),
            "rate": lambda row: f"{number(rate(row))} {'GFLOP/s' if row.flops else 'GB/s'}",
            "% of roof": lambda row: "" if (found := rate(row)) is None else f"{100 * found / roof(row):.0f}",
        },
        words=("case", "size", "dtype", "cache"),
    )
