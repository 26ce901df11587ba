"""memcpy on the CPU: NumPy's copy on one thread, the ceiling that ``percent_of_copy`` refers to.

On a machine with many cores the parallel kernels can pass it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.kernels.transpose.problem import COPY
from smembench.model.case import Case

if TYPE_CHECKING:
    from smembench.model.problem import Array


def build(case: Case) -> HostFunction:
    """Program for ``(out, inp, nx, ny)``."""
    import numpy as np

    def copy(out: Array, inp: Array, nx: int, ny: int) -> None:
        np.copyto(out, inp)

    return HostFunction(copy)


KERNEL = Kernel(
    problem="transpose",
    name="memcpy",
    kind="cpu",
    summary="NumPy's copy on one thread: the ceiling of % of memcpy",
    build=build,
    computes=COPY,
    blocks=False,
)
