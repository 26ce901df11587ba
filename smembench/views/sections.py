"""Sections: the content of each table, whether it is drawn on a screen, in Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from smembench.kernels.problems import PROBLEMS
from smembench.kernels.time.problem import NO_DTYPE
from smembench.model.case import BY_ROWS, DEFAULT_COMPILER, ROTATED, UNIFORM, Case
from smembench.model.groups import grouped
from smembench.model.measurement import CROWDED
from smembench.model.text import number_of
from smembench.stats.summary import MIN_ROUNDS, MIN_SAMPLES
from smembench.store.run import Run
from smembench.store.run_json import Description
from smembench.store.schema import Row
from smembench.studies.difference import comparable
from smembench.toolchains.registry import compilers, named
from smembench.views.columns import FIGURES, Column, compact, figures, in_tera, percentage, some, value, within
from smembench.views.sentences import sentence, slowed_by_stride

T = TypeVar("T")


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

    def below(self, *, bars: Sequence[Bar] = (), sentence: str = "", notes: Sequence[str] = ()) -> Section:
        """The section with these below its table."""
        return replace(self, bars=bars, sentence=sentence, notes=notes)


_ALWAYS = ("kernel", "elapsed ms", "95 % CI", "✓")
"""The columns that are shown even if they are empty in every row."""


def table(
    heading: str,
    items: Iterable[T],
    columns: Mapping[str, Callable[[T], str]],
    *,
    words: Collection[str] = (),
    wide: Collection[str] = (),
) -> Section:
    """A section with a line per item, and a column per heading in ``columns``, which says what it shows of an item.

    ``words`` are the headings of columns of words, which are aligned to the left; a narrow screen leaves out ``wide``.
    """
    return Section(
        heading,
        [Column(name, numeric=name not in words, wide=name in wide) for name in columns],
        [[text(item) for text in columns.values()] for item in items],
    )


def sections(run: Run) -> list[Section]:
    """A section per group of a run's rows."""
    return [_section(run.only(group), slowed_by_stride(run, group)) for group in groups(run.rows)]


def groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows grouped by ``Case.setting`` on any device, in their order; a stride that tables have in rows is left out."""

    def key(row: Row) -> Case:
        stride = None if PROBLEMS[row.problem].texts.strides_in_rows else row.stride
        return replace(row.case.setting, device="", stride=stride)

    return list(grouped(rows, key).values())


def label(row: Row) -> str:
    """A row's kernel, block and pad, with the compiler of a port, and with the stride if one table has several.

    ``transposeSmemPad 32x32 +1``, ``naive nvrtc 16x16``, ``strided stride 8``.
    """
    stride = f"stride {row.stride}" if row.stride and PROBLEMS[row.problem].texts.strides_in_rows else ""
    return " ".join(part for part in (row.kernel, named(row.compiler), block(row.case), stride) if part)


def labels(rows: Sequence[Row]) -> list[str]:
    """The labels of one table's rows, with size, element type and cache mode where it has several.

    Of two that are equal each has its device: ``streamK 16x16``, ``streamK 16x16 8192×8192×8192 on cuda:1``.
    """
    parts = ([size_text(row.case) for row in rows], [row.dtype for row in rows], [row.cache for row in rows])
    apart = [part if len(set(part)) > 1 else [""] * len(rows) for part in parts]
    plain = [" ".join(filter(None, (label(row), *parts))) for row, *parts in zip(rows, *apart, strict=True)]
    often = Counter(plain)
    return [f"{name} on {row.device}" if often[name] > 1 else name for name, row in zip(plain, rows, strict=True)]


def size_text(case: Case) -> str:
    """A case's size as tables show it, with the problem's parameters: ``4096×4096``, ``n 1024, BLOCK 128``."""
    parameters = (f"{name} {number}" for name, number in case.parameters)
    return ", ".join(filter(None, (PROBLEMS[case.problem].texts.size(case), *parameters)))


def describe(run: Run) -> str:
    """The heading of a run of one size: devices, size, dtype, cache mode and the compilers' versions."""
    versions = libraries(run.description.versions, {row.compiler for row in run.rows})
    return " · ".join(filter(None, (device_names(run), subject(run.rows[0]), versions)))


