"""The best kernel of each size beside the ceiling and other libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.model.clauses import fastest, time
from smembench.model.groups import grouped
from smembench.model.text import number_of
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.difference import ratio
from smembench.toolchains.registry import is_port
from smembench.views.columns import figures, ratio_text
from smembench.views.sections import Section, cautions, device_names, label, table

_APART: dict[str, Callable[[Row], str]] = {
    "dtype": lambda row: row.dtype,
    "cache": lambda row: row.cache,
    "inputs": lambda row: row.inputs,
    "B by": lambda row: row.b_layout,
    "stride": lambda row: str(row.stride or ""),
    "parameters": lambda row: ", ".join(f"{name} {number}" for name, number in row.case.parameters),
    "on": lambda row: row.device,
}
"""What a table has columns for if its lines differ in it."""


def limits(run: Run, *, most: int | None = None) -> list[Section]:
    """A section per problem that was measured beside a yardstick: its ceiling, CuPy, PyTorch or cuBLAS.

    Without any of these the yardstick is the naive kernel. The best of a size and dtype is the fastest kernel of the
    default compiler, or the fastest port if only ports were measured. A yardstick's column is the speed of the best
    kernel over its fastest. Without a GPU's cases it is about the CPU's.

    Args:
        run: the cases.
        most: lines of a table; of more sizes the multiples of large powers of 2 are shown.
    """
    tables = []
    for name, problem in PROBLEMS.items():
        done = [row for row in run.rows if row.problem == name and row.ok]
        rows = [row for row in done if row.case.kind == "cuda"] or done
        kernels = {row.kernel for row in rows}
        # The ceiling, then the kernels of other libraries.
        yardsticks = [kernel for kernel in (problem.ceiling_kernel, *registry.peers(name)) if kernel in kernels]
        yardsticks = yardsticks or [kernel for kernel in (problem.naive_kernel,) if kernel in kernels]
        if yardsticks and len(kernels) > 1:
            tables.append(_section(run.only(rows), yardsticks, most))
    return tables


def _section(run: Run, names: Sequence[str], most: int | None) -> Section:
    problem = PROBLEMS[run.rows[0].problem]
    beside: dict[Row, dict[str, Row]] = {}
    settings = grouped(run.rows, lambda row: row.case.setting).values()
    for group in sorted(settings, key=_by_size):
        if ours := [row for row in group if is_own(row)]:
            quickest = min(ours, key=lambda row: (is_port(row.compiler), time(row)))
            beside[quickest] = {name: other for name in names if (other := fastest(group, name))}

    def over(name: str) -> Callable[[Row], str]:
        def text(best: Row) -> str:
            other = beside[best].get(name)
            factor = ratio(run, other, best) if other else None
            return ratio_text(factor) if factor else ""

        return text

    shown = set(sorted(beside, key=lambda row: -_round(row.m * row.n * (row.k or 1)))[:most])
    best = [row for row in beside if row in shown]
    apart = {name: text for name, text in _APART.items() if len(set(map(text, beside))) > 1}
    alike = "" if "dtype" in apart or not best else f" {best[0].dtype}"
    alike += "" if "cache" in apart or not best or "cache" not in problem.texts.options else f" · {best[0].cache} cache"
    hidden = len(beside) - len(best)
    left_out = [f"{number_of(hidden, 'more line')}: --limits"] if hidden else []
    return table(
        f"{device_names(run)} · {problem.texts.title}{alike}: fastest kernel per size",
        best,
        {
            "size": lambda best: problem.texts.size(best.case),
            **apart,
            "best": label,
            **figures(problem, ["elapsed_ms", problem.texts.columns[0]], best),
            **{f"over\n{name}": over(name) for name in names},
        },
        words=("size", *_APART, "best"),
    ).below(notes=[*cautions([row for one in best for row in (one, *beside[one].values())]), *left_out])


def _round(size: int) -> int:
    """The largest power of 2 that divides a size."""
    return size & -size


def is_own(row: Row) -> bool:
    """True if a row's kernel solves its problem and is no other library's."""
    kernel = registry.find(row.problem, row.kernel, row.case.kind, row.compiler)
    return kernel is not None and not kernel.peer and registry.solves(kernel)


def _by_size(group: Sequence[Row]) -> tuple[int, int]:
    """Sort by element type, then by size, whichever sweep measured it."""
    row = group[0]
    return PROBLEMS[row.problem].dtypes.index(row.dtype), row.m * row.n * (row.k or 1)
