"""Sections: the content of each table, whether it is drawn on a screen, in Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from smembench.kernels.problems import PROBLEMS
from smembench.model.measurement import CROWDED
from smembench.stats.summary import MIN_SAMPLES
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.toolchains.registry import is_port
from smembench.views.columns import FIGURES, Column, compact, milliseconds, value
from smembench.views.sentences import sentence


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar below a table: a label, a value and its unit."""

    label: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Section:
    """A table with its heading, and the bars, sentence and notes below it."""

    heading: str
    columns: Sequence[Column]
    cells: Sequence[Sequence[str]]
    bars: Sequence[Bar] = ()
    sentence: str = ""
    notes: Sequence[str] = ()


_LIBRARIES = ("numba", "numba-cuda", "numpy")
"""The libraries that compile all kernels but ports and peers, on GPUs and CPUs."""
_ALWAYS = ("kernel", "elapsed ms", "±", "✓")


def sections(run: Run) -> list[Section]:
    """One section for each group of a run's rows."""
    return [_section(run.only(group)) for group in groups(run.rows)]


def groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows grouped by problem, size, stride, parameters, dtype and cache mode, in their order."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        stride = None if PROBLEMS[row.problem].strides_in_rows else row.stride
        size = (row.m, row.n, row.k, stride, row.case.parameters)
        found.setdefault((row.problem, *size, row.dtype, row.cache), []).append(row)
    return list(found.values())


def label(row: Row) -> str:
    """A row's kernel, block and pad, with the compiler of a port, and with the stride if one table has several.

    ``transposeSmemPad 32x32 +1``, ``naive nvrtc 16x16``, ``strided stride 8``.
    """
    port = row.compiler if is_port(row.compiler) else ""
    stride = f"stride {row.stride}" if row.stride and PROBLEMS[row.problem].strides_in_rows else ""
    return " ".join(part for part in (row.kernel, port, _block(row), stride) if part)


def labels(rows: Sequence[Row]) -> list[str]:
    """The labels of one table's rows, with the device where two would be equal."""
    plain = [label(row) for row in rows]
    often = Counter(plain)
    return [f"{name} on {row.device}" if often[name] > 1 else name for name, row in zip(plain, rows, strict=True)]


def describe(run: Run) -> str:
    """The heading of a run of one size: devices, size, dtype, cache mode and library versions."""
    parts = (device_names(run), subject(run.rows[0]), libraries(run.description.versions))
    return " · ".join(filter(None, parts))


def libraries(versions: Mapping[str, str]) -> str:
    """The library versions in the heading of a table."""
    return ", ".join(f"{name} {versions[name]}" for name in _LIBRARIES if name in versions)


def subject(row: Row) -> str:
    """What a group has in common: ``matrix transpose 4096×4096 float32 · warm cache``."""
    problem = PROBLEMS[row.problem]
    stride = f", stride {row.stride}" if row.stride and not problem.strides_in_rows else ""
    cache = f" · {row.cache} cache" if problem.memory == "device" else ""
    parameters = "".join(f", {name} {number}" for name, number in row.case.parameters)
    return f"{problem.title} {problem.size(row.case)} {row.dtype}{parameters}{stride}{cache}"


def device_names(run: Run) -> str:
    """Models of the devices that a run's rows were measured on, GPUs first; a device's name if its model is unknown."""
    models = {device.name: device.model for device in run.description.devices}
    used = sorted({row.device for row in run.rows}, key=lambda name: (name == "cpu", name))
    return " and ".join(models.get(name, name) for name in used)


