"""Verification of a product against float64: by its norm, or for narrow types by the rounding error of an entry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smembench.kernels.matmul.inputs import INTEGERS, LARGEST_INTEGER, ZEROS
from smembench.model.case import Case
from smembench.model.formats import FLOAT8, NARROW, SMALLEST, UNIT_ROUNDOFF, produced
from smembench.model.problem import Verification

if TYPE_CHECKING:
    from smembench.model.problem import Array

_EXACT_LIMIT = 1024
"""Largest side for which the whole product is computed in float64; above it, Freivalds' check."""
_PROBES = 4
_ROWS = 16
"""Rows of a large product of a narrow type that are computed in float64."""
_TRUNCATION = 2.0**-23
"""Largest relative error of an addition in float32 that cuts off instead of rounding to nearest."""
_FLOAT8_TRUNCATION = 2.0**-13
"""The same of tensor cores of compute capability 9.0 that add products of float8, relative to the largest term."""
_AT_ONCE = 32
"""Products of float8 that such an addition takes."""
_SIGMAS = 5


@dataclass(frozen=True, slots=True)
class ByNorm:
    """A·B·``probes`` in float64 (m × p), for outputs of at least 32 bits; ``probes`` None stands for the identity.

    Relative error ‖out − ref‖/‖ref‖ (Frobenius), and no single entry far off. Rounding of a sum of k products grows
    like √k·ε, so the tolerance is 4·√k·ε (float32, k = 1024: 1.5e-5; TF32 inputs err by 3e-4 and fail). Entries are
    held to eight times that over the root mean square of the reference, so that one wrong entry does not hide in a
    large norm.
    """

    case: Case
    product: Array
    probes: Array | None

    def check(self, out: Array) -> Verification:
        """Check C (m × n) in float64."""
        import numpy as np

        got = out if self.probes is None else out @ self.probes
        difference = got - self.product
        norm = float(np.linalg.norm(self.product))
        rms = norm / math.sqrt(self.product.size)
        error = _relative(difference, self.product)
        worst = error if norm == 0.0 else float(np.max(np.abs(difference))) / rms
        tolerance = 4 * math.sqrt(self.case.depth) * float(np.finfo(self.case.dtype).eps)
        if error <= tolerance and worst <= 8 * tolerance:  # False for NaN, as it must be
            return Verification(True, error)
        if not math.isfinite(error):
            return _not_finite(out)
        measure = "error" if self.probes is None else "Freivalds residual"
        detail = (
            f"relative {measure} {error:.2g} (allowed {tolerance:.2g}), "
            f"worst entry {worst:.2g} (allowed {8 * tolerance:.2g})"
        )
        return Verification(False, error, detail)


