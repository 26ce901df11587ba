"""hostCopy: NumPy's copy from host memory to host memory on one thread.

It is about what a copy from pageable memory does on its way, and so a yardstick for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smembench.kernels.program import HostFunction
from smembench.kernels.registry import Kernel


def _copy(out: Any, inp: Any, n: int) -> None:
    np.copyto(out, inp)


KERNEL = Kernel(
    problem="transfer",
    name="hostCopy",
    kind="cpu",
    summary="host to host on one thread: NumPy's copy",
    build=lambda case: HostFunction(_copy),
    blocks=False,
)
