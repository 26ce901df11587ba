"""How measurements of one run compare with each other: % of the copy, speed-ups over naive and over the CPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from smembench.case import Case
from smembench.measurement import Measurement
from smembench.problems import PROBLEMS


@dataclass(frozen=True, slots=True)
class Relations:
    """Ratios to other cases of the run; None where the other case is missing or did not succeed.

    ``percent_of_copy`` and ``speedup_vs_naive`` compare with copyGmem and with naiveGmem or naive at the same
    size, dtype, device, cache mode and block; ``speedup_vs_cpu`` with the triple loop on the CPU at the same
    size and dtype.
    """

    percent_of_copy: float | None = None
    speedup_vs_cpu: float | None = None
    speedup_vs_naive: float | None = None


def relate(measurements: Iterable[Measurement]) -> dict[Case, Relations]:
    """Relations of every measurement that has figures."""
    medians = {m.case: m.summary.median for m in measurements if m.summary is not None}

    def times_faster(case: Case, other: Case | None) -> float | None:
        return medians[other] / medians[case] if other in medians else None

    relations = {}
    for case in medians:
        problem = PROBLEMS[case.problem]
        copied = times_faster(case, _peer(case, problem.copy_kernel))
        relations[case] = Relations(
            percent_of_copy=None if copied is None else 100 * copied,
            speedup_vs_cpu=times_faster(case, _cpu_peer(case, problem.cpu_kernel)),
            speedup_vs_naive=times_faster(case, _peer(case, problem.naive_kernel)),
        )
    return relations


def _peer(case: Case, kernel: str | None) -> Case | None:
    return None if kernel is None else replace(case, kernel=kernel, pad=None)


def _cpu_peer(case: Case, kernel: str | None) -> Case | None:
    if kernel is None:
        return None
    return replace(case, kernel=kernel, device="cpu", block=None, pad=None)
