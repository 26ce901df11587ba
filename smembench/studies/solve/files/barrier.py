"""Barrier: every thread of a block must reach the same cuda.syncthreads().

The kernel of the exercise "race", for a vector of any length: each block
reverses parts of 128 elements. The last part may be shorter, and threads
without an element skip the first barrier. They then wait at the second one
while the others wait at the first: the result is undefined.

Let all threads reach both barriers, without accesses outside the arrays.

Grade it with: smembench lesson solve barrier
"""

from numba import cuda, float32


@cuda.jit
def reverse_parts(out, inp):
    part = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    for begin in range(128 * cuda.blockIdx.x, inp.size, 128 * cuda.gridDim.x):
        count = min(128, inp.size - begin)
        if t < count:
            part[t] = inp[begin + t]
            cuda.syncthreads()
            out[begin + t] = part[count - 1 - t]
        cuda.syncthreads()
