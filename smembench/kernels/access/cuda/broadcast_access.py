"""broadcastAccess: the third of the slides' three situations, a single address read in a single bank.

Lane l stores word l and all lanes load word 0: one wavefront gives it to the whole warp. What the other lanes store is
not read again.
"""

from functools import partial

from smembench.kernels.access.line import apart, first_of_warp, line_tiles
from smembench.kernels.access.passes import build
from smembench.kernels.access.problem import BROADCAST
from smembench.kernels.kernel import Kernel

KERNEL = Kernel(
    problem="access",
    name="broadcastAccess",
    kind="cuda",
    summary="one word loaded by all lanes: one wavefront gives it to all",
    build=partial(build, sets=apart, reads=first_of_warp),
    computes=BROADCAST,
    blocks=False,
    tile_elements=line_tiles,
)
