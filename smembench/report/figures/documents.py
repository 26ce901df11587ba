"""The speed-up of each kernel over the naive one, on the documents' devices and here."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.kernels.problems import PROBLEMS
from smembench.report.canvas import INK, MUTED, SERIES, Canvas, Plot, printable
from smembench.store.schema import Row
from smembench.studies.reproduce.figures import devices_of, figure_of
from smembench.views.columns import times


def gains(rows: Sequence[Row], here: str) -> Plot | None:
    """A panel per device, for the documented rows of one problem; None if the naive kernel is missing."""
    problem = PROBLEMS[rows[0].problem]
    times_ms = {row.kernel: row.elapsed_ms for row in rows if row.elapsed_ms is not None}
    if problem.naive_kernel is None or problem.naive_kernel not in times_ms or len(times_ms) < 2:
        return None
    return _plot(problem.name, problem.naive_kernel, times_ms, here)


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