def libraries(versions: Mapping[str, str], by: Collection[str] = (DEFAULT_COMPILER,)) -> str:
    """The versions in the heading of a table: of the libraries that decide the code of these compilers."""
    makers = (name for compiler in compilers() if compiler.name in by for name in compiler.makers)
    return ", ".join(f"{name} {versions[name]}" for name in dict.fromkeys(makers) if name in versions)


def subject(row: Row) -> str:
    """The settings that a group shares: ``matrix transpose 4096×4096 float32 · warm cache``."""
    problem = PROBLEMS[row.problem]
    stride = f", stride {row.stride}" if row.stride and not problem.texts.strides_in_rows else ""
    cache = f" · {row.cache} cache" if "cache" in problem.texts.options else ""
    parameters = "".join(f", {name} {number}" for name, number in row.case.parameters)
    inputs = "".join(f", {text}" for text in unusual_inputs(row))
    dtype = "" if row.dtype == NO_DTYPE else row.dtype
    what = " ".join(filter(None, (problem.texts.title, problem.texts.size(row.case), dtype)))
    return f"{what}{parameters}{stride}{inputs}{cache}"


def unusual_inputs(row: Row) -> list[str]:
    """``inputs normal``, unless they are uniform, and that is the default of the element type; ``B by columns``."""
    uniform = row.inputs == PROBLEMS[row.problem].usual_inputs(row.dtype) == UNIFORM
    parts = [] if uniform else [f"inputs {row.inputs}"]
    return parts if row.b_layout == BY_ROWS else [*parts, f"B by {row.b_layout}"]


def device_names(run: Run) -> str:
    """Models of the devices that a run's rows were measured on, GPUs first; a device's name if its model is unknown.

    Of a run with several of a model, ``2 × NVIDIA H200``, and ``NVIDIA H200 cuda:1`` for rows of one of them.
    """
    models = {device.name: device.model for device in run.description.devices}
    used = sorted({row.device for row in run.rows}, key=lambda name: (name == "cpu", name))
    of_models = grouped(used, lambda name: models.get(name, name))
    return " and ".join(
        f"{len(names)} × {model}" if len(names) > 1 else titled(run.description, names[0])
        for model, names in of_models.items()
    )


def titled(run: Description, name: str) -> str:
    """A device's model, with its name if the run has several of that model."""
    models = {device.name: device.model for device in run.devices}
    model = models.get(name, name)
    return f"{model} {name}" if list(models.values()).count(model) > 1 else model


def _section(run: Run, remarks: Sequence[str]) -> Section:
    rows = run.rows
    problem = PROBLEMS[rows[0].problem]
    several_compilers = len({row.compiler for row in rows}) > 1
    several_devices = len({row.device for row in rows}) > 1
    columns: dict[str, Callable[[Row], str]] = {
        "kernel": lambda row: row.kernel,
        "by": lambda row: row.compiler if several_compilers else "",
        "on": lambda row: row.device if several_devices else "",
        "block": lambda row: block(row.case),
        "stride": lambda row: str(row.stride or "") if problem.texts.strides_in_rows else "",
        "elapsed ms": lambda row: within(row.elapsed_ms, row.interval) or row.status,
        "95 % CI": interval,
        **figures(problem, problem.texts.columns, rows),
        # Loads before stores.
        "conflicts\nld / st": lambda row: _pair(row.predicted_load_conflict, row.predicted_store_conflict),
        "sectors\nld / st": lambda row: _pair(row.predicted_load_sectors, row.predicted_store_sectors),
        "occu-\npancy": lambda row: "" if (share := row.predicted_occupancy) is None else f"{100 * share:.0f} %",
        "✓": lambda row: "✓" if row.verified else "",
    }
    # For problems that measure shared memory its conflicts are the point.
    conflicts = [] if problem.memory == "shared" else ["conflicts\nld / st"]
    return table(
        describe(run),
        rows,
        {name: text for name, text in columns.items() if name in _ALWAYS or any(map(text, rows))},
        words=("kernel", "by", "on", "block", "✓"),
        wide=("sectors\nld / st", "occu-\npancy", *conflicts),
    ).below(bars=bars(rows, problem.texts.columns[0]), sentence=sentence(run), notes=[*notes(rows), *remarks])


def _pair(load: float | None, store: float | None) -> str:
    return "" if load is None and store is None else f"{compact(load)} / {compact(store)}"


