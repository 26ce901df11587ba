"""Two barriers per row: one between its stores and its loads, and one before
the next row overwrites it.
"""

from numba import cuda, float32


@cuda.jit
def reverse_rows(out, inp):
    row = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    for y in range(cuda.blockIdx.x, inp.shape[0], cuda.gridDim.x):
        row[t] = inp[y, t]
        cuda.syncthreads()
        out[y, t] = row[127 - t]
        cuda.syncthreads()
