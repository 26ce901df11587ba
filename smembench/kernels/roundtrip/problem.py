"""Add one to an array on the host: what a GPU makes of it when the array must first come and then go back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from smembench.kernels.transfer.problem import HostArrays
from smembench.model.axis import Axis
from smembench.model.case import Block, Case
from smembench.model.clauses import Compared, Result, fastest
from smembench.model.texts import Texts

if TYPE_CHECKING:
    from smembench.model.problem import Array


class RoundTrip(HostArrays):
    """``out[i] = in[i] + 1``: to a GPU the input is copied, and from it the output, 2·n·itemsize bytes.

    Both copies are in the time, allocations are not; addOneDevice has no copies. The loop on one CPU thread, which
    copies nothing, is what they are compared with.
    """

    name = "roundtrip"
    order = 6
    default_n = 100_000
    default_blocks = (Block(128, 1),)
    sizes = (Axis("n", "Elements that one is added to.", str(default_n)),)
    cpu_kernel = "addOne"

    def inputs(self, case: Case, seed: int) -> tuple[Array, ...]:
        """An array, uniform in [0, 2^31 - 1): adding one neither overflows nor makes the poison, which is -1."""
        import numpy as np

        return (self.rng(case, seed).integers(0, 2**31 - 1, case.n, dtype=np.int32),)

    def reference(self, case: Case, inputs: tuple[Array, ...], computes: str) -> Array:
        """The input plus one."""
        expected: Array = inputs[0] + inputs[0].dtype.type(1)
        return expected


class RoundTripTexts(Texts):
    """The command and the tables of round trips."""

    title = "add one, with and without copies"
    command = "transfer"
    kernel_axes = (Axis("block", "Threads per block of the round trip.", str(RoundTrip.default_blocks[0])),)
    columns = ("effective_gb_s", "speedup_vs_cpu")

    def summary(self, results: Sequence[Result], compared: Compared) -> list[str]:
        """The GPU with its copies against the loop on the CPU, then the kernel alone."""
        cpu = fastest(results, "addOne")
        if cpu is None:
            return []
        gpu = [fastest(results, name) for name in ("addOnePageable", "addOnePinned")]
        loop = "the loop on one CPU thread"
        clauses = [f"with its copies {result.kernel} is {compared(result, cpu, loop)}" for result in gpu if result]
        alone = fastest(results, "addOneDevice")
        return [*clauses, f"without copies {alone.kernel} is {compared(alone, cpu, loop)}"] if alone else clauses

    def size(self, case: Case) -> str:
        """n; there is one row."""
        return str(case.n)


PROBLEM = RoundTrip(RoundTripTexts())
