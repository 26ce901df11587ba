"""Ratios between the cases of a run: % of the ceiling, speed-ups over the naive kernel and over the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from smembench.kernels.problems import PROBLEMS
from smembench.model.case import DEFAULT_COMPILER, Case
from smembench.model.measurement import Measurement


@dataclass(frozen=True, slots=True)
class Relations:
    """Ratios to other cases of the run; None if the other case is missing or did not succeed.

    Attributes:
        percent_of_copy: relative to the ceiling, such as memcpy, at the same size, dtype, device and cache mode.
        percent_of_copygmem: relative to copyGmem, at the same block as well.
        speedup_vs_naive: over naiveGmem or naive, at the same block as well.
        speedup_vs_cpu: over the CPU's baseline at the same size, dtype and cache mode.
    """

    percent_of_copy: float | None = None
    percent_of_copygmem: float | None = None
    speedup_vs_cpu: float | None = None
    speedup_vs_naive: float | None = None


def relate(measurements: Iterable[Measurement]) -> dict[Case, Relations]:
    """Relations of each measurement that has figures."""
    medians = {m.case: m.summary.median for m in measurements if m.summary is not None}

    def times_faster(case: Case, other: Case | None) -> float | None:
        if other and other not in medians:  # a ceiling by the same compiler
            other = replace(other, compiler=case.compiler)
        return medians[other] / medians[case] if other in medians else None

    def related(case: Case) -> Relations:
        found = {column: times_faster(case, other(case)) for column, other in OTHERS.items()}
        return Relations(
            **{column: _percent(ratio) if column in _PERCENT else ratio for column, ratio in found.items()}
        )

    return {case: related(case) for case in medians}


def _peer(case: Case, kernel: str | None) -> Case | None:
    return None if kernel is None else replace(case, kernel=kernel, pad=None)


def _blockless(case: Case, kernel: str | None, device: str = "") -> Case | None:
    if kernel is None:
        return None
    return replace(case, kernel=kernel, device=device or case.device, block=None, pad=None, compiler=DEFAULT_COMPILER)


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else 100 * ratio


OTHERS: Mapping[str, Callable[[Case], Case | None]] = {
    "percent_of_copy": lambda case: _blockless(case, PROBLEMS[case.problem].ceiling_kernel),
    "percent_of_copygmem": lambda case: _peer(case, PROBLEMS[case.problem].copy_kernel),
    "speedup_vs_cpu": lambda case: _blockless(case, PROBLEMS[case.problem].cpu_kernel, device="cpu"),
    "speedup_vs_naive": lambda case: _peer(case, PROBLEMS[case.problem].naive_kernel),
}
"""By column of cases.csv, the case that a case is compared with; None if its problem has none."""
_PERCENT = ("percent_of_copy", "percent_of_copygmem")
