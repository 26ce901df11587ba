"""parallelAccess: the first of the slides' three situations, many addresses across many banks.

Lane l stores and loads word l: one wavefront serves the warp.
"""

from functools import partial

from smembench.kernels.access.line import apart, line_tiles
from smembench.kernels.access.passes import build
from smembench.kernels.access.problem import STAY
from smembench.kernels.kernel import Kernel

KERNEL = Kernel(
    problem="access",
    name="parallelAccess",
    kind="cuda",
    summary="a bank per lane: one wavefront serves the warp",
    build=partial(build, sets=apart, reads=apart),
    computes=STAY,
    blocks=False,
    tile_elements=line_tiles,
)
