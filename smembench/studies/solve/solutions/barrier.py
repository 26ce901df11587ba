"""Accesses depend on whether a thread has an element; barriers do not."""

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
        if t < count:
            out[begin + t] = part[count - 1 - t]
        cuda.syncthreads()
