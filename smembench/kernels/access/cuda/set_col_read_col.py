"""setColReadCol: each warp stores and loads down columns of the tile.

``tile[threadIdx.x][threadIdx.y]`` on a square tile, ``tile[icol][irow]`` on any: a column of a 32-wide tile of 4-byte
elements lies in one bank, so both the store and the load have 32-way conflicts (16-way in a 32×16 block, whose warps
take two columns of 16). One column of padding puts a column into different banks, and two put both columns.
"""

from smembench.kernels.access.passes import column, variants
from smembench.kernels.access.problem import STAY

KERNELS = variants(
    "setColReadCol",
    STAY,
    "columns stored, columns loaded",
    "bank conflicts on both sides",
    sets=column,
    reads=column,
)
