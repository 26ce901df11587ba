"""The speed-up of each kernel over the naive one, on the documents' devices and here."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.kernels.problems import PROBLEMS
from smembench.report.charts import ROW, Chart, layer, names_axis, number_axis
from smembench.store.schema import Row
from smembench.studies.reproduce.figures import devices_of, ratio
from smembench.views.columns import times
from smembench.views.sections import Section


def gains(rows: Sequence[Row], here: str, section: Section) -> Chart | None:
    """A group per kernel with a bar per device, for the documented rows of one problem; None without the naive kernel.

    Args:
        rows: of one problem and device.
        here: that device.
        section: the same as a table.
    """
    problem = PROBLEMS[rows[0].problem]
    naive = problem.naive_kernel
    # The CPU is slower by so much that the others' bars would not be told apart.
    times_ms = {row.kernel: row.elapsed_ms for row in rows if row.elapsed_ms is not None and row.device != "cpu"}
    if naive is None or naive not in times_ms or len(times_ms) < 2:
        return None
    devices = [*devices_of(problem.name), here]
    values = []
    for kernel, elapsed_ms in times_ms.items():
        for device in devices:
            gain = times_ms[naive] / elapsed_ms if device == here else ratio(problem.name, naive, kernel, device)
            if gain is not None:
                says = f"{kernel} on {device}: {times(gain)} {naive}"
                values.append({"kernel": kernel, "device": device, "gain": gain, "says": says})
    muted = ["var(--muted)", "var(--series-4)", "var(--series-2)"]
    range_ = [*(muted[place % 3] for place in range(len(devices) - 1)), "var(--series-0)"]
    return Chart(
        name=f"documents-{problem.name}",
        title=f"The documents' {problem.texts.title} and {here}'s: times as fast as {naive}",
        caption=f"How many times as fast as {naive} each kernel is, on the documents' devices and here.",
        spec={
            "height": ROW / 2 * len(times_ms) * len(devices),
            **layer(
                "bar",
                values,
                x=number_axis("gain", f"times as fast as {naive}"),
                y=names_axis("kernel", list(times_ms)),
                yOffset=names_axis("device", devices),
                color=names_axis("device", devices, scale={"domain": devices, "range": range_}),
            ),
        },
        data=section,
    )
