"""The best kernel of each size beside the copy ceiling and other libraries."""

from __future__ import annotations

from collections.abc import Sequence

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.toolchains.registry import is_port
from smembench.views.columns import FIGURES, Column, milliseconds, value
from smembench.views.sections import Section, device_names, groups, label


def limits(run: Run) -> list[Section]:
    """One section for each problem that was measured beside a yardstick: memcpy, CuPy, PyTorch or cuBLAS.

    The best of a size and dtype is the fastest kernel of the default compiler, or the fastest port if only ports were
    measured. A yardstick's column is the speed of the best kernel over its own.
    """
    found = []
    for problem in PROBLEMS:
        of_problem = [row for row in run.rows if row.problem == problem and row.ok and row.case.kind == "cuda"]
        names = [name for name in _yardsticks(problem) if any(row.kernel == name for row in of_problem)]
        if names:
            found.append(_section(run.only(of_problem), names))
    return found


def _yardsticks(problem: str) -> tuple[str, ...]:
    """The copy ceiling, then the kernels of other libraries."""
    ceiling = PROBLEMS[problem].ceiling_kernel
    return (*([ceiling] if ceiling else []), *registry.peers(problem))


def _section(run: Run, names: Sequence[str]) -> Section:
    problem = PROBLEMS[run.rows[0].problem]
    rate = problem.columns[0]
    cells = []
    for group in sorted(groups(run.rows), key=_by_size):
        ours = [row for row in group if row.kernel not in names and _solves(row)]
        if not ours:
            continue
        best = min(ours, key=lambda row: (is_port(row.compiler), _elapsed(row)))
        others = {row.kernel: f"{_elapsed(row) / _elapsed(best):.3f}" for row in group if row.kernel in names}
        cells.append(
            [
                problem.size(best.case),
                best.dtype,
                best.cache,
                label(best),
                milliseconds(_elapsed(best)),
                FIGURES[rate].text(value(best, rate)),
                *(others.get(name, "") for name in names),
            ]
        )
    headings = ["size", "dtype", "cache", "best", "elapsed ms", FIGURES[rate].heading, *(f"over\n{n}" for n in names)]
    words = ("size", "dtype", "cache", "best")
    return Section(
        heading=f"{device_names(run)} · {problem.title}: the best kernel of each size beside the limits",
        columns=[Column(name, numeric=name not in words) for name in headings],
        cells=cells,
    )


def _solves(row: Row) -> bool:
    """Whether a row's kernel solves the problem: copyGmem, which only bounds it, does not."""
    naive = registry.find(row.problem, PROBLEMS[row.problem].naive_kernel or "", "cuda")
    own = registry.find(row.problem, row.kernel, "cuda", row.compiler)
    return naive is not None and own is not None and own.computes == naive.computes


def _by_size(group: Sequence[Row]) -> tuple[int, int]:
    """Sort by element type, then by size, whichever sweep measured it."""
    row = group[0]
    return PROBLEMS[row.problem].dtypes.index(row.dtype), row.m * row.n * (row.k or 1)


def _elapsed(row: Row) -> float:
    return row.elapsed_ms or 0.0
