"""Transpose of an ny × nx matrix, and the copy that bounds it from above."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

from smembench.model.case import Case
from smembench.model.errors import UsageError
from smembench.model.problem import ITEMSIZE, Problem, Shape, Verification, bit_for_bit

if TYPE_CHECKING:
    from smembench.model.problem import Array

COPY = "copy"
TRANSPOSE = "transpose"


class Transpose(Problem):
    """``out[x, y] = in[y, x]``: no arithmetic, so that time is memory access and nothing else.

    Effective bandwidth counts each element read once and written once, 2·nx·ny·itemsize bytes, as the
    slides after "Professional CUDA C Programming" do: 4096² float32 in 0.758 ms is 177.15 GB/s.
    """

    name = "transpose"
    title = "matrix transpose"
    dtypes = ("float32", "float64", "float16", "int32")
    default_n = 4096
    size_axes = ("n", "nx", "ny")
    columns = ("effective_gb_s", "percent_of_copygmem", "percent_of_copy")
    arrays = ("out", "in")
    ceiling_kernel = "memcpy"
    copy_kernel = "copyGmem"
    naive_kernel = "naiveGmem"

    def shapes(self, sizes: Mapping[str, tuple[int, ...]]) -> list[Shape]:
        """``n`` alone is square; ``nx`` columns and ``ny`` rows each default to the other."""
        if sizes.get("n"):
            if sizes.get("nx") or sizes.get("ny"):
                raise UsageError("n stands for a square matrix; give either n, or nx and ny")
            return [Shape(n, n) for n in sizes["n"]]
        if not sizes.get("nx") or not sizes.get("ny"):
            return [Shape(n, n) for n in sizes.get("nx") or sizes.get("ny") or (self.default_n,)]
        return [Shape(m=ny, n=nx) for nx, ny in product(sizes["nx"], sizes["ny"])]

    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        """One array of m·n elements: uniform in [0, 1), or in [0, 2^31) for int32.

        Neither holds the poison, whose bytes are all 0xFF: NaN, or -1.
        """
        import numpy as np

        rng, count = self.rng(case, seed), case.m * case.n
        match case.dtype:
            case "int32":
                return (rng.integers(0, 2**31, count, dtype=np.int32),)
            case "float64":
                return (rng.random(count),)
            case _:
                return (rng.random(count, dtype=np.float32).astype(case.dtype, copy=False),)

    def lengths(self, case: Case) -> tuple[int, ...]:
        """m·n elements each."""
        return (case.m * case.n, case.m * case.n)

    def scalars(self, case: Case) -> tuple[int, ...]:
        """``(nx, ny)``, in the order of the documents."""
        return (case.n, case.m)

    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> Array:
        """The expected output: the input, or its transpose."""
        import numpy as np

        if computes == COPY:
            return inputs[0]
        return np.ascontiguousarray(inputs[0].reshape(case.m, case.n).T).ravel()

    def check(self, case: Case, reference: Any, output: Array) -> Verification:
        """Bit for bit. The error is the fraction of elements that differ."""
        return bit_for_bit(reference, output)

    def bytes_moved(self, case: Case) -> int:
        """2·m·n·itemsize."""
        return 2 * case.m * case.n * ITEMSIZE[case.dtype]

    def flops(self, case: Case) -> int:
        """None: a transpose computes nothing."""
        return 0
