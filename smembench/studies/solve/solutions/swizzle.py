"""c ^ r takes each value from 0 to 31 once, along a row and down a column. The
load looks for element (tx, ty) where the store has put it.
"""

from numba import cuda, float32


@cuda.jit
def transpose(out, inp):
    tile = cuda.shared.array((32, 32), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y

    x, y = 32 * cuda.blockIdx.x + tx, 32 * cuda.blockIdx.y + ty
    if y < inp.shape[0] and x < inp.shape[1]:
        tile[ty, tx ^ ty] = inp[y, x]

    cuda.syncthreads()

    x, y = 32 * cuda.blockIdx.y + tx, 32 * cuda.blockIdx.x + ty
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[tx, ty ^ tx]
