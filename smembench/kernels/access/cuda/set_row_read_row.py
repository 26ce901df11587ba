"""setRowReadRow: each warp stores and loads along rows of the tile.

``tile[threadIdx.y][threadIdx.x]`` both times: the 32 elements of a warp of a 32-wide block lie in 32 banks, and no
request has a conflict. A thread loads what it stored.
"""

from smembench.kernels.access.passes import row, variants
from smembench.kernels.access.problem import STAY

KERNELS = variants("setRowReadRow", STAY, "rows stored, rows loaded", "no conflicts", sets=row, reads=row)
