"""serialAccess: the second of the slides' three situations, many addresses within one bank.

Lane l stores and loads word 32·l: the bank serves one lane at a time, a 32-way conflict.
"""

from functools import partial

from smembench.kernels.access.line import in_one_bank, line_tiles
from smembench.kernels.access.passes import build
from smembench.kernels.access.problem import STAY
from smembench.kernels.kernel import Kernel

KERNEL = Kernel(
    problem="access",
    name="serialAccess",
    kind="cuda",
    summary="one bank for all lanes: a wavefront per lane",
    build=partial(build, sets=in_one_bank, reads=in_one_bank),
    computes=STAY,
    blocks=False,
    tile_elements=line_tiles,
)
