"""The speed-up of each kernel over the naive one, on the documents' devices and here."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.kernels.problems import PROBLEMS
from smembench.report.canvas import INK, MUTED, SERIES, Canvas, Plot
from smembench.store.schema import Row
from smembench.studies.reproduce.figures import devices_of, ratio
from smembench.views.columns import times


def gains(rows: Sequence[Row], here: str) -> Plot | None:
    """A panel per device, for the documented rows of one problem; None if the naive kernel is missing."""
    problem = PROBLEMS[rows[0].problem]
    naive = problem.naive_kernel
    times_ms = {row.kernel: row.elapsed_ms for row in rows if row.elapsed_ms is not None}
    if naive is None or naive not in times_ms or len(times_ms) < 2:
        return None
    kernels = list(times_ms)
    panels: dict[str, dict[str, float]] = {}
    for device in devices_of(problem.name):
        ratios = {kernel: ratio(problem.name, naive, kernel, device) for kernel in kernels}
        panels[device] = {kernel: found for kernel, found in ratios.items() if found is not None}
    panels[here] = {kernel: times_ms[naive] / elapsed_ms for kernel, elapsed_ms in times_ms.items()}

    def draw(canvas: Canvas) -> None:
        grid = canvas.figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)
        for axes, (device, found) in zip(grid.flat, panels.items(), strict=True):
            axes.set_title(device)
            axes.axvline(1, color=INK, linewidth=0.8)
            texts = [f"{gain:.2g}×" if gain < 0.1 else times(gain) for gain in found.values()]
            says = [f"{kernel} on {device}: {times(gain)} {naive}" for kernel, gain in found.items()]
            bars = {kernels.index(kernel): gain for kernel, gain in found.items()}
            canvas.bars(axes, bars, texts, says, SERIES[0] if device == here else MUTED)
            canvas.rows(axes, kernels)
        grid.flat[0].set_xlim(0, 1.3 * max(gain for found in panels.values() for gain in found.values()))
        canvas.figure.supxlabel(f"times as fast as {naive}", fontsize=9)

    return Plot(
        name=f"documents-{problem.name}",
        title=f"The documents' {problem.title} and this device's: times as fast as {naive}",
        caption=(
            f"How many times as fast as {naive} each kernel is, on the documents' devices and here; the table above "
            "has the times."
        ),
        size=(7.0, 1.1 + 0.28 * len(kernels)),
        draw=draw,
    )
