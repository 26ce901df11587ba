"""The column follows threadIdx.x: a warp accesses 32 neighbouring floats."""

from numba import cuda


@cuda.jit
def double(out, inp):
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    column = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if row < inp.shape[0] and column < inp.shape[1]:
        out[row, column] = 2 * inp[row, column]
