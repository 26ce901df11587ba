"""setColReadRow: each warp stores down columns of the tile and loads along its rows, the mirror of setRowReadCol.

``tile[icol][irow]`` is stored and ``tile[threadIdx.y][threadIdx.x]`` loaded: the store of a 32-wide tile of 4-byte
elements has a 32-way conflict (16-way in a 32×16 block), the load has none.
"""

from smembench.kernels.access.passes import column, row, variants
from smembench.kernels.access.problem import SET_COLUMNS

KERNELS = variants(
    "setColReadRow",
    SET_COLUMNS,
    "columns stored, rows loaded",
    "bank conflicts on the store",
    sets=column,
    reads=row,
)
