"""Break-even tables: speed-ups of a GPU's kernels over the CPU's baseline by size."""

from __future__ import annotations

from collections.abc import Callable

from smembench.kernels.problems import PROBLEMS
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.break_even import BreakEven, break_even
from smembench.studies.difference import ratio
from smembench.views.columns import ratio_text, within
from smembench.views.sections import Section, cautions, device_names, sections, table
from smembench.views.sustained import sustained


def tables(run: Run) -> list[Section]:
    """All tables of a run: a section for each group of its rows, loads of seconds, then where a GPU begins to pay."""
    return [*sections(run), *sustained(run), *where_it_pays(run)]


def where_it_pays(run: Run) -> list[Section]:
    """A section for each answer to where a GPU begins to pay."""
    return [_section(run, answer) for answer in break_even(run)]


def _section(run: Run, answer: BreakEven) -> Section:
    first = answer.baseline[0]
    problem, baseline = PROBLEMS[first.problem], f"{first.kernel} ms"
    rows = [*answer.baseline, *(row for beside in answer.beside.values() for row in beside.values())]

    def speedup(kernel: str) -> Callable[[Row], str]:
        def text(row: Row) -> str:
            other = answer.beside[kernel].get(row)
            gain = ratio(run, row, other) if other else None
            return ratio_text(gain) if gain else ""

        return text

    return table(
        f"{device_names(run.only(rows))} · {problem.texts.title} {first.dtype}: where the GPU begins to pay",
        answer.baseline,
        {
            "size": lambda row: problem.texts.size(row.case),
            baseline: lambda row: within(row.elapsed_ms, row.interval),
            **{kernel: speedup(kernel) for kernel in answer.beside},
        },
        words=("size",),
    ).below(sentence=_sentence(run, answer), notes=cautions(rows))


def _sentence(run: Run, answer: BreakEven) -> str:
    since = {kernel: answer.since(run, kernel) for kernel in answer.beside}
    pay = [f"{kernel} from {PROBLEMS[row.problem].texts.size(row.case)} on" for kernel, row in since.items() if row]
    rest = [kernel for kernel, row in since.items() if row is None]
    clauses = [f"faster than {answer.baseline[0].kernel}: {', '.join(pay)}" if pay else ""]
    clauses.append(f"not faster at the largest: {', '.join(rest)}" if rest else "")
    return f"Of the sizes measured, {'; '.join(filter(None, clauses))}."