def _section(run: Run) -> Section:
    rows = run.rows
    problem = PROBLEMS[rows[0].problem]
    figures = problem.columns
    with_device = len({row.device for row in rows}) > 1
    with_stride = problem.strides_in_rows and any(row.stride for row in rows)
    with_compiler = len({row.compiler for row in rows}) > 1
    columns = [Column("kernel", numeric=False), Column("block", numeric=False)]
    if with_device:
        columns.insert(1, Column("on", numeric=False))
    if with_compiler:
        columns.insert(1, Column("by", numeric=False))
    if with_stride:
        columns.append(Column("stride"))
    columns += [Column("elapsed ms"), Column("±")]
    columns += [Column(FIGURES[name].heading) for name in figures]
    predicted = any(row.predicted_occupancy is not None or row.predicted_load_sectors is not None for row in rows)
    if predicted:
        # For problems that measure shared memory its conflicts are the point.
        columns.append(Column("conflicts\nld / st", wide=problem.memory != "shared"))
        columns += [Column(heading, wide=True) for heading in ("sectors\nld / st", "occu-\npancy")]
    columns.append(Column("✓", numeric=False))
    cells = []
    for row in rows:
        line = [row.kernel, _block(row), *_time(row)]
        if with_device:
            line.insert(1, row.device)
        if with_compiler:
            line.insert(1, row.compiler)
        if with_stride:
            line.insert(-2, str(row.stride or ""))
        line += [FIGURES[name].text(value(row, name)) for name in figures]
        if predicted:
            line += _predicted(row)
        line.append("✓" if row.verified else "")
        cells.append(line)
    # Columns that are empty in every row are left out, but never the times.
    shown = [index for index, column in enumerate(columns) if column.heading in _ALWAYS or any(c[index] for c in cells)]
    return Section(
        heading=describe(run),
        columns=[columns[index] for index in shown],
        cells=[[line[index] for index in shown] for line in cells],
        bars=_bars(rows, figures[0]),
        sentence=sentence(run),
        notes=notes(rows),
    )


def _predicted(row: Row) -> tuple[str, str, str]:
    """Predicted conflicts, sectors per request and occupancy, loads before stores."""
    return (
        _pair(row.predicted_load_conflict, row.predicted_store_conflict),
        _pair(row.predicted_load_sectors, row.predicted_store_sectors),
        "" if row.predicted_occupancy is None else f"{100 * row.predicted_occupancy:.0f} %",
    )


def _pair(load: float | None, store: float | None) -> str:
    return "" if load is None and store is None else f"{compact(load)} / {compact(store)}"


def _bars(rows: Sequence[Row], figure: str) -> list[Bar]:
    found = ((name, value(row, figure)) for name, row in zip(labels(rows), rows, strict=True) if row.ok)
    return [Bar(name, rate, FIGURES[figure].unit) for name, rate in found if rate is not None]


def notes(rows: Sequence[Row]) -> list[str]:
    """Notes below a table: cases without figures, and figures to treat with caution."""
    found = []
    for name, row in zip(labels(rows), rows, strict=True):
        if not row.ok:
            found.append(f"{name}: {row.status}: {row.reason}")
            continue
        if row.converged is False and row.precision is not None:
            found.append(f"{name}: not converged: ±{100 * row.precision:.1f} % after {row.samples} samples")
        if row.throttle_reasons not in (None, "none"):
            found.append(f"{name}: the GPU throttled while it was measured ({row.throttle_reasons})")
        if row.cpu_waiting is not None and row.cpu_waiting > CROWDED:
            waited = f"its threads waited {100 * row.cpu_waiting:.0f} % of the time for a core"
            found.append(f"{name}: measured on a busy host, so too slow: {waited}")
    done = [row for row in rows if row.ok]
    if any(row.other_processes for row in done):
        found.append("other processes used the GPU at the same time")
    if any(row.within_cache for row in done):
        found.append("the arrays fit the last-level cache: this is the cache's bandwidth, not the memory's")
    return found


def _block(row: Row) -> str:
    if row.block is None:
        return ""
    return f"{row.block} +{row.pad}" if row.pad else str(row.block)


def _time(row: Row) -> tuple[str, str]:
    if row.elapsed_ms is None or row.elapsed_ms_q1 is None or row.elapsed_ms_q3 is None:
        return row.status, ""
    if row.samples < MIN_SAMPLES:  # too few for a spread
        return milliseconds(row.elapsed_ms), ""
    half = (row.elapsed_ms_q3 - row.elapsed_ms_q1) / 2
    return milliseconds(row.elapsed_ms), f"{100 * half / row.elapsed_ms:.1f} %"
