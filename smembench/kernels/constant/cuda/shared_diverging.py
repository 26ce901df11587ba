"""sharedDiverging: each lane reads a coefficient of its own from shared memory.

The nine coefficients lie in different banks: no conflict, and no more time than a broadcast.
"""

from __future__ import annotations

from functools import partial

from smembench.kernels.constant.cuda.shared_uniform import build, elements
from smembench.kernels.constant.stencil import DIVERGING, few_threads
from smembench.kernels.kernel import Kernel

KERNEL = Kernel(
    problem="constant",
    name="sharedDiverging",
    kind="cuda",
    summary="1D stencil, the lanes of a warp read different coefficients from shared memory",
    build=partial(build, lanes=DIVERGING),
    tile_elements=elements,
    unsupported=few_threads,
)
