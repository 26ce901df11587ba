"""addOne: the documents' loop on one CPU thread, which needs no copy.

Numba compiles it to vector instructions, as a C compiler does. Numbers go from one array to another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.model.case import Case

if TYPE_CHECKING:
    from smembench.model.problem import Array


def build(case: Case) -> HostFunction:
    """Program for ``(out, inp, n)``: ``out[i] = inp[i] + 1``, one element after the other."""
    from numba import njit, uint64

    @njit(nogil=True)
    def add_one(out: Array, inp: Array, n: int) -> None:
        for i in range(n):
            out[uint64(i)] = inp[uint64(i)] + 1

    return HostFunction(add_one)


KERNEL = Kernel(
    problem="roundtrip",
    name="addOne",
    kind="cpu",
    summary="the loop on one CPU thread, the documents' baseline",
    build=build,
    blocks=False,
)
