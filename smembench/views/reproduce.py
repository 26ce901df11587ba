"""The documents' tables with this device's figures beside theirs, as sections."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import DEFAULT_COMPILER
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.reproduce.claims import CLAIMS, Finding, Holds, judge
from smembench.studies.reproduce.figures import BLOCKS, FIGURES, SIZES, Figure, devices_of, figure_of
from smembench.views.columns import Column, milliseconds, number, times
from smembench.views.sections import Section, describe


def reproduction(run: Run) -> list[Section]:
    """A section for each documented problem and each device of a run."""
    return [_section(run.only(group)) for group in documented(run.rows)]


def documented(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows that the documents have figures for, grouped by problem and device.

    These are the documents' kernels by the default compiler, at their sizes, blocks and element type. The CPU's triple
    loop stands beside the kernels of every device.
    """
    found: list[list[Row]] = []
    for problem in SIZES:
        of_problem = [row for row in rows if row.problem == problem and _is_documented(row)]
        baseline = PROBLEMS[problem].cpu_kernel
        devices = {row.device for row in of_problem if row.kernel != baseline} or {row.device for row in of_problem}
        found += [
            [row for row in of_problem if row.device == device or row.kernel == baseline]
            for device in sorted(devices, key=lambda name: (name == "cpu", name))
        ]
    return found


def _is_documented(row: Row) -> bool:
    known = any((figure.problem, figure.kernel) == (row.problem, row.kernel) for figure in FIGURES)
    here = ({row.m, row.n, row.k or row.n}, row.dtype, row.cache, row.stride, row.compiler)
    at_size = here == ({SIZES[row.problem]}, "float32", "warm", None, DEFAULT_COMPILER)
    return known and at_size and row.block in (None, BLOCKS[row.problem])


def _section(run: Run) -> Section:
    rows = run.rows
    problem = rows[0].problem
    devices = devices_of(problem)
    baseline = PROBLEMS[problem].cpu_kernel or PROBLEMS[problem].copy_kernel
    assert baseline is not None
    columns = [
        Column("kernel", numeric=False),
        *map(Column, devices),
        Column("here"),
        Column("holds here?", numeric=False),
    ]
    cells = []
    for row in rows:
        documented = (
            _documented(figure_of(problem, row.kernel, device), figure_of(problem, baseline, device))
            for device in devices
        )
        cells.append([row.kernel, *documented, _here(row), _judged(row, run)])
    sources = dict.fromkeys(figure.source for figure in FIGURES if figure.problem == problem)
    return Section(
        heading=f"{describe(run)}, blocks of {BLOCKS[problem]}",
        columns=columns,
        cells=cells,
        sentence=f"The documents' figures: {'; '.join(sources)}.",
        notes=[f"{row.kernel}: {row.status}: {row.reason}" for row in rows if not row.ok],
    )


def _documented(figure: Figure | None, baseline: Figure | None) -> str:
    if figure is None or baseline is None:
        return ""
    return _cell(figure.elapsed_ms, figure.gb_s, figure.problem, figure.elapsed_ms, baseline.elapsed_ms)


def _here(row: Row) -> str:
    if row.elapsed_ms is None:
        return row.status
    if PROBLEMS[row.problem].cpu_kernel:
        return "\n".join(part for part in (f"{milliseconds(row.elapsed_ms)} ms", _vs_cpu(row.speedup_vs_cpu)) if part)
    percent = "" if row.percent_of_copygmem is None else f"{row.percent_of_copygmem:.0f} % of copy"
    return "\n".join((f"{milliseconds(row.elapsed_ms)} ms", f"{number(row.effective_gb_s)} GB/s", percent))


def _cell(shown_ms: float, gb_s: float | None, problem: str, elapsed_ms: float, baseline_ms: float) -> str:
    if PROBLEMS[problem].cpu_kernel:
        return f"{shown_ms:g} ms\n{_vs_cpu(baseline_ms / elapsed_ms)}"
    return f"{shown_ms:g} ms\n{gb_s:g} GB/s\n{100 * baseline_ms / elapsed_ms:.0f} % of copy"


def _vs_cpu(value: float | None) -> str:
    return "" if value is None else f"{times(value)} CPU"


def _judged(row: Row, run: Run) -> str:
    lines = []
    for claim in CLAIMS:
        if (claim.problem, claim.faster) != (row.problem, row.kernel):
            continue
        slower = next((other for other in run.rows if other.kernel == claim.slower), None)
        finding = slower and judge(claim, run, slower, row)
        lines.append(say(finding) if finding else f"no samples of {claim.slower} and {claim.faster}")
    return "\n".join(lines)


def say(finding: Finding) -> str:
    """``yes: 1.74× over naiveGmem``, then the bounds and samples, then the documents' ratios, one line each."""
    claim, effect = finding.claim, finding.effect
    verdict = {Holds.YES: "yes", Holds.NO: "NO", Holds.UNDECIDED: "undecided"}[finding.holds]
    documented = ", ".join(map(_ratio, sorted(claim.documented())))
    return "\n".join(
        (
            f"{verdict}: {_ratio(effect.ratio)}× over {claim.slower}",
            f"{_ratio(effect.low)}–{_ratio(effect.high)}, {finding.samples[0]}+{finding.samples[1]} samples",
            f"documents {documented}",
        )
    )


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"
