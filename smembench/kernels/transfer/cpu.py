"""hostCopy: NumPy's copy from host memory to host memory on one thread.

It is about what a copy from pageable memory does on its way, and so a yardstick for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from smembench.kernels.kernel import Kernel
from smembench.kernels.program import HostFunction
from smembench.model.case import Case

if TYPE_CHECKING:
    from smembench.model.problem import Array


def build(case: Case) -> HostFunction:
    """Program for ``(out, inp, n)``."""
    import numpy as np

    def copy(out: Array, inp: Array, n: int) -> None:
        np.copyto(out, inp)

    return HostFunction(copy)


KERNEL = Kernel(
    problem="transfer",
    name="hostCopy",
    kind="cpu",
    summary="host to host on one thread: NumPy's copy",
    build=build,
    blocks=False,
)
