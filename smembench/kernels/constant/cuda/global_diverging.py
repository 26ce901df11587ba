"""globalDiverging: each lane reads a coefficient of its own from global memory, through the L1 cache.

The nine coefficients lie in two or three sectors, which one request fetches.
"""

from __future__ import annotations

from functools import partial

from smembench.kernels.constant.cuda.global_uniform import build
from smembench.kernels.constant.stencil import DIVERGING, few_threads, tile_elements
from smembench.kernels.kernel import Kernel

KERNEL = Kernel(
    problem="constant",
    name="globalDiverging",
    kind="cuda",
    summary="1D stencil, the lanes of a warp read different coefficients from global memory",
    build=partial(build, lanes=DIVERGING),
    tile_elements=tile_elements,
    unsupported=few_threads,
)
