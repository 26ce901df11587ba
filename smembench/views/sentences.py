"""The meaning of a table's numbers: one sentence, and a note on the CPU's baseline.

They claim a difference only if it is beyond the noise (``stats.differs``). The sentence leaves out times that were
taken while the device was throttled or the host busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import Case
from smembench.model.text import capital
from smembench.store.nvbench import NVBENCH
from smembench.store.run import Run
from smembench.store.schema import Row
from smembench.studies.difference import UNSURE, comparable, difference, ratio
from smembench.toolchains.registry import is_port
from smembench.views.columns import percentage, times_text

_WAY = 4096
"""Bytes after which addresses share a set of a usual L1 cache, which has 64 sets of 64 bytes."""
_NEAR = 0.1
"""Relative difference of sizes that lie beside each other."""


def sentence(run: Run) -> str:
    """The problem's summary of a run of one size, GPU by GPU; "" if there is nothing to compare."""
    done = [row for row in run.rows if row.ok and not row.disturbed and not is_port(row.compiler)]
    done = [row for row in done if row.compiler != NVBENCH]  # whose benchmarks are of one thing each
    gpus = dict.fromkeys(row.device for row in done if row.case.kind == "cuda")
    if len(gpus) > 1:
        of_gpu = {gpu: sentence(run.only([row for row in done if row.device in ("cpu", gpu)])) for gpu in gpus}
        return " ".join(f"On {gpu}: {text}" for gpu, text in of_gpu.items() if text)
    clauses = PROBLEMS[done[0].problem].texts.summary(done, partial(compared, run)) if done else []
    text = "; ".join(clauses)
    return capital(text) + "." if text else ""


def compared(run: Run, result: Row, other: Row, called: str = "") -> str:
    """``1.837 times (±0.4 %) as fast as naiveGmem``, or ``as fast as`` it within the noise; ``called`` names it."""
    called = called or other.kernel
    effect, quotient = difference(run, other, result), ratio(run, other, result)
    if effect is None:
        return f"not compared with {called}: too few samples"
    if not effect.differs:
        apart = max(effect.high - 1, 1 - effect.low)
        known = apart <= UNSURE and comparable(other, result)
        return (
            f"as fast as {called} within {percentage(100 * apart)}" if known else f"not distinguishable from {called}"
        )
    if quotient is None:
        return f"{'slower' if effect.ratio > 1 else 'faster'} than {called}"
    if quotient.value < 1:
        return f"slower than {called}: it takes {times_text(quotient._replace(value=1 / quotient.value))} as long"
    return f"{times_text(quotient)} as fast as {called}"


def slowed_by_stride(run: Run, rows: Sequence[Row]) -> list[str]:
    """A note on each case of the CPU's baseline that its stride makes slower per operation than a size beside it."""
    lines = []
    for row in rows:
        other = _beside(run, row) if row.ok and row.kernel == PROBLEMS[row.problem].cpu_kernel else None
        effect = difference(run, other, row) if other else None
        if other is None or effect is None:
            continue
        problem = PROBLEMS[row.problem]
        fewer = problem.operations(other.case) / problem.operations(row.case)
        if effect.low * fewer > 1:
            slower = f"{effect.ratio * fewer:.2g} times as long per operation as at {problem.texts.size(other.case)}"
            step = f"{problem.column_step(row.case)} bytes apart"
            lines.append(
                f"{row.kernel}: {slower}: elements of a column are {step}, so they share few sets of the cache"
            )
    return lines


def _beside(run: Run, row: Row) -> Row | None:
    """The same at the nearest size, if the step along a column is a multiple of ``_WAY`` in this case and not there."""

    def aliases(row: Row) -> bool:
        step = PROBLEMS[row.problem].column_step(row.case)
        return step > 0 and step % _WAY == 0

    def sizeless(row: Row) -> Case:
        return replace(row.case, m=0, n=0, k=0)

    near = [other for other in run.rows if other.ok and abs(other.n - row.n) <= _NEAR * row.n and not aliases(other)]
    alike = [other for other in near if sizeless(other) == sizeless(row)]
    return min(alike, key=lambda other: abs(other.n - row.n), default=None) if aliases(row) else None
