"""The documents' tables with this device's figures beside theirs, as sections."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import DEFAULT_COMPILER
from smembench.stats.differs import Effect
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.difference import difference
from smembench.studies.reproduce.claims import CLAIMS, Claim, holds
from smembench.studies.reproduce.figures import BLOCKS, FIGURES, SIZES, devices_of, figure_of
from smembench.views.columns import milliseconds, number, times
from smembench.views.sections import Section, describe, table


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
    baseline = PROBLEMS[problem].cpu_kernel or PROBLEMS[problem].copy_kernel
    assert baseline is not None

    def documented(device: str) -> Callable[[Row], str]:
        return lambda row: _documented(problem, row.kernel, baseline, device)

    sources = dict.fromkeys(figure.source for figure in FIGURES if figure.problem == problem)
    return table(
        f"{describe(run)}, blocks of {BLOCKS[problem]}",
        rows,
        {
            "kernel": lambda row: row.kernel,
            **{device: documented(device) for device in devices_of(problem)},
            "here": _here,
            "holds here?": lambda row: _judged(row, run),
        },
        words=("kernel", "holds here?"),
        sentence=f"The documents' figures: {'; '.join(sources)}.",
        notes=[f"{row.kernel}: {row.status}: {row.reason}" for row in rows if not row.ok],
    )


def _documented(problem: str, kernel: str, baseline: str, device: str) -> str:
    figure, beside = figure_of(problem, kernel, device), figure_of(problem, baseline, device)
    if figure is None or beside is None:
        return ""
    if PROBLEMS[problem].cpu_kernel:
        return f"{figure.elapsed_ms:g} ms\n{times(beside.elapsed_ms / figure.elapsed_ms)} CPU"
    percent = 100 * beside.elapsed_ms / figure.elapsed_ms
    return f"{figure.elapsed_ms:g} ms\n{figure.gb_s:g} GB/s\n{percent:.0f} % of copy"


def _here(row: Row) -> str:
    if row.elapsed_ms is None:
        return row.status
    if PROBLEMS[row.problem].cpu_kernel:
        more = ["" if row.speedup_vs_cpu is None else f"{times(row.speedup_vs_cpu)} CPU"]
    else:
        share = row.percent_of_copygmem
        more = [f"{number(row.effective_gb_s)} GB/s", "" if share is None else f"{share:.0f} % of copy"]
    return "\n".join(filter(None, (f"{milliseconds(row.elapsed_ms)} ms", *more)))


def _judged(row: Row, run: Run) -> str:
    lines = []
    for claim in CLAIMS:
        if (claim.problem, claim.faster) == (row.problem, row.kernel):
            slower = next((other for other in run.rows if other.kernel == claim.slower), None)
            effect = slower and difference(run, row, slower)
            samples = f"{slower.samples}+{row.samples}" if slower else ""
            lines.append(say(claim, effect, samples) if effect else f"no samples of {claim.slower} and {claim.faster}")
    return "\n".join(lines)


def say(claim: Claim, effect: Effect, samples: str) -> str:
    """``yes: 1.74× over naiveGmem``, then the bounds and samples, then the documents' ratios, one line each."""
    return (
        f"{holds(effect)}: {_ratio(effect.ratio)}× over {claim.slower}\n"
        f"{_ratio(effect.low)}–{_ratio(effect.high)}, {samples} samples\n"
        f"documents {', '.join(map(_ratio, sorted(claim.documented())))}"
    )


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"
