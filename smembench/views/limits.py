"""The best kernel of each size beside the ceiling and other libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.clauses import time
from smembench.model.groups import grouped
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.tune import solves
from smembench.toolchains.registry import is_port
from smembench.views.columns import figures
from smembench.views.sections import Section, cautions, device_names, label, table

_APART: dict[str, Callable[[Row], str]] = {
    "inputs": lambda row: row.inputs,
    "B by": lambda row: row.b_layout,
    "stride": lambda row: str(row.stride or ""),
    "parameters": lambda row: ", ".join(f"{name} {number}" for name, number in row.case.parameters),
    "on": lambda row: row.device,
}
"""What a table has columns for where its lines differ in it."""


def limits(run: Run) -> list[Section]:
    """One section for each problem that was measured beside a yardstick: its ceiling, CuPy, PyTorch or cuBLAS.

    The best of a size and dtype is the fastest kernel of the default compiler, or the fastest port if only ports were
    measured. A yardstick's column is the speed of the best kernel over its own.
    """
    found = []
    for name, problem in PROBLEMS.items():
        rows = [row for row in run.rows if row.problem == name and row.ok and row.case.kind == "cuda"]
        # The ceiling, then the kernels of other libraries.
        yardsticks = [kernel for kernel in (problem.ceiling_kernel, *registry.peers(name)) if kernel]
        measured = [kernel for kernel in yardsticks if any(row.kernel == kernel for row in rows)]
        if measured:
            found.append(_section(run.only(rows), measured))
    return found


def _section(run: Run, names: Sequence[str]) -> Section:
    problem = PROBLEMS[run.rows[0].problem]
    found: dict[Row, dict[str, str]] = {}
    involved: list[Row] = []
    settings = grouped(run.rows, lambda row: row.case.setting).values()
    for group in sorted(settings, key=_by_size):
        if ours := [row for row in group if is_own(row)]:
            best = min(ours, key=lambda row: (is_port(row.compiler), time(row)))
            yardsticks = [row for row in group if row.kernel in names]
            found[best] = {row.kernel: f"{time(row) / time(best):.3f}" for row in yardsticks}
            involved += [best, *yardsticks]

    def over(name: str) -> Callable[[Row], str]:
        return lambda best: found[best].get(name, "")

    return table(
        f"{device_names(run)} · {problem.texts.title}: the best kernel at each size, compared with the limits",
        found,
        {
            "size": lambda best: problem.texts.size(best.case),
            "dtype": lambda best: best.dtype,
            "cache": lambda best: best.cache,
            **{name: text for name, text in _APART.items() if len(set(map(text, found))) > 1},
            "best": label,
            **figures(problem, ["elapsed_ms", problem.texts.columns[0]]),
            **{f"over\n{name}": over(name) for name in names},
        },
        words=("size", "dtype", "cache", *_APART, "best"),
    ).below(notes=cautions(involved))


def is_own(row: Row) -> bool:
    """Whether a row's kernel solves its problem and is no other library's."""
    kernel = registry.find(row.problem, row.kernel, row.case.kind, row.compiler)
    return kernel is not None and not kernel.peer and solves(kernel)


def _by_size(group: Sequence[Row]) -> tuple[int, int]:
    """Sort by element type, then by size, whichever sweep measured it."""
    row = group[0]
    return PROBLEMS[row.problem].dtypes.index(row.dtype), row.m * row.n * (row.k or 1)
