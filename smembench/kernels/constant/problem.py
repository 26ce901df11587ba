"""A 1D stencil, whose few coefficients every thread reads: the use that constant memory is made for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smembench.model.axis import Axis
from smembench.model.case import Block, Case
from smembench.model.clauses import Compared, Result, fastest
from smembench.model.problem import Problem, Verification
from smembench.model.texts import Texts

if TYPE_CHECKING:
    from smembench.model.problem import Array

RADIUS = 4
"""Neighbours on either side, as in Professional CUDA C Programming, chapter 5."""
TAPS = 2 * RADIUS + 1


@dataclass(frozen=True, slots=True)
class _Reference:
    """The expected output in float64 and the sum of the magnitudes of its terms, both of n elements."""

    output: Array
    magnitude: Array


class Constant(Problem):
    """``out[i] = Σ c[j]·in[i + j]`` over ``TAPS`` coefficients; the input has ``RADIUS`` more elements on either side.

    Effective bandwidth counts the input, the output and the coefficients once. A stencil of n elements reads a
    coefficient n·``TAPS`` times; those reads stay on the chip, and are what the kernels differ in.
    """

    name = "constant"
    order = 4
    dtypes = ("float32", "float64")
    default_n = 2**22
    default_blocks = (Block(256, 1),)
    sizes = (Axis("n", "Elements of the output.", str(default_n)),)
    bound = "arithmetic"
    arrays = ("out", "in", "coefficients")

    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        """n + 2·``RADIUS`` elements and ``TAPS`` coefficients, uniform in [-1/2, 1/2)."""
        import numpy as np

        dtype: Any = np.dtype(case.dtype)
        rng = self.rng(case, seed)
        line, weights = (rng.random(count, dtype=dtype) for count in self.lengths(case)[1:])
        line -= dtype.type(0.5)
        weights -= dtype.type(0.5)
        return line, weights

    def lengths(self, case: Case) -> tuple[int, ...]:
        """n, n + 2·``RADIUS`` and ``TAPS`` elements."""
        return (case.n, case.n + 2 * RADIUS, TAPS)

    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> _Reference:
        """The stencil in float64, from the coefficients as the dtype holds them."""
        import numpy as np

        line, weights = (array.astype(np.float64) for array in inputs)
        return _Reference(np.correlate(line, weights), np.correlate(np.abs(line), np.abs(weights)))

    def check(self, case: Case, reference: Any, output: Array) -> Verification:
        """The largest |out − ref| over the sum of its terms' magnitudes.

        A sum of t products in any order, with or without fused multiply-add, errs by at most t·ε/2 times that sum, up
        to terms in ε² (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1). Allowed is t·ε.
        """
        import numpy as np

        tolerance = TAPS * float(np.finfo(case.dtype).eps)
        # A window of zeros has a sum of zero: nothing but zero is right there.
        error = float(
            np.max(np.abs(output.astype(np.float64) - reference.output) / np.maximum(reference.magnitude, 1e-300))
        )
        if error <= tolerance:  # False for NaN, as it must be
            return Verification(True, error)
        if not np.isfinite(error):
            return Verification(False, None, f"{np.count_nonzero(~np.isfinite(output))} entries are NaN or infinite")
        return Verification(False, error, f"largest relative error {error:.2g} (allowed {tolerance:.2g})")

    def flops(self, case: Case) -> int:
        """2·``TAPS``·n: a multiplication and an addition per tap."""
        return 2 * TAPS * case.n


class ConstantTexts(Texts):
    """The command and the tables of stencils."""

    title = "1D stencil"
    help = """
    Time a 1D stencil with coefficients in three kinds of memory.

    They are in global, shared or constant memory. Uniform: the lanes of a warp read the same coefficient at the same
    time, a broadcast. Diverging: they read nine different ones, which the constant cache serves one after the other.
    The arithmetic is the same. The host copies the coefficients to constant memory before the launch, as
    cudaMemcpyToSymbol does. The CPU runs one plain stencil.

    Examples:

      smembench constant
      smembench constant --kernel constantUniform --dtype float32,float64
      smembench constant --compiler numba,nvrtc
      smembench constant --n 1m:16m:*4 --block 128x1,256x1
    """
    kernel_axes = (Axis("block", "Block dimensions in threads, counted in a row.", str(Constant.default_blocks[0])),)
    options = ("kernel", "dtype", "device", "cache", "compiler")
    columns = ("gflop_s", "effective_gb_s", "predicted_constant_addresses")

    def size(self, case: Case) -> str:
        """n; there is one row."""
        return str(case.n)

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        """Diverging reads of each memory against uniform ones, then uniform ones against those of global memory."""
        pairs = [(f"{memory}Diverging", f"{memory}Uniform") for memory in ("constant", "shared", "global")]
        pairs += [("sharedUniform", "globalUniform"), ("constantUniform", "globalUniform")]
        fastest_pairs = [(fastest(results, one), fastest(results, other)) for one, other in pairs]
        clauses = [f"{one.kernel} is {compared(one, other)}" for one, other in fastest_pairs if one and other]
        return [f"of the stencils {clauses[0]}", *clauses[1:]] if clauses else []


PROBLEM = Constant(ConstantTexts())
