"""The documents' devices and this one: how much each kernel gains over the naive one."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.documents.figures import BLOCKS, FIGURES, SIZES, devices_of, figure_of
from smembench.problems import PROBLEMS
from smembench.report.canvas import INK, MUTED, SERIES, Canvas, Plot, printable
from smembench.store.schema import Row
from smembench.views.columns import times

_KERNELS = {(figure.problem, figure.kernel) for figure in FIGURES}


def documented(rows: Sequence[Row]) -> list[Row]:
    """The rows that the documents have figures for: their kernels, sizes, blocks and element type."""
    return [
        row
        for row in rows
        if (row.problem, row.kernel) in _KERNELS
        and {row.m, row.n, row.k or row.n} == {SIZES[row.problem]}
        and row.block in (None, BLOCKS[row.problem])
        and (row.dtype, row.cache, row.stride) == ("float32", "warm", None)
    ]


def gains(rows: Sequence[Row], here: str) -> list[Plot]:
    """A figure a problem, a panel a device, of rows that ``documented`` chose; none where naive is missing."""
    found = []
    for problem in dict.fromkeys(row.problem for row in rows):
        times_ms = {row.kernel: row.elapsed_ms for row in rows if row.problem == problem and row.elapsed_ms is not None}
        naive = PROBLEMS[problem].naive_kernel
        if naive in times_ms and len(times_ms) > 1:
            found.append(_plot(problem, str(naive), times_ms, here))
    return found


def _plot(problem: str, naive: str, here_ms: dict[str, float], here: str) -> Plot:
    kernels = list(here_ms)
    panels = {device: _gains(problem, device, naive, kernels) for device in devices_of(problem)}
    panels[here] = {kernel: here_ms[naive] / elapsed_ms for kernel, elapsed_ms in here_ms.items()}

    def draw(canvas: Canvas) -> None:
        grid = canvas.figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)
        for axes, (device, of_device) in zip(grid.flat, panels.items(), strict=True):
            axes.grid(visible=False, axis="y")
            axes.set_title(printable(device))
            axes.axvline(1, color=INK, linewidth=0.8)
            for place, kernel in enumerate(kernels):
                if kernel not in of_device:
                    continue
                gain = of_device[kernel]
                (bar,) = axes.barh(place, gain, height=0.7, color=SERIES[0] if device == here else MUTED)
                canvas.mark(bar, f"{kernel} on {device}: {times(gain)} {naive}")
                text = f"{gain:.2g}×" if gain < 0.1 else times(gain)
                axes.annotate(
                    text, xy=(gain, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8
                )
        grid.flat[0].set_yticks(range(len(kernels)), [printable(kernel) for kernel in kernels])
        grid.flat[0].set_ylim(len(kernels) - 0.5, -0.5)
        grid.flat[0].set_xlim(0, 1.3 * max(gain for of_device in panels.values() for gain in of_device.values()))
        canvas.figure.supxlabel(f"times as fast as {naive}", fontsize=9)

    return Plot(
        name=f"documents-{problem}",
        title=f"The documents' {PROBLEMS[problem].title} and this device's: times as fast as {naive}",
        caption=(
            f"How many times as fast as {naive} each kernel is, on the documents' devices and here; the table above "
            "has the times."
        ),
        size=(7.0, 1.1 + 0.28 * len(kernels)),
        draw=draw,
    )


def _gains(problem: str, device: str, naive: str, kernels: Sequence[str]) -> dict[str, float]:
    slow = figure_of(problem, naive, device)
    figures = ((kernel, figure_of(problem, kernel, device)) for kernel in kernels)
    return {kernel: slow.elapsed_ms / figure.elapsed_ms for kernel, figure in figures if slow and figure}
