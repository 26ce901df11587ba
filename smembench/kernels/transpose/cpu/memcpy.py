"""memcpy on the CPU: NumPy's copy on one thread, the ceiling that ``percent_of_copy`` refers to.

On a machine with many cores the parallel kernels can pass it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smembench.kernels.program import HostFunction
from smembench.kernels.registry import Kernel
from smembench.kernels.transpose.problem import COPY


def _copy(out: Any, inp: Any, nx: int, ny: int) -> None:
    np.copyto(out, inp)


KERNEL = Kernel(
    problem="transpose",
    name="memcpy",
    kind="cpu",
    summary="NumPy's copy on one thread: the ceiling of % of memcpy",
    build=lambda case: HostFunction(_copy),
    computes=COPY,
    blocks=False,
)
