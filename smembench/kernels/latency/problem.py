"""Latency of dependent loads: one thread follows a chain through memory, each address from the load before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from smembench.model.axis import Axis
from smembench.model.case import Case
from smembench.model.clauses import Compared, Result, time
from smembench.model.problem import ITEMSIZE, Problem, Shape
from smembench.model.texts import Texts

if TYPE_CHECKING:
    from smembench.model.problem import Array

_DEFAULT_LOADS = 2**15


class Latency(Problem):
    """``m`` loads along a chain of ``n`` words: ``j = a[j]`` from 0 on, and ``out[0] = j``.

    The array is a random permutation with a single cycle, so no word comes twice within n loads and no prefetcher
    knows the next. Time divided by m is the latency of a load and of the address made from it, in the memory that
    holds the chain: ``n`` and the cache mode decide which. The launch, and loads that fetch a line first, are in it.

    ``smembench probe`` measures latencies in cycles, once, on one GPU. This is a case like any other: with rounds and
    an interval, for nights and fleets.
    """

    name = "latency"
    order = 8
    dtypes = ("int32",)
    default_n = 1024
    sizes = (
        Axis("loads", "Loads per launch, one after the other.", str(_DEFAULT_LOADS)),
        Axis("n", "Words of the chain.", str(default_n)),
    )
    memory = "none"
    arrays = ("out", "chain")

    def shapes(self, sizes: Mapping[str, tuple[int, ...]]) -> Iterable[Shape]:
        """``loads`` along chains of ``n`` words."""
        loads, n = sizes.get("loads") or (_DEFAULT_LOADS,), sizes.get("n") or (self.default_n,)
        return (Shape(*both) for both in product(loads, n))

    def sizes_of(self, case: Case) -> dict[str, int]:
        """``loads`` and ``n``."""
        return {"loads": case.m, "n": case.n}

    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        """An array: ``a[j]`` is the word after j in a random order of all n."""
        import numpy as np

        order = self.rng(case, seed).permutation(case.n).astype(case.dtype)
        chain = np.empty_like(order)
        chain[order] = np.roll(order, -1)
        return (chain,)

    def lengths(self, case: Case) -> tuple[int, ...]:
        """A word and n."""
        return (1, case.n)

    def scalars(self, case: Case) -> tuple[int, ...]:
        """``(n, loads)``."""
        return (case.n, case.m)

    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> Array:
        """The word at which m loads from word 0 end."""
        (chain,) = inputs
        at = 0
        for _ in range(case.m % case.n):  # n loads lead back to where they began
            at = int(chain[at])
        end: Array = chain[:1].copy()
        end[0] = at
        return end

    def bytes_moved(self, case: Case) -> int:
        """m·itemsize: a word per load."""
        return case.m * ITEMSIZE[case.dtype]


class LatencyTexts(Texts):
    """The command and the tables of latencies."""

    title = "latency"
    help = """
    Time dependent loads from shared memory, L1, L2 and DRAM.

    One thread follows a random chain. The size of the chain and the cache mode decide which memory answers: 1024 words
    lie in the L1 cache, some MB in the L2, and with a cold cache every load comes from DRAM. The time per load is below
    the table. The word at which the loads end is checked. Without a GPU the CPU runs the same loop.

    Examples:

      smembench latency
      smembench latency --n 1024,2097152 --cache warm,cold
      smembench latency --kernel sharedChain --loads 65536
    """
    kernel_axes = ()
    options = ("kernel", "device", "cache")
    columns = ("elapsed_ms",)

    def size(self, case: Case) -> str:
        """``32768 loads in a chain of 1024``."""
        return f"{case.m} loads in a chain of {case.n}"

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        """The time per load in each kernel."""
        clauses = [f"{1e6 * time(result) / result.m:.4g} ns in {result.kernel}" for result in results]
        return [f"a load takes {' and '.join(clauses)}"] if clauses else []


PROBLEM = Latency(LatencyTexts())
