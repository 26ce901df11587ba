"""setRowReadCol: each warp stores along rows of the tile and loads down its columns, as a transpose does.

``tile[threadIdx.y][threadIdx.x]`` is stored and ``tile[icol][irow]`` loaded, where icol and irow are the thread's
place in the transposed block: the load of a 32-wide tile of 4-byte elements has a 32-way conflict (16-way in a 32×16
block), the store has none. One column of padding frees the load; in a 32×16 block, whose warps take two columns of 16,
it takes two. In a square block this is the slides' ``threadIdx.x * blockDim.y + threadIdx.y``; in a rectangle theirs
is the index in a tile whose rows are ``blockDim.y`` long, while here they keep ``blockDim.x`` and their padding.
"""

from smembench.kernels.access.passes import column, row, variants
from smembench.kernels.access.problem import READ_COLUMNS

KERNELS = variants(
    "setRowReadCol",
    READ_COLUMNS,
    "rows stored, columns loaded",
    "bank conflicts on the load",
    sets=row,
    reads=column,
    standard=("", "Pad"),
)
