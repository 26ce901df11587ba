"""Bars: the rates of a table's cases, the steps of a ladder with the best one marked, the latencies of memories."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.kernels.problems import PROBLEMS
from smembench.model.clauses import time
from smembench.report.charts import ROW, SERIES, Chart, Spec, Values, layer, layered, names_axis, number_axis
from smembench.store.run import Run
from smembench.studies.ladder.climb import Rung
from smembench.studies.probe.sheet import Sheet
from smembench.views.columns import FIGURES, number, value
from smembench.views.ladder import gain
from smembench.views.sections import Section, label


def rates(section: Section, name: str, subject: str) -> Chart | None:
    """The section's bars; None if it has none."""
    if not section.bars:
        return None
    values = [_value(bar.label, bar.value) for bar in section.bars]
    unit = section.bars[0].unit
    return Chart(
        name=f"rate-{name}",
        title=f"{subject}: {unit}",
        caption=f"{unit} of each kernel and block, in the order of the table; longer is faster.",
        spec=_bars(values, unit),
        data=section,
    )


def latencies(sheet: Sheet, section: Section) -> Chart | None:
    """Cycles of a dependent load from each memory of a data sheet; None without them.

    Args:
        sheet: the data sheet.
        section: the same as a table.
    """
    latency = [figure for figure in sheet.figures if figure.family == "latency"]
    values = [_value(figure.name, figure.value, " cycles") for figure in latency if figure.value]
    if not values:
        return None
    return Chart(
        name="latency",
        title="How far away each memory is",
        caption="Cycles of a load whose address is what the load before it returned; shorter is nearer.",
        spec=_bars(values, "cycles"),
        data=section,
    )


def climbed(run: Run, rungs: Sequence[Rung], section: Section, name: str, subject: str) -> Chart:
    """A ladder from the lowest step down the page to the highest, with the ceiling and libraries below.

    Args:
        run: the rows of one ladder.
        rungs: its steps.
        section: the ladder as a table.
        name: of the file.
        subject: what is climbed.
    """
    rate = PROBLEMS[run.rows[0].problem].texts.columns[0]
    unit = FIGURES[rate].unit
    steps = {rung.row: rung for rung in rungs}
    best = min(steps, key=time)
    roles, colours = ["step", "best", "limit or library"], [*SERIES[:2], "var(--muted)"]
    values = []
    named = {line[0] for line in section.cells}
    for row in [*steps, *(row for row in run.rows if row.ok and row not in steps and label(row) in named)]:
        gained = gain(steps[row]) if row in steps else ""
        says = ", ".join(filter(None, (f"{label(row)}: {number(value(row, rate))} {unit}", gained)))
        text = " ".join(filter(None, (gained, "best" if row is best else "")))
        role = roles[1 if row is best else 0 if row in steps else 2]
        values.append({"case": label(row), "rate": value(row, rate), "text": text, "role": role, "says": says})
    return Chart(
        name=f"ladder-{name}",
        title=f"The ladder of {subject}",
        caption=(
            f"{unit} of each step's fastest block; at its end the gain over the best step before it, in brackets if "
            "within the noise."
        ),
        spec=_bars(values, unit, color=names_axis("role", roles, scale={"domain": roles, "range": colours})),
        data=section,
    )


def _value(name: str, rate: float, unit: str = "") -> Spec:
    return {"case": name, "rate": rate, "text": number(rate), "says": f"{name}: {number(rate)}{unit}"}


def _bars(values: Values, unit: str, **encoding: object) -> Spec:
    most = max(float(str(value["rate"])) for value in values) or 1.0
    room = 1.05 + 0.04 * max(len(str(value["text"])) for value in values)
    x = number_axis("rate", unit, {"format": "~s", "tickCount": 5}, domain=[0, room * most], nice=False)
    y = names_axis("case", [str(value["case"]) for value in values])
    texts = [{name: value[name] for name in ("case", "rate", "text")} for value in values]
    text = layer("text", texts, {"align": "left", "dx": 5}, x=x, y=y, text={"field": "text"})
    return layered(ROW * len(values), layer("bar", values, x=x, y=y, **encoding), text)
