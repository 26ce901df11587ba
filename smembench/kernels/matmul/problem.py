"""Matrix products: C (m × n) = A (m × k) · B (k × n)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from smembench.kernels.matmul.inputs import DISTRIBUTIONS, NORMAL, ZEROS, draw, usual
from smembench.kernels.matmul.verification import Reference, reference_of
from smembench.model.axis import BLOCK, Axis
from smembench.model.case import BY_COLUMNS, BY_ROWS, Case
from smembench.model.clauses import Compared, Result, fastest, time
from smembench.model.formats import FLOAT8, NARROW, TF32, produced, widened
from smembench.model.problem import ITEMSIZE, Problem, Shape, Verification
from smembench.model.texts import Texts

if TYPE_CHECKING:
    from smembench.model.problem import Array


_OFFSET = 16
"""Where sub-matrices begin in wider matrices, in rows and columns: a multiple of this, as of the guide's BLOCK_SIZE."""
_POISON = -1
"""An integer as wide as an element, all of whose bytes are 0xFF: NaN in every format."""


class Matmul(Problem):
    """2·m·n·k floating-point operations over (m·k + k·n + m·n)·itemsize compulsory bytes.

    A and C are stored by rows (row-major), B by rows or by columns. With a stride they lie inside wider matrices, as
    the programming guide's sub-matrices do: below other rows and between other columns, and their own rows begin that
    many elements apart. Without a stride, rows follow each other.
    """

    name = "matmul"
    order = 2
    dtypes = ("float32", "float64", *NARROW)
    distributions = tuple(DISTRIBUTIONS)
    b_layouts = (BY_ROWS, BY_COLUMNS)
    default_n = 1024
    sizes = (
        Axis(
            "n",
            "Side, or columns of B and C: a number, a list or a range: 512,1024:8192:*2.",
            f"m, else k, else {default_n}",
        ),
        Axis("m", "Rows of A and C.", "n"),
        Axis("k", "Columns of A and rows of B.", "n"),
    )
    bound = "arithmetic"
    arrays = ("C", "A", "B")
    naive_kernel = "naive"
    cpu_kernel = "cpu"

    def shapes(self, sizes: Mapping[str, tuple[int, ...]]) -> Iterable[Shape]:
        """``n`` alone is square: ``m`` and ``k`` default to ``n``, and ``n`` to the first of them given."""
        n_values = sizes.get("n") or sizes.get("m") or sizes.get("k") or (self.default_n,)
        return (
            Shape(m=m, n=n, k=k) for n in n_values for m, k in product(sizes.get("m") or (n,), sizes.get("k") or (n,))
        )

    def count(self, given: Mapping[str, tuple[int, ...]]) -> int:
        """Each n, which the others default to, with each m and k."""
        return super().count(given) * (1 if given.get("n") else len(given.get("m") or given.get("k") or (None,)))

    def sizes_of(self, case: Case) -> dict[str, int]:
        """``n``, ``m`` and ``k``."""
        return {"n": case.n, "m": case.m, "k": case.depth}

    def unsupported(self, case: Case) -> str | None:
        """The reason that a stride is too short for the longest row, or None."""
        least = max(case.depth, case.n)
        if case.stride is None or case.stride >= least:
            return None
        rows = f"rows of A have {case.depth} elements, those of B and C {case.n}"
        return f"stride {case.stride}: {rows}; use {least} or more"

    def usual_inputs(self, dtype: str) -> str:
        """Normal for types for tensor cores, else uniform."""
        return usual(dtype)

    def usual_b_layout(self, dtype: str) -> str:
        """Columns for the types that wgmma reads in no other way, else rows."""
        return BY_COLUMNS if dtype in (TF32, FLOAT8) else BY_ROWS

    def array_types(self, case: Case) -> tuple[str, ...]:
        """C has the type of the product of A and B."""
        return (produced(case.dtype), case.dtype, case.dtype)

    def tried_on(self, case: Case) -> Case:
        """Normal inputs before zeros, whose products prove nothing."""
        return replace(case, inputs=NORMAL) if case.inputs == ZEROS else case

    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        """A and B, with mixed signs, so that a term left out does not hide in a large sum.

        Around a sub-matrix is NaN, so that a kernel that reads there is wrong.
        """
        rng = self.rng(case, seed)
        a, b = (draw(rng, rows * case.depth, case.dtype, case.inputs) for rows in (case.m, case.n))
        return _inside(case, a, case.depth), _inside(case, b, _shape_of_b(case)[1])

    def lengths(self, case: Case) -> tuple[int, ...]:
        """Rows times leading dimension: of a wider matrix its rows down to the last of the sub-matrix."""
        lda, ldb, ldc = _leading_dimensions(case)
        above, _ = _place(case)
        return ((above + case.m) * ldc, (above + case.m) * lda, (above + _shape_of_b(case)[0]) * ldb)

    def first(self, case: Case) -> int:
        """The first element of a sub-matrix in the wider one."""
        above, left = _place(case)
        return above * (case.stride or 0) + left

    def elements(self, case: Case) -> tuple[int, ...]:
        """m·n, m·k and k·n."""
        return (case.m * case.n, case.m * case.depth, case.depth * case.n)

    def scalars(self, case: Case) -> tuple[int, ...]:
        """``(m, n, k, lda, ldb, ldc)``; the last three are the elements from one row of A, B or C to the next.

        If B is stored by columns, ldb is from one column to the next.
        """
        return (case.m, case.n, case.depth, *_leading_dimensions(case))

    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> Reference:
        """See ``reference_of``."""
        matrices = zip(inputs, (case.depth, _shape_of_b(case)[1]), strict=True)
        a, b = (widened(_matrix(case, *given), case.dtype, "float64") for given in matrices)
        return reference_of(case, a, b if case.b_layout == BY_ROWS else b.T)

    def check(self, case: Case, reference: Any, output: Array) -> Verification:
        """Check C against the reference, and that the padding around C is untouched."""
        import numpy as np

        result: Verification = reference.check(widened(_matrix(case, output, case.n), produced(case.dtype), "float64"))
        written = output.view(f"i{output.itemsize}") != _POISON
        _matrix(case, written, case.n)[:] = False
        if not result.passed or not written.any():
            return result
        row, column = divmod(int(np.argmax(written)), _leading_dimensions(case)[2])
        where = f"the first in row {row} at {column} of the wider matrix"
        return Verification(False, result.error, f"{np.count_nonzero(written)} elements around C were written, {where}")

    def column_step(self, case: Case) -> int:
        """From one row of B to the next; 0 where its columns follow each other."""
        return _leading_dimensions(case)[1] * ITEMSIZE[case.dtype] if case.b_layout == BY_ROWS else 0

    def flops(self, case: Case) -> int:
        """2·m·n·k: a multiplication and an addition per term."""
        return 2 * case.m * case.n * case.depth


