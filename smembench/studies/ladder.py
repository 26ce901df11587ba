"""The ladder of a problem: from the naive kernel to the limit, one idea a step, and what each step gains in a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smembench.kernels import registry
from smembench.kernels.problems import PROBLEMS
from smembench.kernels.registry import Kernel
from smembench.store.schema import Row


@dataclass(frozen=True, slots=True)
class Rung:
    """A step that was measured.

    ``row`` is the fastest of its blocks; ``gain`` the time of the rung below over its own, None for the lowest;
    ``apart`` whether the quartiles of the two do not overlap, so that the gain is more than the spread.
    """

    kernel: Kernel
    row: Row
    gain: float | None
    apart: bool


def steps(problem: str, kind: str) -> tuple[Kernel, ...]:
    """The kernels of the ladder on a kind of device, from the lowest up."""
    return tuple(k for k in registry.kernels() if (k.problem, k.kind) == (problem, kind) and k.ladder and not k.port)


def problems() -> tuple[str, ...]:
    """The problems that have a ladder."""
    climbed = {kernel.problem for kernel in registry.kernels() if kernel.ladder}
    return tuple(name for name in PROBLEMS if name in climbed)


def ceiling(problem: str) -> str:
    """The column of cases.csv that says how near a rung is to the limit: the share of a copy, or of the peak."""
    return "percent_of_copy" if PROBLEMS[problem].ceiling_kernel else "percent_of_peak"


def climb(rows: Sequence[Row]) -> list[Rung]:
    """The rungs among rows of one size on one device, from the lowest up; steps without a figure are left out."""
    rungs: list[Rung] = []
    if not rows:
        return rungs
    for kernel in steps(rows[0].problem, rows[0].case.kind):
        done = [row for row in rows if row.ok and (row.kernel, row.compiler) == (kernel.name, kernel.compiler)]
        if done:
            row = min(done, key=_elapsed)
            below = rungs[-1].row if rungs else None
            rungs.append(Rung(kernel, row, _gain(below, row), below is not None and apart(below, row)))
    return rungs


def apart(one: Row, other: Row) -> bool:
    """Whether the middle halves of the samples of two rows with figures do not overlap."""
    (low, high), (other_low, other_high) = _middle(one), _middle(other)
    return high < other_low or other_high < low


def _elapsed(row: Row) -> float:
    assert row.elapsed_ms is not None, row.case_id
    return row.elapsed_ms


def _middle(row: Row) -> tuple[float, float]:
    assert row.elapsed_ms_q1 is not None, row.case_id
    assert row.elapsed_ms_q3 is not None, row.case_id
    return row.elapsed_ms_q1, row.elapsed_ms_q3


def _gain(below: Row | None, row: Row) -> float | None:
    return None if below is None else _elapsed(below) / _elapsed(row)
