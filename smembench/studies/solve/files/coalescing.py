"""Coalescing: let the threads of a warp access neighbouring elements.

The 32 threads of a warp have consecutive threadIdx.x. A memory request of a
warp moves whole sectors of 32 bytes: 4 if its 32 floats are neighbours, 32 if
each is in a row of its own.

This kernel is correct, but each warp walks down a column. Make it walk along a
row. The grid has enough blocks in x and y for both ways.

Grade it with: smembench lesson solve coalescing
"""

from numba import cuda


@cuda.jit
def double(out, inp):
    row = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    column = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if row < inp.shape[0] and column < inp.shape[1]:
        out[row, column] = 2 * inp[row, column]
