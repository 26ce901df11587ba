"""Padding: an unused column puts the elements of a column in different banks.

Shared memory has 32 banks, and consecutive words are in consecutive banks. If
rows have 32 floats, a whole column is in one bank: a warp that reads a column
is served one thread at a time.

Through the tile, loads and stores of global memory are coalesced, but the tile
is read by columns. Change its declaration, and nothing else.

Grade it with: smembench lesson solve padding
"""

from numba import cuda, float32


@cuda.jit
def transpose(out, inp):
    tile = cuda.shared.array((32, 32), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y

    x, y = 32 * cuda.blockIdx.x + tx, 32 * cuda.blockIdx.y + ty
    if y < inp.shape[0] and x < inp.shape[1]:
        tile[ty, tx] = inp[y, x]

    cuda.syncthreads()

    x, y = 32 * cuda.blockIdx.y + tx, 32 * cuda.blockIdx.x + ty
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[tx, ty]
