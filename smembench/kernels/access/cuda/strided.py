"""strided: lanes a stride of 1 to 32 elements apart.

Lane l stores and loads element l·stride. Of 4-byte elements gcd(stride, 32) meet in each bank they touch: odd strides
are free of conflicts, and the powers of two are the steps of a staircase down to one word per clock.
"""

from functools import partial

from smembench.kernels.access.line import by_stride, line_tiles
from smembench.kernels.access.passes import build
from smembench.kernels.access.problem import STAY
from smembench.kernels.kernel import Kernel

KERNEL = Kernel(
    problem="access",
    name="strided",
    kind="cuda",
    summary="lanes a stride apart: gcd(stride, 32)-way conflicts",
    build=partial(build, sets=by_stride, reads=by_stride),
    computes=STAY,
    blocks=False,
    tile_elements=line_tiles,
    strided=True,
    standard=False,
)
