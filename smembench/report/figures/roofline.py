"""The rooflines of a device: bandwidth of kernels without arithmetic, and arithmetic over its intensity.

The roof over a kernel of arithmetic intensity I is min(I · peak bandwidth, peak arithmetic) (Williams, Waterman,
Patterson, Roofline: an insightful visual performance model, 2009). I counts the problem's compulsory bytes. Kernels
without arithmetic have I = 0, which has no place on a logarithmic axis: their roof is the bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, log, log10
from statistics import fmean

from smembench.kernels.problems import PROBLEMS
from smembench.model.device import DeviceInfo
from smembench.model.groups import grouped
from smembench.model.peaks import peak_gflop_s
from smembench.report.charts import ROW, SERIES, Chart, Spec, Values, file_name, layer, layered, names_axis, number_axis
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.views.columns import number
from smembench.views.sections import Section, label, size_text, table, titled

_HEIGHT = 420
_LINE = 14
"""Height of a label, in pixels."""


def rooflines(run: Run) -> list[Chart]:
    """The charts of each device whose peaks the run records."""
    charts = []
    moving = [row for row in run.rows if row.ok and row.bytes and PROBLEMS[row.problem].memory == "device"]
    for info in run.description.devices:
        if info.peak_gb_s is not None:
            named = info.model_copy(update={"model": titled(run.description, info.name)})
            under = [row for row in moving if row.device == info.name]
            if plain := [row for row in under if not row.flops]:
                charts.append(_bandwidths(plain, named, info.peak_gb_s))
            if computing := [row for row in under if row.gflop_s]:
                charts.append(_roof(computing, named, info.peak_gb_s))
    return charts


def without_roof(run: Run) -> list[str]:
    """A sentence for each GPU with results but without a roofline."""
    known = {"cpu", *(device.name for device in run.description.devices if device.peak_gb_s is not None)}
    used = dict.fromkeys(row.device for row in run.rows if row.ok)
    return [f"No roofline of {name}: the run does not record its peaks." for name in used if name not in known]


def _bandwidths(rows: Sequence[Row], info: DeviceInfo, peak: float) -> Chart:
    values = [
        {
            "kernel": row.kernel,
            "rate": row.effective_gb_s,
            "where": "in the cache" if row.within_cache and row.cache == "warm" else "in memory",
            "says": f"{_named(row)}: {number(row.effective_gb_s)} GB/s",
        }
        for row in rows
    ]
    x = number_axis("rate", "GB/s", zero=True)
    kernels = list(dict.fromkeys(row.kernel for row in rows))
    y = names_axis("kernel", kernels)
    domain = ["in memory", "in the cache"]
    shape = names_axis("where", domain, scale={"domain": domain, "range": ["circle", "diamond"]})
    colour = names_axis("where", domain, scale={"domain": domain, "range": [SERIES[0], "var(--muted)"]})
    roof = [{"rate": peak, "says": f"peak: {number(peak)} GB/s"}]
    return Chart(
        name=file_name(f"bandwidth-{info.name}"),
        title=f"Bandwidth: {info.model}",
        caption=(
            f"Every case of {info.model} without arithmetic beside the peak bandwidth of {number(peak)} GB/s, by the "
            "problem's compulsory bytes. Arrays that fit the cache may exceed it."
        ),
        spec=layered(
            ROW * len(kernels),
            layer("rule", roof, {"color": "var(--ink)", "strokeWidth": 2}, x=x),
            layer("point", values, {"size": 50}, x=x, y=y, shape=shape, color=colour),
        ),
        data=_table(rows, info, peak, "Bandwidth"),
    )


def _roof(rows: Sequence[Row], info: DeviceInfo, peak_gb_s: float) -> Chart:
    peaks = {dtype: peak for dtype in {row.dtype: None for row in rows} if (peak := peak_gflop_s(dtype, info))}
    intensities = [_intensity(row) for row in rows]
    low = min(*intensities, *(peak / peak_gb_s for peak in peaks.values()), 1e9) / 4
    high = 2 * max(intensities)
    best = [max(of, key=lambda row: row.gflop_s or 0.0) for of in grouped(rows, lambda row: row.kernel).values()]
    rates = [row.gflop_s or 0.0 for row in rows]
    bottom, top = min(*rates, 1e12) / 2, 1.5 * max(*rates, *peaks.values(), 0.0)
    domain = {"type": "log", "nice": False}
    x = number_axis("intensity", "FLOP/byte", _ticks(low, high), domain=[low, high], **domain)
    y = number_axis("rate", "GFLOP/s", _ticks(bottom, top), domain=[bottom, top], **domain)
    roofs = [
        {"intensity": at, "rate": min(at * peak_gb_s, peak), "dtype": dtype}
        for dtype, peak in peaks.items()
        for at in (max(low, bottom / peak_gb_s), peak / peak_gb_s, high)
    ]
    named = [(peak, f"peak {dtype}: {number(peak)} GFLOP/s") for dtype, peak in peaks.items()]
    peak_values = [{"intensity": high, "rate": peak, "text": text} for peak, text in named]
    points = [
        {
            "intensity": _intensity(row),
            "rate": row.gflop_s,
            "kernel": row.kernel,
            "says": f"{_named(row)}: {number(row.gflop_s)} GFLOP/s at {number(_intensity(row))} FLOP/byte",
        }
        for row in rows
    ]
    pointed = {"type": "point", "fields": ["kernel"], "on": "pointerover", "clear": "pointerout"}
    opacity = {"condition": {"param": "over", "value": 1}, "value": 0.15}
    labels = _labels(best, low, bottom, top)
    shared: Spec = {"x": x, "y": y}
    above = {"align": "right", "dy": -9, "color": "var(--muted)"}
    to: Spec = {"x2": {"field": "to_x"}, "y2": {"field": "to_y"}}
    dots = layer("point", points, {"filled": True, "size": 45}, **shared, opacity=opacity)
    flops = ", ".join(f"{number(peak)} GFLOP/s {dtype}" for dtype, peak in peaks.items())
    return Chart(
        name=file_name(f"roofline-{info.name}"),
        title=f"Roofline: {info.model}",
        caption=(
            f"Every case of {info.model} with arithmetic below its roof ({number(peak_gb_s)} GB/s of memory, {flops}), "
            "by the problem's compulsory bytes. Each kernel's name leads to its fastest case; point at a case for all "
            "of its kernel."
        ),
        spec=layered(
            _HEIGHT,
            layer("line", roofs, {"color": "var(--ink)", "strokeWidth": 2}, **shared, detail={"field": "dtype"}),
            layer("text", peak_values, above, **shared, text={"field": "text"}),
            layer("rule", labels, {"color": "var(--muted)", "strokeWidth": 0.7}, **shared, **to, opacity=opacity),
            dots | {"params": [{"name": "over", "select": pointed}]},
            layer("text", labels, {"align": "right", "dx": -4}, **shared, text={"field": "kernel"}, opacity=opacity),
        ),
        data=_table(rows, info, peak_gb_s, "Roofline"),
    )


def _labels(best: Sequence[Row], low: float, bottom: float, top: float) -> Values:
    """A label for each row, left of the points, at the height of its rate or as near as leaves room for the others."""
    ordered = sorted(best, key=lambda row: row.gflop_s or 0.0)
    left = min(map(_intensity, best)) * 0.8
    heights = [log((row.gflop_s or 1.0) / bottom) / log(top / bottom) for row in ordered]
    return [
        {
            "kernel": row.kernel,
            "intensity": max(left, low * 1.5),
            "rate": bottom * (top / bottom) ** place,
            "to_x": _intensity(row),
            "to_y": row.gflop_s,
        }
        for row, place in zip(ordered, spread(heights, _LINE / _HEIGHT, heights[-1]), strict=True)
    ]


def _ticks(low: float, high: float) -> Spec:
    """An axis with 1, 2 and 5 of each decade."""
    decades = range(floor(log10(low)), floor(log10(high)) + 1)
    values = [digit * 10.0**power for power in decades for digit in (1, 2, 5)]
    return {"values": values, "labelExpr": "format(datum.value, datum.value < 1 ? '~g' : '~s')"}


def spread(places: Sequence[float], gap: float, top: float) -> list[float]:
    """Ascending places moved at least ``gap`` apart, each group around its own middle, none above ``top``."""
    # Isotonic regression by pooling adjacent violators: what lies too close becomes one group at its mean.
    groups: list[list[float]] = []
    for rank, place in enumerate(places):
        groups.append([place - rank * gap])
        while len(groups) > 1 and fmean(groups[-2]) >= fmean(groups[-1]):
            last = groups.pop()
            groups[-1] += last
    limit = top - (len(places) - 1) * gap
    apart = [min(fmean(group), limit) for group in groups for _ in group]
    return [place + rank * gap for rank, place in enumerate(apart)]


def _intensity(row: Row) -> float:
    return (row.flops or 0) / row.bytes


def _named(row: Row) -> str:
    return f"{label(row)}, {size_text(row.case)} {row.dtype}, {row.cache}"


def _table(rows: Sequence[Row], info: DeviceInfo, peak_gb_s: float, heading: str) -> Section:
    def roof(row: Row) -> float:
        slope, peak = _intensity(row) * peak_gb_s, peak_gflop_s(row.dtype, info)
        return peak_gb_s if not row.flops else slope if peak is None else min(slope, peak)

    def rate(row: Row) -> float | None:
        return row.gflop_s if row.flops else row.effective_gb_s

    columns: dict[str, Callable[[Row], str]] = {
        "case": label,
        "size": lambda row: size_text(row.case),
        "dtype": lambda row: row.dtype,
        "cache": lambda row: row.cache,
        "FLOP/byte": lambda row: number(_intensity(row)) if row.flops else "",
        "rate": lambda row: f"{number(rate(row))} {'GFLOP/s' if row.flops else 'GB/s'}",
        "% of roof": lambda row: "" if (achieved := rate(row)) is None else f"{100 * achieved / roof(row):.0f}",
    }
    return table(
        f"{heading}: {info.model}",
        rows,
        {name: text for name, text in columns.items() if any(map(text, rows))},
        words=("case", "size", "dtype", "cache"),
    )
