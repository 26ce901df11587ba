"""The size from which a GPU pays off: from there on its kernels are faster than the CPU's baseline.

A run has an answer for each problem with a baseline that it measured at several sizes, on the CPU and on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from smembench.kernels.problems import PROBLEMS
from smembench.model.clauses import time
from smembench.model.groups import grouped
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.difference import difference
from smembench.toolchains.registry import is_port


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The baseline of a problem on the CPU, smallest size first, and the kernels of a GPU beside it.

    ``beside`` has for each kernel the row of its fastest block by that of the baseline of the same size.
    """

    baseline: Sequence[Row]
    beside: Mapping[str, Mapping[Row, Row]]

    def since(self, run: Run, kernel: str) -> Row | None:
        """The baseline's row at the size from which on a kernel is faster beyond the noise at every size; or None."""
        smallest = None
        for row in reversed([row for row in self.baseline if row in self.beside[kernel]]):
            effect = difference(run, row, self.beside[kernel][row])
            if effect is None or effect.high >= 1:
                break
            smallest = row
        return smallest


def break_even(run: Run) -> list[BreakEven]:
    """Of each problem, element type, stride, cache mode and GPU of a run that have several sizes."""
    done = (row for row in run.rows if row.ok and not is_port(row.compiler))
    alike = grouped(done, lambda row: replace(row.case.setting, device="", m=0, n=0, k=None))
    return [
        answer
        for rows in alike.values()
        for device in dict.fromkeys(row.device for row in rows if row.case.kind == "cuda")
        if (answer := _of(rows, device)) is not None
    ]


def _of(rows: Sequence[Row], device: str) -> BreakEven | None:
    problem = PROBLEMS[rows[0].problem]
    baseline = {row.case.size: row for row in rows if (row.kernel, row.device) == (problem.cpu_kernel, "cpu")}
    beside: dict[str, dict[Row, Row]] = {}
    for row in rows:
        if row.device != device or (cpu := baseline.get(row.case.size)) is None:
            continue
        fastest = beside.setdefault(row.kernel, {})
        if cpu not in fastest or time(row) < time(fastest[cpu]):
            fastest[cpu] = row
    several = {kernel: times for kernel, times in beside.items() if len(times) > 1}
    if not several:
        return None
    compared = {row for times in several.values() for row in times}
    return BreakEven(sorted(compared, key=lambda row: problem.operations(row.case)), several)