class MatmulTexts(Texts):
    """The command and the tables of matrix products."""

    title = "matrix product"
    help = """
    Time matrix products: on the CPU, naive, and tiled.

    Every result is checked against float64 before it is timed. The triple loop always runs on the CPU; speed-ups are
    over it.

    Products of types for tensor cores (bfloat16, float16, tf32, float8_e4m3) are accumulated in float32. Their
    inputs are normal unless --inputs says otherwise: values decide the power, and with it the clock. tf32 is float32
    with 10 bits of fraction. The product of float8_e4m3 matrices is bfloat16. --b-layout columns stores B by columns,
    as neural networks store weights; tensor cores of compute capability 9.0 read tf32 and float8_e4m3 in no other way.

    Examples:

      smembench matmul --n 1024
      smembench matmul --n 1024:4096:*2 --kernel naive,tiled --export matmul.csv
      smembench matmul --m 1000 --k 500 --n 2000 --dtype float64
      smembench matmul --n 1024 --stride 4096
      smembench matmul --n 4k --dtype bfloat16 --kernel wgmma --inputs normal,zeros
      smembench matmul --n 4k --dtype bfloat16 --b-layout rows,columns --peers
    """
    kernel_axes = (
        Axis("stride", "Row stride of A, B and C in elements, each inside a wider matrix.", "dense"),
        BLOCK,
    )
    options = ("kernel", "dtype", "inputs", "b_layout", "device", "cache", "compiler", "peers")
    columns = ("gflop_s", "speedup_vs_cpu", "speedup_vs_naive")

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        """Tiled against naive, and the faster of them against the CPU's loop; the guide's kernels against both."""
        cpu, naive, tiled, guide, whole = (
            fastest(results, name) for name in ("cpu", "naive", "tiled", "MatMulKernel", "MatMul")
        )
        loop = "the triple loop on one CPU thread"
        clauses = []
        if naive and tiled:
            clauses.append(f"tiled {tiled.block} is {compared(tiled, naive)} (fastest of each)")
        best = min((result for result in (naive, tiled) if result), key=time, default=None)
        if cpu and best:
            clauses.append(f"{best.kernel} is {compared(best, cpu, loop)}")
        if guide and tiled:
            clauses.append(f"MatMulKernel {guide.block} is {compared(guide, tiled)}")
        if whole and cpu:
            clauses.append(f"with its allocations and copies MatMul is {compared(whole, cpu, loop)}")
        return clauses


PROBLEM = Matmul(MatmulTexts())


def _leading_dimensions(case: Case) -> tuple[int, int, int]:
    """Elements from one row to the next of A, B as it lies, and C: the stride, or the length of a row."""
    return (case.stride or case.depth, case.stride or _shape_of_b(case)[1], case.stride or case.n)


def _shape_of_b(case: Case) -> tuple[int, int]:
    """Rows and columns of the matrix in which B lies: itself, or its transpose."""
    return (case.depth, case.n) if case.b_layout == BY_ROWS else (case.n, case.depth)


def _place(case: Case) -> tuple[int, int]:
    """Rows above and columns left of the sub-matrices in the wider ones, multiples of ``_OFFSET``; 0 without a stride.

    So the first element of a sub-matrix is aligned to 64 bytes.
    """
    if case.stride is None:
        return 0, 0
    spare = case.stride - max(case.n, case.depth)
    return _OFFSET, spare // (2 * _OFFSET) * _OFFSET


def _matrix(case: Case, array: Array, columns: int) -> Array:
    """A view of the matrix of ``columns`` columns that lies in an array."""
    above, left = _place(case)
    return array.reshape(-1, case.stride or columns)[above:, left : left + columns]


def _inside(case: Case, dense: Array, columns: int) -> Array:
    """The array in which a matrix lies, with NaN around it."""
    import numpy as np

    if case.stride is None:
        return dense
    above, _ = _place(case)
    count = (above + dense.size // columns) * case.stride
    wide = np.full(count, _POISON, f"i{dense.itemsize}").view(dense.dtype)
    _matrix(case, wide, columns)[:] = dense.reshape(-1, columns)
    return wide
