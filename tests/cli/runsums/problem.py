"""Sums of runs of elements: a problem with a parameter of its own, for tests of what a folder alone makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from smembench.model.axis import Axis
from smembench.model.case import Case
from smembench.model.clauses import Compared, Result, fastest
from smembench.model.problem import Problem
from smembench.model.texts import Texts

if TYPE_CHECKING:
    from smembench.model.problem import Array


class RunSums(Problem):
    """``out[i] = in[i·items] + … + in[(i + 1)·items - 1]``, exact in int32."""

    name = "runsums"
    order = 10
    dtypes = ("int32", "int64")
    default_n = 4096
    sizes = (Axis("n", "Elements that are added.", str(default_n)),)
    parameters = (Axis("items", "Elements per sum.", "4,8", values=(4, 8)),)
    arrays = ("out", "in")
    naive_kernel = "sums"

    def unsupported(self, case: Case) -> str | None:
        items = case.parameter("items")
        return f"items {items}: do not divide {case.n}" if case.n % items else None

    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        return (self.rng(case, seed).integers(0, 1000, case.n).astype(case.dtype),)

    def lengths(self, case: Case) -> tuple[int, ...]:
        return (case.n // case.parameter("items"), case.n)

    def scalars(self, case: Case) -> tuple[int, ...]:
        return self.lengths(case)[:1]

    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> Array:
        sums: Array = inputs[0].reshape(-1, case.parameter("items")).sum(axis=1, dtype=case.dtype)
        return sums


class RunSumsTexts(Texts):
    """The command and the tables of sums of runs."""

    title = "sums of runs"
    help = """
    Time sums of runs of elements.

    Examples:

      smembench runsums --n 4096 --items 4,16
    """
    kernel_axes = ()
    columns = ("effective_gb_s", "speedup_vs_naive")

    def size(self, case: Case) -> str:
        return str(case.n)

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        sums, unrolled = (fastest(results, name) for name in ("sums", "unrolledSums"))
        return [f"unrolled the sum is {compared(unrolled, sums)}"] if sums and unrolled else []


PROBLEM = RunSums(RunSumsTexts())
