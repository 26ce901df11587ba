"""constantDiverging: each lane reads a coefficient of its own from constant memory.

A request is split into as many as it has different addresses, here nine: the constant cache serves them one after the
other.
"""

from __future__ import annotations

from functools import partial

from smembench.kernels.constant.cuda.constant_uniform import build
from smembench.kernels.constant.stencil import DIVERGING, few_threads, tile_elements
from smembench.kernels.kernel import Kernel

KERNEL = Kernel(
    problem="constant",
    name="constantDiverging",
    kind="cuda",
    summary="1D stencil, the lanes of a warp read different coefficients from constant memory",
    build=partial(build, lanes=DIVERGING),
    tile_elements=tile_elements,
    unsupported=few_threads,
)