@dataclass(frozen=True, slots=True)
class ByRounding:
    """Rows of A·B in float64, all or a few, and of a large product its random ±1 combinations too; for narrow types.

    The products of two narrow numbers are exact in float32. Of k additions that may cut off (as tensor cores do: Fasi,
    Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores, 2021), each with a relative error up to
    u = 2^-23, the worst case is γ_k = ku/(1 − ku) times (|A||B|)_ij (Higham, Accuracy and Stability of Numerical
    Algorithms, 3.1). It is so far from what happens that a missing term would pass. For errors of mean zero 4·√k·u
    replaces it; to nearest, where u is half as large, that is λ = 8, which an entry exceeds with a probability below
    2k·exp(−λ²/2), or 1e-10 at k = 4096 (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019,
    theorem 3.1). Cutting off shortens a sum of random signs by less than √k·u/3. By Cauchy and Schwarz (|A||B|)_ij is
    at most ‖a_i‖·‖b_j‖. Small integers add up exactly. The result is rounded once, with a relative error up to the unit
    roundoff v of its format. So

        |out_ij − c_ij| ≤ v·|out_ij| + s_ij + half of the smallest number,  s_ij = 4·√k·u·‖a_i‖·‖b_j‖.

    Of float8, tensor cores of compute capability 9.0 align 32 products and the sum so far to the largest of them, and
    cut each off at 14 bits (DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, 3.5.2): each loses up to u = 2^-13 of the
    largest. For terms of random signs a sum of k is of the size of σ_ij = √Σ_l a_il²·b_lj². The losses of k products
    have random signs too; those of the sum, k/32 times, all have its own. Twice that is allowed:

        s_ij = 2·(√k + k/32)·u·σ_ij.

    A combination of a row's entries with random signs is off by more than five times the Euclidean norm of the row's
    bounds with a probability below 2·exp(−25/2), even if every error is as large as its bound (Hoeffding, 1963); errors
    spread over their range have less than half that norm, and then it is below 2·exp(−50).
    """

    case: Case
    rows: Array
    product: Array
    sums: tuple[Array, Array]
    probes: Array | None
    combined: Array | None

    def check(self, out: Array) -> Verification:
        """Check C (m × n) in float64; the error is that of the rows, ‖out − ref‖/‖ref‖."""
        import numpy as np

        entries, rows = self.sums
        dtype = produced(self.case.dtype)
        roundoff, tiny = UNIT_ROUNDOFF[dtype], SMALLEST[dtype] / 2
        some = out[self.rows]
        difference = some - self.product
        error = _relative(difference, self.product)
        if not np.isfinite(out).all():
            return _not_finite(out)
        excess = np.abs(difference) - (roundoff * np.abs(some) + entries + tiny)
        if (excess > 0).any():
            row, column = np.unravel_index(np.argmax(excess), excess.shape)
            bound = abs(difference[row, column]) - excess[row, column]
            where = f"entry ({self.rows[row]}, {column}) is {some[row, column]:g}, not {self.product[row, column]:g}"
            count = np.count_nonzero(excess > 0)
            detail = f"{count} of {excess.size} entries are off by more than rounding; {where} ± {bound:.2g}"
            return Verification(False, error, detail)
        if self.probes is None:
            return Verification(True, error)
        bounds = roundoff * np.linalg.norm(out, axis=1) + rows + tiny * math.sqrt(out.shape[1])
        wrong = (np.abs(out @ self.probes - self.combined) > _SIGMAS * bounds[:, None]).any(axis=1)
        if not wrong.any():
            return Verification(True, error)
        first = int(np.argmax(wrong))
        detail = f"Freivalds: {np.count_nonzero(wrong)} rows are off by more than rounding, the first is row {first}"
        return Verification(False, error, detail)


Reference = ByNorm | ByRounding


def reference_of(case: Case, a: Array, b: Array) -> Reference:
    """The reference for products of A and B, in float64.

    When a side is over 1024, that is their product with random ±1 columns: Freivalds' check (Freivalds, Probabilistic
    machines can use less running time, 1977). A wrong C passes one ±1 column with probability at most 1/2, and four
    only if its error cancels four times over.
    """
    import numpy as np

    small = max(case.m, case.n, a.shape[1]) <= _EXACT_LIMIT
    # Fresh entropy: a kernel must not be able to pass by knowing the probes.
    rng = np.random.default_rng()
    probes = None if small else rng.choice([-1.0, 1.0], size=(case.n, _PROBES))
    combined = None if probes is None else a @ (b @ probes)
    if case.dtype not in NARROW:
        return ByNorm(case, a @ b if combined is None else combined, probes)
    rows = np.arange(case.m) if small else np.sort(rng.choice(case.m, min(_ROWS, case.m), replace=False))
    return ByRounding(case, rows, a[rows] @ b, _errors_of_sums(case, a, b, rows), probes, combined)


def _errors_of_sums(case: Case, a: Array, b: Array, rows: Array) -> tuple[Array, Array]:
    """s_ij of these rows, and of every row the Euclidean norm."""
    import numpy as np

    truncation = _FLOAT8_TRUNCATION if case.dtype == FLOAT8 else _TRUNCATION
    if case.inputs == ZEROS or (case.inputs == INTEGERS and case.depth * LARGEST_INTEGER**2 <= 2 / truncation):
        return np.zeros((len(rows), case.n)), np.zeros(case.m)
    if case.dtype == FLOAT8:
        grows = 2 * (math.sqrt(case.depth) + case.depth / _AT_ONCE) * truncation
        return grows * np.sqrt(a[rows] ** 2 @ b**2), grows * np.sqrt(a**2 @ np.sum(b**2, axis=1))
    of_a, of_b = np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=0)
    grows = 4 * math.sqrt(case.depth) * truncation
    return grows * np.outer(of_a[rows], of_b), grows * of_a * np.linalg.norm(of_b)


def _relative(difference: Array, product: Array) -> float:
    """‖difference‖/‖product‖ (Frobenius); of a product of zeros the largest difference."""
    import numpy as np

    norm = float(np.linalg.norm(product))
    return float(np.max(np.abs(difference)) if norm == 0.0 else np.linalg.norm(difference) / norm)


def _not_finite(out: Array) -> Verification:
    import numpy as np

    return Verification(False, None, f"{np.count_nonzero(~np.isfinite(out))} entries are NaN or infinite")
