"""The sum of n elements: one addition per element, so that time is reading and what threads do to add up together."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, isqrt
from typing import TYPE_CHECKING, Any

from smembench.model.axis import Axis
from smembench.model.case import Block, Case
from smembench.model.clauses import Compared, Result, fastest, time
from smembench.model.problem import Problem, Verification
from smembench.model.texts import Texts

if TYPE_CHECKING:
    from smembench.model.problem import Array

SUM, READ = "sum", "read"
EXACT_BITS = {"float32": 24, "float64": 53, "int32": 31}
"""Bits of the integers that a dtype holds without rounding or overflow."""


class Reduction(Problem):
    """``out[0] = in[0] + … + in[n - 1]``; effective bandwidth counts each element read once: (n + 1)·itemsize bytes.

    The inputs are integers, also as floats, so small that every partial sum is exact in any order, with a probability
    of 1 - 10^-11: the sum of any k ≤ n of them, with random signs and magnitudes up to K, exceeds 10·K·√n with a
    probability below 2·exp(-50) (Hoeffding, Probability Inequalities for Sums of Bounded Random Variables, 1963,
    theorem 2). So the only right result is the exact one, in whatever order threads add and blocks arrive, and an
    element that is left out or added twice is always seen.

    All elements are multiples of 4 but one, which is 1. So no sum is the poison of int32, -1, and readGmem can prove
    what it has read: the one thread whose elements have an odd sum has read the 1.
    """

    name = "reduction"
    order = 7
    dtypes = ("float32", "float64", "int32")
    default_n = 2**24
    default_blocks = (Block(512, 1),)
    sizes = (Axis("n", "Elements that are added up.", str(default_n)),)
    arrays = ("out", "in")
    ceiling_kernel = "readGmem"
    naive_kernel = "sumDivergent"
    cpu_kernel = "sumLoop"

    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        """Multiples of 4 with random signs, none of them 0, and the 1 somewhere between them."""
        import numpy as np

        rng, most = self.rng(case, seed), most_quarter(case)
        drawn = rng.integers(-most, most, case.n, dtype=np.int32 if most < 2**29 else np.int64)
        drawn += drawn >= 0  # no zeros
        drawn *= 4
        drawn[rng.integers(case.n)] = 1
        return (drawn.astype(case.dtype, copy=False),)

    def lengths(self, case: Case) -> tuple[int, ...]:
        """A result and n elements."""
        return (1, case.n)

    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> float:
        """The sum, in a format that holds it exactly; what readGmem writes is 1."""
        return 1 if computes == READ else inputs[0].sum(dtype="int64" if case.dtype == "int32" else "float64").item()

    def check(self, case: Case, reference: Any, output: Array) -> Verification:
        """The exact sum and nothing else; it is odd, and so never 0. The error is relative."""
        result = output[0].item()
        if result == reference:
            return Verification(True, 0.0)
        error = abs(result - reference) / abs(reference)
        return Verification(False, error if isfinite(error) else None, f"the result is {result}, not {reference}")

    def flops(self, case: Case) -> int:
        """n - 1 additions; of integers none counts."""
        return 0 if case.dtype == "int32" else case.n - 1


class ReductionTexts(Texts):
    """The command and the tables of sums."""

    title = "sum"
    help = """
    Time sums, from a naive tree in shared memory to full bandwidth.

    Every sum is checked against the exact one before it is timed. readGmem, which reads the elements and combines
    nothing, is measured beside them as the ceiling, and a plain loop on one CPU thread.

    Examples:

      smembench reduction
      smembench reduction --n 1048576:268435456:*4 --kernel sumPersistent --peers
      smembench reduction --dtype float64,int32 --block 128x1,256x1,512x1
    """
    kernel_axes = (Axis("block", "Block dimensions in threads, counted in a row.", str(Reduction.default_blocks[0])),)
    options = ("kernel", "dtype", "device", "cache", "compiler", "peers")
    columns = ("effective_gb_s", "percent_of_copy", "speedup_vs_naive", "speedup_vs_cpu")

    def size(self, case: Case) -> str:
        """n; there is one row."""
        return str(case.n)

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        """The cost of bank conflicts, and the last step against the first and against reading alone."""
        first, conflicts, without, last, read = (
            fastest(results, name)
            for name in ("sumDivergent", "sumInterleaved", "sumSequential", "sumPersistent", "readGmem")
        )
        clauses = []
        if conflicts and without:
            clauses.append(f"without bank conflicts the sum is {compared(without, conflicts)}")
        if last and (first or read):
            parts = [f"is {compared(last, first)}"] if first else []
            parts += [f"reaches {100 * time(read) / time(last):.0f} % of {read.kernel}"] if read else []
            clauses.append(f"{last.kernel} {' and '.join(parts)}")
        return clauses


def most_quarter(case: Case) -> int:
    """A quarter of K, the largest magnitude whose sums 10·K·√n are exact."""
    largest: int = 2 ** EXACT_BITS[case.dtype] // (10 * (isqrt(case.n - 1) + 1))
    return max(largest // 4, 1)


PROBLEM = Reduction(ReductionTexts())