def bars(rows: Sequence[Row], figure: str) -> list[Bar]:
    """A bar for each row that has this figure."""
    unit, factor = ("TFLOP/s", 1e-3) if in_tera(figure, rows) else (FIGURES[figure].unit, 1.0)
    rates = ((name, value(row, figure)) for name, row in zip(labels(rows), rows, strict=True) if row.ok)
    return [Bar(name, factor * rate, unit) for name, rate in rates if rate is not None]


def notes(rows: Sequence[Row]) -> list[str]:
    """Notes below a table: cases without figures, and figures to treat with caution."""
    failed = [f"{name}: {row.status}: {row.reason}" for name, row in zip(labels(rows), rows, strict=True) if not row.ok]
    noted = [f"{name}: {row.notes}" for name, row in zip(labels(rows), rows, strict=True) if row.ok and row.notes]
    lines = [*failed, *noted, *cautions(rows)]
    fit = [row for row in rows if row.ok and row.within_cache and row.cache == "warm"]
    if any("effective_gb_s" in PROBLEMS[row.problem].texts.columns for row in fit):
        lines.append(
            "the arrays fit the last-level cache: these are times and bandwidth of the cache, not of the memory, "
            f"for which there is --cache {'cold' if {row.case.kind for row in fit} == {'cpu'} else ROTATED}"
        )
    return lines


def cautions(rows: Sequence[Row]) -> list[str]:
    """Notes on times to treat with caution: of a busy host, a GPU that throttled, or too few samples."""
    named = dict(zip(rows, labels(rows), strict=True))
    lines: list[str] = []
    done = [row for row in rows if row.ok]

    def cases_of(rows: Collection[Row]) -> str:
        every = "both" if len(done) == 2 else f"all {len(rows)}"
        return f"{every} cases" if len(rows) == len(done) > 1 else some([named[row] for row in rows])

    if waited := {row: share for row in done if (share := row.cpu_waiting or 0.0) > CROWDED}:
        most = f"threads waited for a core up to {100 * min(max(waited.values()), 1):.0f} % of the time"
        lines.append(f"{cases_of(waited)}: upper bounds, because the host was busy ({most})")
    if throttled := [row for row in done if row.throttle_reasons not in (None, "none")]:
        reasons = ", ".join(sorted({str(row.throttle_reasons) for row in throttled}))
        lines.append(f"{cases_of(throttled)}: the GPU throttled while they were measured ({reasons})")
    if unsure := [row for row in done if row.converged is False and row.precision is not None]:
        worst = max(unsure, key=lambda row: row.precision or 0)
        width = percentage(100 * (worst.precision or 0), "±")
        how = f"{width} from" if interval(worst) else "too few for an interval:"
        most = "at worst " if len(unsure) > 1 else ""
        lines.append(f"{cases_of(unsure)}: not converged ({most}{how} {number_of(worst.samples, 'sample')})")
    known = [row for row in done if interval(row)]
    if few := {row: row.rounds for row in known if row.rounds is not None and row.rounds < MIN_ROUNDS}:
        lines.append(f"{cases_of(few)}: fewer than three rounds, so the 95 % CI leaves out what differs between rounds")
    if vague := [row for row in done if not comparable(row)]:
        lines.append(f"{cases_of(vague)}: no ratios, because the 95 % interval is wider than ±20 %")
    if alone := [row for row in known if row.uncertainty is None and row not in few]:
        unknown = "no samples stored to tell how rounds differ"
        lines.append(f"{cases_of(alone)}: {unknown}, so the 95 % CI is that of samples alone")
    if errors := max((row.ecc_uncorrected or 0 for row in done), default=0):
        lines.append(f"memory errors that ECC could not correct, since the driver was loaded: {errors}")
    if any(row.other_processes for row in done):
        lines.append("other processes used the GPU at the same time")
    return lines


def block(case: Case) -> str:
    """A case's block and pad: ``32x32 +1``; "" without a block."""
    return f"{case.block} +{case.pad}" if case.block and case.pad else str(case.block or "")


def interval(row: Row) -> str:
    """Half of the width of the time's 95 % interval, in % of the time; "" for too few samples."""
    if row.elapsed_ms is None or row.interval is None or row.samples < MIN_SAMPLES:
        return ""
    return percentage(100 * row.interval, "±")
