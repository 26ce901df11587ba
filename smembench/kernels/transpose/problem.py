"""Transpose of an ny × nx matrix, and the copy that bounds it from above."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from smembench.model.axis import BLOCK, PAD, PAD_WIDTH, Axis
from smembench.model.case import Case
from smembench.model.clauses import Compared, Result, conflict_change, fastest, time
from smembench.model.errors import UsageError
from smembench.model.problem import Problem, Shape
from smembench.model.texts import Texts

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
    order = 1
    dtypes = ("float32", "float64", "float16", "int32")
    default_n = 4096
    sizes = (
        Axis("n", "Side of a square matrix, a number, a list or a range: 512,1024:8192:*2.", str(default_n)),
        Axis("nx", "Columns."),
        Axis("ny", "Rows."),
    )
    arrays = ("out", "in")
    ceiling_kernel = "memcpy"
    copy_kernel = "copyGmem"
    naive_kernel = "naiveGmem"

    def shapes(self, sizes: Mapping[str, tuple[int, ...]]) -> Iterable[Shape]:
        """``n`` alone is square; ``nx`` columns and ``ny`` rows each default to the other."""
        if sizes.get("n"):
            if sizes.get("nx") or sizes.get("ny"):
                given = (f"{name} {values[0]}{',…' * (len(values) > 1)}" for name, values in sizes.items() if values)
                raise UsageError(f"{' and '.join(given)}: n stands for a square matrix; give either n, or nx and ny")
            return [Shape(n, n) for n in sizes["n"]]
        if not sizes.get("nx") or not sizes.get("ny"):
            return [Shape(n, n) for n in sizes.get("nx") or sizes.get("ny") or (self.default_n,)]
        return (Shape(m=ny, n=nx) for nx, ny in product(sizes["nx"], sizes["ny"]))

    def sizes_of(self, case: Case) -> dict[str, int]:
        """``n``, or ``nx`` and ``ny`` unless they are the same."""
        return {"n": case.n} if case.m == case.n else {"nx": case.n, "ny": case.m}

    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        """An array of m·n elements: uniform in [0, 1), or in [0, 2^31) for int32.

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


class TransposeTexts(Texts):
    """The command and the tables of transposes."""

    title = "matrix transpose"
    help = """
    Time matrix transposes, with and without shared memory.

    The default is copyGmem, naiveGmem, transposeSmem and transposeSmemPad, checked bit for bit before it is timed.
    memcpy is measured as the ceiling. The cases are the product of all lists and ranges.

    Examples:

      smembench transpose --pad
      smembench transpose --n 1k:8k:*2 --block 32x32,16x16 --export t.csv
      smembench transpose --nx 4000 --ny 3000 --dtype float64 --cache warm,cold
    """
    kernel_axes = (BLOCK, PAD, PAD_WIDTH)
    options = ("kernel", "dtype", "device", "cache", "compiler", "peers")
    columns = ("effective_gb_s", "percent_of_copygmem", "percent_of_copy")

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        """Shared memory against the naive transpose, padding against none, and the better of them against the copy."""
        naive, shared, padded, copy = (
            fastest(results, name) for name in ("naiveGmem", "transposeSmem", "transposeSmemPad", "copyGmem")
        )
        through = shared or padded
        clauses = []
        if naive and through:
            clauses.append(f"through shared memory the transpose is {compared(through, naive)}")
        if shared and padded:
            unpadded = [result for result in results if result.kernel == shared.kernel]
            same_block = next((result for result in unpadded if result.block == padded.block), shared)
            because = conflict_change(same_block, padded)
            clauses.append(f"in {padded.block} blocks padding makes it {compared(padded, same_block)}{because}")
        best = min((result for result in (shared, padded) if result), key=time, default=None)
        if copy and best:
            percent = f"{100 * time(copy) / time(best):.0f} %"
            clauses.append(f"{best.kernel} {best.block} reaches {percent} of the fastest copyGmem")
        return clauses


PROBLEM = Transpose(TransposeTexts())
